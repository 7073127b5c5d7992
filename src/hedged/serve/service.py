"""All that calls work with, in one process."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from PIL import Image

from hedged.errors import HedgedError
from hedged.serve import tasks
from hedged.serve.audits import Audits
from hedged.serve.bodies import Body, Inputs, is_of_vectors
from hedged.serve.desk import Desk
from hedged.serve.guard import Metrics, Rates
from hedged.serve.keys import Keys
from hedged.serve.pictures import Pictures
from hedged.serve.places import Places
from hedged.serve.records import Records
from hedged.serve.room import Model
from hedged.serve.settings import Settings
from hedged.serve.tasks import Answer

LOGGER = logging.getLogger("hedged.serve")


@final
@dataclass(frozen=True)
class Service:
    """All that calls work with.

    Args:
        settings: What is served.
        keys: Who may ask.
        model: The model.
        places: What clients are told instead of where model and store are.
        desk: Answers questions about inputs.
        records: Reads and writes the store.
        audits: What may be wrong with the store.
        metrics: What is counted.
        rates: Of requests.
    """

    settings: Settings
    keys: Keys
    model: Model
    places: Places
    desk: Desk
    records: Records
    audits: Audits
    metrics: Metrics
    rates: Rates

    @classmethod
    def of(cls, settings: Settings) -> Service:
        """Load the model and open the store.

        Args:
            settings: What is served.
        """
        keys = Keys.read(settings.keys) if settings.keys else Keys.of_one(settings.key or Keys.new_key())
        model = Model(settings)
        audits = Audits(model, settings.store, settings.limits.seconds)
        records = Records(model, settings.store, Pictures(settings.pictures), audits)
        return cls(
            settings,
            keys,
            model,
            Places(model.folder, settings.store, records.name),
            Desk(model, settings.store, settings.limits),
            records,
            audits,
            Metrics.new(),
            Rates(settings.limits.rate),
        )

    def warm_up(self) -> None:
        """Do once what takes seconds the first time: compile loops, build the index, learn who is in the store."""
        shape = self.model.embedder.architecture.shape
        inputs: Inputs = np.ones((2, *shape), np.float32) if is_of_vectors(self.model.embedder) else [_grey(shape)] * 2
        for task in (tasks.Match(), tasks.Search(5), tasks.Identify(3, 0.1, None)):
            try:
                self.desk.submit(task, inputs).result()
            except HedgedError as error:  # an empty store, say: whoever asks for this is told
                LOGGER.info("not ready for every call: %s", error)

    async def ask(self, task: tasks.Task[Answer], body: Body) -> list[Answer]:
        """The answers to a task, counted.

        Args:
            task: What is asked.
            body: Of the request.
        """
        self.metrics.inputs.inc(len(body.inputs))
        self.metrics.waiting.set(self.desk.waiting + len(body.inputs))
        try:
            return await self.desk.ask(task, body.inputs)
        finally:
            self.metrics.waiting.set(self.desk.waiting)

    def close(self) -> None:
        """Finish what waits, and stop."""
        self.desk.close()
        self.records.close()
        self.audits.close()


def _grey(shape: Sequence[int]) -> bytes:
    """An image file of a shape (C, H, W) in which there is nothing to see."""
    content = io.BytesIO()
    Image.new("L" if shape[0] == 1 else "RGB", (shape[2], shape[1])).save(content, "PNG")
    return content.getvalue()

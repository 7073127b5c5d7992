"""All that calls work with, in one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from hedged.serve import tasks
from hedged.serve.bodies import Body
from hedged.serve.desk import Desk
from hedged.serve.guard import Metrics, Rates
from hedged.serve.keys import Keys
from hedged.serve.pictures import Pictures
from hedged.serve.records import Records
from hedged.serve.room import Model
from hedged.serve.settings import Settings


@final
@dataclass(frozen=True)
class Service:
    """All that calls work with.

    Args:
        settings: What is served.
        keys: Who may ask.
        model: The model.
        desk: Answers questions about inputs.
        records: Reads and writes the store.
        metrics: What is counted.
        rates: Of requests.
    """

    settings: Settings
    keys: Keys
    model: Model
    desk: Desk
    records: Records
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
        return cls(
            settings,
            keys,
            model,
            Desk(model, settings.store, settings.limits),
            Records(model, settings.store, Pictures(settings.pictures)),
            Metrics.new(),
            Rates(settings.limits.rate),
        )

    async def ask(self, task: tasks.Task, body: Body) -> list[dict[str, Any]]:
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

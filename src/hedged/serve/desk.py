"""The desk: one thread embeds the inputs of all requests and answers them; what waits together is done together."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.distributions import Distribution, concatenate
from hedged.errors import HedgedError
from hedged.serve.refusals import busy
from hedged.serve.room import Model, Room
from hedged.serve.settings import Limits
from hedged.serve.tasks import Answer, Task

LOGGER = logging.getLogger("hedged.serve")
Inputs: TypeAlias = list[bytes] | NDArray[np.float32]
Answers: TypeAlias = list[Any]


@final
@dataclass(frozen=True)
class _Job:
    """A task and its inputs, and where the answers go."""

    task: Task[Any]
    inputs: Inputs
    answers: Future[Answers] = field(default_factory=Future)


@final
class Desk:
    """The model, and the store as far as it is searched, in a thread of their own.

    Args:
        model: The model.
        location: The path or address of the store.
        limits: How many inputs may wait.
    """

    def __init__(self, model: Model, location: str, limits: Limits) -> None:
        self._model, self._location, self._limits = model, location, limits
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._waiting, self._counting = 0, threading.Lock()
        self._thread = threading.Thread(target=self._work, name="hedged-desk", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many inputs wait or are being worked on."""
        return self._waiting

    async def ask(self, task: Task[Answer], inputs: Inputs) -> list[Answer]:
        """The answers to a task about some inputs.

        Args:
            task: What is asked.
            inputs: The content of image files, or vectors `(n, F)`.
        """
        return await asyncio.wrap_future(self.submit(task, inputs))

    def submit(self, task: Task[Any], inputs: Inputs) -> Future[Answers]:
        """The same, for a caller that need not wait.

        Args:
            task: What is asked.
            inputs: The content of image files, or vectors `(n, F)`.
        """
        job = _Job(task, inputs)
        with self._counting:
            if self._waiting and self._waiting + len(inputs) > self._limits.waiting:
                raise busy(f"{self._waiting:,} inputs wait for the model: try again in a second")
            self._waiting += len(inputs)
        job.answers.add_done_callback(lambda _: self._leave(len(inputs)))
        self._jobs.put(job)
        return job.answers

    def close(self) -> None:
        """Finish what waits, and stop."""
        self._jobs.put(None)
        self._thread.join()

    def _leave(self, inputs: int) -> None:
        with self._counting:
            self._waiting -= inputs

    def _work(self) -> None:
        room = Room(self._model, self._location)
        while (first := self._jobs.get()) is not None:
            jobs, last = self._more(first)
            jobs = [job for job in jobs if job.answers.set_running_or_notify_cancel()]
            with torch.inference_mode():
                for task in dict.fromkeys(job.task for job in jobs):
                    self._answer(room, task, [job for job in jobs if job.task == task])
            if last:
                break
        room.close()

    def _more(self, first: _Job) -> tuple[list[_Job], bool]:
        """The first job and those that wait behind it, up to a batch; whether the end was among them."""
        jobs, count = [first], len(first.inputs)
        while count < self._limits.batch:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return jobs, True
            jobs.append(job)
            count += len(job.inputs)
        return jobs, False

    def _answer(self, room: Room, task: Task[Any], jobs: Sequence[_Job]) -> None:
        """Answer some jobs together; if that fails, each by itself, so that one bad input is the trouble of one."""
        try:
            found = self._together(room, task, [job.inputs for job in jobs])
        except HedgedError as error:
            if len(jobs) == 1:
                jobs[0].answers.set_exception(error)
                return
            for job in jobs:
                self._answer(room, task, [job])
        except BaseException as error:  # a bug: the client hears of it, and the desk stays open
            LOGGER.exception("a task failed")
            for job in jobs:
                job.answers.set_exception(error)
        else:
            start = 0
            for job in jobs:
                stop = start + len(job.inputs) // task.inputs_each
                job.answers.set_result(found[start:stop])
                start = stop

    def _together(self, room: Room, task: Task[Any], inputs: Sequence[Inputs]) -> Answers:
        embedder = self._model.embedder
        images = [one for some in inputs if isinstance(some, list) for one in some]
        given = images or np.concatenate([some for some in inputs if not isinstance(some, list)])
        embedded: list[tuple[Distribution, torch.Tensor | None]] = [
            embedder.embed_with_novelty(given[start : start + self._limits.batch])
            for start in range(0, len(given), self._limits.batch)
        ]
        z = concatenate([part for part, _ in embedded])
        told = [one for _, part in embedded if part is not None for one in part.tolist()]
        return task.answers(room, z, told or [None] * len(z))

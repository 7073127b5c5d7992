"""Two processes that begin the same work at one moment, and what came of each."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Barrier
from typing import Any, NamedTuple

import torch

from hedged.errors import HedgedError

PATIENCE = 600  # seconds: processes may be stopped while another measures


class Outcome(NamedTuple):
    """What a process did: what it says is done, or why it was refused."""

    process: int | None
    done: Any
    refusal: str


def forkserver() -> ForkServerContext:
    """Processes that start in a moment: what they need is imported once, in the process that they are copies of."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["faiss", "hedged.match._closed_form.loops.gaussians", "hedged.search.engines._faiss", "tiny"]
    )
    return context


def race(context: ForkServerContext, work: Callable[..., Any], *arguments: tuple[Any, ...]) -> list[Outcome]:
    """Let a process for each of the arguments do the work, all from one moment on."""
    barrier = context.Barrier(len(arguments))
    pipes = [context.Pipe(duplex=False) for _ in arguments]
    runners = [
        context.Process(target=_run, args=(barrier, tell, work, given))
        for given, (_, tell) in zip(arguments, pipes, strict=True)
    ]
    for runner in runners:
        runner.start()
    outcomes = []
    for runner, (told, tell) in zip(runners, pipes, strict=True):
        tell.close()
        assert told.poll(PATIENCE), "a process said nothing"
        done, refusal = told.recv()
        outcomes.append(Outcome(runner.pid, done, refusal))
        runner.join()
    return outcomes


def _run(barrier: Barrier, tell: Connection, work: Callable[..., Any], given: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    barrier.wait(PATIENCE)
    try:
        tell.send((work(*given), ""))
    except HedgedError as error:
        tell.send((None, str(error)))

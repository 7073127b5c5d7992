"""Functions run by several processes at once, as a launcher would run them."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import distributed

PATIENCE = 120.0  # seconds


def run_together(count: int, work: Callable[..., Any], *arguments: Any, answers: int | None = None) -> list[Any]:
    """What `work(*arguments)` returns in each of `count` processes, in the order of ranks, or the error it raises.

    So many of them answer: all, unless given.
    """
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        results: Any = context.Queue()
        given = (results, count, Path(folder) / "meeting", work, arguments)
        processes = [context.Process(target=_one, args=(rank, *given)) for rank in range(count)]
        for process in processes:
            process.start()
        found = dict(results.get(timeout=PATIENCE) for _ in range(answers or count))
        for process in processes:
            process.join(PATIENCE)
    return [found[rank] for rank in sorted(found)]


def _one(rank: int, results: Any, count: int, meeting: Path, work: Callable[..., Any], arguments: Any) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=count)
    try:
        results.put((rank, work(*arguments)))
    except Exception as error:
        results.put((rank, error))
    results.close()
    results.join_thread()

"""Work shared among the cores of this machine: how many there are, and a compiled loop on all of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor


def cores() -> int:
    """The cores that are given to this process, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="hedged")


os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has the pool but not its threads


def share(
    loop: Callable[..., None], count: int, least: int, *arguments: Tensor | NDArray[Any] | tuple[Any, ...] | int
) -> None:
    """Call `loop(first, last, *arguments)` on parts of range(count), each of at least `least` items, at the same time.

    Tensors are handed on as arrays of the same memory.
    """
    import torch  # late: the command line asks for the number of cores before it needs torch

    arrays: list[Any] = [x.detach().numpy() if isinstance(x, torch.Tensor) else x for x in arguments]
    threads = min(torch.get_num_threads(), count // least)
    if threads <= 1:
        loop(0, count, *arrays)
        return
    ends = [count * i // threads for i in range(threads + 1)]
    for done in [_pool(threads).submit(loop, *part, *arrays) for part in pairwise(ends)]:
        done.result()

"""Sharing the work of a compiled loop among threads: as many as torch has, each with enough to do."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


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
    arrays: list[Any] = [x.detach().numpy() if isinstance(x, Tensor) else x for x in arguments]
    threads = min(torch.get_num_threads(), count // least)
    if threads <= 1:
        loop(0, count, *arrays)
        return
    ends = [count * i // threads for i in range(threads + 1)]
    for done in [_pool(threads).submit(loop, *part, *arrays) for part in pairwise(ends)]:
        done.result()

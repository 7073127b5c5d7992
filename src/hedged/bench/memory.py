"""How much memory a piece of work needs beyond what the process has already."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

PERIOD = 2e-3  # seconds between two looks


def growth(work: Callable[[], Any]) -> float:
    """The most megabytes that the process grew by while it worked, by looking at it again and again.

    Args:
        work: What to run.
    """
    begun = _resident()
    most, done = begun, threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.is_set():
            most = max(most, _resident())
            time.sleep(PERIOD)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return most - begun


def _resident() -> float:
    """Megabytes in use now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def loss_growth(batch: int = 1_024, dim: int = 128) -> float:
    """Megabytes that the loss of all pairs of a batch needs, forward and backward.

    Args:
        batch: Images in a batch.
        dim: Dimensions of their embeddings.
    """
    from hedged.distributions import Gaussian
    from hedged.losses import HedgedLoss
    from hedged.match import MatchCurve

    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(batch, dim, generator=generator).div_(dim**0.5).requires_grad_()
    variance = torch.full((batch, dim), 1e-3, requires_grad=True)
    labels, loss = torch.arange(batch) // 4, HedgedLoss(MatchCurve())
    loss(Gaussian(mean[:8], variance[:8]), labels[:8]).backward()
    return growth(lambda: loss(Gaussian(mean, variance), labels).backward())

"""Progress that suits where it is shown: a bar with rate and ETA on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Update(Protocol):
    """Tell how many units are done, with a few words about them; the last words stay until there are others."""

    def __call__(self, done: int, words: str = "") -> None: ...


@contextmanager
def progress(label: str, total: int, start: int = 0) -> Iterator[Update]:
    """Show progress of `total` units on standard error, the first `start` of them done before."""
    with _bar(label, total, start) if sys.stderr.isatty() else _lines(label, total, start) as update:
        yield update


@contextmanager
def _bar(label: str, total: int, start: int) -> Iterator[Update]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
    words = (TimeRemainingColumn(), TextColumn("{task.fields[words]}"))
    with Progress(*columns, *words, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total, completed=start, rate="", words="")
        begun = time.monotonic()

        def update(done: int, words: str = "") -> None:
            rate = max(done - start, 0) / max(time.monotonic() - begun, 1e-9)
            bar.update(task, completed=done, rate=f"{rate:.1f}/s")
            if words:
                bar.update(task, words=words)

        yield update


@contextmanager
def _lines(label: str, total: int, start: int, every: float = 10.0) -> Iterator[Update]:
    begun = last = time.monotonic()
    last_words = ""

    def update(done: int, words: str = "") -> None:
        nonlocal last, last_words
        now, last_words = time.monotonic(), words or last_words
        if now - last < every and done < total:
            return
        last = now
        rate = max(done - start, 0) / max(now - begun, 1e-9)
        left = f"{duration((total - done) / rate)} left  " if rate else ""
        line = f"{label} {done}/{total}  {rate:.1f}/s  {left}{last_words}"
        print(line.rstrip(), file=sys.stderr, flush=True)

    yield update


def duration(seconds: float) -> str:
    """A length of time in words.

    >>> duration(48.2), duration(400), duration(9_300)
    ('48 s', '6 min 40 s', '2 h 35 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"

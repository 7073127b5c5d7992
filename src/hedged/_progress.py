"""Progress that suits where it is shown: a bar with rate and ETA on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Protocol, final

WINDOW, SPACING = 300.0, 1.0  # seconds that a rate looks back, and between the marks it keeps
SHARE = 0.1  # of all that was done: a rate looks back on no less, so that a pause does not stand for all the rest


class Update(Protocol):
    """Tell how many units are done, with a few words about them; the last words stay until there are others."""

    def __call__(self, done: int, words: str = "") -> None: ...


@contextmanager
def progress(label: str, total: int, start: int = 0) -> Iterator[Update]:
    """Show progress of `total` units on standard error, the first `start` of them done before."""
    with _bar(label, total, start) if sys.stderr.isatty() else _lines(label, total, start) as update:
        yield update


@contextmanager
def said_if_slow(words: str, seconds: float = 2.0) -> Iterator[None]:
    """Say on standard error what is being waited for, if it takes longer than this."""
    timer = Timer(seconds, _say, (words,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@final
class Pace:
    """Units a second, over the last minutes, or longer if little was done in them.

    It is unknown before the second mark: until the first unit is done, data are loaded and code is compiled, and that
    says nothing about the rest.

    >>> pace = Pace(start=0)
    >>> pace.mark(0, now=0.0), pace.mark(1, now=60.0), pace.mark(11, now=62.0)
    (None, None, 5.0)
    """

    def __init__(self, start: int) -> None:
        self._start = start
        self._marks: deque[tuple[float, int]] = deque()

    def mark(self, done: int, now: float) -> float | None:
        """Tell how many units are done by now; the rate, None where it is unknown."""
        if done <= self._start:
            return None
        if not self._marks or (now - self._marks[-1][0] >= SPACING and done > self._marks[-1][1]):
            self._marks.append((now, done))
        while len(self._marks) > 1 and self._is_enough(*self._marks[1], done, now):
            self._marks.popleft()
        since, before = self._marks[0]
        return (done - before) / (now - since) if done > before and now > since else None

    def _is_enough(self, since: float, before: int, done: int, now: float) -> bool:
        """Whether to look back on a mark and no further."""
        return since <= now - WINDOW and done - before >= SHARE * (done - self._start)


def _pace_text(rate: float | None, left: int) -> str:
    """A rate, and how long that many units will take."""
    if rate is None:
        return ""
    return f"{rate:.1f}/s  {duration(left / rate)} left" if left > 0 else f"{rate:.1f}/s"


@contextmanager
def _bar(label: str, total: int, start: int) -> Iterator[Update]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    fields = (TextColumn("{task.fields[pace]}"), TextColumn("{task.fields[words]}"))
    with Progress(*columns, *fields, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total, completed=start, pace="", words="")
        pace = Pace(start)

        def update(done: int, words: str = "") -> None:
            bar.update(task, completed=done, pace=_pace_text(pace.mark(done, time.monotonic()), total - done))
            if words:
                bar.update(task, words=words)

        yield update


@contextmanager
def _lines(label: str, total: int, start: int, every: float = 10.0) -> Iterator[Update]:
    pace, last, last_words = Pace(start), time.monotonic(), ""

    def update(done: int, words: str = "") -> None:
        nonlocal last, last_words
        now, last_words = time.monotonic(), words or last_words
        rate = pace.mark(done, now)
        if now - last < every and done < total:
            return
        last = now
        parts = (f"{label} {done}/{total}", _pace_text(rate, total - done), last_words)
        _say("  ".join(filter(None, parts)))

    yield update


def _say(words: str) -> None:
    """A line on standard error, as far as that can be written to: no work ends because nobody can be told of it."""
    with suppress(OSError):
        print(words, file=sys.stderr, flush=True)


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

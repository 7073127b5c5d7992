"""Progress: a rate that one slow step does not spoil, as plain lines and as a bar on a terminal."""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedged._progress import WINDOW, Pace, progress, said_if_slow


class Clock:
    """Time passes when a test says so."""

    now = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("hedged._progress.time.monotonic", lambda: clock.now)
    return clock


def test_the_first_line_promises_nothing_and_later_ones_forget_the_slow_start(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("training", 801) as update:
        clock.now += 60  # compiles
        update(1, "loss 0.7")
        for step in range(2, 802):
            clock.now += 0.125
            update(step)
    first, *others = capsys.readouterr().err.splitlines()
    assert first == "training 1/801  loss 0.7"
    assert others[0] == "training 81/801  8.0/s  1 min 30 s left  loss 0.7"
    assert others[-1] == "training 801/801  8.0/s  loss 0.7"
    assert len(others) == 10


def test_what_was_done_before_does_not_count_as_fast(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("models", 10_000, start=9_000) as update:
        for done in (9_000, 9_000, 9_050, 9_150):
            clock.now += 10
            update(done)
    assert capsys.readouterr().err.splitlines() == [
        "models 9000/10000",
        "models 9000/10000",
        "models 9050/10000",
        "models 9150/10000  10.0/s  1 min 25 s left",
    ]


def test_a_single_unit_has_no_rate(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("embedding", 1) as update:
        clock.now += 1
        update(1)
    assert capsys.readouterr().err == "embedding 1/1\n"


def test_a_rate_is_that_of_the_last_minutes() -> None:
    pace = Pace(start=0)
    for second in range(1, 1001):
        slow = pace.mark(second, now=float(second))
    assert slow == 1.0
    for second in range(1, int(WINDOW) + 1):
        fast = pace.mark(1000 + 50 * second, now=1000.0 + second)
    assert fast == 50.0


def test_work_that_stands_still_slows_down() -> None:
    pace = Pace(start=0)
    pace.mark(1, now=1.0)
    assert pace.mark(5, now=2.0) == 4.0
    assert pace.mark(5, now=1.0 + 2 * WINDOW) == 4 / (2 * WINDOW)


def test_the_first_steps_after_a_long_pause_do_not_stand_for_all_the_rest() -> None:
    pace = Pace(start=0)
    for second in range(1, 101):
        pace.mark(100 * second, now=float(second))
    rate = pace.mark(10_003, now=100 + 2 * WINDOW)
    assert rate is not None
    assert rate > 0.1 * 10_000 / (2 * WINDOW + 100)


@given(st.lists(st.tuples(st.floats(0.0, 400.0), st.integers(0, 100)), max_size=40))
def test_a_rate_lies_between_the_slowest_and_the_fastest_part(parts: list[tuple[float, int]]) -> None:
    pace, now, done = Pace(start=0), 0.0, 0
    speeds: list[float] = []
    for seconds, units in parts:
        begun = done > 0
        now, done = now + seconds, done + units
        if begun:
            speeds.append(units / seconds if seconds else float("inf"))
        rate = pace.mark(done, now)
        if rate is not None:
            assert min(speeds) <= rate * (1 + 1e-9)
            assert rate <= max(speeds) * (1 + 1e-9)


def read_all(terminal: int) -> str:
    """What was written to a terminal whose other end is closed; it comes in parts."""
    parts = []
    with suppress(OSError):  # how the end is told
        while part := os.read(terminal, 100_000):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()


def test_a_bar_shows_the_rate_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, end = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with os.fdopen(end, "w") as screen:
        monkeypatch.setattr(sys, "stderr", screen)
        with progress("training", 3) as update:
            update(1)
            time.sleep(0.02)
            update(2, "loss 0.5")
    shown = read_all(terminal)
    assert re.search(r"training.*2/3.*\d+\.\d/s.*0 s left.*loss 0\.5", shown)


def test_what_takes_long_is_said_and_what_does_not_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with said_if_slow("quick", seconds=60):
        pass
    said = ""
    with said_if_slow("slow", seconds=0):
        while not said:
            time.sleep(0.01)
            said = capsys.readouterr().err
    assert said == "slow\n"

"""Claims of the text: those that are timed compare like with like."""

from __future__ import annotations

import pytest

from hedged.paper.claims import by_turns


class Clock:
    """Time passes when somebody works; `done` is who did."""

    def __init__(self) -> None:
        self.now = 0.0
        self.done: list[str] = []

    def work(self, name: str, seconds: float) -> None:
        self.done.append(name)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("hedged.paper.claims.time.perf_counter", lambda: clock.now)
    return clock


def test_two_calls_take_turns_after_one_that_is_not_counted(clock: Clock) -> None:
    def work(name: str, seconds: float) -> None:
        clock.work(name, 60.0 if len(clock.done) < 2 else seconds)  # the first of each compiles

    assert by_turns(lambda: work("one", 2.0), lambda: work("other", 3.0), turns=1) == (2.0, 3.0)
    clock.done.clear()
    by_turns(lambda: work("one", 2.0), lambda: work("other", 3.0), turns=4)
    assert clock.done == ["other", "one", "one", "other"] * 2 + ["other", "one"]


def test_a_machine_that_is_slow_for_a_while_is_slow_for_both(clock: Clock) -> None:
    """One after the other, instead of by turns, would find a ratio of ten."""

    def work(name: str) -> None:
        clock.work(name, 10.0 if len(clock.done) >= 22 else 1.0)

    one, other = by_turns(lambda: work("one"), lambda: work("other"), turns=21)
    assert one == other

"""What is refused, with the status and the words of the answer."""

from __future__ import annotations

from typing import final


@final
class Refused(Exception):
    """A request that is not done.

    Args:
        status: The status to answer with.
        words: Why, and what to do.
        wait: Seconds after which it may be tried again; None: that would not help.
    """

    def __init__(self, status: int, words: str, wait: int | None = None) -> None:
        super().__init__(words)
        self.status = status
        self._wait = wait

    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        return {} if self._wait is None else {"retry-after": str(self._wait)}


def conflict(words: str) -> Refused:
    """What was asked for does not fit what the store holds now.

    Args:
        words: What does not fit, and what to do.
    """
    return Refused(409, words)


def busy(words: str, wait: int = 1) -> Refused:
    """More is going on than can be taken at a time.

    Args:
        words: What is going on, and what to do.
        wait: Seconds after which it may be tried again.
    """
    return Refused(503, words, wait)

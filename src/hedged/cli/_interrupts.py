"""Ctrl-C while programs are still being loaded: said in one line, whatever was being imported."""

import os  # and no more: all that is imported before the first `interrupted_early` ends in a traceback
import signal
import threading
from types import FrameType, TracebackType

EARLY = b"hedged: interrupted before it began\n"


def _end(number: int, frame: FrameType | None) -> None:
    """Nothing was begun, so nothing has to be ended; an exception might be lost in a library that is half loaded."""
    os.write(2, EARLY)
    os._exit(2)


class InterruptedEarly:
    """While `with` lasts, Ctrl-C ends the program at once; if it was to raise KeyboardInterrupt, and we may decide."""

    _is_ours = False

    def __enter__(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        self._is_ours = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_ours:
            signal.signal(signal.SIGINT, _end)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """From now on Ctrl-C raises KeyboardInterrupt again."""
        if self._is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self._is_ours = False

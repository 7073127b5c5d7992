"""What a user sees when a verb fails: one message, exit code 2, and no traceback unless it was asked for."""

from __future__ import annotations

import errno
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from hedged.cli._output import complain, printable_lines
from hedged.cli._verbs import LazyVerbs
from hedged.errors import HedgedError

EXIT_CODE = 2
# What an error of torch's, Python's or the system's says: of tensors, of threads, of libraries that are loaded.
NO_MEMORY = ("can't allocate memory", "can't start new thread", "failed to map segment")


class Verbs(TyperGroup):
    """The verbs, with every failure that is no bug of hedged turned into a message."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyVerbs()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (HedgedError, OSError, MemoryError, RuntimeError, ImportError, KeyboardInterrupt) as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise  # nobody reads on: typer ends quietly
            may_be_bug = isinstance(error, RuntimeError | ImportError) and not isinstance(error, HedgedError)
            if may_be_bug and not _is_of_memory(error):
                raise
            if ctx.params.get("debug"):
                complain(printable_lines(traceback.format_exc()).rstrip("\n"))
            complain(f"hedged: {printable_lines(_words(error))}")
            raise typer.Exit(EXIT_CODE) from error
        except EOFError as error:  # which click takes for Ctrl-D, and hides
            raise RuntimeError("a bug in hedged: a file ended where it should not") from error


def _is_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)


def _words(error: BaseException) -> str:
    if _is_of_memory(error):
        return (
            "there is not enough memory; files that were being written are as they were before. Close other programs, "
            "or give fewer inputs at a time"
        )
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; files that were being written are as they were before"
    if isinstance(error, HedgedError) or not isinstance(error, OSError):
        return str(error)
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}; check the path, its permissions and the space left on the disk"

"""The command line: one file a verb (`_verbs.py` lists them). No torch before a verb needs it: `--help` is quick."""

from hedged.cli._interrupts import InterruptedEarly

early = InterruptedEarly()
early.__enter__()  # until all is imported

import gc  # noqa: E402
import io  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from typing import Annotated, Any  # noqa: E402

import typer  # noqa: E402

from hedged import __version__  # noqa: E402
from hedged.cli._failures import EXIT_CODE, Verbs  # noqa: E402
from hedged.cli._output import complain, log_to_stderr, say  # noqa: E402
from hedged.errors import RunError  # noqa: E402

early.end()

app = typer.Typer(
    cls=Verbs,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: it reads the same in a terminal, a pipe and a log, and needs no rich
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        say(f"hedged {__version__}")
        raise typer.Exit


@app.callback(epilog="`hedged COMMAND --help` explains a command, with examples. Start with `hedged demo`.")
def hedged(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="HEDGED_DEBUG", help="If a command fails, show the traceback as well.")
    ] = False,
) -> None:
    """Embeddings that know what they don't know.

    Each input, an image or a vector of another model, becomes a distribution. Two inputs get a match probability, and
    each gets an uncertainty.
    """
    early.end()
    log_to_stderr()
    try:
        os.getcwd()
    except FileNotFoundError as error:  # torch would abort
        raise RunError("the current folder was deleted: go to another one with `cd`") from error


def main() -> None:
    """Run the command line. Exit code 0: done; 2: something was wrong, said in one message on standard error."""
    early.__enter__()  # until a verb begins
    gc.set_threshold(100_000)  # imports make objects that stay: to search them for garbage is a sixth of the start-up
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # where the terminal has no η, a mark instead of a failure
    try:
        try:
            app(prog_name="hedged")
        finally:
            early.end()
            gc.freeze()  # and the interpreter, when it ends, would search them once more
            _flush_errors()
            sys.stdout.flush()
    except OSError as error:  # of standard output itself: full, or nobody reads it any more (`hedged … | head`)
        _silence(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            complain(f"hedged: cannot write to standard output: {error.strerror}; send it elsewhere")
        _flush_errors()
        sys.exit(EXIT_CODE)


def _open_closed_streams() -> None:
    """Where a shell has closed a stream (`>&-`), open one: else the next file that is opened would take its place.

    What is written to a closed standard output is an error, as it is to a full one; standard error goes nowhere.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the program runs


def _flush_errors() -> None:
    try:
        sys.stderr.flush()
    except OSError:
        _silence(sys.stderr)


def _silence(stream: Any) -> None:
    """Let a stream that cannot be written go nowhere: else the interpreter complains at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

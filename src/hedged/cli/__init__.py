"""The command line: one file a verb (`_verbs.py` lists them). No torch before a verb needs it: `--help` is quick."""

from __future__ import annotations

import gc
import io
import os
import sys
from typing import Annotated

import typer

from hedged import __version__
from hedged.cli._failures import EXIT_CODE, Verbs
from hedged.cli._output import log_to_stderr

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
        print(f"hedged {__version__}")
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
    log_to_stderr()


def main() -> None:
    """Run the command line. Exit code 0: done; 2: something was wrong, said in one message on standard error."""
    gc.set_threshold(100_000)  # imports make objects that stay: to search them for garbage is a sixth of the start-up
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # where the terminal has no η, a mark instead of a failure
    try:
        try:
            app(prog_name="hedged")
        finally:
            gc.freeze()  # and the interpreter, when it ends, would search them once more
            sys.stdout.flush()
    except OSError as error:  # of standard output itself: full, or nobody reads it any more (`hedged … | head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at exit
        if not isinstance(error, BrokenPipeError):
            print(f"hedged: cannot write to standard output: {error.strerror}; send it elsewhere", file=sys.stderr)
        sys.exit(EXIT_CODE)

"""The verbs by name, each imported when it is asked for: of a command line, all but one are not."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any, final

import typer

from hedged.cli._interrupts import InterruptedEarly

NAMES = (
    "demo",
    "data",
    "train",
    "retrofit",
    "evaluate",
    "calibrate",
    "drift",
    "novelty",
    "embed",
    "match",
    "export",
    "index",
    "search",
    "identify",
    "cluster",
    "serve",
    "key",
    "paper",
    "bench",
)  # in the order of the help page; each is a file here, with a function of that name, or an app of several


@final
class LazyVerbs(MutableMapping[str, Any]):
    """The commands of `hedged` as Click knows them, each made on first use."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            if name not in NAMES:
                raise KeyError(name)
            with InterruptedEarly():
                self._made[name] = _command(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*NAMES, *self._made))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in NAMES or name in self._made

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]


def _command(name: str) -> Any:
    module = import_module(f"hedged.cli.{name}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(name, epilog=module.EXAMPLES)(getattr(module, name))
    command = typer.main.get_command(app)
    command.name = name
    return command

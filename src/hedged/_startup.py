"""A quick start for commands that are over in a moment: what they can do without is loaded later, or not at all.

Importing numba and loading what it compiled takes a second, and compiling it for the first time many. A few pairs take
milliseconds in plain torch. And a quarter of importing torch is the registration of Python kernels for its meta device,
which tracing and `torch.compile` need, and nothing here.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, final

LITTLE = 2**26  # terms that plain torch adds up in half the time that numba takes to load
LATER = "_meta_registrations"  # a module of torch that it imports at its start; whoever needs it imports it again


@final
class _Budget:
    """How much work is still done without numba.

    Args:
        left: Terms; no numba is needed while there are some.
    """

    def __init__(self, left: int = 0) -> None:
        self.left = left

    def covers(self, terms: int) -> bool:
        self.left = max(self.left - terms, 0)
        return self.left > 0


_budget = _Budget()


def start_quickly() -> None:
    """Import torch for little work, unless it is imported already: then this is a program of others, not a command.

    What only tracing needs is left out until it is asked for, and a few pairs are computed without compiled loops.
    """
    if "torch" in sys.modules:
        return
    _budget.left = LITTLE
    finder = _LaterFinder()
    sys.meta_path.insert(0, finder)
    try:
        import torch
    finally:
        finder.leave()
    if isinstance(sys.modules.get(finder.name), _Later):
        del sys.modules[finder.name]
        vars(torch).pop(LATER, None)


def load_the_rest() -> None:
    """Import what `start_quickly` left out of torch: before any code runs that might trace."""
    with suppress(ModuleNotFoundError):  # of a torch that has no such module, nothing was left out
        import_module(f"torch.{LATER}")


def needs_loops(terms: int) -> bool:
    """Whether so much work is worth compiled loops: always, but in a process that has started quickly.

    Args:
        terms: How many terms are added up: pairs × dimensions × terms of the expansion.
    """
    return "numba" in sys.modules or not _budget.covers(terms)


@final
class _LaterFinder(MetaPathFinder, Loader):
    """Finds an empty module in the place of the one that is left out, until anything in it is used."""

    name = f"torch.{LATER}"

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == self.name else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Later(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing in it."""

    def leave(self) -> None:
        """From now on the module itself is found."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)


@final
class _Later(ModuleType):
    """In the place of a module: the first use of anything in it imports it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked of every module by those who look for one
            raise AttributeError(name)
        loader = self.__loader__
        assert isinstance(loader, _LaterFinder)
        loader.leave()
        sys.modules.pop(self.__name__, None)
        return getattr(import_module(self.__name__), name)

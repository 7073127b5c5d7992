"""What is traced and what is not.

`torch.compile` runs as they are the loops that numba has compiled already: tracing would only get lost in them. An
export traces everything, and has no values to look at.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def is_exporting() -> bool:
    """Whether a model is being exported: shapes are known, but neither values nor how many inputs there will be."""
    asked: Callable[[], bool] = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)
    return asked()


def untraced(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, which code that is traced calls as it is, with gradients.

    Unlike `torch.compiler.disable` itself this imports nothing before something is traced.

    Args:
        function: What is not to be traced.
    """

    @wraps(function)
    def run(*arguments: P.args, **named: P.kwargs) -> R:
        if torch.compiler.is_compiling():
            disabled: Callable[P, R] = torch.compiler.disable(function)  # type: ignore[no-untyped-call]
            return disabled(*arguments, **named)
        return function(*arguments, **named)

    return run

"""What a user can do wrong, said in words: what was given, what was expected, what to do instead.

Every error that hedged raises on purpose is a `HedgedError`; the command line prints its message and exits with
code 2. Each subclass also derives from the built-in error a Python programmer would expect to catch.
"""

from __future__ import annotations


class HedgedError(Exception):
    """Base of all errors that hedged raises on purpose."""


class ShapeError(HedgedError, ValueError):
    """Tensors whose shapes or dimensions do not fit together."""


class ValueRangeError(HedgedError, ValueError):
    """A value outside what the mathematics allows: NaN, a variance that is not positive, a ≤ 0, β < 0."""


class DataError(HedgedError, ValueError):
    """Data that is missing, damaged or of another kind than asked for.

    Args:
        message: What is wrong and what to do instead.
        reason: What is wrong, without the advice, for those who cannot follow it; the message if not given.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class ConfigError(HedgedError, ValueError):
    """A configuration that names an unknown key, a wrong type or an impossible value."""


class RunError(HedgedError, OSError):
    """A run folder, model or checkpoint that cannot be read, written or trusted."""


class StoreError(HedgedError, OSError):
    """A store of embeddings that cannot be reached, read, written or trusted."""


class TrainingError(HedgedError, RuntimeError):
    """Training that cannot go on, such as a loss that is no longer finite."""


class MissingDependencyError(HedgedError, ImportError):
    """An optional package that this call needs and that is not installed."""

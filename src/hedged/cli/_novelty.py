"""Novelty as it is shown beside η: a share, or that it is not known and how to find it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def shown(novelty: float | None) -> str:
    """Novelty in a line of text.

    Args:
        novelty: Of an input; None if it is not known.

    >>> shown(0.98765), shown(None)
    ('0.9877', 'unknown')
    """
    return "unknown" if novelty is None else f"{novelty:.4f}"


def how_to_know(run: Path) -> str:
    """What to say, once, where a model does not tell novelty.

    Args:
        run: The folder of the model.
    """
    can_be_fitted = (run / "config.toml").exists()  # which names the training inputs
    return f"unknown, fit it with `hedged novelty {run}`" if can_be_fitted else "unknown to this model"


def of_each(novelty: Sequence[float], count: int) -> list[float | None]:
    """The novelty of each of several inputs.

    Args:
        novelty: As `hedged.cli._inputs` has it: empty if it is not known.
        count: How many inputs there are.
    """
    return list(novelty) or [None] * count

"""Clean and corrupt: the two conditions that everything is measured in."""

from __future__ import annotations

from typing import Literal

Condition = Literal["clean", "corrupt"]
"""The inputs as they are, or their corrupt twins."""

CONDITIONS: tuple[Condition, ...] = ("clean", "corrupt")
"""Both, in the order in which they are reported."""

GRID: tuple[tuple[Condition, Condition], ...] = (("clean", "clean"), ("clean", "corrupt"), ("corrupt", "clean"))
"""Gallery and probe, as the paper combines them: never both corrupt."""

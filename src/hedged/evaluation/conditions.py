"""Clean and corrupt: the two conditions that everything is measured in."""

from __future__ import annotations

from typing import Literal

Condition = Literal["clean", "corrupt"]
CONDITIONS: tuple[Condition, ...] = ("clean", "corrupt")
# Gallery and probe, as the paper combines them: never both corrupt.
GRID: tuple[tuple[Condition, Condition], ...] = (("clean", "clean"), ("clean", "corrupt"), ("corrupt", "clean"))

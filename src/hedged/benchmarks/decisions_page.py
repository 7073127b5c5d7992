"""The figure of what `hedged.benchmarks.decisions` measured."""

from __future__ import annotations

from pathlib import Path


def write_page(folder: Path) -> None:
    """For now nothing."""

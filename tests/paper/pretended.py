"""Tables of models that were never trained: what they might have measured, in the files where it would be."""

from __future__ import annotations

import json
from pathlib import Path

from hedged.evaluation import CONDITIONS, GRID
from hedged.paper.measurements import VERSION, VOTES, Cell
from hedged.paper.shelf import SAMPLED, Measured, Shelf
from hedged.paper.table import Table


def write_table(table: Table, made: Path) -> None:
    """A whole table in a folder, and what it is made of on a shelf beside it."""
    shelf = Shelf(made / "models")
    for need in table.needs({}):
        shelf.place(need.config).mkdir(parents=True, exist_ok=True)
        for test in need.tests:
            content = {"version": VERSION, "cells": _measured(test)}
            (shelf.place(need.config) / f"measured-{test}.json").write_text(json.dumps(content))
    table.write(shelf, made, {})


def _measured(test: Measured) -> list[Cell]:
    """All that is measured of a model on a test set."""
    pairs = [{"gallery": condition, "probe": condition} for condition in CONDITIONS]
    neighbours = [{"gallery": g, "probe": p, "vote": vote} for g, p in GRID for vote in VOTES]
    named = [{"metric": metric, **cell} for metric in ("verification_ap", "ap_correlation") for cell in pairs]
    named += [{"metric": metric, **cell} for metric in ("knn_accuracy", "knn_correlation") for cell in neighbours]
    repeated = {"estimator": "monte-carlo", "repeats": 10, "repeats_std": 0.1} if test == SAMPLED else {}
    return [{**cell, "measured": 0.5, **repeated} for cell in named]

"""All tables and figures of the paper by name, in the paper's order."""

from __future__ import annotations

from importlib import import_module

from hedged.errors import ConfigError
from hedged.paper.exhibits import Exhibit
from hedged.paper.tables import TABLES as TRAINED_TABLES

TABLES = (
    "main-task",
    "uncertainty-correlation",
    "dataset",
    "four-d",
    "kl",
    "knn-plurality",
    "knn-plurality-correlation",
)
FIGURES = (
    "teaser",
    "architecture",
    "embeddings-2d",
    "embedded-images",
    "uncertainty-vs-performance",
    "soft-contrastive",
    "embeddings-mog",
    "embeddings-3d",
    "pets",
    "centroids",
    "number-line",
    "kl-ellipsoids",
)
CLAIMS = "claims"
NAMES = (*TABLES, *FIGURES, CLAIMS)


def exhibit(name: str) -> Exhibit:
    """The table or figure of that name: a table of `hedged.paper.tables`, or `EXHIBIT` of the module named like it.

    >>> exhibit("main-task").title
    'Accuracy of verification and of identification, for points, one Gaussian and two'

    Args:
        name: One of `NAMES`.
    """
    if name not in NAMES:
        raise ConfigError(f"there is no table or figure {name!r}: choose one of {', '.join(NAMES)}")
    if name in TRAINED_TABLES:
        return TRAINED_TABLES[name]
    found: Exhibit = import_module(f"hedged.paper.{name.replace('-', '_')}").EXHIBIT
    return found

"""What a search finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Hit:
    """A row that may match a probe, the best of them at rank 1."""

    rank: int
    id: str
    label: str | None
    match_probability: float
    logit: float  # its log-odds, which decisions are made by
    uncertainty: float  # η of the row
    probe_uncertainty: float  # η of the probe
    metadata: Mapping[str, Any]
    key: int

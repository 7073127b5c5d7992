"""How much of what should be found is found."""

from __future__ import annotations

import numpy as np

from hedged.search import Hit


def recall_of(found: list[list[Hit]], wanted: list[list[Hit]]) -> float:
    shares = [len({h.key for h in a} & {h.key for h in b}) / len(b) for a, b in zip(found, wanted, strict=True)]
    return float(np.mean(shares))

"""Claims about where the classes lie."""

from __future__ import annotations

from hedged.evaluation.space import Space
from hedged.metrics import axis_alignment
from hedged.paper import centroids, number_line
from hedged.paper.claims.claim import Claim
from hedged.paper.shelf import Shelf


def axes_are_aligned(shelf: Shelf) -> Claim:
    point, hedged = (axis_alignment(Space(shelf.evaluation(c)).centroids).score for c in centroids.EXHIBIT.configs())
    return Claim(
        "Hedged embeddings lay out the digits along the axes",
        hedged > point,
        f"share of variance along its axis that a digit explains: {hedged:.2f} hedged, {point:.2f} point",
    )


def hedged_orders_the_line(shelf: Shelf) -> Claim:
    cells = [c for c in number_line.EXHIBIT.numbers(shelf) if c["metric"] == "shared_digit_count"]
    hedged, point = ([c["measured"] for c in cells if c["model"] == model] for model in ("mog-1", "point"))
    return Claim(
        "On the number line hedged embeddings put more classes beside one that shares a digit, in every trial",
        min(hedged) > max(point),
        f"of 99 neighbours: {', '.join(map(str, hedged))} hedged, {', '.join(map(str, point))} point",
    )

"""Claims about verification and identification."""

from __future__ import annotations

from hedged.evaluation import CONDITIONS, GRID, Condition
from hedged.evaluation.reference import Metric, Model
from hedged.metrics import Vote
from hedged.paper import soft_contrastive
from hedged.paper.claims.claim import HEDGED, Claim, mean
from hedged.paper.measurements import VOTES
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf
from hedged.training import Config

MANY = 10  # dimensions, at which "all methods perform almost perfectly"


def hedging_helps_most_when_corrupt(shelf: Shelf) -> Claim:
    def gain(metric: Metric, gallery: Condition, probe: Condition, vote: Vote | None = None) -> float:
        hedged, point = (mean(shelf, model, metric, gallery, probe, vote) for model in ("mog-1", "point"))
        return hedged - point

    ap = [gain("verification_ap", c, c) for c in CONDITIONS]
    knn = [gain("knn_accuracy", c, "clean", "majority") for c in CONDITIONS]
    return Claim(
        "Hedged beats point, most on corrupt inputs",
        ap[1] > max(ap[0], 0) and knn[1] > max(knn[0], 0),
        f"one Gaussian less point, mean of 4 settings: AP {ap[0]:+.3f} clean, {ap[1]:+.3f} corrupt; "
        f"KNN {knn[0]:+.3f} clean gallery, {knn[1]:+.3f} corrupt gallery",
    )


def soft_bounds_hard(shelf: Shelf) -> Claim:
    cells = soft_contrastive.EXHIBIT.numbers(shelf)

    def of(objective: str, metric: str, gallery: str) -> list[float]:
        wanted = (objective, metric, gallery)
        return [c["measured"] for c in cells if (c["objective"], c["metric"], c["gallery"]) == wanted]

    rows = [(metric, gallery) for metric in ("verification_ap", "knn_accuracy") for gallery in CONDITIONS]
    gaps = [of("soft-contrastive", *row)[0] - max(of("contrastive", *row)) for row in rows]
    told = ", ".join(f"{gap:+.3f}" for gap in gaps)
    return Claim(
        "Soft contrastive bounds contrastive from above, whatever the margin",
        min(gaps) >= 0,
        f"soft less the best margin: {told} (AP clean, AP corrupt, KNN clean, KNN corrupt)",
    )


def many_dimensions() -> dict[Model, Config]:
    """The models of `many_dimensions_are_enough`, by name."""
    return {model: recipe(2, MANY, model) for model in ("point", *HEDGED)}


def many_dimensions_are_enough(shelf: Shelf) -> Claim:
    told, all_high = [], True
    for model, config in many_dimensions().items():
        ap = shelf.value(config, "seen", "verification_ap", "clean", "clean")
        knn = shelf.value(config, "seen", "knn_accuracy", "clean", "clean", "majority")
        all_high &= min(ap, knn) > 0.95
        told.append(f"{model}: AP {ap:.3f}, KNN {knn:.3f}")
    return Claim(f"With more dimensions (D = {MANY}) all methods come near perfection", all_high, "; ".join(told))


def plurality_is_milder(shelf: Shelf) -> Claim:
    pairs = [[mean(shelf, "mog-1", "knn_accuracy", c, "clean", vote) for vote in VOTES] for c in CONDITIONS]
    told = "; ".join(f"{strict:.3f} by majority, {mild:.3f} by plurality" for strict, mild in pairs)
    return Claim(
        "Plurality identifies more than a majority does",
        all(strict <= mild for strict, mild in pairs),
        f"one Gaussian, mean of 4 settings, clean and corrupt gallery: {told}",
    )


def corrupt_probes_are_hardest(shelf: Shelf) -> Claim:
    clean, probe, gallery = (mean(shelf, "mog-1", "knn_accuracy", *grid, "plurality") for grid in GRID)
    return Claim(
        "A corrupt probe is harder than a corrupt gallery",
        probe < gallery,
        f"one Gaussian, mean of 4 settings: {probe:.3f} against {gallery:.3f}; {clean:.3f} if all is clean",
    )

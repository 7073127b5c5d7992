"""Every number that a table may ask of one model on one test set, measured at once and kept as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from hedged.evaluation import CONDITIONS, GRID, Array, Condition, Evaluation, match_scores
from hedged.match import MonteCarlo, self_mismatch
from hedged.metrics import (
    UncertaintyCurve,
    Vote,
    ap_curve,
    knn_curve,
    repeat,
    twin_order,
    uncertainty_auroc,
)

Cell = dict[str, Any]
VERSION = 1  # of all that is measured here: raise it when that changes, and it is measured again
VOTES: tuple[Vote, ...] = ("majority", "plurality")
SAMPLES, REPEATS = 8, 10  # of the Monte Carlo estimate of η, as the paper makes it


def measure(evaluation: Evaluation) -> dict[str, Any]:
    """`cells`, each named by metric, gallery, probe and vote, and `asides`: what the text claims in passing.

    Args:
        evaluation: The test set, embedded.
    """
    is_point = evaluation.embeddings["clean"].is_point
    cells = [*_accuracies(evaluation), *(() if is_point else _correlations(evaluation))]
    return {"cells": cells, "asides": dict(_asides(evaluation))}


def measure_sampled(evaluation: Evaluation) -> dict[str, Any]:
    """The correlations with Monte Carlo estimates of η and p, as the paper makes them: ten times over.

    Args:
        evaluation: The test set, embedded.
    """
    return {"cells": [*_sampled_correlations(evaluation)]}


def _cell(metric: str, gallery: Condition, probe: Condition, measured: float, vote: Vote | None = None) -> Cell:
    voted = {} if vote is None else {"vote": vote}
    return {"metric": metric, "gallery": gallery, "probe": probe, **voted, "measured": measured}


def _accuracies(evaluation: Evaluation) -> Iterator[Cell]:
    for condition in CONDITIONS:
        yield _cell("verification_ap", condition, condition, evaluation.verification_ap(condition))
    for gallery, probe in GRID:
        for vote in VOTES:
            yield _cell("knn_accuracy", gallery, probe, evaluation.knn_accuracy(gallery, probe, vote), vote)


def _correlations(evaluation: Evaluation) -> Iterator[Cell]:
    for condition in CONDITIONS:
        yield _cell("ap_correlation", condition, condition, evaluation.ap_curve(condition).kendall)
    for gallery, probe in GRID:
        for vote in VOTES:
            tau = evaluation.knn_curve(gallery, probe, vote).kendall
            yield _cell("knn_correlation", gallery, probe, tau, vote)


def _sampled_correlations(evaluation: Evaluation) -> Iterator[Cell]:
    """Mean and deviation over repeats, each with samples of its own. Neighbours are those of the closed form."""

    def turn_of(metric: str, gallery: Condition, vote: Vote | None) -> Callable[[int], float]:
        probe: Condition = gallery if metric == "ap_correlation" else "clean"

        def tau(turn: int) -> float:
            estimator = MonteCarlo(SAMPLES, torch.Generator().manual_seed(turn))
            eta = _sampled_uncertainty(evaluation, probe, estimator)
            if vote is None:
                return _sampled_ap_curve(evaluation, probe, eta, estimator).kendall
            return knn_curve(eta, evaluation.identified(gallery, probe, vote)).kendall

        return tau

    wanted: list[tuple[str, Condition, Vote | None]] = [
        *(("ap_correlation", condition, None) for condition in CONDITIONS),
        *(("knn_correlation", gallery, "majority") for gallery in CONDITIONS),
    ]
    for metric, gallery, vote in wanted:
        evaluation.progress(f"sampling for the {metric} of the {gallery} gallery")
        found = repeat(turn_of(metric, gallery, vote), REPEATS)
        cell = _cell(metric, gallery, gallery if vote is None else "clean", found.mean, vote)
        yield cell | {"estimator": "monte-carlo", "repeats": REPEATS, "repeats_std": found.std}


@torch.no_grad()
def _sampled_uncertainty(evaluation: Evaluation, condition: Condition, estimator: MonteCarlo) -> Array:
    return self_mismatch(evaluation.embeddings[condition], evaluation.embedder.match_model, estimator).double().numpy()


def _sampled_ap_curve(
    evaluation: Evaluation, condition: Condition, eta: Array, estimator: MonteCarlo
) -> UncertaintyCurve:
    pairs, model = evaluation.some_pairs, evaluation.embedder.match_model.with_estimator(estimator)
    return ap_curve(eta, pairs, match_scores(pairs, evaluation.embeddings[condition], model))


def _asides(evaluation: Evaluation) -> Iterator[tuple[str, Any]]:
    eta, model = evaluation.uncertainty, evaluation.embedder.match_model
    yield "uncertainty", {c: float(eta[c].mean()) for c in CONDITIONS}
    yield "uncertainty_auroc", uncertainty_auroc(eta["clean"], eta["corrupt"])
    yield "twin_order", twin_order(eta["clean"], eta["corrupt"])
    yield "distance_knn_correlation", {f"{g}/{p}": _by_distance(evaluation, g, p) for g, p in GRID}
    yield model.kind, {**model.settings(), "error_bound": model.error_bound()}
    yield "test_set", {"images": len(evaluation.data), "classes": evaluation.data.n_classes}


@torch.no_grad()
def _by_distance(evaluation: Evaluation, gallery: Condition, probe: Condition) -> float:
    """Kendall's τ if the distance of a probe's mean to that of its nearest neighbour stands in for η(x)."""
    closest = torch.from_numpy(evaluation.neighbours(gallery, probe)[:, 0])
    items, probes = evaluation.embeddings[gallery].mean, evaluation.embeddings[probe].mean
    far = torch.linalg.vector_norm(probes - items[closest], dim=-1).double().numpy()
    return knn_curve(far, evaluation.identified(gallery, probe, "plurality")).kendall

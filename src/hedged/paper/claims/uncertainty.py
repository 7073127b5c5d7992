"""Claims about η(x): what it tells, and what it tells better than."""

from __future__ import annotations

from statistics import fmean

from hedged.data.ndigit.splits import TestSet
from hedged.evaluation import GRID, Condition
from hedged.metrics import uncertainty_auroc
from hedged.paper.claims.claim import HEDGED, Claim, configs, mean
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Shelf


def eta_tells_corrupt(shelf: Shelf) -> Claim:
    found = [shelf.measured(config, "seen")["asides"] for model in HEDGED for config in configs(model)]
    auroc, twins = ([aside[key] for aside in found] for key in ("uncertainty_auroc", "twin_order"))
    return Claim(
        "η separates corrupt from clean images",
        min(auroc) > 0.75,
        f"AUROC {min(auroc):.2f} to {max(auroc):.2f} over {len(found)} models; the corrupt twin has the higher η in "
        f"{min(twins):.0%} to {max(twins):.0%} of pairs",
    )


def eta_tells_within_clean(shelf: Shelf) -> Claim:
    models = configs("mog-1")
    ap = [shelf.value(c, "seen", "ap_correlation", "clean", "clean") for c in models]
    knn = [shelf.value(c, "seen", "knn_correlation", "clean", "clean", "majority") for c in models]
    return Claim(
        "η tells of errors within clean images alone",
        min(ap) > 0.3 and min(knn) > 0.3,
        f"τ with AP {min(ap):.2f} to {max(ap):.2f}, with KNN {min(knn):.2f} to {max(knn):.2f}, {len(models)} models",
    )


def distance_is_a_poor_proxy(shelf: Shelf) -> Claim:
    def by_distance(gallery: Condition, probe: Condition) -> float:
        asides = [shelf.measured(config, "seen")["asides"] for config in configs("point")]
        return fmean(aside["distance_knn_correlation"][f"{gallery}/{probe}"] for aside in asides)

    pairs = [(by_distance(*grid), mean(shelf, "mog-1", "knn_correlation", *grid, "plurality")) for grid in GRID]
    told = "; ".join(f"{d:.2f} against {e:.2f}" for d, e in pairs)
    return Claim(
        "The distance to the nearest neighbour is a poor proxy of uncertainty for point embeddings (plurality)",
        all(d < e for d, e in pairs),
        f"mean τ of KNN with that distance (point) against that with η (one Gaussian): {told} "
        "(clean probes among clean, corrupt among clean, clean among corrupt)",
    )


def novelty_matters_less(shelf: Shelf) -> Claim:
    def mean_eta(test: TestSet, condition: Condition) -> float:
        return fmean(shelf.measured(c, test)["asides"]["uncertainty"][condition] for c in configs("mog-1"))

    seen, unseen, corrupt = mean_eta("seen", "clean"), mean_eta("unseen", "clean"), mean_eta("seen", "corrupt")
    known, novel = (shelf.evaluation(recipe(2, 2, "mog-1"), test).uncertainty for test in ("seen", "unseen"))
    by_novelty = uncertainty_auroc(known["clean"], novel["clean"])
    by_occlusion = uncertainty_auroc(known["clean"], known["corrupt"])
    return Claim(
        "η tells novel classes less well than occlusion",
        unseen < corrupt and by_novelty < by_occlusion,
        f"AUROC of η, 2 digits in 2 dimensions: {by_novelty:.2f} for novel numbers, {by_occlusion:.2f} for occlusion; "
        f"mean η of all: {seen:.3f} seen, {unseen:.3f} novel, {corrupt:.3f} corrupt",
    )


def eta_tells_most_of_corrupt_probes(shelf: Shelf) -> Claim:
    clean, probe, gallery = (mean(shelf, "mog-1", "knn_correlation", *grid, "plurality") for grid in GRID)
    return Claim(
        "η tells most of the hardest task, corrupt probes",
        probe > max(clean, gallery),
        f"mean τ: {probe:.2f} for corrupt probes, {gallery:.2f} in a corrupt gallery, {clean:.2f} if all is clean",
    )

"""The claims of the paper's text, each as a line that holds or does not, with the numbers that say so."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import final

import numpy as np
import torch

from hedged._files import write_json
from hedged.data.ndigit.splits import TestSet
from hedged.evaluation import CONDITIONS, GRID, Condition
from hedged.evaluation.reference import BLOCKS, Measure, Model
from hedged.evaluation.space import Space
from hedged.metrics import axis_alignment, digit_reading, uncertainty_auroc
from hedged.paper import kl_ellipsoids, number_line, soft_contrastive
from hedged.paper.exhibits import Exhibit, Only
from hedged.paper.measurements import VOTES
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Need, Shelf
from hedged.paper.tables import KL, MAIN_TASK, SEEDS
from hedged.training import Config

HEDGED: tuple[Model, ...] = ("mog-1", "mog-2")
MANY = 10  # dimensions, at which "all methods perform almost perfectly"
DIAGONALS = np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
IMAGES, TURNS = 2_000, 21  # embedded to compare times, and how often


@final
@dataclass(frozen=True)
class Claim:
    """What the paper says, whether it holds here, and why.

    Args:
        text: The claim in words.
        holds: Whether it holds for the models measured here.
        evidence: The numbers that say so.
    """

    text: str
    holds: bool
    evidence: str


def _configs(model: Model, blocks: Sequence[tuple[int, int]] = BLOCKS) -> list[Config]:
    """A model of the main table, in all its settings (digits, dimensions) or some, and with all its seeds."""
    return [recipe(digits, dim, model, seed) for digits, dim in blocks for seed in range(SEEDS)]


def _mean(shelf: Shelf, model: Model, measure: Measure, blocks: Sequence[tuple[int, int]] = BLOCKS) -> float:
    """The mean over these of one number, on seen classes."""
    return fmean(shelf.value(config, "seen", measure) for config in _configs(model, blocks))


# Accuracy


def _hedging_helps_most_when_corrupt(shelf: Shelf) -> Claim:
    def gain(measure: Measure) -> float:
        hedged, point = (_mean(shelf, model, measure) for model in ("mog-1", "point"))
        return hedged - point

    ap = [gain(Measure("verification_ap", c, c)) for c in CONDITIONS]
    knn = [gain(Measure("knn_accuracy", c, "clean", "majority")) for c in CONDITIONS]
    return Claim(
        "Hedged beats point, most on corrupt inputs",
        ap[1] > max(ap[0], 0) and knn[1] > max(knn[0], 0),
        f"one Gaussian less point, mean of 4 settings: AP {ap[0]:+.3f} clean, {ap[1]:+.3f} corrupt; "
        f"KNN {knn[0]:+.3f} clean gallery, {knn[1]:+.3f} corrupt gallery",
    )


def _soft_bounds_hard(shelf: Shelf) -> Claim:
    cells = soft_contrastive.EXHIBIT.numbers(shelf)

    def of(objective: str, metric: str, gallery: str) -> list[float]:
        wanted = (objective, metric, gallery)
        return [c["measured"] for c in cells if (c["objective"], c["metric"], c["gallery"]) == wanted]

    rows = [(metric, gallery) for metric in ("verification_ap", "knn_accuracy") for gallery in CONDITIONS]
    gaps = [of("soft-contrastive", *row)[0] - max(of("contrastive", *row)) for row in rows]
    differences = ", ".join(f"{gap:+.3f}" for gap in gaps)
    return Claim(
        "Soft contrastive bounds contrastive from above, whatever the margin",
        min(gaps) >= 0,
        f"soft less the best margin: {differences} (AP clean, AP corrupt, KNN clean, KNN corrupt)",
    )


def _many_dimensions() -> dict[Model, Config]:
    """The models of `_many_dimensions_are_enough`, by name."""
    return {model: recipe(2, MANY, model) for model in ("point", *HEDGED)}


def _many_dimensions_are_enough(shelf: Shelf) -> Claim:
    evidence, all_high = [], True
    for model, config in _many_dimensions().items():
        ap = shelf.value(config, "seen", Measure("verification_ap", "clean", "clean"))
        knn = shelf.value(config, "seen", Measure("knn_accuracy", "clean", "clean", "majority"))
        all_high &= min(ap, knn) > 0.95
        evidence.append(f"{model}: AP {ap:.3f}, KNN {knn:.3f}")
    return Claim(f"With more dimensions (D = {MANY}) all methods come near perfection", all_high, "; ".join(evidence))


def _plurality_is_milder(shelf: Shelf) -> Claim:
    pairs = [[_mean(shelf, "mog-1", Measure("knn_accuracy", c, "clean", vote)) for vote in VOTES] for c in CONDITIONS]
    shares = "; ".join(f"{strict:.3f} by majority, {mild:.3f} by plurality" for strict, mild in pairs)
    return Claim(
        "Plurality identifies more than a majority does",
        all(strict <= mild for strict, mild in pairs),
        f"one Gaussian, mean of 4 settings, clean and corrupt gallery: {shares}",
    )


def _corrupt_probes_are_hardest(shelf: Shelf) -> Claim:
    clean, probe, gallery = (_mean(shelf, "mog-1", Measure("knn_accuracy", *grid, "plurality")) for grid in GRID)
    return Claim(
        "A corrupt probe is harder than a corrupt gallery",
        probe < gallery,
        f"one Gaussian, mean of 4 settings: {probe:.3f} against {gallery:.3f}; {clean:.3f} if all is clean",
    )


def _hedging_helps_identify_the_corrupt(shelf: Shelf) -> Claim:
    """Setting by setting, not on average: a mean would hide that corrupt probes of one setting do not gain."""

    def gains(gallery: Condition, probe: Condition) -> list[float]:
        measure = Measure("knn_accuracy", gallery, probe, "plurality")
        return [_mean(shelf, "mog-1", measure, [block]) - _mean(shelf, "point", measure, [block]) for block in BLOCKS]

    of_gallery, of_probe = gains("corrupt", "clean"), gains("clean", "corrupt")
    shown = [", ".join(f"{gain:+.3f}" for gain in each) for each in (of_gallery, of_probe)]
    settings = ", ".join(f"{digits}/{dim}" for digits, dim in BLOCKS)
    return Claim(
        "With corrupt input in the gallery or as probe, hedged identifies more than a point does (plurality)",
        min(of_gallery + of_probe) >= 0,
        f"one Gaussian less point, digits/dimensions {settings}: {shown[0]} corrupt gallery; {shown[1]} corrupt probes",
    )


# What η(x) tells, and what it tells better than


def _eta_tells_corrupt(shelf: Shelf) -> Claim:
    found = [shelf.measured(config, "seen")["asides"] for model in HEDGED for config in _configs(model)]
    auroc, twins = ([aside[key] for aside in found] for key in ("uncertainty_auroc", "twin_order"))
    return Claim(
        "η separates corrupt from clean images",
        min(auroc) > 0.75,
        f"AUROC {min(auroc):.2f} to {max(auroc):.2f} over {len(found)} models; the corrupt twin has the higher η in "
        f"{min(twins):.0%} to {max(twins):.0%} of pairs",
    )


def _eta_tells_within_clean(shelf: Shelf) -> Claim:
    models = _configs("mog-1")
    ap = [shelf.value(c, "seen", Measure("ap_correlation", "clean", "clean")) for c in models]
    knn = [shelf.value(c, "seen", Measure("knn_correlation", "clean", "clean", "majority")) for c in models]
    return Claim(
        "η tells of errors within clean images alone",
        min(ap) > 0.3 and min(knn) > 0.3,
        f"τ with AP {min(ap):.2f} to {max(ap):.2f}, with KNN {min(knn):.2f} to {max(knn):.2f}, {len(models)} models",
    )


def _distance_is_a_poor_proxy(shelf: Shelf) -> Claim:
    def by_distance(gallery: Condition, probe: Condition) -> float:
        asides = [shelf.measured(config, "seen")["asides"] for config in _configs("point")]
        return fmean(aside["distance_knn_correlation"][f"{gallery}/{probe}"] for aside in asides)

    pairs = [
        (by_distance(*grid), _mean(shelf, "mog-1", Measure("knn_correlation", *grid, "plurality"))) for grid in GRID
    ]
    correlations = "; ".join(f"{d:.2f} against {e:.2f}" for d, e in pairs)
    return Claim(
        "The distance to the nearest neighbour is a poor proxy of uncertainty for point embeddings (plurality)",
        all(d < e for d, e in pairs),
        f"mean τ of KNN with that distance (point) against that with η (one Gaussian): {correlations} "
        "(clean probes among clean, corrupt among clean, clean among corrupt)",
    )


def _novelty_matters_less(shelf: Shelf) -> Claim:
    def mean_eta(test: TestSet, condition: Condition) -> float:
        return fmean(shelf.measured(c, test)["asides"]["uncertainty"][condition] for c in _configs("mog-1"))

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


def _eta_tells_most_of_corrupt_probes(shelf: Shelf) -> Claim:
    clean, probe, gallery = (_mean(shelf, "mog-1", Measure("knn_correlation", *grid, "plurality")) for grid in GRID)
    return Claim(
        "η tells most of the hardest task, corrupt probes",
        probe > max(clean, gallery),
        f"mean τ: {probe:.2f} for corrupt probes, {gallery:.2f} in a corrupt gallery, {clean:.2f} if all is clean",
    )


# Where the classes lie


def _axes_are_aligned(shelf: Shelf) -> Claim:
    """A share of variance is near 1 for both, since it sees centres alone; images that stray from them tell more."""
    hedged, point = (_layout(shelf, model) for model in ("mog-1", "point"))
    return Claim(
        "Hedging lays out the digits along the axes, more than points do",
        hedged.read > point.read and hedged.stray < point.stray,
        f"2 digits in 2 dimensions, mean of {SEEDS} seeds: a digit is read from its own coordinate alone in "
        f"{hedged.read:.1%} of clean images hedged, {point.read:.1%} point (axes turned by 45°: {hedged.turned:.1%} "
        f"and {point.turned:.1%}); variance of the centres along an axis that its digit does not explain: "
        f"{hedged.stray:.2%} hedged, {point.stray:.2%} point",
    )


@final
@dataclass(frozen=True)
class _Layout:
    """How two digits are laid out on a plane, mean of all seeds.

    Args:
        read: How often a digit is read from its own coordinate.
        turned: The same after the plane is turned by 45°.
        stray: The share of the variance of the centres along an axis that its digit does not explain.
    """

    read: float
    turned: float
    stray: float


def _layout(shelf: Shelf, model: Model) -> _Layout:
    spaces = [Space(shelf.evaluation(recipe(2, 2, model, seed))) for seed in range(SEEDS)]
    read, turned = [], []
    for space in spaces:
        means = space.embedding.mean.double().numpy()
        unit, labels = (means - means.mean(axis=0)) / means.std(axis=0), space.evaluation.labels
        read.append(digit_reading(unit, labels).score)
        turned.append(digit_reading(unit @ DIAGONALS, labels).score)
    stray = [1 - axis_alignment(space.centroids).score for space in spaces]
    return _Layout(fmean(read), fmean(turned), fmean(stray))


def _hedged_orders_the_line(shelf: Shelf) -> Claim:
    cells = number_line.EXHIBIT.numbers(shelf)

    def of(model: str, metric: str) -> list[float]:
        return [c["measured"] for c in cells if (c["model"], c["metric"]) == (model, metric)]

    (hedged, point), runs = (
        [of(model, metric) for model in ("mog-1", "point")] for metric in ("shared_digit_count", "mean_run_length")
    )
    return Claim(
        "On the number line hedged embeddings put more classes beside one that shares a digit, in every trial",
        min(hedged) > max(point),
        f"of 99 neighbours: {', '.join(map(str, hedged))} hedged, {', '.join(map(str, point))} point; classes of a "
        f"run, mean of {len(hedged)} trials: {fmean(runs[0]):.1f} hedged, {fmean(runs[1]):.1f} point (paper: "
        f"{number_line.PAPER['mog-1'][1]:.1f} and {number_line.PAPER['point'][1]:.1f})",
    )


# The KL term, which draws embeddings to the prior with weight β


def _beta_widens(shelf: Shelf) -> Claim:
    """Beside the spread of the centres, since the curve learns how far apart classes lie; absolute σ is shown too."""
    cells = kl_ellipsoids.EXHIBIT.numbers(shelf)

    def widths(metric: str) -> list[float]:
        return [c["measured"] for c in cells if c["metric"] == metric and c["probe"] == "corrupt"]

    relative, absolute = widths(kl_ellipsoids.RELATIVE), widths("standard_deviation")
    shown, plain = (", ".join(f"{width:.3g}" for width in each) for each in (relative, absolute))
    return Claim(
        "A higher β widens the embeddings",
        all(narrow < wide for narrow, wide in pairwise(relative)) and len(relative) == len(kl_ellipsoids.BETAS),
        f"mean σ of corrupt images from β = 1e-6 to 1e-2, relative to the spread of the centres: {shown}; as it is: "
        f"{plain}",
    )


def _kl_helps(shelf: Shelf) -> Claim:
    """Over all cells of the table of the KL term."""
    cells = [cell for cell in KL.measured(shelf, {}, variant=False) if cell["split"] == "seen"]

    def average(kind: str, beta: float) -> float:
        return fmean(c["measured"] for c in cells if c["metric"].endswith(kind) and c["beta"] == beta)

    accuracy, tau = (
        [fmean([average(k, b) for k in kinds]) for b in (0.0, 1e-4)]
        for kinds in (("_ap", "_accuracy"), ("_correlation",))
    )
    return Claim(
        "The KL term helps accuracy mildly and the uncertainty more",
        accuracy[1] > accuracy[0] and tau[1] - tau[0] > accuracy[1] - accuracy[0],
        f"β = 0 and 1e-4: mean accuracy {accuracy[0]:.3f} and {accuracy[1]:.3f}, mean τ {tau[0]:.2f} and {tau[1]:.2f}",
    )


# Time and storage


def _a_gaussian_costs_little(shelf: Shelf) -> Claim:
    point, gaussian = (shelf.evaluation(recipe(2, 2, model)) for model in ("point", "mog-1"))
    images = point.data.clean(torch.arange(min(IMAGES, len(point.data))))
    fast, slow = by_turns(lambda: point.embedder.embed(images), lambda: gaussian.embedder.embed(images))
    ratio = slow / fast
    size = gaussian.embeddings["clean"].pack().nbytes / point.embeddings["clean"].pack().nbytes
    return Claim(
        "A Gaussian costs about the time of a point and twice its storage",
        ratio < 1.1 and abs(size - 2) < 0.1,
        f"{ratio:.2f} times the time to embed {len(images):,} images (a ratio of medians: each model {TURNS} times, by "
        f"turns in one process), {size:.1f} times the bytes",
    )


def by_turns(one: Callable[[], object], other: Callable[[], object], turns: int = TURNS) -> tuple[float, float]:
    """The median seconds of two calls. They take turns, so that whatever slows the machine slows both alike.

    Every second turn the other one goes first. A first turn, which may have to compile something, is not counted.

    Args:
        one: A call to time.
        other: The call it is compared with.
        turns: How often each of them is timed.
    """
    seconds: dict[Callable[[], object], list[float]] = {one: [], other: []}
    for turn in range(turns + 1):
        for call in (one, other) if turn % 2 else (other, one):
            begun = time.perf_counter()
            call()
            seconds[call].append(time.perf_counter() - begun)
    return median(seconds[one][1:]), median(seconds[other][1:])


# All of them, in order

CLAIMS: tuple[Callable[[Shelf], Claim], ...] = (
    _hedging_helps_most_when_corrupt,
    _soft_bounds_hard,
    _eta_tells_corrupt,
    _eta_tells_within_clean,
    _distance_is_a_poor_proxy,
    _axes_are_aligned,
    _beta_widens,
    _novelty_matters_less,
    _many_dimensions_are_enough,
    _a_gaussian_costs_little,
    _plurality_is_milder,
    _corrupt_probes_are_hardest,
    _hedging_helps_identify_the_corrupt,
    _eta_tells_most_of_corrupt_probes,
    _kl_helps,
    _hedged_orders_the_line,
)
SHOWN: tuple[Exhibit, ...] = (  # whose models they use
    MAIN_TASK,
    soft_contrastive.EXHIBIT,
    kl_ellipsoids.EXHIBIT,
    KL,
    number_line.EXHIBIT,
)


@final
@dataclass(frozen=True)
class Claims(Exhibit):
    """Lines of the text that are neither a table nor a figure."""

    name: str = "claims"
    title: str = "The claims of the text"

    def needs(self, only: Only) -> list[Need]:
        self.refuse_cells(only)
        shown = [need for exhibit in SHOWN for need in exhibit.needs({})]
        return [*shown, *(Need(config, ("seen",)) for config in _many_dimensions().values())]

    def write(self, shelf: Shelf, folder: Path, only: Only) -> list[Path]:
        path = folder / f"{self.name}.json"
        write_json(path, [asdict(claim(shelf)) for claim in CLAIMS])
        return [path]


EXHIBIT = Claims()

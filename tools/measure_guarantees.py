"""Measure promises and audits: results/guarantees/*.json, and the tables of docs/open-world.md.

    python -m tools.measure_guarantees digits --out results/guarantees
    python -m tools.measure_guarantees dogs --vectors dogs-v.npz --keep heads --out results/guarantees
    python -m tools.measure_guarantees text --vectors clinc-v.npz --strangers oos.npz --out results/guarantees
    python -m tools.measure_guarantees digits --shipped --out results/guarantees
    python -m tools.measure_guarantees audit --vectors dogs-v.npz --keep heads --out results/guarantees
    python -m tools.measure_guarantees drift --vectors dogs-v.npz --keep heads --out results/guarantees
    python -m tools.measure_guarantees intervals --out results/guarantees

Promises: 100 random splits of the identities, twenty for each of 5 random galleries. On digits and dogs, half of the
identities are the gallery and the others strangers. Of the gallery, one input each is the probe of somebody known; some
of those probes calibrate, the others are measured, and so with strangers: no identity is on both sides. On
text, the intents are the gallery, two thirds of them calibrate, and out-of-scope queries are the strangers. Heads are
fitted once, to training identities (text: to 30 queries of each intent, which are the gallery too), and kept in the
folder --keep, so that the splits take seconds.

With --shipped, coverage is measured of the rule that ships: `Identifier(coverage=...)` learns it from the gallery
itself, of which one row of each identity is left out in turn; nothing else calibrates. 100 random galleries (of text,
whose gallery is one, 100 random probes); all probes are measured. Digits take eight minutes on a busy core.

Audit: of test dogs, 5 % of the labels swapped; then a tenth of the enrolments degraded, and false matches counted at
the threshold that the clean gallery has for a false-match rate. --validation looks at validation dogs instead.

Drift: half of the test dogs as reference, the others later, one photo each, 100 random halves: how often there is an
alarm while nothing changes, and when the later photos are degraded, all or half of them.

Intervals: how often the 95 % interval of `calibrate` holds the false match rate of 50 new identities, in worlds where
identities differ much. Seconds.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.data import build_ndigit, load_mnist
from hedged.data.random import Purpose, keyed
from hedged.decisions import (
    CandidateRule,
    ScoredPairs,
    detect_drift,
    false_match_threshold,
    false_positive_threshold,
    least_identities,
    promised_rates,
)
from hedged.distributions import Distribution
from hedged.errors import DataError
from hedged.evaluation.calibration_pairs import statistics
from hedged.match import MatchModel
from hedged.metrics import balanced_pairs
from hedged.models import Embedder
from hedged.retrofit import Retrofit
from hedged.search import Identifier, Identities, ProductFusion, audit_gallery
from tools.measure_real import QUALITIES, cosine, read

Floats = NDArray[Any]
RATES, SPLITS, GALLERIES = (0.01, 0.05, 0.1), 100, 5
DIGITS, NUMBERS, IMAGES = 3, 800, 6  # an image of each number is its probe
BRANCHES = {"dogs": "unit+learnt", "text": "plain+own+unit"}  # as `Retrofit` chose them; to compare takes long
DRAWS = 3  # of labels that are swapped, and of enrolments that are degraded
FALSE_ALARMS = 0.05  # the rate of them that is asked for
QUERIES = 30  # of an intent, that are fitted to and enrolled


class Probes(NamedTuple):
    """Log-odds of probes and the G identities of a gallery, known and strangers, and posteriors of an `Identifier`.

    Args:
        known: `(n, G)`, of somebody in the gallery.
        own: Whose each is, `(n,)`.
        strangers: `(m, G)`.
        known_p: P(j | x), `(n, G)`.
        known_none: P(nobody | x), `(n,)`.
        strangers_p: P(j | x), `(m, G)`.
        strangers_none: P(nobody | x), `(m,)`.
    """

    known: Floats
    own: Floats
    strangers: Floats
    known_p: Floats
    known_none: Floats
    strangers_p: Floats
    strangers_none: Floats


@torch.no_grad()
def probed(
    gallery: Identities, identifier: Identifier, known: Distribution, own: Floats, strangers: Distribution
) -> Probes:
    """Every probe against a gallery, as `Identifier` sees it."""
    model = gallery.match_model
    logits = [
        ProductFusion().logits(z, gallery.images, gallery.owner, model).double().numpy() for z in (known, strangers)
    ]
    (known_p, known_none), (strangers_p, strangers_none) = map(identifier.posteriors, logits)
    return Probes(logits[0], own, logits[1], known_p, known_none, strangers_p, strangers_none)


def gallery_of(z: Distribution, y: Floats, rows: Floats, model: MatchModel) -> Identities:
    names, owner = np.unique(y[rows], return_inverse=True)
    return Identities([str(name) for name in names], z.take(torch.from_numpy(rows)), torch.from_numpy(owner), model)


def one_image_each(y: Floats, seed: int) -> Floats:
    """A random place of each identity."""
    order = np.random.default_rng(seed).permutation(len(y))
    return np.asarray(order[np.unique(y[order], return_index=True)[1]])


def open_world(z: Distribution, y: Floats, model: MatchModel, seed: int) -> tuple[Identities, Probes]:
    """A random half of the identities enrolled but for one input each; the others are strangers, one input each."""
    rng = np.random.default_rng(seed)
    probes = one_image_each(y, seed)
    names = rng.permutation(np.unique(y))
    enrolled = np.isin(y, names[: len(names) // 2])
    rows = np.flatnonzero(enrolled & ~np.isin(np.arange(len(y)), probes))
    gallery = gallery_of(z, y, rows, model)
    known = probes[enrolled[probes]]
    own = np.searchsorted(np.unique(y[rows]), y[known])
    known_z, strangers_z = (z.take(torch.from_numpy(places)) for places in (known, probes[~enrolled[probes]]))
    return gallery, probed(gallery, Identifier(gallery), known_z, own, strangers_z)


def splits(
    z: Distribution, y: Floats, model: MatchModel, share: float, is_shipped: bool
) -> list[dict[str, dict[str, Any]]]:
    """All splits, of several galleries; of the rule that ships, a gallery for each."""
    if is_shipped:
        return [shipped(*open_world(z, y, model, gallery)) for gallery in range(SPLITS)]
    found = []
    for gallery in range(GALLERIES):
        probes = open_world(z, y, model, gallery)[1]
        found += [split(probes, SPLITS * gallery + i, share, share) for i in range(SPLITS // GALLERIES)]
    return found


def split(probes: Probes, seed: int, known_share: float, strangers_share: float) -> dict[str, dict[str, Any]]:
    """Calibrate on some probes, measure on the others: for each rate what was promised, and what came of it."""
    rng = np.random.default_rng(seed + 1000)
    cut = []
    for count, share in ((len(probes.own), known_share), (len(probes.strangers), strangers_share)):
        order = rng.permutation(count)
        cut.append((order[: int(share * count)], order[int(share * count) :]))
    (known, later_known), (strangers, later_strangers) = cut
    best = probes.strangers.max(1)
    right_p = probes.known_p[np.arange(len(probes.own)), probes.own]
    right_first = (probes.known.argmax(1) == probes.own)[later_known]
    found: dict[str, dict[str, Any]] = {}
    for rate in RATES:
        told: dict[str, Any] = {}
        try:
            threshold = false_positive_threshold(best[strangers], rate).score
            low, high, _ = promised_rates(len(strangers), rate, len(later_strangers))
            fpir = float(np.mean(best[later_strangers] >= threshold))
            told["fpir"] = fpir
            told["fpir_inside"] = bool(low - 1e-9 <= fpir <= high + 1e-9)
            told["dir"] = float(np.mean(right_first & (probes.known.max(1)[later_known] >= threshold)))
        except DataError:
            told["fpir_needs"] = least_identities(rate)
        try:
            rule = CandidateRule.find(right_p[known], probes.strangers_none[strangers], 1 - rate)
            sets = rule.kept(probes.known_p[later_known])
            missed = 1 - float(np.mean(rule.kept(right_p[later_known])))
            missed_nobody = 1 - float(np.mean(probes.strangers_none[later_strangers] >= rule.nobody_from))
            for name, value, n, m in (
                ("known", missed, len(known), len(later_known)),
                ("strangers", missed_nobody, len(strangers), len(later_strangers)),
            ):
                low, high, _ = promised_rates(n, rate, m)
                told[f"{name}_missed"] = value
                told[f"{name}_inside"] = bool(low - 1e-9 <= value <= high + 1e-9)
            told["set_size"] = float(sets.sum(1).mean() + np.mean(probes.known_none[later_known] >= rule.nobody_from))
            told["strangers_set_size"] = float(
                rule.kept(probes.strangers_p[later_strangers]).sum(1).mean() + 1 - missed_nobody
            )
        except DataError:
            told["coverage_needs"] = least_identities(rate)
        found[f"{rate:g}"] = told
    return found


def shipped(gallery: Identities, probes: Probes) -> dict[str, dict[str, Any]]:
    """What came of the coverage that `Identifier` promises, for each rate, learned from the gallery alone."""
    right_p = probes.known_p[np.arange(len(probes.own)), probes.own]
    found: dict[str, dict[str, Any]] = {}
    for rate in RATES:
        told: dict[str, Any] = {}
        try:
            rule = Identifier(gallery, coverage=1 - rate).rule
        except DataError:
            found[f"{rate:g}"] = {"coverage_needs": least_identities(rate)}
            continue
        assert rule is not None
        missed = {"known": ~rule.kept(right_p), "strangers": probes.strangers_none < rule.nobody_from}
        for name, wrong in missed.items():
            low, high, _ = promised_rates(len(gallery.labels), rate, len(wrong))
            told[f"{name}_missed"] = value = float(np.mean(wrong))
            told[f"{name}_inside"] = bool(low - 1e-9 <= value <= high + 1e-9)
        told["set_size"] = float(
            rule.kept(probes.known_p).sum(1).mean() + np.mean(probes.known_none >= rule.nobody_from)
        )
        found[f"{rate:g}"] = told
    return found


def summary(splits: list[dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Means and standard errors over the splits, and how many lay inside their intervals."""
    told: dict[str, dict[str, Any]] = {}
    for rate in splits[0]:
        runs = [one[rate] for one in splits]
        told[rate] = {}
        for key in sorted({key for run in runs for key in run}):
            values = [run[key] for run in runs if key in run]
            if key.endswith("_inside"):
                told[rate][key] = int(sum(values))
            elif key.endswith("_needs"):
                told[rate][key] = values[0]
            else:
                mean, error = float(np.mean(values)), float(np.std(values) / len(values) ** 0.5)
                told[rate][key], told[rate][f"{key}_se"] = round(mean, 5), round(error, 5)
    return told


def digits(is_shipped: bool) -> tuple[list[dict[str, dict[str, Any]]], dict[str, Any]]:
    embedder = Embedder.load("hedged:ndigit-3d")
    numbers = keyed(0, Purpose.CLASSES).choice(10**DIGITS, NUMBERS, replace=False).tolist()
    images = build_ndigit(load_mnist("test"), DIGITS, numbers, IMAGES, keyed(0, Purpose.SEEN))
    z, y = embedder.embed(images.clean()), images.labels.numpy()
    runs = splits(z, y, embedder.match_model, 0.5, is_shipped)
    half = NUMBERS // 2
    sizes = sizes_of(half, half, 0.5, is_shipped)
    return runs, {"model": "hedged:ndigit-3d", "data": f"{IMAGES} clean images of {NUMBERS} numbers", **sizes}


def sizes_of(known: int, strangers: int, share: float, is_shipped: bool) -> dict[str, Any]:
    """How many identities the gallery has, and how many calibrate and are measured; of the rule that ships, all are."""
    counts = {"known": known, "strangers": strangers}
    if is_shipped:
        return {"gallery": known, **counts}
    return {"gallery": known, **{name: [int(share * n), n - int(share * n)] for name, n in counts.items()}}


def dogs(path: Path, keep: Path, is_shipped: bool) -> tuple[list[dict[str, dict[str, Any]]], dict[str, Any]]:
    data = read(path, validation=False)
    head = kept_head(keep / "dogs-test", data.train["clean"], data.train_y, data.train["degraded"], BRANCHES["dogs"])
    z = head.embed(data.test["clean"])
    runs = splits(z, data.test_y, head.match_model, 0.72, is_shipped)
    identities = len(np.unique(data.test_y))
    sizes = sizes_of(identities // 2, identities - identities // 2, 0.72, is_shipped)
    return runs, {"model": "Retrofit on EfficientNet-lite0", "data": f"{len(data.test_y)} photos of test dogs", **sizes}


def text(
    path: Path, strangers: Path, keep: Path, is_shipped: bool
) -> tuple[list[dict[str, dict[str, Any]]], dict[str, Any]]:
    with np.load(path, allow_pickle=False) as file:
        x, poor, y = file["X"], file["poor"], file["y"]
    with np.load(strangers, allow_pickle=False) as file:
        out_of_scope = file["vectors"].astype(np.float32)
    rows = np.concatenate([np.flatnonzero(y == name)[:QUERIES] for name in np.unique(y)])
    head = kept_head(keep / "clinc-all", x[rows], y[rows], poor[rows], BRANCHES["text"])
    z, stranger_z, model = head.embed(x), head.embed(out_of_scope), head.match_model
    gallery, later = gallery_of(z, y, rows, model), np.setdiff1d(np.arange(len(y)), rows)
    own = np.searchsorted(np.unique(y), y[later])
    every = probed(gallery, Identifier(gallery), z.take(torch.from_numpy(later)), own, stranger_z)
    runs = []
    for seed in range(SPLITS):
        some = one_image_each(own, seed)
        probes = every._replace(
            known=every.known[some], own=own[some], known_p=every.known_p[some], known_none=every.known_none[some]
        )
        runs.append(shipped(gallery, probes) if is_shipped else split(probes, seed, 2 / 3, 0.5))
    half = len(out_of_scope) // 2
    sizes = {"gallery": 150, "known": [100, 50], "strangers": [half, len(out_of_scope) - half]}
    if is_shipped:
        sizes = sizes_of(150, len(out_of_scope), 1.0, is_shipped)
    return runs, {"model": "Retrofit on all-MiniLM-L6-v2", "data": "CLINC150, out-of-scope queries strangers", **sizes}


def kept_head(path: Path, x: Floats, y: Floats, poor: Floats, branches: str) -> Retrofit:
    if path.exists():
        return Retrofit.load(path)
    head = Retrofit(seed=0, branches=branches).fit(x, y, poor=poor)
    head.save(path)
    return head


def swapped(y: Floats, share: float, seed: int) -> Floats:
    """Labels of which a share was permuted among themselves; none of these is what it was."""
    rng = np.random.default_rng(seed)
    chosen, labels = rng.choice(len(y), round(share * len(y)), replace=False), y.copy()
    while (labels[chosen] == y[chosen]).any():
        labels[chosen] = y[rng.permutation(chosen)]
    return labels


def audit(path: Path, keep: Path, validation: bool) -> dict[str, Any]:
    data = read(path, validation)
    name = "dogs-val" if validation else "dogs-test"
    head = kept_head(keep / name, data.train["clean"], data.train_y, data.train["degraded"], BRANCHES["dogs"])
    x, poor, y = data.test["clean"], data.test["degraded"], np.unique(data.test_y, return_inverse=True)[1]
    z, model = head.embed(x), head.match_model
    names, ids = [str(i) for i in range(y.max() + 1)], [str(i) for i in range(len(y))]
    found = []
    for seed in range(DRAWS):
        labels = swapped(y, 0.05, seed)
        told = audit_gallery(Identities(names, z, torch.from_numpy(labels), model), ids)
        reported = np.isin(np.arange(len(y)), [int(one.id) for one in told.mislabelled])
        wrong = labels != y
        named = [names[y[int(one.id)]] == one.likelier for one in told.mislabelled if wrong[int(one.id)]]
        right = int((reported & wrong).sum())
        found.append((right / reported.sum(), right / wrong.sum(), float(np.mean(named))))
        print("audit", seed, *(f"{value:.3f}" for value in found[-1]), flush=True)
    precision, recall, likelier = np.array(found).T
    growth = [grown(x, poor, y, head, seed, probes) for probes in ("clean", "half degraded") for seed in range(DRAWS)]
    return {
        "identities": len(names),
        "items": len(y),
        "swapped_share": 0.05,
        "draws": DRAWS,
        "precision": [round(float(precision.mean()), 4), round(float(precision.min()), 4)],
        "recall": [round(float(recall.mean()), 4), round(float(recall.min()), 4)],
        "likelier_is_right": round(float(likelier.mean()), 4),
        "false_match_growth": {
            probes: {
                rate: {
                    way: round(float(np.mean([one[rate][way] for one in growth if one["probes"] == probes])), 3)
                    for way in ("hedged", "cosine", "hedged templates", "cosine templates")
                }
                for rate in ("0.01", "0.001")
            }
            for probes in ("clean", "half degraded")
        },
    }


@torch.no_grad()
def grown(x: Floats, poor: Floats, y: Floats, head: Retrofit, seed: int, probes: str) -> dict[str, Any]:
    """By how much false matches grow when a tenth of the enrolments is degraded, at the threshold of the clean ones."""
    rng, model = np.random.default_rng(seed), head.match_model
    probe = one_image_each(y, seed)
    enrolled = np.setdiff1d(np.arange(len(y)), probe)
    worse = np.zeros(len(enrolled), dtype=bool)
    worse[rng.choice(len(enrolled), len(enrolled) // 10, replace=False)] = True
    half = (rng.random(len(probe)) < 0.5) & (probes != "clean")
    seen = np.where(half[:, None], poor[probe], x[probe])
    before, after = x[enrolled], np.where(worse[:, None], poor[enrolled], x[enrolled])
    owner = np.unique(y[enrolled], return_inverse=True)[1]
    z_probe = head.embed(seen)

    def scores(vectors: Floats) -> dict[str, Floats]:
        z = head.embed(vectors)
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        means = np.zeros((owner.max() + 1, x.shape[1]))
        np.add.at(means, owner, unit)
        return {
            "hedged": model.matrix(z_probe, z).double().numpy(),
            "cosine": cosine(seen, vectors),
            "hedged templates": model.matrix(z_probe, model.fuse(z, torch.from_numpy(owner))).double().numpy(),
            "cosine templates": cosine(seen, means),
        }

    first, second = scores(before), scores(after)
    told: dict[str, Any] = {"probes": probes, "0.01": {}, "0.001": {}}
    for way, matrix in first.items():
        others = y[probe][:, None] != (np.unique(y[enrolled]) if "templates" in way else y[enrolled])
        for rate in (0.01, 0.001):
            threshold = np.quantile(matrix[others], 1 - rate)
            told[f"{rate:g}"][way] = (second[way][others] >= threshold).sum() / (matrix[others] >= threshold).sum()
    return told


def drift(path: Path, keep: Path) -> dict[str, Any]:
    data = read(path, validation=False)
    head = kept_head(keep / "dogs-test", data.train["clean"], data.train_y, data.train["degraded"], BRANCHES["dogs"])
    seen = {quality: statistics(head.embed(vectors), head.match_model) for quality, vectors in data.test.items()}
    told: dict[str, Any] = {"halves": SPLITS, "false_alarm_rate": FALSE_ALARMS}
    for share in (0.0, 0.5, 1.0):
        found = []
        for seed in range(SPLITS):
            photos = np.random.default_rng(seed).permutation(one_image_each(data.test_y, seed))
            before, later = np.split(photos, [len(photos) // 2])
            worse = np.random.default_rng(seed + SPLITS).random(len(later)) < share
            reference = {name: values[before] for name, values in seen["clean"].items()}
            clean, poor = ({name: seen[quality][name][later] for name in reference} for quality in QUALITIES)
            after = {name: np.where(worse, poor[name], clean[name]) for name in reference}
            found.append(detect_drift(reference, after, FALSE_ALARMS, seed))
        delays = [one.alarm for one in found if one.alarm is not None]
        told[f"degraded {share:g}"] = {
            "alarms": len(delays),
            "median_inputs_before_alarm": float(np.median(delays)) if delays else None,
            "reference": found[0].reference,
            "inputs": found[0].inputs,
        }
    return told


def world(law: float | str, seed: int) -> ScoredPairs:
    """Pairs of 50 identities in 4 dimensions; `law`: the share of them in the middle of all, or "log-normal" scales."""
    rng = np.random.default_rng(seed)
    if isinstance(law, str):
        scale = np.exp(rng.normal(size=(50, 1, 1)))
    else:
        scale = np.where(rng.random((50, 1, 1)) < law, 0.1, 2.0)
    points = (scale * rng.normal(size=(50, 1, 4)) + 0.4 * rng.normal(size=(50, 8, 4))).reshape(-1, 4)
    labels = np.repeat(np.arange(50), 8)
    chosen = balanced_pairs(labels, 10_000, rng)
    distance = np.linalg.norm(points[chosen.first] - points[chosen.second], axis=1)
    return ScoredPairs.of(-distance, labels[chosen.first], labels[chosen.second])


def intervals() -> dict[str, Any]:
    """Of each law, how many of the trials' intervals hold the rate of identities that are drawn later."""
    told: dict[str, Any] = {"identities": 50, "false_match_rate": 0.01, "level": 0.95, "trials": SPLITS, "inside": {}}
    for law in (0.04, 0.1, 0.2, "log-normal"):
        inside = 0
        for seed in range(SPLITS):
            found = false_match_threshold(world(law, 2 * seed), told["false_match_rate"])
            later = world(law, 2 * seed + 1).of_kind(False)
            inside += float(np.mean(later.logit >= found.score)) in found.rates
        told["inside"][str(law)] = inside
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("digits", "dogs", "text", "audit", "drift", "intervals"))
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--strangers", type=Path)
    parser.add_argument("--keep", type=Path, default=Path("heads"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--validation", action="store_true")
    parser.add_argument(
        "--shipped", action="store_true", help="coverage of the rule that ships, of digits, dogs or text"
    )
    given = parser.parse_args()
    options = [
        f"--{name} {path.name}" for name, path in (("vectors", given.vectors), ("strangers", given.strangers)) if path
    ]
    kept = [] if given.what in ("digits", "intervals") else ["--keep heads"]
    kept += ["--shipped"] if given.shipped else []
    command = " ".join(["python -m tools.measure_guarantees", given.what, *options, *kept, "--out results/guarantees"])
    if given.what == "audit":
        content = {"command": command, **audit(given.vectors, given.keep, given.validation)}
    elif given.what == "drift":
        content = {"command": command, **drift(given.vectors, given.keep)}
    elif given.what == "intervals":
        content = {"command": command, **intervals()}
    else:
        if given.what == "digits":
            runs, words = digits(given.shipped)
        elif given.what == "dogs":
            runs, words = dogs(given.vectors, given.keep, given.shipped)
        else:
            runs, words = text(given.vectors, given.strangers, given.keep, given.shipped)
        content = {"command": command, **words, "splits": len(runs), "rates": summary(runs)}
    print(json.dumps(content, indent=1))
    if given.out is not None and not given.validation:
        given.out.mkdir(parents=True, exist_ok=True)
        name = f"{given.what}-shipped" if given.shipped else given.what
        (given.out / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Measure `Retrofit` on the vectors of a real network, beside what one would do instead: results/real/<set>.json.

    python tools/measure_real.py VECTORS.npz --set dogs-efficientnet --seeds 3 --out results/real

VECTORS.npz holds X (n, F), poor (n, F): the same inputs seen worse, y (n,) and test (n,): which rows are of test
identities. Nothing is chosen on those. --validation measures on a quarter of the training identities instead.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.bench.uncertainty import fight
from hedged.bench.uncertainty.gaussians import MutualScore
from hedged.bench.uncertainty.points import Dropout, Ensemble, LossPrediction
from hedged.bench.uncertainty.sets import TrialSet, Vectors
from hedged.bench.uncertainty.way import Fitted
from hedged.losses import HedgedLoss
from hedged.match import MatchCurve
from hedged.metrics import reliability, roc_auc
from hedged.models import GaussianHead
from hedged.models.evidence.front import Front
from hedged.models.evidence.plda import Directions, directions
from hedged.retrofit import Retrofit

Floats = NDArray[Any]
Score = Callable[[Floats, Floats], Floats]
QUALITIES = ("clean", "degraded")
LDA_DIMS = (20, 100)
PLDA_DIMS = 400
HEAD_DIMS = (32, 128)
HEAD_STEPS = 1000
BASELINE_RIDGES = (0.1, 0.3, 1.0, 3.0)
REFUSED = 0.2  # share of inputs
TEMPLATE = 3  # photos of an identity that are enrolled
FALSE_ALARMS = 0.1
OPEN_SET_DRAWS = 5
FEW_IDENTITIES, FEW_VECTORS, FEW_DRAWS = 10, 5, 20


@dataclass(frozen=True)
class Set:
    """Training and test vectors of one set, by quality."""

    train: dict[str, Floats]
    train_y: Floats
    test: dict[str, Floats]
    test_y: Floats


def read(path: Path, validation: bool) -> Set:
    """The vectors of a file; with `validation`, a quarter of the training identities stand for the test ones."""
    with np.load(path, allow_pickle=False) as file:
        x, poor, y, test = (file[name] for name in ("X", "poor", "y", "test"))
    if validation:
        x, poor, y = x[~test], poor[~test], y[~test]
        identities = np.random.default_rng(0).permutation(np.unique(y))
        test = np.isin(y, identities[: len(identities) // 4])
    parts = {"clean": x.astype(np.float32), "degraded": poor.astype(np.float32)}
    return Set({q: v[~test] for q, v in parts.items()}, y[~test], {q: v[test] for q, v in parts.items()}, y[test])


def pairs_of(y: Floats) -> tuple[Floats, Floats, Floats]:
    first, second = np.triu_indices(len(y), 1)
    return first, second, y[first] == y[second]


def best_threshold(scores: Floats, matches: Floats) -> tuple[float, float]:
    """The best balanced accuracy, and the threshold that has it."""
    order = np.argsort(-scores, kind="stable")
    hits = matches[order]
    gain = np.cumsum(hits) / hits.sum() - np.cumsum(~hits) / (~hits).sum()
    best = int(gain.argmax())
    return 0.5 + 0.5 * float(gain[best]), float(scores[order[best]])


def ranked(scores: Floats, matches: Floats) -> tuple[float, float]:
    """Average precision and the best balanced accuracy, from one sort of millions of pairs; ties are rare."""
    hits = matches[np.argsort(-scores, kind="stable")]
    found = np.cumsum(hits)
    precision = found[hits] / (np.flatnonzero(hits) + 1)
    strangers = np.arange(1, len(hits) + 1) - found
    gain = found / found[-1] - strangers / strangers[-1]
    return float(precision.mean()), 0.5 + 0.5 * float(gain.max())


def balanced_accuracy(scores: Floats, matches: Floats, threshold: float) -> float:
    accepted = scores >= threshold
    return float(accepted[matches].mean() + (~accepted[~matches]).mean()) / 2


def cut(scores: Floats, pairs: tuple[Floats, Floats, Floats], refused_first: Floats) -> float:
    """By how much 1 − balanced accuracy falls when a fifth of the inputs is refused, both at their best threshold."""
    first, second, matches = pairs
    kept = refused_first <= np.quantile(refused_first, 1 - REFUSED)
    both = kept[first] & kept[second]
    before, after = best_threshold(scores, matches)[0], best_threshold(scores[both], matches[both])[0]
    return 1 - (1 - after) / (1 - before)


def cosine(a: Floats, b: Floats) -> Floats:
    a, b = (x / (np.linalg.norm(x, axis=1, keepdims=True) + 1e-12) for x in (a, b))
    return np.asarray(a @ b.T)


def baselines(x: Floats, y: Floats, unit: bool) -> dict[str, Score]:
    """LDA and PLDA fitted to vectors; with `unit`, to vectors of one length, as speaker recognition does."""
    front = Front.fitted(x, x.shape[1], unit=unit)
    labels = np.unique(y, return_inverse=True)[1].reshape(-1)

    def seen(v: Floats) -> Floats:
        return np.asarray(front(torch.from_numpy(np.asarray(v, np.float32)))[0].double().numpy())

    made: dict[str, Score] = {}
    for ridge in BASELINE_RIDGES:
        found = directions(seen(x), labels, ridge)

        for dim in LDA_DIMS:
            made[f"lda-{dim}/{ridge}"] = _by_cosine(partial(_project, seen, found.first(dim)))
        made[f"plda/{ridge}"] = _by_plda(
            partial(_project, seen, found.first(PLDA_DIMS)), found.first(PLDA_DIMS).evidence
        )
    return made


def _project(seen: Callable[[Floats], Floats], found: Directions, v: Floats) -> Floats:
    return np.asarray((seen(v) - found.centre) @ found.weight)


def _by_cosine(project: Callable[[Floats], Floats]) -> Score:
    return lambda a, b: cosine(project(a), project(b))


def _by_plda(project: Callable[[Floats], Floats], evidence: Floats) -> Score:
    return lambda a, b: plda_scores(project(a), project(b), evidence)


def plda_scores(a: Floats, b: Floats, evidence: Floats) -> Floats:
    """Log Bayes factors of whitened projections by two-covariance PLDA: one variance for all inputs."""
    spread = 1 / (1 + evidence)
    t = 2 * spread - spread**2
    a, b = (np.sqrt(evidence) * spread * v / np.sqrt(t) for v in (a, b))
    own_a, own_b = (0.5 * (v**2 @ (1 - spread)) for v in (a, b))
    return np.asarray(a @ b.T - own_a[:, None] - own_b - 0.5 * np.log(t).sum())


def chosen_baselines(data: Set, fitted_to: tuple[str, ...], unit: bool) -> dict[str, tuple[Score, dict[str, float]]]:
    """LDA and PLDA with the ridge that is best on held-out training identities, and thresholds chosen there."""
    identities = np.random.default_rng(1).permutation(np.unique(data.train_y))
    held = np.isin(data.train_y, identities[: len(identities) // 4])

    def stacked(rows: Floats) -> tuple[Floats, Floats]:
        x = np.concatenate([data.train[q][rows] for q in fitted_to])
        return x, np.concatenate([data.train_y[rows]] * len(fitted_to))

    found = chosen_on(data, held, baselines(*stacked(~held), unit) | {"cosine/": cosine})
    final = baselines(*stacked(np.ones_like(held)), unit) | {"cosine/": cosine}
    return {way: (final[name], at) for way, (_, name, at) in found.items()}


def chosen_on(data: Set, held: Floats, tried: dict[str, Score]) -> dict[str, tuple[float, str, dict[str, float]]]:
    """The best of each way on held-out training identities, by balanced accuracy: its merit, name and thresholds."""
    first, second, matches = pairs_of(data.train_y[held])
    found: dict[str, tuple[float, str, dict[str, float]]] = {}
    for name, score in tried.items():
        way, at = name.split("/")[0], {}
        merit = 0.0
        for q in QUALITIES:
            scores = score(data.train[q][held], data.train[q][held])[first, second]
            accuracy, at[q] = best_threshold(scores, matches)
            merit += accuracy
        if way not in found or merit > found[way][0]:
            found[way] = (merit, name, at)
    return found


def trained_heads(clean: Floats, poor: Floats, y: Floats, seed: int) -> dict[str, Score]:
    """What else one could train on the same vectors: a linear point head, and a Gaussian head by the paper's loss.

    Vectors are standardised, with Gaussian noise and dropout on them; 1,000 batches of 32 identities × 4 vectors, half
    of them degraded; Adam at 1e-3, weight decay 0.1.
    """
    both = np.concatenate([clean, poor])
    centre, scale = torch.from_numpy(both.mean(0)), torch.from_numpy(both.std(0) + 1e-6)
    views = torch.stack([torch.from_numpy(clean), torch.from_numpy(poor)])
    rows_of = [rows for k in np.unique(y) if len(rows := np.flatnonzero(y == k)) > 1]

    def learn(head: torch.nn.Module, rest: torch.nn.Module, cost: Callable[..., torch.Tensor]) -> None:
        rng, noise = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
        weights = [*head.parameters(), *rest.parameters()]
        optimiser = torch.optim.AdamW(weights, lr=1e-3, weight_decay=0.1)
        for _ in range(HEAD_STEPS):
            chosen = rng.choice(len(rows_of), min(32, len(rows_of)), replace=False)
            drawn = [rng.permutation(rows_of[k])[:4] for k in chosen]
            labels = torch.from_numpy(np.repeat(chosen, [len(rows) for rows in drawn]))
            rows = torch.from_numpy(np.concatenate(drawn))
            x = (views[torch.randint(0, 2, rows.shape, generator=noise), rows] - centre) / scale
            x = x + 0.5 * torch.randn(x.shape, generator=noise)
            x = x * (torch.rand(x.shape, generator=noise) > 0.2) / 0.8
            optimiser.zero_grad()
            cost(head(x), labels).backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    torch.manual_seed(seed)
    made: dict[str, Score] = {}
    for dim in HEAD_DIMS:
        point, slope = torch.nn.Linear(clean.shape[1], dim), _Slope()
        learn(point, slope, lambda z, labels, slope=slope: slope.cost(z, labels))
        made[f"point-head/{dim}"] = _by_cosine(partial(_through, point, centre, scale))
    hedged = GaussianHead(clean.shape[1], 20)
    with torch.no_grad():
        apart = torch.pdist(hedged((views[0, :500] - centre) / scale).mean).mean().item()
    curve = MatchCurve(scale=3 / apart, bias=3.0)  # it starts where the points are
    learn(hedged, curve, HedgedLoss(curve, positive_weight=0.5))

    def by_curve(a: Floats, b: Floats) -> Floats:
        with torch.no_grad():
            z1, z2 = (hedged((torch.from_numpy(np.asarray(v, np.float32)) - centre) / scale) for v in (a, b))
            return np.asarray(curve.matrix(z1, z2).double().numpy())

    return made | {"paper-loss/20": by_curve}


class _Slope(torch.nn.Module):
    """Log-odds of a match as a line in the cosine, learnt with the head."""

    def __init__(self) -> None:
        super().__init__()
        self.slope, self.shift = (torch.nn.Parameter(torch.tensor(v)) for v in (10.0, -3.0))

    def cost(self, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        unit = torch.nn.functional.normalize(z, dim=1)
        logits = self.slope * (unit @ unit.T) + self.shift
        same = labels[:, None] == labels
        match = same & ~torch.eye(len(labels), dtype=torch.bool)
        softplus = torch.nn.functional.softplus
        return 0.5 * softplus(-logits[match]).mean() + 0.5 * softplus(logits[~same]).mean()


@torch.no_grad()
def _through(head: torch.nn.Module, centre: torch.Tensor, scale: torch.Tensor, v: Floats) -> Floats:
    return np.asarray(head((torch.from_numpy(np.asarray(v, np.float32)) - centre) / scale).double().numpy())


def chosen_heads(data: Set, seed: int) -> dict[str, tuple[Score, dict[str, float]]]:
    """Trained heads, their dimensions and thresholds chosen on held-out training identities."""
    identities = np.random.default_rng(1).permutation(np.unique(data.train_y))
    held = np.isin(data.train_y, identities[: len(identities) // 4])
    clean, poor = (data.train[q] for q in QUALITIES)
    tried = trained_heads(clean[~held], poor[~held], data.train_y[~held], seed)
    found = chosen_on(data, held, tried)
    final = trained_heads(clean, poor, data.train_y, seed)
    return {way: (final[name], at) for way, (_, name, at) in found.items()}


def measure_scores(data: Set, score: Score, thresholds: dict[str, float]) -> dict[tuple[str, str], float]:
    first, second, matches = pairs_of(data.test_y)
    found = {}
    for q in QUALITIES:
        scores = score(data.test[q], data.test[q])[first, second]
        found[q, "ap"], found[q, "best_balanced_accuracy"] = ranked(scores, matches)
        found[q, "balanced_accuracy"] = balanced_accuracy(scores, matches, thresholds[q])
    return found


def measure_head(data: Set, head: Retrofit, doubters: dict[str, Fitted]) -> dict[tuple[str, str], float]:
    pairs = pairs_of(data.test_y)
    first, second, matches = pairs
    found, doubts = {}, []
    weights = np.where(matches, 0.5 / matches.sum(), 0.5 / (~matches).sum())
    for q in QUALITIES:
        z = head.embed(data.test[q])
        scores = head.match_model.matrix(z, z).numpy()[first, second].astype(np.float64)
        doubt = -head.match_model.self_logit(z.to(torch.float64)).detach().numpy()
        doubts.append(doubt)
        found[q, "ap"], found[q, "best_balanced_accuracy"] = ranked(scores, matches)
        found[q, "balanced_accuracy"] = balanced_accuracy(scores, matches, 0.0)
        p = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
        found[q, "ece"] = reliability(p, matches, weights=weights).ece
        found[q, "error_cut"] = cut(scores, pairs, doubt)
        learnt = {name: way.uncertainty(data.test[q].astype(np.float32)) for name, way in doubters.items()}
        for order, refused_first in (refusal_orders(data, head, q) | learnt).items():
            found[q, f"error_cut_by_{order}"] = cut(scores, pairs, refused_first)
    is_degraded = np.repeat([False, True], len(data.test_y))
    found["degraded", "eta_auroc"] = roc_auc(np.concatenate(doubts), is_degraded)
    return found


def refusal_orders(data: Set, head: Retrofit, quality: str) -> dict[str, Floats]:
    """Other orders in which inputs could be refused, the worst highest."""
    x = data.test[quality]
    similar = np.sort(cosine(x, data.train["clean"]), axis=1)
    _, signs = head.embedder_.head.front(torch.from_numpy(x))  # type: ignore[operator]
    return {
        "norm": -np.linalg.norm(x, axis=1),
        "neighbour": 1 - similar[:, -5],
        "ratio": (1 - similar[:, -1]) / (1 - similar[:, -2] + 1e-9),  # of the two nearest distances
        "trace": head.embed(x).variance.sum(1).numpy(),
        "poorness": signs[:, 1].numpy(),  # a classifier of poorer views
    }


def doubters(data: Set, settings: Path | None, seed: int) -> dict[str, Fitted]:
    """Ways of the fair fight that learn what to refuse; their settings are those chosen there, or chosen anew."""
    parts = ((data.train, data.train_y), (data.test, data.test_y))
    train, test = (Vectors(x["clean"], x["degraded"], np.unique(y, return_inverse=True)[1]) for x, y in parts)
    trial = TrialSet("", train, test, None)
    known = {} if settings is None else {c["way"]: c["setting"] for c in json.loads(settings.read_text("utf-8"))}
    return {
        way.name.replace(" ", "_"): way.fit(train, seed, **(known.get(way.name) or fight.tuned(way, trial)))
        for way in (Dropout(), Ensemble(), LossPrediction(), MutualScore())
    }


def open_set(data: Set, draw: int, template_scores: Callable[[Floats, Floats, Floats], Floats]) -> float:
    """Detection and identification rate at a false alarm rate of 0.1: half of the identities enrolled by templates."""
    rng = np.random.default_rng(draw)
    half = rng.random(len(data.test_y)) < 0.5
    x = np.where(half[:, None], data.test["degraded"], data.test["clean"])
    identities = rng.permutation(np.unique(data.test_y))
    enrolled: list[int] = []
    owner: list[int] = []
    known: list[tuple[int, int]] = []
    strangers: list[int] = []
    for k, identity in enumerate(identities):
        rows = rng.permutation(np.flatnonzero(data.test_y == identity))
        if k % 2 or len(rows) <= TEMPLATE:
            strangers += list(rows)
            continue
        number = len(set(owner))
        enrolled += list(rows[:TEMPLATE])
        owner += [number] * TEMPLATE
        known += [(row, number) for row in rows[TEMPLATE:]]
    scores = template_scores(x[enrolled], np.array(owner), x)
    alarm = np.quantile(scores[strangers].max(1), 1 - FALSE_ALARMS)
    rows, truth = (np.array(column) for column in zip(*known, strict=True))
    right = (scores[rows].argmax(1) == truth) & (scores[rows].max(1) >= alarm)
    return float(right.mean())


def by_mean_vector(score: Score) -> Callable[[Floats, Floats, Floats], Floats]:
    def scores(enrolled: Floats, owner: Floats, probes: Floats) -> Floats:
        means = np.stack([enrolled[owner == k].mean(0) for k in range(owner.max() + 1)])
        return score(probes, means)

    return scores


def by_fusion(head: Retrofit) -> Callable[[Floats, Floats, Floats], Floats]:
    def scores(enrolled: Floats, owner: Floats, probes: Floats) -> Floats:
        templates = head.match_model.fuse(head.embed(enrolled), torch.from_numpy(owner))
        return np.asarray(head.match_model.matrix(head.embed(probes), templates).numpy())

    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("--set", required=True, help="the name of the set, which names the file")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a folder; without it, the table is only printed")
    parser.add_argument("--validation", action="store_true", help="measure on training identities, to choose by")
    parser.add_argument(
        "--only", choices=["baselines", "heads", "few", "evidence", "evidence-without-poor"], help="measure one part"
    )
    parser.add_argument("--fight", type=Path, help="results of `hedged bench uncertainty` on these vectors: settings")
    arguments = parser.parse_args()
    data = read(arguments.vectors, arguments.validation)
    measured: dict[str, list[dict[tuple[str, str], float]]] = {}
    if arguments.only in (None, "baselines"):
        for tag, fitted_to, unit in (
            ("-clean-only", ("clean",), False),
            ("", QUALITIES, False),
            ("-unit", QUALITIES, True),
        ):
            for way, (score, at) in chosen_baselines(data, fitted_to, unit).items():
                if way == "cosine" and tag:
                    continue
                found = measure_scores(data, score, at)
                if tag != "-clean-only":
                    rates = [open_set(data, draw, by_mean_vector(score)) for draw in range(OPEN_SET_DRAWS)]
                    found["degraded", "dir_at_fpir"] = float(np.mean(rates))
                measured[way + tag] = [found]
                show(way + tag, measured[way + tag])
        write(arguments, measured)
    if arguments.only in (None, "heads"):
        for seed in range(arguments.seeds):
            for way, (score, at) in chosen_heads(data, seed).items():
                found = measure_scores(data, score, at)
                rates = [open_set(data, draw, by_mean_vector(score)) for draw in range(OPEN_SET_DRAWS)]
                found["degraded", "dir_at_fpir"] = float(np.mean(rates))
                measured.setdefault(way, []).append(found)
                show(way, measured[way])
        write(arguments, measured)
    heads = {"evidence": data.train["degraded"], "evidence-without-poor": None}
    if arguments.only in (None, "few"):
        first, second, matches = pairs_of(data.test_y)
        raw = {q: ranked(cosine(data.test[q], data.test[q])[first, second], matches)[1] for q in QUALITIES}
        measured["evidence-10x5"] = [few_identities(data, draw, raw) for draw in range(FEW_DRAWS)]
        show("evidence-10x5", measured["evidence-10x5"])
        worst = min(run[q, "gain_over_cosine"] for run in measured["evidence-10x5"] for q in QUALITIES)
        print(f"evidence-10x5: at worst {worst:+.4f} beside the cosine, in {FEW_DRAWS} draws", flush=True)
        write(arguments, measured)
    if arguments.only not in ("baselines", "heads", "few"):
        for name, poor in heads.items():
            if arguments.only not in (None, name):
                continue
            for seed in range(arguments.seeds):
                began = time.monotonic()
                head = Retrofit(seed=seed).fit(data.train["clean"], data.train_y, poor=poor)
                print(f"{name} seed {seed}: {time.monotonic() - began:.0f} s\n{head.report_}", flush=True)
                found = measure_head(data, head, doubters(data, arguments.fight, seed))
                rates = [open_set(data, draw, by_fusion(head)) for draw in range(OPEN_SET_DRAWS)]
                found["degraded", "dir_at_fpir"] = float(np.mean(rates))
                found["clean", "seconds"] = head.report_.seconds
                found["clean", "fell_back"] = float(not head.report_.chosen.startswith("evidence"))
                measured.setdefault(name, []).append(found)
                write(arguments, measured)
            show(name, measured[name])


def few_identities(data: Set, draw: int, raw: dict[str, float]) -> dict[tuple[str, str], float]:
    """`Retrofit` fitted to 10 training identities of 5 vectors each, beside the raw cosine, on all test identities."""
    rng = np.random.default_rng(draw)
    counts = {k: np.flatnonzero(data.train_y == k) for k in np.unique(data.train_y)}
    chosen = rng.permutation([k for k, rows in counts.items() if len(rows) >= FEW_VECTORS])[:FEW_IDENTITIES]
    rows = np.concatenate([rng.permutation(counts[k])[:FEW_VECTORS] for k in chosen])
    head = Retrofit(seed=draw).fit(data.train["clean"][rows], data.train_y[rows])
    first, second, matches = pairs_of(data.test_y)
    found = {}
    for q in QUALITIES:
        z = head.embed(data.test[q])
        ours = ranked(head.match_model.matrix(z, z).numpy()[first, second], matches)[1]
        found[q, "best_balanced_accuracy"] = ours
        found[q, "gain_over_cosine"] = ours - raw[q]
    return found


def write(arguments: argparse.Namespace, measured: dict[str, list[dict[tuple[str, str], float]]]) -> None:
    """The cells of all methods measured so far, beside those of other methods that the file has already."""
    if not arguments.out:
        return
    path = arguments.out / f"{arguments.set}.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    vectors = str(arguments.vectors)
    command = "python tools/measure_real.py " + " ".join(Path(a).name if a == vectors else a for a in sys.argv[1:])
    cells = [
        {
            "set": arguments.set,
            "method": method,
            "quality": quality,
            "metric": metric,
            "measured": round(float(np.mean([run[quality, metric] for run in runs])), 4),
            "std": round(float(np.std([run[quality, metric] for run in runs])), 4),
            "seeds": len(runs),
            "command": command,
        }
        for method, runs in measured.items()
        for quality, metric in runs[0]
    ]
    arguments.out.mkdir(parents=True, exist_ok=True)
    cells = [cell for cell in before if cell["method"] not in measured] + cells
    path.write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")


def show(name: str, runs: list[dict[tuple[str, str], float]]) -> None:
    for quality in QUALITIES:
        told = " ".join(f"{m}={np.mean([r[quality, m] for r in runs]):.4f}" for q, m in runs[0] if q == quality)
        print(f"{name:24s} {quality:9s} {told}", flush=True)


if __name__ == "__main__":
    main()

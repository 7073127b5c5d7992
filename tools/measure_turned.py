"""Measure whether covariances that may turn pay on two digits in two dimensions: results/turned.

    python -m tools.measure_turned models --models runs/turned --out results/turned
    python -m tools.measure_turned speed --out results/turned

`models` trains by the recipe of the paper's tables (configs/paper.toml), frozen, with `model.head = "full"` in the
place of "gaussian"; seeds 0, 1 and 2. Training goes on where it stopped. --seeds 1 trains the first alone. The diagonal
model of the figure is the one that ships, `hedged:ndigit-2d`; its accuracies over three seeds are in results/paper.

Beside accuracies it measures how embeddings lean on the axes. `turn` is the angle by which the plane has to be turned
for digits to lie along its axes, and `alignment` how well they do, there and along the axes as they are. `axis_cost`
is what the balanced cross-entropy of pairs of corrupt images rises by if each ellipse is replaced by one along the
axes, of the same variances there: as the space is, and turned by 45°. Of points it is zero.

`speed` measures how many times as long both match models take as with diagonal covariances of the same variances, on
one thread: by the processor's time, which other work on the machine moves least, and by the clock.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import softplus

from hedged import Evidence, MatchCurve, best_matches, match_matrix
from hedged.bench.embeddings import turned as of_rank_one
from hedged.distributions import Distribution, FullGaussian, Gaussian
from hedged.evaluation import Evaluation
from hedged.evaluation.space import Space
from hedged.match import MatchModel
from hedged.metrics import axis_alignment, best_turn
from hedged.models import Embedder
from hedged.paper.cloud_panel import cloud_panel
from hedged.paper.recipe import recipe
from hedged.paper.shelf import Need, Shelf
from hedged.plots.style import letters, panels, title
from hedged.training import Config

SHIPPED = "hedged:ndigit-2d"
COMMAND = "python -m tools.measure_turned models --models runs/turned --out results/turned"
SPEED_COMMAND = "python -m tools.measure_turned speed --out results/turned"
STEPS = 5000  # of the recipe
PAIRS_OF = 1500  # corrupt images, every pair of which counts
CLOUDS = 60  # drawn
ITEMS, BATCH = 1000, 128  # embeddings of a list, whose pairs are all compared, and of a batch of training
SPEED_DIMS = {"full": (2, 3, 4), "rank 1": (2, 20, 128)}
REPEATS = 7


def full(seed: int, steps: int) -> Config:
    """The recipe of two digits in two dimensions, with covariances that may turn."""
    return recipe(2, 2, "mog-1", seed=seed, model__head="full", train__steps=steps)


def turned_by(z: Distribution, degrees: float) -> FullGaussian:
    """The same embeddings, the plane around them turned."""
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    q = torch.tensor([[cos, -sin], [sin, cos]])
    wide = z.to(torch.float64)
    return FullGaussian.of(wide.mean @ q.T, q @ wide.covariances()[:, 0] @ q.T)


def cross_entropy(z: Distribution, labels: Tensor, model: MatchModel) -> float:
    """The mean of −log p over matching pairs and of −log(1 − p) over the others, half and half."""
    logits = model.matrix(z, z)
    above = torch.ones_like(logits, dtype=torch.bool).triu(1)
    same = labels[:, None] == labels
    return 0.5 * float(softplus(-logits[above & same]).mean() + softplus(logits[above & ~same]).mean())


def leaning(evaluation: Evaluation, model: MatchModel) -> dict[str, float]:
    """How embeddings lean on the axes of their space."""
    centroids = Space(evaluation).centroids
    turn = best_turn(centroids)
    some = torch.from_numpy(np.random.default_rng(0).permutation(len(evaluation.labels))[:PAIRS_OF].copy())
    z, labels = evaluation.embeddings["corrupt"][some], torch.from_numpy(evaluation.labels)[some]
    found = {"turn": turn.degrees, "alignment_turned": turn.score, "alignment": axis_alignment(centroids).score}
    base = cross_entropy(turned_by(z, 0), labels, model)
    for degrees in (0, 45):
        round_ = turned_by(z, degrees)
        along = Gaussian(round_.mean, round_.variance)
        found[f"axis_cost_{degrees}"] = cross_entropy(along, labels, model) - base
    squares = torch.linalg.eigvalsh(turned_by(z, 0).covariances()[:, 0])
    found["long_by_short"] = float((squares[:, 1] / squares[:, 0]).sqrt().median())
    return {name: round(value, 5) for name, value in found.items()}


def cells(shelf: Shelf, configs: Sequence[Config]) -> list[dict[str, Any]]:
    """Every accuracy and correlation, mean and standard deviation over the seeds."""
    each = [shelf.measured(config, "seen")["cells"] for config in configs]
    found = []
    for same in zip(*each, strict=True):
        values = np.array([cell["measured"] for cell in same])
        named = {key: value for key, value in same[0].items() if key != "measured"}
        spread = {
            "measured": round(float(values.mean()), 5),
            "std": round(float(values.std()), 5),
            "seeds": len(values),
        }
        found.append({"digits": 2, "dim": 2, "model": "full", "split": "seen", **named, **spread, "seeds": len(values)})
    return found


def picture(spaces: dict[str, Space]) -> Figure:
    """Corrupt images as ellipses over the classes, a panel a model."""
    figure, axes = panels(1, len(spaces))
    for one, (name, space) in zip(axes.flat, spaces.items(), strict=True):
        cloud_panel(one, space, "corrupt", CLOUDS)
        title(one, name)
    letters(list(axes.flat))
    return figure


def embeddings(covariance: str, dim: int, count: int) -> tuple[Distribution, Gaussian]:
    """Embeddings whose covariances turn, a quarter of all pairs near, and diagonal ones of the same variances."""
    z = of_rank_one(count, dim)
    diagonal = Gaussian(z.mean, z.variance)
    return (FullGaussian.of(z.mean, z.covariances()[:, 0]) if covariance == "full" else z), diagonal


def tasks(model: MatchModel) -> dict[str, tuple[int, Callable[[Distribution], object]]]:
    """What is asked of a match model, and of how many embeddings."""
    labels = torch.arange(BATCH) % 4

    def train(z: Distribution) -> None:
        leaves = [t.clone().requires_grad_() for t in z.tensors]
        torch.autograd.backward(model.pair_costs(type(z)._unchecked(*leaves), labels).sum())

    return {
        "match_matrix": (ITEMS, lambda z: match_matrix(z, z, model)),
        "matrix": (ITEMS, lambda z: model.matrix(z, z)),
        "best_matches": (ITEMS, lambda z: best_matches(z, z, model, k=10)),
        "pair_costs": (BATCH, train),
    }


def side_by_side(task: Callable[[Distribution], object], sides: Sequence[Distribution]) -> list[dict[str, float]]:
    """The median seconds of a task for each of some embeddings, which take turns: of the processor and by the clock."""
    taken: list[list[tuple[float, float]]] = [[] for _ in sides]
    for _ in range(REPEATS + 1):
        for z, times in zip(sides, taken, strict=True):
            cpu, clock = time.process_time(), time.perf_counter()
            task(z)
            times.append((time.process_time() - cpu, time.perf_counter() - clock))
    found = [[median(column) for column in zip(*times[1:], strict=True)] for times in taken]  # the first one warms up
    return [{"cpu_s": round(cpu, 6), "clock_s": round(clock, 6)} for cpu, clock in found]


def speed() -> list[dict[str, Any]]:
    """How many times as long as diagonal covariances those that turn take, task by task."""
    torch.set_num_threads(1)
    found = []
    for name, model in (("curve", MatchCurve()), ("evidence", Evidence())):
        for covariance, dims in SPEED_DIMS.items():
            for dim in dims:
                for what, (count, task) in tasks(model).items():
                    turned, diagonal = side_by_side(task, embeddings(covariance, dim, count))
                    ratios = {
                        f"{by}_ratio": round(turned[f"{by}_s"] / diagonal[f"{by}_s"], 2) for by in ("cpu", "clock")
                    }
                    line = {"model": name, "task": what, "covariance": covariance, "dim": dim, "count": count, **ratios}
                    found.append({**line, "turned": turned, "diagonal": diagonal})
                    print(name, what, covariance, dim, ratios, turned, diagonal, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["models", "speed"], default="models", help="what is measured")
    parser.add_argument("--models", type=Path, default=Path("runs/turned"), help="the folder of trained models")
    parser.add_argument("--out", type=Path, required=True, help="the folder of results")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds, from 0 on")
    parser.add_argument(
        "--steps", type=int, default=STEPS, help="of training; fewer than the recipe's for a quick look"
    )
    parser.add_argument("--axes", action="store_true", help="the axes and the figure alone, without accuracies")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what == "speed":
        content = {"command": SPEED_COMMAND, "threads": 1, "repeats": REPEATS, "cells": speed()}
        (given.out / "speed.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        return
    shelf, configs = Shelf(given.models), [full(seed, given.steps) for seed in range(given.seeds)]
    for config in configs:
        shelf.fill(Need(config, () if given.axes else ("seen",)))
    diagonal, turned = Embedder.load(SHIPPED), [shelf.evaluation(config) for config in configs]
    shipped = Evaluation(diagonal, turned[0].data)
    leans: list[dict[str, Any]] = [
        {"model": "diagonal", "weights": SHIPPED, "steps": STEPS, **leaning(shipped, diagonal.match_model)}
    ]
    for seed, evaluation in enumerate(turned):
        model = evaluation.embedder.match_model
        leans.append({"model": "full", "seed": seed, "steps": given.steps, **leaning(evaluation, model)})
    chosen = f" --seeds {given.seeds} --steps {given.steps}{' --axes' if given.axes else ''}"
    content = {"command": COMMAND + chosen, "cells": [] if given.axes else cells(shelf, configs), "axes": leans}
    (given.out / "ndigit.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    names = {"Diagonal covariances": Space(shipped), "Covariances that may turn": Space(turned[0])}
    picture(names).savefig(given.out / "ellipses.png", dpi=200)


if __name__ == "__main__":
    main()

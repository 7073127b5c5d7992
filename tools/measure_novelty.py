"""Measure which number tells which trouble, and how novel the novel is: results/novelty/<set>.json.

    python tools/measure_novelty.py train clothes --images DIR --runs RUNS --dim 16 --seed 0
    python tools/measure_novelty.py clothes --images DIR --runs RUNS --out results/novelty
    python tools/measure_novelty.py train numbers --runs RUNS --dim 2 --seed 0
    python tools/measure_novelty.py numbers --runs RUNS --out results/novelty
    python tools/measure_novelty.py texts VECTORS.npz --out results/novelty
    python tools/measure_novelty.py cost --out results/novelty
    python tools/measure_novelty.py laplace --out results/novelty

DIR holds the four files of Fashion-MNIST (Debian: dataset-fashion-mnist, in /usr/share/datasets). VECTORS.npz holds
vectors of CLINC150: train, val, test with train_y, val_y, test_y, and oos_val, oos_test. `train` goes on where it was
stopped. --validation measures on what was kept for choosing: clothes and digits of the training files, queries of the
validation part.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from hedged.data import Batch, NDigit
from hedged.data.ndigit.idx import parse_idx
from hedged.data.ndigit.mnist import Digits, load_mnist
from hedged.distributions import Gaussian
from hedged.match import Evidence, match_logit
from hedged.metrics import roc_auc
from hedged.models import Architecture, Embedder
from hedged.models.backbones import ShallowHidden
from hedged.models.evidence.front import Front
from hedged.models.evidence.head import EvidenceHead
from hedged.models.evidence.plda import directions
from hedged.novelty import Novelty
from hedged.novelty.novelty import PARTS
from hedged.retrofit import Retrofit, simple
from hedged.search import BorderFusion
from hedged.training import Config, Run, build_data, fit_novelty, train

Floats = NDArray[Any]
Images = NDArray[np.uint8]
Cells = list[dict[str, Any]]
Told = dict[tuple[str, str], float]  # by the number and the trouble that it tells

DIMS = {"clothes": (2, 16, 32), "numbers": (2, 3)}
SEEDS = (0, 1, 2)
NUMBERS = ("eta", "novelty", "nobody")
SHIPPED, SHIPPED_DIM = "hedged:ndigit-2d", 2  # a model of numbers as `train numbers` makes them, of another training
FIRST_DIM = 16  # of clothes, trained from the start; other dimensions go on from its network
CHANNELS, HIDDEN = (16, 32), 512
OTHER_DIMS = {"backbone": "module"}
CLOTHES_STEPS = {16: 4_000, 2: 2_000, 32: 2_000}
KEPT = 6_000  # clothes of the training file that are kept for choosing
LOOKED_UP = 2_000  # new clothes whose nearest neighbour is looked up
NOVEL = 5_000  # inputs of each kind of novelty
LAPLACE_WEIGHTS = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
GALLERY = 20  # images of a number that stand for it


def clothes_config(dim: int, seed: int, steps: int) -> Config:
    """How Fashion-MNIST is trained on: in `FIRST_DIM` dimensions from the start, in others from that network."""
    model = {"backbone": "shallow-hidden", "channels": CHANNELS, "hidden": HIDDEN} if dim == FIRST_DIM else OTHER_DIMS
    return Config.model_validate(
        {
            "data": {"source": "mnist", "digits": 1, "occlusion": 0.0},
            "model": {**model, "dim": dim},
            "loss": {"kind": "hedged", "beta": 1e-4, "positive_weight": 0.3},
            "train": {
                "steps": steps,
                "classes_per_batch": 10,
                "images_per_class": 8,
                "learning_rate": 6e-3 if dim == FIRST_DIM else 4e-3,
                "seed": seed,
                "checkpoint_every": 200,
            },
        }
    )


def clothes_network(runs: Path, dim: int, seed: int, is_trained: bool) -> ShallowHidden | None:
    """What is given as the backbone in dimensions that begin with the network of others; None where nothing is.

    Args:
        runs: where trained models are.
        dim: D.
        seed: of the training.
        is_trained: whether it is loaded from the model of `FIRST_DIM`; else it waits for weights.
    """
    if dim == FIRST_DIM:
        return None
    network = ShallowHidden((1, 28, 28), CHANNELS, HIDDEN)
    if is_trained:
        network.load_state_dict(run_of(runs, "clothes", FIRST_DIM, seed).embedder.backbone.state_dict())
    return network


def numbers_config(dim: int, seed: int) -> Config:
    """The recipe of the paper's tables: 2-digit MNIST, split by number."""
    return Config.model_validate(
        {
            "data": {"source": "mnist", "digits": 2, "split": "number"},
            "model": {"backbone": "shallow-hidden", "hidden": 512, "dim": dim},
            "train": {"steps": 5000, "seed": seed},
        }
    )


def read_clothes(folder: Path, part: str) -> Digits:
    """Images and labels of one part of Fashion-MNIST."""
    images, labels = (
        parse_idx(gzip.decompress((folder / f"{part}-{what}-ubyte.gz").read_bytes()), dimensions, what)
        for what, dimensions in (("images-idx3", 3), ("labels-idx1", 1))
    )
    return Digits(images, labels.long(), "Fashion-MNIST")


def clothes_parts(folder: Path) -> tuple[Digits, Digits]:
    """What is trained on, and what is kept for choosing."""
    everything = read_clothes(folder, "train")
    order = torch.randperm(len(everything), generator=torch.Generator().manual_seed(0))
    return everything.subset(order[:-KEPT]), everything.subset(order[-KEPT:])


def strokes(count: int, seed: int) -> Images:
    """Drawings of one to four bent strokes, white on black, as of a script that nobody writes."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(count):
        image = Image.new("L", (112, 112))
        pen = ImageDraw.Draw(image)
        for _ in range(int(rng.integers(1, 5))):
            p, t = rng.uniform(12, 100, (4, 2)), np.linspace(0, 1, 24)[:, None]
            bent = (1 - t) ** 3 * p[0] + 3 * t * (1 - t) ** 2 * p[1] + 3 * t**2 * (1 - t) * p[2] + t**3 * p[3]
            pen.line([(float(x), float(y)) for x, y in bent], fill=255, width=int(rng.integers(6, 13)), joint="curve")
        drawn.append(np.asarray(image.resize((28, 28), Image.Resampling.BOX)))
    return np.stack(drawn)


def unlike_clothes(known: Images, digits: Images) -> dict[str, Images]:
    """Inputs that no model of clothes has seen, by kind."""
    rng, count = np.random.default_rng(1), min(NOVEL, len(known))
    return {
        "digits of MNIST": digits[:count],
        "strokes": strokes(count, 0),
        "uniform noise": rng.integers(0, 256, (count, 28, 28), dtype=np.uint8),
        "Gaussian noise": np.clip(rng.normal(128, 64, (count, 28, 28)), 0, 255).astype(np.uint8),
        "specks": (rng.random((count, 28, 28)) < 0.2).astype(np.uint8) * np.uint8(255),
        "blank, any grey": np.broadcast_to(rng.integers(0, 256, (count, 1, 1), np.uint8), (count, 28, 28)).copy(),
        "inverted clothes": 255 - known[:count],
    }


def auroc(known: Floats, novel: Floats) -> float:
    """The chance that a novel input gets the higher number."""
    return float(roc_auc(np.concatenate([known, novel]), np.arange(len(known) + len(novel)) >= len(known)))


def run_of(runs: Path, task: str, dim: int, seed: int) -> Run:
    """The folder of one training."""
    return Run(runs / f"{task}-d{dim}-seed{seed}")


def train_one(task: str, args: argparse.Namespace) -> None:
    """Train one model, or go on with it; what is finished stays."""
    run = run_of(args.runs, task, args.dim, args.seed)
    if run.state == "finished":
        return
    config, data, network = numbers_config(args.dim, args.seed), None, None
    if task == "clothes":
        config = clothes_config(args.dim, args.seed, args.steps or CLOTHES_STEPS[args.dim])
        known = clothes_parts(args.images)[0]
        data = NDigit(known, torch.arange(len(known))[:, None])
        network = clothes_network(args.runs, args.dim, args.seed, is_trained=run.state != "unfinished")
    train(config, data, run.folder, resume=run.state == "unfinished", backbone=network)


def nearest_accuracy(embedder: Embedder, known: Digits, new: Digits) -> float:
    """How often the nearest training image, by match probability, is of the right class."""
    found = embedder.nearest(embedder.embed(new.images.numpy()), embedder.embed(known.images.numpy()), k=1).items[:, 0]
    return float((known.labels[found] == new.labels).float().mean())


def cell(name: str, number: str, metric: str, measured: Iterable[float], command: str, **about: Any) -> dict[str, Any]:
    """One number of a table: the mean of seeds, and their spread."""
    values = list(measured)
    spread = round(float(np.std(values, ddof=1)), 4) if len(values) > 1 else None
    mean = round(float(np.mean(values)), 4)
    found = {"set": name, "number": number, "metric": metric, "measured": mean, "std": spread, "seeds": len(values)}
    return found | {"least": round(min(values), 4)} | about | {"command": command}


def clothes(args: argparse.Namespace) -> Cells:
    """Fashion-MNIST trained on: what tells that an input is no clothing."""
    known, kept = clothes_parts(args.images)
    new = kept if args.validation else read_clothes(args.images, "t10k")
    digits = load_mnist("train" if args.validation else "test").images.numpy()
    cells: Cells = []
    for dim in DIMS["clothes"]:
        runs = [run for seed in SEEDS if (run := run_of(args.runs, "clothes", dim, seed)).state == "finished"]
        found: dict[tuple[str, str], list[float]] = {}
        for run in runs:
            embedder = Embedder.load(run.folder, backbone=clothes_network(args.runs, dim, 0, is_trained=False))
            train_part = NDigit(known, torch.arange(len(known))[:, None])
            embedder.novelty_model = fit_novelty(embedder, run.config.seen(train_part))  # as of today, not of the run
            accuracy = nearest_accuracy(embedder, known, new.subset(torch.arange(LOOKED_UP)))
            found.setdefault(("1-NN", "accuracy"), []).append(accuracy)
            z, novelty = embedder.embed_with_novelty(new.images.numpy())
            own = {"eta": embedder.uncertainty(z).numpy(), "novelty": novelty}
            for kind, images in unlike_clothes(new.images.numpy(), digits).items():
                z, novelty = embedder.embed_with_novelty(images)
                for number, told in (("eta", embedder.uncertainty(z).numpy()), ("novelty", novelty)):
                    found.setdefault((number, kind), []).append(auroc(np.asarray(own[number]), np.asarray(told)))
        steps = sorted({run.config.train.steps for run in runs if isinstance(run.config, Config)})
        command = "python tools/measure_novelty.py clothes --images DIR --runs RUNS"
        about = {"dim": dim, "steps": steps}
        cells += [cell("clothes", number, kind, values, command, **about) for (number, kind), values in found.items()]
    return cells


def numbers(args: argparse.Namespace) -> Cells:
    """2-digit MNIST, split by number: which of η, novelty and P(nobody) tells which trouble.

    By the runs that are there and, in two dimensions, by the model that ships; where these are several, their mean.
    """
    cells: Cells = []
    for dim in DIMS["numbers"]:
        runs = {seed: run for seed in SEEDS if (run := run_of(args.runs, "numbers", dim, seed)).state == "finished"}
        models = {f"seed {seed}": run.embedder for seed, run in runs.items()}
        for embedder in models.values():
            embedder.novelty_model = None  # fitted as of today, not of the run
        if dim == SHIPPED_DIM:
            models[SHIPPED] = Embedder.load(SHIPPED)
        told = {name: told_of_numbers(embedder) for name, embedder in models.items()}
        cells += [one for name, by in told.items() for one in cells_of_numbers(dim, name, [by])]
        if len(told) > 1:
            cells += cells_of_numbers(dim, "mean", list(told.values()))
    return cells


def cells_of_numbers(dim: int, name: str, told: list[Told]) -> Cells:
    """The cells of one model, or of the mean of several, whose standard errors over inputs are not those of one."""
    command = "python tools/measure_novelty.py numbers --runs RUNS"
    return [
        cell("numbers", number, kind, [by[number, kind] for by in told], command, dim=dim, model=name)
        for number, kind in told[0]
        if len(told) == 1 or number in NUMBERS
    ]


def told_of_numbers(embedder: Embedder) -> Told:
    """AUROC of each number for each trouble, against clean images of numbers that were trained on; shares of those that
    were not whose novelty is above 0.9 and 0.95.
    """
    config = numbers_config(2, 0)
    parts = config.ndigit.model_copy(update={"train_images": 20_000, "test_images": 4_000}).open()
    if embedder.novelty_model is None:
        embedder.novelty_model = fit_novelty(embedder, config.seen(build_data(config).train))
    train, seen, unseen = parts.train, parts.test["seen"], parts.test["unseen"]
    order = torch.argsort(train.labels, stable=True)
    first = torch.searchsorted(train.labels[order], torch.unique(train.labels))
    rows = torch.cat([order[place : place + GALLERY] for place in first.tolist()])
    gallery, owner = embedder.embed(train.clean(rows).numpy()), torch.unique(train.labels[rows], return_inverse=True)[1]
    fused = embedder.match_model.fuse(gallery, owner)
    rng, count = np.random.default_rng(2), 2_000
    inputs = {
        "seen numbers": seen.clean().numpy(),
        "occluded": seen.corrupt(0).numpy(),
        "numbers never seen": unseen.clean().numpy(),
        "strokes": np.concatenate([strokes(count, 3), strokes(count, 4)], axis=2),
        "noise": rng.integers(0, 256, (count, 28, 56), dtype=np.uint8),
        "inverted": 255 - seen.clean().numpy()[:count],
    }
    told = {}
    with torch.no_grad():
        for kind, images in inputs.items():
            z, novelty = embedder.embed_with_novelty(images)
            nobody = -embedder.match_model.matrix(z, fused).amax(1).double().numpy()  # P(nobody) falls with it
            told[kind] = {"eta": embedder.uncertainty(z).numpy(), "novelty": np.asarray(novelty), "nobody": nobody}
    own = told.pop("seen numbers")
    found = {(number, kind): auroc(own[number], by[number]) for kind, by in told.items() for number in own}
    for kind, by in told.items():
        ranks = {number: placements(own[number], by[number]) for number in own}
        for number, other in (("eta", "novelty"), ("eta", "nobody"), ("novelty", "nobody")):
            apart = [a - b for a, b in zip(ranks[number], ranks[other], strict=True)]
            found[f"error of {number} - {other}", kind] = sum(v.var() / len(v) for v in apart) ** 0.5
    for share in (0.9, 0.95):
        above = float((told["numbers never seen"]["novelty"] > share).mean())
        found[f"novelty above {share:g}", "numbers never seen"] = above
    return found


def placements(known: Floats, novel: Floats) -> tuple[Floats, Floats]:
    """Of each known input the share of novel ones above it, of each novel one the share of known ones below it.

    The mean of either is the AUROC; its standard error, and that of a difference, is that of both (DeLong, 1988).
    """
    above = 1 - np.searchsorted(np.sort(novel), known, side="right") / len(novel)
    return above, np.searchsorted(np.sort(known), novel, side="left") / len(known)


def texts(args: argparse.Namespace) -> Cells:
    """CLINC150: out-of-scope queries, by vectors of a frozen network; beside them, accuracy in scope."""
    with np.load(args.what[1], allow_pickle=False) as file:
        vectors = {name: file[name] for name in file.files}
    part = "val" if args.validation else "test"
    out = vectors[f"oos_{part}"]
    found: dict[tuple[str, str, str], list[float]] = {}
    for seed in SEEDS:
        x, y, new, new_y = forty_a_class(vectors["train"], vectors["train_y"], seed + 10 * (not args.validation))
        for key, value in told_of_texts(x, y, new, new_y, out).items():
            found.setdefault(("40 queries an intent", *key), []).append(value)
    official = vectors["train"], vectors["train_y"], vectors[part], vectors[f"{part}_y"]
    for key, value in told_of_texts(*official, out).items():
        found["all queries", *key] = [value]
    command = "python tools/measure_novelty.py texts VECTORS.npz"
    return [cell("texts", n, metric, v, command, gallery=gallery) for (gallery, n, metric), v in found.items()]


def forty_a_class(x: Floats, y: Floats, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """40 of the first 50 queries of each intent as what is known, the other 10 as new ones."""
    rng, known, new = np.random.default_rng(seed), [], []
    for intent in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == intent)[:50])
        known.append(rows[:40])
        new.append(rows[40:])
    a, b = np.concatenate(known), np.concatenate(new)
    return x[a], y[a], x[b], y[b]


def told_of_texts(x: Floats, y: Floats, new: Floats, new_y: Floats, out: Floats) -> dict[tuple[str, str], float]:
    """AUROC of out-of-scope queries, and accuracy in scope by PLDA, each intent fused."""
    intents, owner = np.unique(y, return_inverse=True)
    novelty = Novelty.fitted(x, owner)
    front = Front.fitted(x, x.shape[1], unit=True)
    found = directions(front(torch.from_numpy(x))[0].double().numpy(), owner, ridge=0.1)
    head, evidence = EvidenceHead(front, [simple.plda(found, len(intents) - 1)]), Evidence()
    with torch.no_grad():
        fused = evidence.fuse(head(torch.from_numpy(x)), torch.from_numpy(owner))
        logits, of_out = (evidence.matrix(head(torch.from_numpy(v)), fused) for v in (new, out))
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (x, new, out)]
    cosine = Retrofit(held_out="inputs", branches="cosine", dim=x.shape[1]).fit(x, y)
    scores = BorderFusion().against(cosine.embed(x), torch.from_numpy(owner), cosine.match_model)
    known, of_stranger = (scores(cosine.embed(v)) for v in (new, out))
    classifier = LogisticRegression(C=10, max_iter=50).fit(unit[0], owner)  # chosen on validation queries
    of_class, of_class_out = (classifier.decision_function(v) for v in unit[1:])
    return {
        ("novelty", "out of scope"): auroc(*(novelty(torch.from_numpy(v)).numpy() for v in (new, out))),
        ("nobody", "out of scope"): auroc(-logits.amax(1).numpy(), -of_out.amax(1).numpy()),
        ("highest cosine", "out of scope"): auroc(-(unit[1] @ unit[0].T).max(1), -(unit[2] @ unit[0].T).max(1)),
        ("PLDA", "accuracy in scope"): float((intents[logits.argmax(1).numpy()] == new_y).mean()),
        ("nobody, borders", "out of scope"): auroc(-known.amax(1).numpy(), -of_stranger.amax(1).numpy()),
        ("borders", "accuracy in scope"): float((intents[known.argmax(1).numpy()] == new_y).mean()),
        ("logistic regression", "out of scope"): auroc(-of_class.max(1), -of_class_out.max(1)),
        ("logistic regression", "accuracy in scope"): float((intents[of_class.argmax(1)] == new_y).mean()),
    }


@torch.no_grad()
def laplace(args: argparse.Namespace) -> Cells:
    """Whether a Laplace term in the match probability pays: held-out likelihood of pairs of numbers never seen."""
    embedder, rng = Embedder.load("hedged:ndigit-2d"), np.random.default_rng(0)
    parts = numbers_config(2, 0).ndigit.model_copy(update={"train_images": 20_000, "test_images": 4_000}).open()
    unseen = parts.test["unseen"]
    images = torch.cat([unseen.clean()[:1500], unseen.corrupt(0)[:1500]])
    y = torch.cat([unseen.labels[:1500]] * 2).numpy()
    known, new = (embedder.backbone(i[:, None] / 255).double() for i in (parts.train.clean()[:8000], images))
    second = known.T @ known / len(known)
    second += second.diagonal().mean() * 1e-2 * torch.eye(len(second), dtype=second.dtype)
    u, z = new @ torch.linalg.cholesky(torch.linalg.inv(second)), embedder.embed(images.numpy()).to(torch.float64)
    numbers_there = rng.permutation(np.unique(y))
    halves = [drawn_pairs(np.flatnonzero(np.isin(y, numbers_there[k::2])), y, rng) for k in (0, 1)]
    found: dict[tuple[str, float], list[float]] = {}
    for how, weight in [("item", w) for w in LAPLACE_WEIGHTS] + [("pair", w) for w in LAPLACE_WEIGHTS[1:]]:
        logits = []
        for a, b in (half[0].T for half in halves):
            own = (u[a] ** 2).mean(1) + (u[b] ** 2).mean(1)
            wider = weight * (own if how == "item" else ((u[a] - u[b]) ** 2).mean(1))
            mean, variance = z.tensors
            spread = Gaussian(mean[a], variance[a] + wider[:, None])
            logits.append(match_logit(spread, z[b], embedder.match_model).numpy())
        matches = [half[1] for half in halves]
        line = minimize(nll, (0.0, 1.0), args=(logits[0], matches[0]), method="Nelder-Mead").x
        found[how, weight] = [nll(line, x, m) for x, m in zip(logits, matches, strict=True)]
    command = "python tools/measure_novelty.py laplace"
    return [
        cell("numbers never seen", f"{how} {weight:g}", f"NLL, {half} half", [values[k]], command)
        for (how, weight), values in found.items()
        for k, half in enumerate(("fitted", "other"))
    ]


def drawn_pairs(rows: Floats, y: Floats, rng: np.random.Generator, count: int = 2_000) -> tuple[Floats, Floats]:
    """As many pairs of one number as of two, (n, 2), and which are of one."""
    pairs: list[tuple[int, int]] = []
    matches: list[bool] = []
    while len(pairs) < count:
        a, b = rng.choice(rows, 2, replace=False)
        is_match = bool(y[a] == y[b])
        if is_match == (len(pairs) % 2 == 0):
            pairs.append((int(a), int(b)))
            matches.append(is_match)
    return np.array(pairs), np.array(matches)


def nll(line: Floats, logits: Floats, matches: Floats) -> float:
    """The mean negative log-likelihood of pairs, by a straight line through their log-odds."""
    odds = line[0] + line[1] * logits
    return float(np.logaddexp(0, np.where(matches, -odds, odds)).mean())


def cost(args: argparse.Namespace) -> Cells:
    """What novelty adds to embedding, side by side, and what it holds beside the memory of the process."""
    cells: Cells = []
    command = "python tools/measure_novelty.py cost"
    rng, count = np.random.default_rng(0), 4_000
    digits = Embedder.load("hedged:ndigit-2d")
    seen = NDigit(load_mnist("train"), torch.from_numpy(rng.integers(0, 60_000, (count, 2))))
    digits.novelty_model = fit_novelty(digits, [Batch(seen.clean()[:, None] / 255, seen.labels)])
    photos = Embedder.new(
        Architecture.model_validate({"backbone": "mobilenet", "shape": (3, 96, 96), "dim": 20}), seed=0
    )
    pictures = rng.integers(0, 256, (256, 3, 96, 96), dtype=np.uint8)
    features = rng.normal(size=(2_000, photos.head.features)) + 1
    photos.novelty_model = Novelty.fitted(features, np.arange(2_000) % 500)
    centres, owner = rng.normal(size=(300, 384)), np.arange(3_600) % 300
    known, new = (
        (centres[of] + 0.7 * rng.normal(size=(len(of), 384))).astype(np.float32)
        for of in (owner, rng.integers(0, 300, 20_000))
    )
    head = Retrofit(held_out="inputs", branches="cosine", dim=384).fit(known, owner).embedder_  # the quickest there is
    for name, embedder, inputs in (
        ("shallow network, digits", digits, seen.clean().numpy()),
        ("MobileNet, photos", photos, pictures),
        ("Retrofit on the cosine, vectors of 384", head, new),
    ):
        ratios = []
        for _ in range(9):
            began = time.perf_counter()
            embedder.embed(inputs)
            between = time.perf_counter()
            embedder.embed_with_novelty(inputs)
            ratios.append((time.perf_counter() - between) / (between - began))
        model = embedder.novelty_model
        assert model is not None
        held = sum(getattr(model.gaussians, part).nbytes for part in PARTS) / 2**20
        weights = sum(tensor.nbytes for tensor in embedder.state_dict().values()) / 2**20
        process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        cells += [
            cell(name, "novelty", "time, with over without", [float(np.median(ratios))], command),
            cell(name, "novelty", "memory, share of the process", [held / process], command, mebibytes=round(held, 2)),
            cell(name, "novelty", "memory, share of the weights", [held / weights], command),
        ]
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what", nargs="+", help="train clothes, train numbers, clothes, numbers, texts VECTORS.npz, cost or laplace"
    )
    parser.add_argument("--images", type=Path, help="the folder of Fashion-MNIST")
    parser.add_argument("--runs", type=Path, default=Path("runs/novelty"), help="where trained models are")
    parser.add_argument("--out", type=Path, default=Path("results/novelty"))
    parser.add_argument("--dim", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--validation", action="store_true", help="measure on what was kept for choosing; write nothing"
    )
    parser.add_argument("--steps", type=int, help="of training on clothes, instead of the usual number")
    args = parser.parse_args()
    if args.what[0] == "train":
        train_one(args.what[1], args)
        return
    cells = {"clothes": clothes, "numbers": numbers, "texts": texts, "cost": cost, "laplace": laplace}[args.what[0]](
        args
    )
    for found in cells:
        print(f"{found['set']:20} {found['number']:12} {found['metric']:26} {found['measured']:.4f} ± {found['std']}")
    if not args.validation:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / f"{args.what[0]}.json").write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

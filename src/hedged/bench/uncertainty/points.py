"""Ways on top of a point head: vectors become points of one length, and something else tells how uncertain they are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from hedged.bench.uncertainty.sets import Floats, Vectors
from hedged.bench.uncertainty.way import Fitted, Scores, Standard, Way, balanced_cost, train_head

DIMS: tuple[dict[str, Any], ...] = ({"dim": 20}, {"dim": 64})
PASSES = 20  # of dropout
MEMBERS = 5  # of an ensemble
MOST_KNOWN = 5000  # training vectors that distances are taken to
LEAST_MEMBERS = 1e-9
KEPT = 64  # heads that several ways share


class PointHead(nn.Module):
    """A linear map, and the line that makes log-odds of cosines.

    Args:
        features: F.
        dim: of the points.
    """

    def __init__(self, features: int, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, dim)
        self.slope, self.shift = (nn.Parameter(torch.tensor(v)) for v in (10.0, -3.0))

    def forward(self, x: Tensor) -> Tensor:
        mapped: Tensor = self.linear(x)
        return mapped

    def logits(self, z1: Tensor, z2: Tensor) -> Tensor:
        """Log-odds of all pairs, (n, m)."""
        return self.slope * (normalize(z1, dim=-1) @ normalize(z2, dim=-1).T) + self.shift


@lru_cache(maxsize=KEPT)
def trained_point(train: Vectors, seed: int, dim: int, dropped: float = 0.2) -> PointHead:
    """A point head, trained on pairs by cross-entropy; the ways that share one do not train it again.

    Args:
        train: what to learn from.
        seed: of everything random.
        dim: of the points.
        dropped: share of the features that is dropped in training.
    """
    torch.manual_seed(seed)
    head = PointHead(train.clean.shape[1], dim)
    train_head(
        head, lambda z, labels: balanced_cost(head.logits(z, z), labels), head.parameters(), train, seed, dropped
    )
    return head.requires_grad_(False)


class Points(Fitted):
    """A point head after training; the ways differ in what they say of uncertainty.

    Args:
        head: the head.
        train: what it was trained on.
    """

    def __init__(self, head: PointHead, train: Vectors) -> None:
        self.head, self.standard = head, Standard(train)
        rows = np.random.default_rng(0).permutation(len(train.y))[:MOST_KNOWN]
        self.known, self.known_y = self.unit(train.clean[rows]), train.y[rows]

    def points(self, x: Floats) -> Tensor:
        """What the head makes of vectors, (n, D)."""
        mapped: Tensor = self.head(self.standard(x))
        return mapped

    def unit(self, x: Floats) -> Tensor:
        """The same, of one length."""
        return normalize(self.points(x), dim=1)

    def scores(self, a: Floats, b: Floats) -> Scores:
        return np.asarray((self.unit(a) @ self.unit(b).T).double().numpy())


@final
class _Distant(Points):
    def uncertainty(self, x: Floats) -> Scores:
        return np.asarray((1 - (self.unit(x) @ self.known.T).max(1).values).double().numpy())


@final
class Distance(Way):
    """The distance to the nearest training vector."""

    name = "distance"
    settings = DIMS

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        return _Distant(trained_point(train, seed, **setting), train)


@final
class _Between(Points):
    def uncertainty(self, x: Floats) -> Scores:
        near = (self.unit(x) @ self.known.T).double().numpy()
        first = near.argmax(1)
        other = np.where(self.known_y[first][:, None] == self.known_y, -np.inf, near).max(1)
        best = near[np.arange(len(near)), first]
        return np.asarray((1 - best + LEAST_MEMBERS) / (1 - other + LEAST_MEMBERS))


@final
class Ratio(Way):
    """The ratio of the distances to the nearest training vector and to the nearest of another identity."""

    name = "ratio"
    settings = DIMS

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        return _Between(trained_point(train, seed, **setting), train)


@final
class _Short(Points):
    def uncertainty(self, x: Floats) -> Scores:
        return np.asarray(-self.points(x).norm(dim=1).double().numpy())


@final
class Norm(Way):
    """How short the point is before it is brought to one length."""

    name = "norm"
    settings = DIMS

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        return _Short(trained_point(train, seed, **setting), train)


@final
class _Dropped(Points):
    def __init__(self, head: PointHead, train: Vectors, dropped: float) -> None:
        super().__init__(head, train)
        self.dropped = dropped

    def uncertainty(self, x: Floats) -> Scores:
        seen, generator = self.standard(x), torch.Generator().manual_seed(0)
        total = torch.zeros(len(seen), self.head.linear.out_features)
        for _ in range(PASSES):
            kept = torch.rand(seen.shape[1], generator=generator) >= self.dropped  # one network a pass
            total += normalize(self.head(seen * kept / (1 - self.dropped)), dim=1)
        return np.asarray((1 - (total / PASSES).norm(dim=1)).double().numpy())


@final
class Dropout(Way):
    """How far points scatter under dropout (Gal and Ghahramani 2016): one minus the length of their mean."""

    name = "dropout"
    settings = tuple({**dim, "dropped": share} for dim in DIMS for share in (0.2, 0.5))

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        return _Dropped(trained_point(train, seed, **setting), train, setting["dropped"])


@final
class _Several(Fitted):
    """Heads of several seeds, whose cosines are averaged; they disagree where softmax over identities differs.

    Args:
        members: the heads.
        train: what they were trained on.
    """

    def __init__(self, members: list[Points], train: Vectors) -> None:
        self.members = members
        owner = np.unique(train.y, return_inverse=True)[1].reshape(-1)
        belongs = torch.from_numpy(np.eye(int(owner.max()) + 1, dtype=np.float32)[owner])
        self.centres = [normalize(belongs.T @ member.unit(train.clean), dim=1) for member in members]

    def scores(self, a: Floats, b: Floats) -> Scores:
        return np.asarray(np.mean([member.scores(a, b) for member in self.members], axis=0))

    def uncertainty(self, x: Floats) -> Scores:
        """The entropy of the mean of the members, which holds what each doubts and what they disagree in."""
        each = []
        for member, centres in zip(self.members, self.centres, strict=True):
            each.append((member.head.slope * (member.unit(x) @ centres.T)).softmax(1))
        mean = torch.stack(each).mean(0)
        return np.asarray(-(mean * (mean + 1e-12).log()).sum(1).double().numpy())


@final
class Ensemble(Way):
    """Five heads of other seeds (Lakshminarayanan et al. 2017)."""

    name = "ensemble"
    settings = DIMS

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        heads = [trained_point(train, MEMBERS * seed + k, **setting) for k in range(MEMBERS)]
        return _Several([_Distant(head, train) for head in heads], train)


@final
class _Foretold(Points):
    def __init__(self, head: PointHead, train: Vectors, predictor: nn.Module) -> None:
        super().__init__(head, train)
        self.predictor = predictor

    def uncertainty(self, x: Floats) -> Scores:
        with torch.no_grad():
            return np.asarray(self.predictor(self.standard(x))[:, 0].double().numpy())


@final
class LossPrediction(Way):
    """A small network that foretells what an input will cost (Yoo and Kweon 2019), on top of the trained head."""

    name = "loss prediction"
    settings: ClassVar[tuple[dict[str, Any], ...]] = tuple({**dim, "hidden": n} for dim in DIMS for n in (32, 128))

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        head = trained_point(train, seed, setting["dim"])
        torch.manual_seed(seed)
        predictor = nn.Sequential(
            nn.Linear(train.clean.shape[1], setting["hidden"]), nn.ReLU(), nn.Linear(setting["hidden"], 1)
        )

        def cost(x: Tensor, labels: Tensor) -> Tensor:
            logits = head.logits(head(x), head(x))
            same = labels[:, None] == labels
            match = same & ~torch.eye(len(labels), dtype=torch.bool)
            each = nn.functional.softplus(torch.where(same, -logits, logits))
            missed = (each * match).sum(1) / match.sum(1).clamp(min=1)
            mistaken = (each * ~same).sum(1) / (~same).sum(1).clamp(min=1)
            return nn.functional.mse_loss(predictor(x)[:, 0], ((missed + mistaken) / 2).log1p())

        train_head(nn.Identity(), cost, predictor.parameters(), train, seed, 0.0)
        return _Foretold(head, train, predictor.requires_grad_(False))


@final
class _Unknown(Points):
    def __init__(self, head: PointHead, train: Vectors, prior: float) -> None:
        super().__init__(head, train)
        seen = torch.cat([self.standard(train.clean), self.standard(train.poor)]).double()
        curvature = seen.T @ seen / len(seen)
        self.inverse = torch.linalg.inv(curvature + prior * torch.eye(len(curvature)).double())

    def uncertainty(self, x: Floats) -> Scores:
        seen = self.standard(x).double()
        spread = ((seen @ self.inverse) * seen).sum(1)
        return np.asarray((spread / self.points(x).double().square().sum(1)).numpy())


@final
class Laplace(Way):
    """φᵀA⁻¹φ of the linear head, relative to the length of the point: Laplace (Daxberger et al. 2021)."""

    name = "Laplace"
    settings = tuple({**dim, "prior": prior} for dim in DIMS for prior in (0.01, 0.1, 1.0))

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        return _Unknown(trained_point(train, seed, setting["dim"]), train, setting["prior"])

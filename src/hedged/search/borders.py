"""The borders between the identities of a gallery: a softmax over them, beside how well their images match.

A fused template says what an identity is like, not what tells it from its neighbours. Where identities have many
images, that can be learnt: multinomial logistic regression on the means of their embeddings. Alone it is as sure of
what lies far from all images; so the match with the nearest images of each identity counts too. How much it counts is
learnt from images that were left out: learnt with the rest, it would explain all images, and leave no borders to find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp
from torch import Tensor

from hedged.distributions import Distribution
from hedged.errors import ValueRangeError
from hedged.match import MatchModel
from hedged.search.fusion import Fusion, LogitsOf

Floats = NDArray[np.floating[Any]]
PENALTY = 0.1
NEAREST = 3  # images of an identity that say how well it matches
FOLDS = 4  # that take turns to be left out
STEPS = 50  # of L-BFGS, at most
GAINS = (-7.0, 5.0)  # the logarithm of the gain lies between
PAIRS_AT_ONCE = 2**23


@final
@dataclass(frozen=True)
class BorderFusion(Fusion):
    """s_j(x) = w_j·f + b_j + g·n_j(x): f the mean of the embedding, n_j the match with the nearest images of j.

    w and b maximise the likelihood of a softmax of w_j·f + b_j over identities, less penalty/2 · Σ_j ‖w_j‖²; n_j is the
    mean of the three highest log-odds with images of j, without the image itself where it is one of the gallery. g
    maximises the likelihood of images that w and b have not seen, a quarter of them at a time. s_j is no log-odds of a
    match: an `Identifier` learns from the gallery which of them are those of nobody.

    Args:
        penalty: of the weights, where f has a mean square of 1.
    """

    penalty: float = PENALTY

    def __post_init__(self) -> None:
        if not 0 < self.penalty < float("inf"):
            raise ValueRangeError(f"the penalty of the weights must be a positive number, got {self.penalty}")

    def logits(self, probes: Distribution, images: Distribution, owner: Tensor, model: MatchModel) -> Tensor:
        return self.against(images, owner, model)(probes)

    def against(self, images: Distribution, owner: Tensor, model: MatchModel) -> LogitsOf:
        nearest = nearest_matches(images, images, owner, model, torch.arange(len(images)))
        learnt = _Borders.learnt(_mean(images), nearest, owner, self.penalty)
        return lambda probes: learnt.scores(_mean(probes), nearest_matches(probes, images, owner, model))

    def held_out(self, images: Distribution, owner: Tensor, tried: Tensor, model: MatchModel) -> tuple[Tensor, Tensor]:
        """As its base, but a quarter of the images is left out at a time, and then a quarter of the identities.

        Args:
            images: M embeddings.
            owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
            tried: Places of the n images that are tried, int64 `(n,)`.
            model: When two embeddings match.
        """
        nearest = nearest_matches(images, images, owner, model, torch.arange(len(images)))
        means, identities = _mean(images), int(owner.max()) + 1
        known, strangers = (torch.full((len(tried), identities), -torch.inf, dtype=torch.float64) for _ in range(2))
        gain = _Borders.learnt(means, nearest, owner, self.penalty).gain  # one number: it knows no image by heart
        by_image = torch.from_numpy(_folds(owner.numpy()))
        by_identity = torch.from_numpy(np.random.default_rng(0).permutation(identities) % FOLDS)[owner]
        for found, fold in ((known, by_image), (strangers, by_identity)):
            for k in range(FOLDS):
                rows = torch.nonzero(fold[tried] == k)[:, 0]
                kept = fold != k
                left, numbered = (torch.from_numpy(a) for a in np.unique(owner[kept].numpy(), return_inverse=True))
                if not len(rows) or not len(left):
                    continue
                learnt = _Borders.learnt(means[kept], nearest[kept][:, left], numbered, self.penalty, gain)
                places = tried[rows]
                found[rows[:, None], left] = learnt.scores(means[places], nearest[places][:, left])
        alone = owner.bincount()[owner[tried]] == 1  # nothing of its identity is left
        known[alone, owner[tried][alone]] = -torch.inf
        return known, strangers


@final
@dataclass(frozen=True, eq=False)
class _Borders:
    """What was learnt.

    Args:
        weight: w, (D, G).
        shift: b, (G,).
        gain: g.
        scale: what means are divided by.
    """

    weight: Floats
    shift: Floats
    gain: float
    scale: float

    @classmethod
    def learnt(
        cls, means: Tensor, nearest: Tensor, owner: Tensor, penalty: float, gain: float | None = None
    ) -> _Borders:
        """The borders by all images, and the gain of what is nearest by images that were left out in turn.

        Args:
            means: of the images, (M, D).
            nearest: their match with each identity, (M, G); −∞ where it has no other image.
            owner: whose they are, (M,).
            penalty: of the weights.
            gain: g, if it is known.
        """
        scale = float(means.square().sum(1).mean().sqrt()) or 1.0
        f, n, y = (means / scale).numpy(), _finite(nearest).numpy(), owner.numpy()
        gain = _gain(f, n, y, penalty) if gain is None else gain
        return cls(*_softmax_regression(f, y, n.shape[1], penalty), gain, scale)

    def scores(self, means: Tensor, nearest: Tensor) -> Tensor:
        """s of each identity, (N, G), float64.

        Args:
            means: of the probes, (N, D).
            nearest: their match with each identity, (N, G).
        """
        found = (means / self.scale).numpy() @ self.weight + self.shift + self.gain * _finite(nearest).numpy()
        return torch.from_numpy(found)


def nearest_matches(
    probes: Distribution, images: Distribution, owner: Tensor, model: MatchModel, own: Tensor | None = None
) -> Tensor:
    """The mean of the three highest log-odds with images of each identity, `(N, G)`, −∞ where there is none.

    Args:
        probes: N embeddings.
        images: M embeddings.
        owner: Whose each of them is, int64 `(M,)`.
        model: When two embeddings match.
        own: the place among the images of each probe, which is not compared with itself, `(N,)`; None: they are others.
    """
    order = torch.argsort(owner, stable=True)
    ends = owner.bincount().cumsum(0)
    sides = torch.stack([torch.cat([ends.new_zeros(1), ends[:-1]]), ends], 1).tolist()
    out = torch.empty(len(probes), len(ends), dtype=torch.float64)
    step = max(PAIRS_AT_ONCE // max(len(images), 1), 1)
    for top in range(0, len(probes), step):
        part = slice(top, top + step)
        logits = model.matrix(probes[part], images).double()
        if own is not None:
            logits[torch.arange(len(logits)), own[part]] = -torch.inf
        logits = logits[:, order]
        for k, (first, last) in enumerate(sides):
            best = logits[:, first:last].topk(min(NEAREST, last - first), dim=1).values
            there = best.isfinite()
            mean = best.masked_fill(~there, 0.0).sum(1) / there.sum(1)
            out[part, k] = torch.where(there.any(1), mean, -torch.inf)
    return out


def _mean(z: Distribution) -> Tensor:
    return z.mean.double()


def _finite(nearest: Tensor) -> Tensor:
    """As it is, and where there is nothing, as little as any other identity of the row."""
    least = nearest.masked_fill(nearest.isinf(), torch.inf).amin(1, keepdim=True)
    return torch.where(nearest.isinf(), torch.where(least.isinf(), 0.0, least), nearest)


def _gain(f: Floats, n: Floats, y: NDArray[np.intp], penalty: float) -> float:
    """g of the greatest likelihood of images that are left out in turn."""
    fold, rows = _folds(y), np.arange(len(y))
    held = np.empty_like(n)
    for k in range(FOLDS):
        weight, shift = _softmax_regression(f[fold != k], y[fold != k], n.shape[1], penalty)
        held[fold == k] = f[fold == k] @ weight + shift

    def cost(log_gain: float) -> float:
        scores = held + np.exp(log_gain) * n
        return float(np.mean(logsumexp(scores, axis=1) - scores[rows, y]))

    return float(np.exp(minimize_scalar(cost, bounds=GAINS, method="bounded").x))


def _folds(y: NDArray[np.intp]) -> NDArray[np.intp]:
    """Which rows are left out together, (M,): a share of each identity, never all of one with several."""
    order = np.random.default_rng(0).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % FOLDS
    return fold


def _softmax_regression(f: Floats, y: NDArray[np.intp], identities: int, penalty: float) -> tuple[Floats, Floats]:
    """w, (D, G), and b, (G,), of the greatest likelihood less the penalty."""
    (count, dim), rows = f.shape, np.arange(len(f))

    def cost(p: Floats) -> tuple[float, Floats]:
        weight, shift = p[:-identities].reshape(dim, identities), p[-identities:]
        scores = f @ weight + shift
        scores -= scores.max(1, keepdims=True)
        away = np.exp(scores)
        total = away.sum(1, keepdims=True)
        value = float((np.log(total[:, 0]) - scores[rows, y]).sum()) + penalty / 2 * float((weight**2).sum())
        away /= total
        away[rows, y] -= 1
        return value / count, np.concatenate([(f.T @ away + penalty * weight).ravel(), away.sum(0)]) / count

    start = np.zeros((dim + 1) * identities)
    found = minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    return found[:-identities].reshape(dim, identities), found[-identities:]

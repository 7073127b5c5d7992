"""What training minimises: from a batch of distributions and its labels to one number.

`ContrastiveLoss` is equation 1 of the paper, `SoftContrastiveLoss` equation 3, `HedgedLoss` equation 8. Each is a mean
over the matching and a mean over the other pairs of distinct items of a batch, weighed by `positive_weight`. No item is
paired with itself: that would train η(x) towards zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from hedged.curve import MatchCurve
from hedged.distributions import Distribution, Gaussian, Mixture
from hedged.errors import ShapeError, ValueRangeError
from hedged.expansion import is_tabulated
from hedged.match import CLOSED_FORM, ClosedForm, Estimator, distance, match_logit, sampled_logits
from hedged.pairwise import summed_costs


class LossParts(NamedTuple):
    """The parts of a loss, each a scalar: total = w·positive + (1 − w)·negative + 2β·kl, kl the mean KL of an item."""

    total: Tensor
    positive: Tensor
    negative: Tensor
    kl: Tensor


class BatchPairs(NamedTuple):
    """Pairs of items of one batch: indices `first` < `second` and whether they match, each `(P,)`."""

    first: Tensor
    second: Tensor
    match: Tensor


class PairSelection(ABC):
    """Which pairs of a batch count."""

    @abstractmethod
    def select(self, pairs: BatchPairs) -> BatchPairs:
        """The pairs to keep, of all pairs of distinct items."""


@final
@dataclass(frozen=True)
class AllPairs(PairSelection):
    """All B(B − 1)/2 pairs of distinct items."""

    def select(self, pairs: BatchPairs) -> BatchPairs:
        return pairs


@final
@dataclass(frozen=True)
class SampledPairs(PairSelection):
    """Up to `count` matching and as many other pairs, drawn without replacement."""

    count: int
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueRangeError(f"at least one pair of each kind is drawn, got count={self.count}")

    def select(self, pairs: BatchPairs) -> BatchPairs:
        drawn = [self._draw(pairs.match), self._draw(~pairs.match)]
        return BatchPairs(*(column[torch.cat(drawn)] for column in pairs))

    def _draw(self, mask: Tensor) -> Tensor:
        candidates = mask.nonzero().flatten()
        order = torch.randperm(len(candidates), generator=self.generator)
        return candidates[order[: self.count]]


class Likelihood(ABC):
    """−log p(m̂ | x₁, x₂) of pairs with match m̂."""

    @abstractmethod
    def cost(self, z1: Distribution, z2: Distribution, match: Tensor, curve: MatchCurve) -> Tensor:
        """The cost of each pair, `(P,)`."""


@final
@dataclass(frozen=True)
class Marginal(Likelihood):
    """−log E[p(m̂ | z₁, z₂)]: the likelihood of the match itself. It rewards an embedding that hedges its bets."""

    estimator: Estimator = CLOSED_FORM

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor, curve: MatchCurve) -> Tensor:
        return _cross_entropy(match_logit(z1, z2, curve, self.estimator), match)


@final
@dataclass(frozen=True)
class ExpectedLog(Likelihood):
    """E[−log p(m̂ | z₁, z₂)] over K² pairs of samples: the paper's equation 8 to the letter."""

    samples: int = 8
    generator: torch.Generator | None = None

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor, curve: MatchCurve) -> Tensor:
        logits = sampled_logits(z1, z2, curve, self.samples, self.generator)
        return _cross_entropy(logits, match).mean((0, 1))


class PairLoss(nn.Module, ABC):
    """A mean over pairs of a batch: w · (mean cost of matching pairs) + (1 − w) · (mean cost of the others)."""

    def __init__(self, positive_weight: float, pairs: PairSelection) -> None:
        super().__init__()
        if not 0 < positive_weight < 1:
            raise ValueRangeError(f"positive_weight lies between 0 and 1, got {positive_weight}")
        self.positive_weight = positive_weight
        self.pairs = pairs

    kl_weight = 0.0  # 2β: the KL of an item enters through both items of a pair

    @abstractmethod
    def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
        """The cost of each pair, `(P,)`."""

    def kl(self, z: Distribution) -> Tensor:
        """The mean KL of an item to the prior, a scalar; zero where it has no weight."""
        return torch.zeros((), dtype=z.dtype, device=z.device)

    def parts(self, z: Distribution, labels: Tensor) -> LossParts:
        """The loss of a batch of B distributions with labels `(B,)`, and what it is made of."""
        _check_batch(z, labels)
        positive, negative = self.mean_costs(z, labels)
        kl = self.kl(z)
        total = self.positive_weight * positive + (1 - self.positive_weight) * negative + self.kl_weight * kl
        return LossParts(total, positive, negative, kl)

    def mean_costs(self, z: Distribution, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The mean cost of the matching pairs that count, and of the others."""
        first, second, match = self.pairs.select(_pairs_of(labels))
        costs = self.cost(z.take(first), z.take(second), match)
        return _mean_where(match, costs), _mean_where(~match, costs)

    def forward(self, z: Distribution, labels: Tensor) -> Tensor:
        return self.parts(z, labels).total


@final
class ContrastiveLoss(PairLoss):
    """‖z₁ − z₂‖² if match, max(M − ‖z₁ − z₂‖, 0)² if not (equation 1), between the means; M is `margin`.

    >>> from hedged import Point
    >>> loss = ContrastiveLoss(margin=1.0, positive_weight=0.5)
    >>> loss(Point(torch.tensor([[0.0], [0.0], [1.0]])), torch.tensor([4, 4, 7]))
    tensor(0.)
    """

    def __init__(self, margin: float = 1.0, positive_weight: float = 0.05, pairs: PairSelection | None = None) -> None:
        super().__init__(positive_weight, pairs or AllPairs())
        if not 0 < margin < float("inf"):
            raise ValueRangeError(f"the margin of a contrastive loss is positive and finite, got {margin}")
        self.margin = margin

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
        difference = z1.mean - z2.mean
        hinge = (self.margin - distance(z1.mean, z2.mean)).clamp(min=0)
        return torch.where(match, difference.square().sum(-1), hinge.square())


@final
class SoftContrastiveLoss(PairLoss):
    """−log p(m̂ | z₁, z₂) with p(m | z₁, z₂) = σ(b − a‖z₁ − z₂‖), between the means (equation 3).

    >>> from hedged import Point
    >>> loss = SoftContrastiveLoss(MatchCurve(), positive_weight=0.5).requires_grad_(False)
    >>> loss(Point(torch.tensor([[0.0], [0.0], [1.0]])), torch.tensor([4, 4, 7]))
    tensor(0.0247)
    """

    def __init__(self, curve: MatchCurve, positive_weight: float = 0.05, pairs: PairSelection | None = None) -> None:
        super().__init__(positive_weight, pairs or AllPairs())
        self.curve = curve

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
        return _cross_entropy(self.curve.logit(distance(z1.mean, z2.mean)), match)


@final
class HedgedLoss(PairLoss):
    """−log p(m̂ | x₁, x₂) + β [KL(p(z₁|x₁) ‖ r) + KL(p(z₂|x₂) ‖ r)] with r = N(0, I) (equation 8).

    The first term is `Marginal()` unless told: −log of the expected match probability, in closed form. The paper writes
    the expectation of −log, which is `ExpectedLog(samples=8)`; docs/choices.md tells how they differ. The KL of each
    item enters through both items of a pair: 2β times its mean over the batch. `kl_samples` makes it a Monte Carlo
    estimate.

    >>> from hedged import Gaussian
    >>> z = Gaussian(torch.tensor([[0.0], [0.0], [1.0]]), torch.full((3, 1), 0.01))
    >>> loss = HedgedLoss(MatchCurve(), beta=1e-4, positive_weight=0.05)
    >>> loss(z, torch.tensor([4, 4, 7])).item() > 0
    True
    """

    def __init__(
        self,
        curve: MatchCurve,
        beta: float = 1e-4,
        positive_weight: float = 0.05,
        likelihood: Likelihood | None = None,
        pairs: PairSelection | None = None,
        kl_samples: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(positive_weight, pairs or AllPairs())
        if not 0 <= beta < float("inf"):
            raise ValueRangeError(f"the weight β of the KL term is zero or positive, got {beta}")
        self.curve = curve
        self.kl_weight = 2 * beta
        self.likelihood = likelihood or Marginal()
        self.kl_samples = kl_samples
        self.generator = generator

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
        return self.likelihood.cost(z1, z2, match, self.curve)

    def mean_costs(self, z: Distribution, labels: Tensor) -> tuple[Tensor, Tensor]:
        if not self._in_one_pass(z):
            return super().mean_costs(z, labels)
        _, classes, sizes = labels.unique(return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]
        matching = int((sizes * (sizes - 1)).sum()) // 2
        positive, negative = summed_costs(z, classes, self.curve)
        return positive / matching, negative / (len(z) * (len(z) - 1) // 2 - matching)

    def _in_one_pass(self, z: Distribution) -> bool:
        """Whether all pairs of distributions count, in closed form, on a CPU: what training does."""
        closed = isinstance(self.likelihood, Marginal) and isinstance(self.likelihood.estimator, ClosedForm)
        everything = isinstance(self.pairs, AllPairs) and isinstance(z, Gaussian | Mixture)
        return closed and everything and z.device.type == "cpu" and is_tabulated(self.curve.bias.item())

    def kl(self, z: Distribution) -> Tensor:
        return z.kl(self.kl_samples, self.generator).mean() if self.kl_weight else super().kl(z)


def _mean_where(mask: Tensor, values: Tensor) -> Tensor:
    return torch.where(mask, values, 0).sum() / mask.sum()


def _cross_entropy(logits: Tensor, match: Tensor) -> Tensor:
    """−log p where the pair matches, −log(1 − p) where not; finite and with a gradient at any logit."""
    return softplus(torch.where(match, -logits, logits))


def _pairs_of(labels: Tensor) -> BatchPairs:
    first, second = torch.triu_indices(len(labels), len(labels), offset=1, device=labels.device)
    return BatchPairs(first, second, labels[first] == labels[second])


def _check_batch(z: Distribution, labels: Tensor) -> None:
    if not isinstance(z, Distribution) or not isinstance(labels, Tensor):
        raise ShapeError(
            f"a loss takes a distribution, such as Point(z), and a tensor of labels, "
            f"got {type(z).__name__} and {type(labels).__name__}"
        )
    if len(z.batch_shape) != 1 or labels.shape != z.batch_shape:
        raise ShapeError(
            f"a loss takes a batch of B embeddings and B labels, got embeddings of batch shape "
            f"{tuple(z.batch_shape)} and labels of shape {tuple(labels.shape)}"
        )
    classes = len(labels.unique())  # type: ignore[no-untyped-call]
    for kind, present in (("matching", classes < len(z)), ("non-matching", classes > 1)):
        if not present:
            raise ValueRangeError(
                f"this batch of {len(z)} has no {kind} pair, so its loss is undefined: draw at least two images of one "
                "class and two classes a batch (hedged.data.TwoStream does)"
            )

"""The loss of hedged embeddings: the likelihood of matches, and the KL to the prior."""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from hedged.distributions import Distribution, Gaussian, Point
from hedged.errors import ShapeError, ValueRangeError
from hedged.losses.contrastive import SoftContrastiveLoss
from hedged.losses.likelihood import Likelihood, Marginal
from hedged.losses.pair_loss import PairLoss
from hedged.losses.selection import AllPairs, PairSelection, pairs_of
from hedged.match import ClosedForm, MatchCurve

# Of the squared distance of two of a kind, what their variances are to account for. The rest is between any two, and
# the match curve has it: variances that account for all of it make matches less accurate (docs/recipe.md).
SHARE = 0.25


@final
class HedgedLoss(PairLoss):
    """−log p(m̂ | x₁, x₂) + β [KL(p(z₁|x₁) ‖ r) + KL(p(z₂|x₂) ‖ r)] with r = N(0, I) (equation 8).

    The first term is `Marginal()` unless told: −log of the expected match probability, in closed form. The paper writes
    the expectation of −log, which is `ExpectedLog(samples=8)`; docs/choices.md tells how they differ. The KL of each
    item enters through both items of a pair: 2β times its mean over the batch. `kl_samples` makes it a Monte Carlo
    estimate.

    With `means_as_points` there are two losses, one for each half of a Gaussian: the means minimise equation 3, as
    points do, and the variances this one, given the means. In many dimensions noise hides how near two means are, so
    inputs that are not told apart yet may stay together, each with a wide distribution; points have no such excuse. The
    means have a match curve of their own then, which is left behind with the loss: to do without variances a curve has
    to be flat, and a flat curve leaves the variances nothing to tell.

    Given the means, this loss says little to a variance in many dimensions, where noise only adds to a distance: it
    grows with the strangers near an input, and not with the distance to its own kind. `mutual_weight` gives matching
    pairs a further cost, so many times −log N(μ₁ − μ₂; 0, (Σ₁ + Σ₂) / ¼): variances are to say how far from an input
    its own kind may lie. But for the quarter, which is `SHARE`, it is the mutual likelihood of Shi and Jain (2019).

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
        means_as_points: bool = False,
        mutual_weight: float = 0.0,
    ) -> None:
        super().__init__(positive_weight, pairs or AllPairs())
        if not 0 <= beta < float("inf"):
            raise ValueRangeError(f"the weight β of the KL term is zero or positive, got {beta}")
        if not 0 <= mutual_weight < float("inf") or (mutual_weight and not means_as_points):
            raise ValueRangeError(
                "the weight of the mutual likelihood is zero or, with means_as_points=True, positive, "
                f"got {mutual_weight=}, {means_as_points=}"
            )
        self.curve = curve
        own_curve = MatchCurve(curve.scale.item(), curve.bias.item())
        self.of_points = SoftContrastiveLoss(own_curve, positive_weight, self.pairs) if means_as_points else None
        self.mutual_weight = mutual_weight
        self.kl_weight = 2 * beta
        self.likelihood = likelihood or Marginal()
        self.kl_samples = kl_samples
        self.generator = generator

    @property
    def scaffold(self) -> nn.ModuleList:
        return nn.ModuleList([self.of_points.curve] if self.of_points else [])

    def cost(self, z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
        return self.likelihood.cost(z1, z2, match, self.curve)

    def mean_costs(self, z: Distribution, labels: Tensor) -> tuple[Tensor, Tensor]:
        if self.of_points is None:
            return self._hedged_costs(z, labels)
        given = _given_its_means(z)
        positive, negative = self._hedged_costs(given, labels)
        positive_of_points, negative_of_points = self.of_points.mean_costs(Point(z.mean), labels)
        if self.mutual_weight:
            positive = positive - self.mutual_weight * self._mutual_likelihood(given, labels)
        return positive + positive_of_points, negative + negative_of_points

    def _mutual_likelihood(self, z: Gaussian, labels: Tensor) -> Tensor:
        """The mean of log N(μ₁ − μ₂; 0, (Σ₁ + Σ₂) / share) over the matching pairs that count."""
        first, second, match = self.pairs.select(pairs_of(labels))
        one, other = z.take(first[match]), z.take(second[match])
        return Gaussian(one.mean, (one.variance + other.variance) / SHARE).log_prob(other.mean).mean()

    def _hedged_costs(self, z: Distribution, labels: Tensor) -> tuple[Tensor, Tensor]:
        if not self._in_one_pass(z):
            return super().mean_costs(z, labels)
        _, classes, sizes = labels.unique(return_inverse=True, return_counts=True)  # type: ignore[no-untyped-call]
        matching = int((sizes * (sizes - 1)).sum()) // 2
        positive, negative = self.curve.pair_costs(z, classes)
        return positive / matching, negative / (len(z) * (len(z) - 1) // 2 - matching)

    def _in_one_pass(self, z: Distribution) -> bool:
        """Whether all pairs count, by the curve's own estimator: what training does."""
        own = isinstance(self.likelihood, Marginal) and isinstance(self.likelihood.estimator, ClosedForm | None)
        return own and isinstance(self.pairs, AllPairs)

    def kl(self, z: Distribution) -> Tensor:
        if not self.kl_weight:
            return super().kl(z)
        return (_given_its_means(z) if self.of_points else z).kl(self.kl_samples, self.generator).mean()


def _given_its_means(z: Distribution) -> Gaussian:
    """The same, but its means are constants that no gradient reaches."""
    if not isinstance(z, Gaussian):
        raise ShapeError(f"only the means of single Gaussians train as points, got {z}")
    return Gaussian(z.mean.detach(), z.variance)

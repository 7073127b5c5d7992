"""`MatchCurve`: p(m | r) = σ(−a r + b), averaged over both embeddings: the match model of the paper."""

from __future__ import annotations

import copy
import math
from functools import lru_cache
from typing import final

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from hedged.distributions import Distribution, Gaussian, Point
from hedged.errors import ValueRangeError
from hedged.match._closed_form.expansion import closed_form_error, terms_at
from hedged.match._numbers import distance, probability
from hedged.match._pairs import Matches
from hedged.match._products import turned_product
from hedged.match.estimators import ClosedForm, Estimator
from hedged.match.model import MatchModel
from hedged.match.nearness import Nearness, curve_nearness
from hedged.match.portable import PortableCurve
from hedged.match.score import Score, curve_score, distance_score, require_diagonal

CLOSED_FORM = ClosedForm()
FAR = 28.0  # distance in units of the curve at which `nearness` ranks as the curve does


@final
class MatchCurve(MatchModel, kind="curve"):
    """p(m | x₁, x₂) = ∬ σ(b − a‖z₁ − z₂‖) p(z₁ | x₁) p(z₂ | x₂) dz₁ dz₂, with a > 0 and b learnable (equation 2).

    The scale is held as log a, so that no step of an optimiser can make it negative.

    Args:
        scale: a, how fast the probability falls with distance.
        bias: b, the log-odds of a match at distance 0.
        estimator: How the integral is worked out: `ClosedForm()`, or the paper's `MonteCarlo(samples)`.

    >>> curve = MatchCurve(scale=10.0, bias=3.0)
    >>> curve(torch.tensor([0.0, 0.3, 1.0]))
    tensor([9.5257e-01, 5.0000e-01, 9.1105e-04], grad_fn=<SigmoidBackward0>)
    """

    def __init__(self, scale: float = 10.0, bias: float = 3.0, estimator: Estimator = CLOSED_FORM) -> None:
        super().__init__()
        if not (math.isfinite(scale) and scale > 0):
            raise ValueRangeError(f"the scale a of a match curve must be positive and finite, got {scale}")
        if not math.isfinite(bias):
            raise ValueRangeError(f"the bias b of a match curve must be finite, got {bias}")
        if not isinstance(estimator, Estimator):
            raise ValueRangeError(f"the estimator of a match curve is ClosedForm() or MonteCarlo(), got {estimator!r}")
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))
        self.bias = nn.Parameter(torch.tensor(float(bias)))
        self.estimator = estimator

    @property
    def scale(self) -> Tensor:
        """a = exp(log a), a scalar."""
        return self.log_scale.exp()

    def logit_at(self, distance: Tensor) -> Tensor:
        """log p/(1 − p) = b − a r of two points r apart, of the shape of `distance`.

        Args:
            distance: r.
        """
        return self.bias - self.scale * distance

    def forward(self, distance: Tensor) -> Tensor:
        """p(m | r) of two points r apart, of the shape of `distance`.

        Args:
            distance: r.
        """
        return self.logit_at(distance).sigmoid()

    def logit(self, z1: Distribution, z2: Distribution) -> Tensor:
        return self.estimator.logit(z1, z2, self)

    def sampled_logits(
        self, z1: Distribution, z2: Distribution, samples: int, generator: torch.Generator | None = None
    ) -> Tensor:
        """b − a‖z₁^(k₁) − z₂^(k₂)‖ for all K² pairs of samples, `(K, K, ...)`.

        Args:
            z1: The first embeddings.
            z2: The second embeddings.
            samples: K.
            generator: Where the samples are drawn from; torch's default generator if none is given.
        """
        first = z1.sample(samples, generator).unsqueeze(1)
        second = z2.sample(samples, generator).unsqueeze(0)
        return self.logit_at(distance(first, second))

    def self_mismatch(self, z: Distribution) -> Tensor:
        if isinstance(z, Point):  # σ(−b), one value for all: a vector unit may round it in two ways, and so rank points
            return probability(self.logit_at(z.mean.new_zeros(())).neg().to(z.dtype)).repeat(z.batch_shape)
        return super().self_mismatch(z)

    def values_per_pair(self, z1: Distribution, z2: Distribution) -> int:
        return self.estimator.values_per_pair(z1, z2)

    def matrix(self, z1: Distribution, z2: Distribution) -> Tensor:
        return self.estimator.matrix(z1, z2, self)

    def probability_matrix(self, z1: Distribution, z2: Distribution) -> Tensor:
        return self.estimator.probability_matrix(z1, z2, self)

    def nearest(self, z: Distribution, gallery: Distribution, k: int, exclude_self: bool = False) -> Matches:
        return self.estimator.nearest(z, gallery, self, k, exclude_self)

    def chosen_logits(self, z: Distribution, items: Distribution, chosen: Tensor) -> Tensor:
        return self.estimator.chosen_logits(z, items, chosen, self)

    def pair_costs(self, z: Distribution, labels: Tensor) -> Tensor:
        return self.estimator.pair_costs(z, labels, self)

    def fuse(self, z: Distribution, owner: Tensor) -> Distribution:
        """Π_i N(μ_i, σ_i²) ∝ N(μ, σ²) with 1/σ² = Σ_i 1/σ_i² and μ = σ² Σ_i μ_i/σ_i²: inputs that all show one thing.

        The sure ones count most, and many make sure. Of covariances that are not diagonal, the inverses are added up as
        matrices. Of mixtures, each is first taken as the Gaussian of its moments; of points, the product is their mean.

        Args:
            z: M embeddings.
            owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.

        >>> z = Gaussian(torch.tensor([[0.0], [4.0], [1.0]]), torch.tensor([[1.0], [3.0], [2.0]]))
        >>> MatchCurve().fuse(z, torch.tensor([0, 0, 1])).tensors
        (tensor([[1.], [1.]]), tensor([[0.7500], [2.0000]]))
        """
        if isinstance(z, Point):
            return Point(_sums(z.mean, owner) / owner.bincount().unsqueeze(1))
        if not z.is_diagonal:
            return turned_product(z, owner, prior=0.0)
        precision = z.variance.reciprocal()
        variance = _sums(precision, owner).reciprocal()
        return Gaussian(variance * _sums(precision * z.mean, owner), variance)

    def unit_variance(self) -> float:
        """1/a²: the curve falls over a distance of 1/a."""
        return 1 / self.scale.item() ** 2

    def settings(self) -> dict[str, float]:
        return {"scale": self.scale.item(), "bias": self.bias.item()}

    def portable(self) -> PortableCurve:
        """The curve in closed form, whatever its own estimator is."""
        bias = self.bias.item()
        terms = terms_at(bias)
        return PortableCurve(
            {
                **self.describe(),
                "widths": terms.widths.tolist(),
                "weights": terms.weights.tolist(),
                "chord_end": self.chord_end(),
                "error_bound": closed_form_error(bias, torch.float32),
            }
        )

    def score(self, like: Distribution) -> Score:
        """The curve in closed form, whatever its own estimator is.

        Args:
            like: Embeddings of the kind, dimension and components that will be compared.
        """
        require_diagonal(like)
        scale, bias = self.scale.item(), self.bias.item()
        if like.is_point:
            return distance_score(scale, bias, like.dim)
        return curve_score(scale, bias, terms_at(bias), self.chord_end(), like.dim)

    def nearness(self, probes: Distribution) -> Nearness | None:
        """−log E[exp(−c a²‖δ‖²)] with one c: σ(b − u) falls as e^(−u), and −u ≥ −c u² − 1/(4c), equal at u = 1/(2c).

        So c = 1/(2u) ranks best what is u away. Of the ten best, the farthest are the hardest to find: u is large. If
        b is large too, the curve is flat up to b, and c is 1/b². Points are as near as their means, and where
        covariances are not diagonal there is no such form.

        Args:
            probes: The probes.
        """
        if probes.is_point or not probes.is_diagonal:
            return None
        width = min(1 / (2 * FAR), 1 / max(self.bias.item(), 1.0) ** 2)
        return curve_nearness(probes, self.scale.item(), width)

    def with_estimator(self, estimator: Estimator) -> MatchCurve:
        """The same curve, with the same parameters, integrated in another way.

        Args:
            estimator: The way to integrate.
        """
        other = copy.copy(self)  # the copy shares the parameters, and gradients reach them through it
        other.estimator = estimator
        return other

    def error_bound(self, dtype: torch.dtype | None = None) -> float:
        """How far p may be from the exact integral, whatever the embeddings are: what the estimator certifies.

        Of `ClosedForm` at most 1e-3 for b in [−4, 8]; larger, and still true, beyond. `MonteCarlo` certifies nothing:
        its bound is 1.

        Args:
            dtype: The dtype of the result, whose rounding counts too; by default that of the curve.

        >>> MatchCurve(scale=10.0, bias=3.0).error_bound() < 2e-4
        True
        """
        return self.estimator.error_bound(self, dtype or self.bias.dtype)

    def describe_error(self) -> str:
        """How far p may be from the exact integral, in words of the estimator.

        >>> from hedged import MonteCarlo
        >>> MatchCurve(estimator=MonteCarlo(samples=8)).describe_error()
        'random, of 8 samples per input; not certified'
        """
        return self.estimator.describe_error(self, self.bias.dtype)

    def log_floor(self, reach: Tensor) -> Tensor:
        """log of a lower bound on E[σ(b − a‖δ‖)], given `reach` = a·√E‖δ‖², of the shape of `reach`.

        The largest convex function below u ↦ σ(b − u) is its chord from 0 to a point u*, then the curve itself. By
        Jensen's inequality its value at E[u] ≤ reach bounds the expectation from below. In the tail, where p is
        smaller than any absolute error, this bound is what ranks and what gives gradients.

        Args:
            reach: a·√E‖δ‖², the root mean square distance in units of the curve.
        """
        touch = self.chord_end()
        bias = self.bias.to(reach.dtype)
        if touch == 0.0:
            return logsigmoid(bias - reach)
        share = (reach / touch).clamp(max=1.0)  # by optimality of u*, ∂/∂u* is zero: it may be held constant
        chord = bias.sigmoid() * (1 - share) + (bias - touch).sigmoid() * share
        return torch.where(reach < touch, chord.log(), logsigmoid(bias - reach.clamp(min=touch)))

    def chord_end(self) -> float:
        """u*, up to which `log_floor` is a chord; 0 if the curve is convex throughout."""
        return _chord_end(self.bias.item())

    def extra_repr(self) -> str:
        return f"scale={self.scale.item():g}, bias={self.bias.item():g}"


def _sums(rows: Tensor, owner: Tensor) -> Tensor:
    """The sum of the rows of each owner, `(G, D)`."""
    return rows.new_zeros(int(owner.max()) + 1, rows.shape[1]).index_add_(0, owner, rows)


@lru_cache(1024)
def _chord_end(bias: float) -> float:
    """u*, where the chord from (0, σ(b)) touches u ↦ σ(b − u); 0 if the curve is convex throughout (b ≤ 0)."""
    if bias <= 0:
        return 0.0

    start = 1 / (1 + math.exp(-bias))

    def gap(u: float) -> float:  # tangent minus chord, times u: negative before u*, positive after
        odds = math.exp(bias - u)
        p = odds / (1 + odds)
        return start - p - u * p * (1 - p)

    low, high = bias, 2 * bias + 10
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gap(middle) < 0 else (low, middle)
    return high

"""How p(m | x₁, x₂) = ∬ σ(b − a‖z₁ − z₂‖) p(z₁ | x₁) p(z₂ | x₂) dz₁ dz₂ is worked out for a match curve.

`ClosedForm` is deterministic, with a certified error (docs/closed-form.md); `MonteCarlo` is the paper's own way
(equation 5). An estimator has one method it must have, the log-odds of pairs, and as many of the others as it knows a
faster way for: they are the methods of `MatchModel`, with the curve as an argument.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from hedged._startup import needs_loops
from hedged.distributions import Distribution
from hedged.errors import ValueRangeError
from hedged.match import _pairs
from hedged.match._closed_form.batch_loss import closed_form_pair_costs
from hedged.match._closed_form.candidates import candidate_logits
from hedged.match._closed_form.elementwise import closed_form_logit
from hedged.match._closed_form.expansion import closed_form_error, is_tabulated
from hedged.match._closed_form.matrix import closed_form_matrix
from hedged.match._closed_form.nearest import nearest_points, nearest_spreads
from hedged.match._closed_form.spherical import have_one_variance, keeps_distances, spherical_matrix
from hedged.match._closed_form.turned import turned_logit, turned_pair_costs
from hedged.match._closed_form.turned_matrix import turned_logit_matrix, turned_matrix, turned_nearest
from hedged.match._numbers import cross_entropy, distance, probability
from hedged.match._pairs import Matches

if TYPE_CHECKING:
    from hedged.match.curve import MatchCurve


class Estimator(ABC):
    """A way to integrate a match curve over two embeddings."""

    @abstractmethod
    def logit(self, z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
        """log p/(1 − p) of p = p(m | x₁, x₂), broadcast over the batch dimensions `(...)`.

        Args:
            z1: The first embeddings.
            z2: The second embeddings, of the same rank.
            curve: The match curve.
        """

    def error_bound(self, curve: MatchCurve, dtype: torch.dtype) -> float:
        """How far p may be from the exact integral, whatever the embeddings are; 1 where nothing is certified.

        Args:
            curve: The match curve.
            dtype: The dtype of the result, whose rounding counts too.
        """
        return 1.0

    def describe_error(self, curve: MatchCurve, dtype: torch.dtype) -> str:
        """How far p may be from the exact integral, in words.

        Args:
            curve: The match curve.
            dtype: The dtype of the result, whose rounding counts too.
        """
        return "not certified"

    def values_per_pair(self, z1: Distribution, z2: Distribution) -> int:
        """How many numbers one intermediate result of `logit` holds for each pair: it sets the size of blocks.

        Args:
            z1: The first embeddings.
            z2: The second embeddings.
        """
        return _pairs.values_per_pair(z1, z2)

    def matrix(self, z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
        """The log-odds of all pairs of two lists, `(N, M)`, without gradients, in blocks of bounded memory.

        Args:
            z1: N embeddings.
            z2: M embeddings.
            curve: The match curve.
        """
        return _pairs.matrix(partial(self.logit, curve=curve), z1, z2, self.values_per_pair(z1, z2))

    def probability_matrix(self, z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
        """p(m | x_i, x_j) of all pairs of two lists, `(N, M)`, without gradients.

        Args:
            z1: N embeddings.
            z2: M embeddings.
            curve: The match curve.
        """
        return probability(self.matrix(z1, z2, curve), in_place=True)

    def nearest(self, z: Distribution, gallery: Distribution, curve: MatchCurve, k: int, exclude_self: bool) -> Matches:
        """The k best matches of each embedding in a gallery, exact, the first among equals.

        Args:
            z: N probes.
            gallery: M items.
            curve: The match curve.
            k: How many matches each probe gets.
            exclude_self: Whether probe i and item i are one input, and never each other's match.
        """
        return _pairs.nearest(partial(self.matrix, curve=curve), z, gallery, k, exclude_self)

    def chosen_logits(self, z: Distribution, items: Distribution, chosen: Tensor, curve: MatchCurve) -> Tensor:
        """The log-odds of each probe and the items that were chosen for it, float64 `(N, n)`.

        Args:
            z: N probes.
            items: R items.
            chosen: Places in `items`, int64 `(N, n)`; −1 stands for none, and gets −∞.
            curve: The match curve.
        """
        return _pairs.chosen_logits(partial(self.logit, curve=curve), z, items, chosen, self.values_per_pair(z, items))

    def pair_costs(self, z: Distribution, labels: Tensor, curve: MatchCurve) -> Tensor:
        """Σ −log p over the matching pairs of a batch and Σ −log(1 − p) over the others, `(2,)`, with gradients.

        Args:
            z: B embeddings.
            labels: Their classes, int64 `(B,)`. Pairs are of distinct items.
            curve: The match curve.
        """

        def cost(z1: Distribution, z2: Distribution, match: Tensor) -> Tensor:
            return cross_entropy(self.logit(z1, z2, curve), match)

        return _pairs.pair_costs(cost, z, labels)


@final
@dataclass(frozen=True)
class ClosedForm(Estimator):
    """p(m | x₁, x₂) = Σ_j w_j Π_d (1 + 2c_j s_d)^(−1/2) exp(−c_j m_d² / (1 + 2c_j s_d)).

    m = a (μ₁ − μ₂) and s = a² (σ₁² + σ₂²), each `(..., D)`; w_j and c_j expand the curve. Mixtures average over pairs
    of components. The value is never below Jensen's bound (`MatchCurve.log_floor`) nor above σ(b), between which the
    truth lies too. Two points need no integral: the exact sigmoid. Where covariances are not diagonal, pairs are turned
    until they are, or the product is a determinant: the error is the same.

    On a CPU all pairs, the best matches and the costs of a batch are compiled (`hedged.match._closed_form` is the map);
    elsewhere, and for mixtures beside covariances that are not diagonal, they are blocks of the same formula.
    """

    def logit(self, z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
        if _are_points(z1, z2):
            return curve.logit_at(distance(z1.mean, z2.mean))
        return (closed_form_logit if _are_diagonal(z1, z2) else turned_logit)(z1, z2, curve)

    def error_bound(self, curve: MatchCurve, dtype: torch.dtype) -> float:
        """The sup error of the expansion between and beyond all grid points, of the arithmetic, and of the rounding."""
        return closed_form_error(curve.bias.item(), dtype)

    def describe_error(self, curve: MatchCurve, dtype: torch.dtype) -> str:
        return f"at most {self.error_bound(curve, dtype):.1e} (certified)"

    def matrix(self, z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
        if not _are_diagonal(z1, z2) and _are_turned(z1, z2):
            return turned_logit_matrix(z1, z2, curve)
        return super().matrix(z1, z2, curve)

    def probability_matrix(self, z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
        if not _are_diagonal(z1, z2) and _are_turned(z1, z2):
            return turned_matrix(z1, z2, curve)
        if _are_points(z1, z2) or not _has_loops(z1, z2):
            return super().probability_matrix(z1, z2, curve)
        if have_one_variance(z1, z2) and keeps_distances(z1, z2, curve):
            return spherical_matrix(z1, z2, curve)
        return closed_form_matrix(z1, z2, curve)

    def nearest(self, z: Distribution, gallery: Distribution, curve: MatchCurve, k: int, exclude_self: bool) -> Matches:
        if not _are_diagonal(z, gallery) and _are_turned(z, gallery):
            return turned_nearest(z, gallery, curve, k, exclude_self)
        if not _has_loops(z, gallery):
            return super().nearest(z, gallery, curve, k, exclude_self)
        search = nearest_points if _are_points(z, gallery) else nearest_spreads
        return search(z, gallery, curve, k, exclude_self)

    def chosen_logits(self, z: Distribution, items: Distribution, chosen: Tensor, curve: MatchCurve) -> Tensor:
        pays = needs_loops(chosen.numel() * self.values_per_pair(z, items))
        if _are_points(z, items) or not _has_loops(z, items) or not pays:
            return super().chosen_logits(z, items, chosen, curve)
        return candidate_logits(z, items, chosen, curve)

    def pair_costs(self, z: Distribution, labels: Tensor, curve: MatchCurve) -> Tensor:
        if not z.is_diagonal and z.n_components == 1:
            return turned_pair_costs(z, labels, curve)
        if not (not z.is_point and _has_loops(z) and is_tabulated(curve.bias.item())):
            return super().pair_costs(z, labels, curve)
        return closed_form_pair_costs(z, labels, curve)


def _are_points(*embeddings: Distribution) -> bool:
    return all(z.is_point for z in embeddings)


def _are_diagonal(*embeddings: Distribution) -> bool:
    return all(z.is_diagonal for z in embeddings)


def _are_turned(*embeddings: Distribution) -> bool:
    """Whether there are compiled loops for all pairs that may be turned: on a CPU, of single Gaussians."""
    return all(z.n_components == 1 and len(z) > 0 and z.device.type == "cpu" for z in embeddings)


def _has_loops(*embeddings: Distribution) -> bool:
    """Whether there are compiled loops: on a CPU, for diagonal covariances."""
    return _are_diagonal(*embeddings) and all(z.device.type == "cpu" for z in embeddings)


@final
@dataclass(frozen=True)
class MonteCarlo(Estimator):
    """p(m | x₁, x₂) ≈ K⁻² Σ_k₁ Σ_k₂ p(m | z₁^(k₁), z₂^(k₂)) with K samples of each input (equation 5).

    Args:
        samples: K.
        generator: Where the samples are drawn from; torch's default generator if none is given.
    """

    samples: int = 8
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueRangeError(f"Monte Carlo takes at least one sample, got samples={self.samples}")

    def logit(self, z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
        each = curve.sampled_logits(z1, z2, self.samples, self.generator).flatten(0, 1)
        return logsigmoid(each).logsumexp(0) - logsigmoid(-each).logsumexp(0)

    def describe_error(self, curve: MatchCurve, dtype: torch.dtype) -> str:
        return f"random, of {self.samples} samples per input; not certified"

    def values_per_pair(self, z1: Distribution, z2: Distribution) -> int:
        return self.samples**2 * super().values_per_pair(z1, z2)

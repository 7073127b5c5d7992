"""p(m | x₁, x₂) = ∬ p(m | z₁, z₂) p(z₁ | x₁) p(z₂ | x₂) dz₁ dz₂: the probability that two inputs match.

Two estimators of the integral: `ClosedForm`, deterministic with a certified error (docs/closed-form.md), and
`MonteCarlo`, the paper's own (equation 5). Both return log-odds, from which p, log p and log(1 − p) follow without loss
at either end.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from hedged.distributions import Distribution, Point
from hedged.errors import ShapeError, ValueRangeError
from hedged.match._closed_form.elementwise import expected_gaussians
from hedged.match._closed_form.expansion import Expansion, arithmetic_dtype, expand
from hedged.match._closed_form.matrix import closed_form_matrix
from hedged.match._closed_form.units import FARTHEST, within
from hedged.match.curve import MatchCurve

CHUNK = 2**20  # numbers held at a time by `match_matrix`, per intermediate result: what a core's cache holds


class Estimator(ABC):
    """A way to integrate the match curve over two embeddings."""

    @abstractmethod
    def logit(self, z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
        """log p/(1 − p) of p = p(m | x₁, x₂), broadcast over the batch dimensions `(...)`."""


@final
@dataclass(frozen=True)
class ClosedForm(Estimator):
    """p(m | x₁, x₂) = Σ_j w_j Π_d (1 + 2c_j s_d)^(−1/2) exp(−c_j m_d² / (1 + 2c_j s_d)).

    m = a (μ₁ − μ₂) and s = a² (σ₁² + σ₂²), each `(..., D)`; w_j and c_j expand the curve
    (hedged.match._closed_form.expansion). Mixtures average over pairs of components. The value is never
    below Jensen's bound (`MatchCurve.log_floor`) nor above σ(b), between which the truth lies too.
    Two points need no integral: the exact sigmoid.
    """

    def logit(self, z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
        if isinstance(z1, Point) and isinstance(z2, Point):
            return curve.logit(distance(z1.mean, z2.mean))
        dtype = torch.promote_types(z1.dtype, z2.dtype)
        terms = expand(curve.bias)
        wide = arithmetic_dtype(terms, z1.dim, dtype)
        log_p = _log_expectation(z1.to(wide), z2.to(wide), curve, terms)
        log_p = torch.minimum(log_p, logsigmoid(curve.bias.to(wide)))
        return (log_p - torch.log(-torch.expm1(log_p))).to(dtype)


def _log_expectation(z1: Distribution, z2: Distribution, curve: MatchCurve, terms: Expansion) -> Tensor:
    """log E[σ(b − a‖δ‖)] over δ = z₁ − z₂, `(...)`."""
    unit = curve.scale.to(z1.dtype).clamp(1 / FARTHEST, FARTHEST)
    (mean1, variance1), (mean2, variance2) = (map(_axes_first, z.parts()) for z in (z1, z2))
    differences = (mean1.unsqueeze(2) - mean2.unsqueeze(1)) * unit  # (D, C₁, C₂, ...), in the curve's own units, a·r
    squares = differences.clamp(-FARTHEST, FARTHEST).square()
    variance1, variance2 = ((v * unit.square()).clamp(max=FARTHEST**2) for v in (variance1, variance2))
    spreads = variance1.unsqueeze(2) + variance2.unsqueeze(1)
    log_p = _log_expected_curve(squares, spreads, curve, terms).flatten(0, 1)
    return log_p.logsumexp(0) - math.log(len(log_p)) if len(log_p) > 1 else log_p[0]


def _axes_first(x: Tensor) -> Tensor:
    """`(..., C, D)` as `(D, C, ...)`, the layout of hedged.match._closed_form.elementwise."""
    return x.movedim((-1, -2), (0, 1)).contiguous()


def _log_expected_curve(squares: Tensor, spreads: Tensor, curve: MatchCurve, terms: Expansion) -> Tensor:
    """log E[σ(b − ‖v‖)] for v ~ N(m, diag s), given m² and s as `(D, ...)`; the result is `(...)`."""
    dtype = squares.dtype
    value = expected_gaussians(squares, spreads, terms.widths.to(squares), terms.weights.to(squares))
    tiny = 1e12 * torch.finfo(dtype).tiny  # where the terms that the kernel leaves out would be missed
    log_value = torch.where(value > tiny, value.clamp(min=tiny).log(), -torch.inf)
    return torch.maximum(log_value, curve.log_floor((squares + spreads).sum(0).clamp(min=tiny).sqrt()))


@final
@dataclass(frozen=True)
class MonteCarlo(Estimator):
    """p(m | x₁, x₂) ≈ K⁻² Σ_k₁ Σ_k₂ p(m | z₁^(k₁), z₂^(k₂)) with K = `samples` of each input (equation 5)."""

    samples: int = 8
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueRangeError(f"Monte Carlo takes at least one sample, got samples={self.samples}")

    def logit(self, z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
        each = sampled_logits(z1, z2, curve, self.samples, self.generator).flatten(0, 1)
        return logsigmoid(each).logsumexp(0) - logsigmoid(-each).logsumexp(0)


def sampled_logits(
    z1: Distribution, z2: Distribution, curve: MatchCurve, samples: int, generator: torch.Generator | None
) -> Tensor:
    """b − a‖z₁^(k₁) − z₂^(k₂)‖ for all K² pairs of samples, `(K, K, ...)`."""
    first = z1.sample(samples, generator).unsqueeze(1)
    second = z2.sample(samples, generator).unsqueeze(0)
    return curve.logit(distance(first, second))


def distance(x1: Tensor, x2: Tensor) -> Tensor:
    """‖x₁ − x₂‖ over the last axis, finite however far apart; where both coincide its gradient is zero."""
    difference = x1 - x2
    farthest = min(FARTHEST, torch.finfo(difference.dtype).max)
    norm: Tensor = torch.linalg.vector_norm(difference.clamp(-farthest, farthest), dim=-1)
    return norm


CLOSED_FORM = ClosedForm()


def match_logit(z1: Distribution, z2: Distribution, curve: MatchCurve, estimator: Estimator = CLOSED_FORM) -> Tensor:
    """log p/(1 − p) of p(m | x₁, x₂), `(...)`: what losses and rankings use."""
    _require_same_space(z1, z2)
    _require_broadcast(z1, z2)
    rank = max(len(z1.batch_shape), len(z2.batch_shape))
    z1, z2 = (z[(None,) * (rank - len(z.batch_shape))] for z in (z1, z2))
    return estimator.logit(z1, z2, curve)


def match_probability(
    z1: Distribution, z2: Distribution, curve: MatchCurve, estimator: Estimator = CLOSED_FORM
) -> Tensor:
    """p(m | x₁, x₂), `(...)`, broadcast over the batch dimensions of both.

    >>> from hedged import Gaussian
    >>> sure, unsure = (Gaussian(torch.zeros(2), torch.full((2,), v)) for v in (1e-4, 1.0))
    >>> curve = MatchCurve(scale=10.0, bias=3.0).requires_grad_(False)
    >>> match_probability(sure, sure, curve), match_probability(sure, unsure, curve)
    (tensor(0.9437), tensor(0.0574))
    """
    return _probability(match_logit(z1, z2, curve, estimator))


def log_match_probability(
    z1: Distribution, z2: Distribution, curve: MatchCurve, estimator: Estimator = CLOSED_FORM
) -> Tensor:
    """log p(m | x₁, x₂), `(...)`: finite and falling with distance however far apart the inputs are."""
    return logsigmoid(match_logit(z1, z2, curve, estimator))


def self_mismatch(z: Distribution, curve: MatchCurve, estimator: Estimator = CLOSED_FORM) -> Tensor:
    """η(x) = 1 − p(m | x, x), `(...)`: the chance that two draws of one embedding do not match (equation 9).

    >>> from hedged import Point
    >>> curve = MatchCurve(scale=10.0, bias=3.0).requires_grad_(False)
    >>> self_mismatch(Point(torch.zeros(2)), curve)
    tensor(0.0474)
    """
    if isinstance(z, Point):  # σ(−b), one value for all: a vector unit may round it in two ways, and so rank points
        return _probability(curve.logit(z.mean.new_zeros(())).neg().to(z.dtype)).repeat(z.batch_shape)
    return _probability(match_logit(z, z, curve, estimator).neg())


def match_matrix(z1: Distribution, z2: Distribution, curve: MatchCurve, estimator: Estimator = CLOSED_FORM) -> Tensor:
    """p(m | x_i, x_j) for all pairs of two batches, `(N, M)`, without gradients.

    Beyond the result itself the memory is bounded, whatever N and M are: the pairs are visited in blocks.

    >>> from hedged import Gaussian
    >>> z = Gaussian(torch.randn(5, 2), torch.ones(5, 2))
    >>> match_matrix(z[:3], z, MatchCurve()).shape
    torch.Size([3, 5])
    """
    _require_lists(z1, z2)
    is_exact = isinstance(z1, Point) and isinstance(z2, Point)
    if isinstance(estimator, ClosedForm) and not is_exact and {z1.device.type, z2.device.type} == {"cpu"}:
        return closed_form_matrix(z1, z2, curve)
    matrix = logit_matrix(z1, z2, curve, estimator).sigmoid_()
    return matrix.clamp_(*within(matrix.dtype))  # in place: a copy of this size may not fit


def _probability(logit: Tensor) -> Tensor:
    return logit.sigmoid().clamp(*within(logit.dtype))


@torch.no_grad()
def logit_matrix(z1: Distribution, z2: Distribution, curve: MatchCurve, estimator: Estimator = CLOSED_FORM) -> Tensor:
    """The log-odds of `match_matrix`: the same ranking, without ties where p rounds to 0 or 1."""
    _require_lists(z1, z2)
    out = torch.empty(len(z1), len(z2), dtype=torch.promote_types(z1.dtype, z2.dtype), device=z1.device)
    for rows, columns in _blocks(z1, z2, estimator):
        out[rows, columns] = estimator.logit(z1[rows].unsqueeze(1), z2[columns].unsqueeze(0), curve)
    return out


def _blocks(z1: Distribution, z2: Distribution, estimator: Estimator) -> Iterator[tuple[slice, slice]]:
    """Blocks of pairs whose intermediate results hold about `CHUNK` numbers each."""
    draws = estimator.samples**2 if isinstance(estimator, MonteCarlo) else 1
    numbers = [z.tensors[0].shape[1:].numel() for z in (z1, z2)]  # C · D each
    pairs = max(CHUNK // (4 * draws * numbers[0] * numbers[1] // z1.dim), 1)
    width = min(len(z2), pairs)
    height = max(pairs // max(width, 1), 1)
    for top in range(0, len(z1), height):
        for left in range(0, len(z2), max(width, 1)):
            yield slice(top, top + height), slice(left, left + width)


def _require_lists(z1: Distribution, z2: Distribution) -> None:
    _require_same_space(z1, z2)
    for name, z in (("first", z1), ("second", z2)):
        if len(z.batch_shape) != 1:
            raise ShapeError(f"match_matrix takes two lists of embeddings, the {name} is {z!r}")


def _require_same_space(z1: Distribution, z2: Distribution) -> None:
    for z in (z1, z2):
        if not isinstance(z, Distribution):
            raise ShapeError(f"embeddings are compared, got a {type(z).__name__}: wrap it, as Point(z) for instance")
    if z1.dim != z2.dim:
        raise ShapeError(f"embeddings of one space are compared, got dimensions {z1.dim} and {z2.dim}")


def _require_broadcast(z1: Distribution, z2: Distribution) -> None:
    try:
        torch.broadcast_shapes(z1.batch_shape, z2.batch_shape)  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise ShapeError(
            f"batches of shapes {tuple(z1.batch_shape)} and {tuple(z2.batch_shape)} do not broadcast: "
            "compare equal batches, or all pairs with match_matrix(z1, z2, curve)"
        ) from error

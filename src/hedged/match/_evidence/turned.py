"""`Evidence` of Gaussians whose covariances are not diagonal, in natural parameters and double precision.

With precisions P = Σ⁻¹ and pulls ν = Pμ, the log Bayes factor is

    ½ [(ν₁ + ν₂)ᵀ A⁻¹ (ν₁ + ν₂) − log |A| + Σ_i (log |P_i| − μ_iᵀν_i)],  A = P₁ + P₂ − I.

In few dimensions A is a small matrix. In more, covariances are diag v + FᵀF: P is diag 1/v − GᵀG (Woodbury), so A is
diag p − GᵀG with the G of both, and its determinant and its inverse are those of a matrix as small as their ranks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from hedged._parallel import share
from hedged.distributions import MOST_FULL, Distribution

MOST_LOG = 600.0  # of a product whose logarithm is taken
ROWS_EACH = 16  # rows that are worth a thread of their own


class Natural(NamedTuple):
    """What Gaussians know, each with the batch dimensions `(..., C)` of their components.

    Args:
        precision: P, `(..., D, D)`; or its diagonal part 1/v, `(..., D)`, where `turned` has the rest.
        turned: G, `(..., C, R, D)`, of P = diag 1/v − GᵀG; no rows where P is all of it.
        pull: ν = Pμ, `(..., D)`.
        norm: log |P| − μᵀν, `(...)`.
    """

    precision: Tensor
    turned: Tensor
    pull: Tensor
    norm: Tensor


def natural(z: Distribution) -> Natural:
    """The natural parameters of the components of embeddings: dense in up to four dimensions, low rank beyond.

    Args:
        z: The embeddings.
    """
    z = z._map(Tensor.double)
    mean = z.parts()[0]
    if z.dim <= MOST_FULL:
        root = torch.linalg.cholesky(z.covariances())
        precision = torch.cholesky_inverse(root)
        pull = (precision @ mean.unsqueeze(-1)).squeeze(-1)
        return Natural(
            precision, mean.new_zeros(*mean.shape[:-1], 0, z.dim), pull, -_log_det(root) - (mean * pull).sum(-1)
        )
    own, factor = z.spreads()
    weighed = factor / own.unsqueeze(-2)
    root = torch.linalg.cholesky(_unit(factor) + weighed @ factor.mT)
    turned = torch.linalg.solve_triangular(root, weighed, upper=False)
    pull = mean / own - (turned.mT @ (turned @ mean.unsqueeze(-1))).squeeze(-1)
    return Natural(1 / own, turned, pull, -own.log().sum(-1) - _log_det(root) - (mean * pull).sum(-1))


def turned_log_factor(z1: Distribution, z2: Distribution) -> Tensor:
    """The log Bayes factors of all pairs of components, `(..., C₁, C₂)` in float64, with gradients.

    Args:
        z1: The first embeddings.
        z2: The second embeddings; batches broadcast.
    """
    first, second = natural(z1), natural(z2)
    places = first.norm.ndim, second.norm.ndim - 1  # of the components of the other
    return _log_factor(*(Natural(*(x.unsqueeze(at) for x in z)) for z, at in zip((first, second), places, strict=True)))


def chosen_log_factors(z: Distribution, first: Tensor, second: Tensor) -> Tensor:
    """The log Bayes factors of pairs of a list of single Gaussians, `(P,)` in float64, with gradients.

    Args:
        z: The list.
        first: The places of one of each pair, `(P,)`.
        second: The places of the other, `(P,)`.
    """
    known = Natural(*(x.squeeze(1) for x in natural(z)))
    return _log_factor(*(Natural(*(x[chosen] for x in known)) for chosen in (first, second)))


@torch.no_grad()
def turned_log_factors(z1: Distribution, z2: Distribution, log_odds: float, temper: float) -> Tensor:
    """c + κ log BF of all pairs of two lists of single Gaussians on a CPU, `(N, M)`: compiled, without gradients.

    Args:
        z1: N Gaussians.
        z2: M Gaussians.
        log_odds: c.
        temper: κ.
    """
    from hedged.match._evidence.turned_loops import Known, turned_factors  # late: numba is slow to import

    dtype = torch.promote_types(torch.promote_types(z1.dtype, z2.dtype), torch.float32)
    out = torch.from_numpy(np.empty((len(z1), len(z2)), torch.empty(0, dtype=dtype).numpy().dtype))
    if not out.numel():
        return out
    lists, most = [], 1.0
    for z in (z1, z2):
        known = Natural(*(x.squeeze(1) for x in natural(z)))
        if z1.dim > MOST_FULL:
            most += float(known.precision.max())
            known = _in_fours(known)
        lists.append(Known(*(x.movedim(0, -1).contiguous().numpy() for x in known)))
    every = max(int(MOST_LOG / max(math.log(most), 1) / 4), 1)
    told = torch.tensor([log_odds, temper], dtype=torch.float64)
    share(turned_factors, len(z1), ROWS_EACH, *lists, every, told, out)
    return out


def _in_fours(known: Natural) -> Natural:
    """Dimensions of which nothing is known, so that they are a multiple of four; P as `(..., D, 1)`."""
    more = -known.pull.shape[-1] % 4
    precision, turned, pull = (
        pad(x, (0, more), value=fill) for x, fill in zip(known[:3], (1.0, 0.0, 0.0), strict=True)
    )
    return Natural(precision.unsqueeze(-1), turned, pull, known.norm)


def _log_factor(first: Natural, second: Natural) -> Tensor:
    """The log Bayes factors of Gaussians whose batches broadcast, `(...)`."""
    pull, norm = first.pull + second.pull, first.norm + second.norm
    own = first.precision + second.precision
    if own.ndim > pull.ndim:
        square, log_det = _solved(own - torch.eye(own.shape[-1], dtype=own.dtype, device=own.device), pull)
        return 0.5 * (square - log_det + norm)
    own = own - 1
    turned = torch.cat([x.turned.expand(*pull.shape[:-1], -1, -1) for x in (first, second)], dim=-2)
    weighed = turned / own.unsqueeze(-2)
    square, log_det = _solved(_unit(turned) - weighed @ turned.mT, (weighed @ pull.unsqueeze(-1)).squeeze(-1))
    return 0.5 * ((pull.square() / own).sum(-1) + square - own.log().sum(-1) - log_det + norm)


def _solved(matrix: Tensor, pull: Tensor) -> tuple[Tensor, Tensor]:
    """νᵀA⁻¹ν and log |A| of small matrices, one row after the other: for many of them far quicker than a routine."""
    square, log_det = torch.zeros_like(pull[..., 0]), torch.zeros_like(pull[..., 0])
    for _ in range(pull.shape[-1]):
        pivot, row = matrix[..., 0, 0], matrix[..., 0, 1:]
        share = pull[..., 0] / pivot
        square, log_det = square + share * pull[..., 0], log_det + pivot.log()
        pull = pull[..., 1:] - share.unsqueeze(-1) * row
        matrix = matrix[..., 1:, 1:] - row.unsqueeze(-1) * (row / pivot.unsqueeze(-1)).unsqueeze(-2)
    return square, log_det


def widest(z: Distribution) -> float:
    """The largest variance in any direction: the largest eigenvalue of all covariances.

    Args:
        z: The embeddings.
    """
    if not z.mean.numel():
        return 0.0
    z = z.detach().to(torch.float64)
    own, factor = z.spreads()  # it is at most that of v and the trace of FFᵀ together: mostly there is no need for more
    most = own.amax(-1) + factor.square().sum((-1, -2))
    if float(most.max()) <= 1:
        return float(most.max())
    return float(torch.linalg.eigvalsh(z.covariances()[most > 1]).max())


def _unit(factor: Tensor) -> Tensor:
    return torch.eye(factor.shape[-2], dtype=factor.dtype, device=factor.device)


def _log_det(root: Tensor) -> Tensor:
    """log |L Lᵀ|."""
    return 2 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1)

"""`Evidence` of Gaussians whose covariances are not diagonal, in natural parameters and double precision.

With precisions P = Σ⁻¹ and pulls ν = Pμ, the log Bayes factor is

    ½ [(ν₁ + ν₂)ᵀ A⁻¹ (ν₁ + ν₂) − log |A| + Σ_i (log |P_i| − μ_iᵀν_i)],  A = P₁ + P₂ − I.

In few dimensions A is a small matrix. In more, covariances are diag v + FᵀF: P is diag 1/v − GᵀG (Woodbury), so A is
diag p − GᵀG with the G of both, and its determinant and its inverse are those of a matrix as small as their ranks.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from hedged.distributions import MOST_FULL, Distribution


class Natural(NamedTuple):
    """What Gaussians know, each with the batch dimensions `(..., C)` of their components.

    Args:
        precision: P, `(..., D, D)`; or its diagonal part 1/v, `(..., D)`, where `turned` has the rest.
        turned: G, `(..., R, D)`, of P = diag 1/v − GᵀG; no rows where P is all of it.
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
        return Natural(precision, mean.new_zeros(0), pull, -_log_det(root) - (mean * pull).sum(-1))
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
    pull = first.pull.unsqueeze(-2) + second.pull.unsqueeze(-3)
    norm = first.norm.unsqueeze(-1) + second.norm.unsqueeze(-2)
    if z1.dim <= MOST_FULL:
        both = first.precision.unsqueeze(-3) + second.precision.unsqueeze(-4)
        root = torch.linalg.cholesky(both - torch.eye(z1.dim, dtype=both.dtype, device=both.device))
        known: Tensor = torch.linalg.solve_triangular(root, pull.unsqueeze(-1), upper=False)
        return 0.5 * (known.square().sum((-1, -2)) - _log_det(root) + norm)
    own = first.precision.unsqueeze(-2) + second.precision.unsqueeze(-3) - 1  # (..., C₁, C₂, D)
    turned = torch.cat(
        [
            first.turned.unsqueeze(-3).expand(*own.shape[:-1], -1, -1),
            second.turned.unsqueeze(-4).expand(*own.shape[:-1], -1, -1),
        ],
        dim=-2,
    )
    weighed = turned / own.unsqueeze(-2)
    root = torch.linalg.cholesky(_unit(turned) - weighed @ turned.mT)
    known = torch.linalg.solve_triangular(root, weighed @ pull.unsqueeze(-1), upper=False)
    square: Tensor = (pull.square() / own).sum(-1) + known.square().sum((-1, -2))
    return 0.5 * (square - own.log().sum(-1) - _log_det(root) + norm)


def widest(z: Distribution) -> float:
    """The largest variance in any direction: the largest eigenvalue of all covariances.

    Args:
        z: The embeddings.
    """
    if not z.mean.numel():
        return 0.0
    z = z.detach().to(torch.float64)
    if z.dim <= MOST_FULL:
        return float(torch.linalg.eigvalsh(z.covariances()).max())
    own, factor = z.spreads()  # it is at most that of v and that of FFᵀ together: mostly there is no need for more
    most = own.amax(-1) + torch.linalg.eigvalsh(factor @ factor.mT)[..., -1]
    if float(most.max()) <= 1:
        return float(most.max())
    return float(torch.linalg.eigvalsh(z.covariances()[most > 1]).max())


def _unit(factor: Tensor) -> Tensor:
    return torch.eye(factor.shape[-2], dtype=factor.dtype, device=factor.device)


def _log_det(root: Tensor) -> Tensor:
    """log |L Lᵀ|."""
    return 2 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1)

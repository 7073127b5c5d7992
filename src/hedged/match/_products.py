"""The product of Gaussians whose covariances are not diagonal: several inputs of one identity as one.

Π_i N(μ_i, Σ_i) / r^(n−1) ∝ N(μ, Σ) with Σ⁻¹ = ωI + Σ_i (Σ_i⁻¹ − ωI) and Σ⁻¹μ = Σ_i Σ_i⁻¹μ_i. With the prior r = N(0, I)
of an identity ω = 1, as `Evidence` has it; ω = 0 where there is none, as for `MatchCurve`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hedged.distributions import MOST_FULL, Distribution, FullGaussian, LowRankGaussian
from hedged.match._evidence.turned import natural


def turned_product(z: Distribution, owner: Tensor, prior: float) -> Distribution:
    """What several inputs of each identity tell of it together, a batch of G: exact.

    In up to four dimensions a `FullGaussian`. In more a `LowRankGaussian`, whose rank is that of all inputs of the
    identity that has most of them, or D.

    Args:
        z: M embeddings of one Gaussian each.
        owner: Whose each of them is, int64 `(M,)` in 0 … G − 1.
        prior: ω, the precision of the prior.
    """
    count = int(owner.max()) + 1 if len(owner) else 0
    told = natural(z)
    precision, pull = told.precision[:, 0], told.pull[:, 0]
    pulled = pull.new_zeros(count, z.dim).index_add(0, owner, pull)
    if z.dim <= MOST_FULL:
        unit = prior * torch.eye(z.dim, dtype=pull.dtype, device=pull.device)
        total = unit + pull.new_zeros(count, z.dim, z.dim).index_add(0, owner, precision - unit)
        covariance = torch.cholesky_inverse(torch.linalg.cholesky(total))
        mean = (covariance @ pulled.unsqueeze(-1)).squeeze(-1)
        return FullGaussian.of(mean, covariance).to(z.dtype)
    own = prior + pull.new_zeros(count, z.dim).index_add(0, owner, precision - prior)
    turned = _gathered(told.turned[:, 0], owner, count)  # (G, n R, D), rows of zeros where there are fewer
    weighed = turned / own.unsqueeze(-2)
    unit = torch.eye(turned.shape[-2], dtype=own.dtype, device=own.device)
    root = torch.linalg.cholesky(unit - weighed @ turned.mT)
    factor = torch.linalg.solve_triangular(root, weighed, upper=False)
    mean = pulled / own + (factor.mT @ (factor @ pulled.unsqueeze(-1))).squeeze(-1)
    if factor.shape[-2] > z.dim:
        factor = torch.linalg.qr(factor).R  # the same FᵀF in no more than D rows
    return LowRankGaussian(mean, 1 / own, factor).to(z.dtype)


def _gathered(rows: Tensor, owner: Tensor, count: int) -> Tensor:
    """The rows `(M, R, D)` of each owner, one beneath the other, `(G, n R, D)`."""
    most = int(owner.bincount(minlength=count).max()) if count else 0
    order = owner.argsort(stable=True)
    sorted_owner = owner[order]
    place = torch.arange(len(owner), device=owner.device) - torch.searchsorted(sorted_owner, sorted_owner)
    out = rows.new_zeros(count, most, *rows.shape[1:])
    out[sorted_owner, place] = rows[order]
    return out.flatten(1, 2)

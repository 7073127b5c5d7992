"""How `Evidence` is worked out for all pairs of two lists of Gaussians.

With a = 1 − σ² a dimension of the log Bayes factor is (μ₁μ₂ − ½ a₂μ₁² − ½ a₁μ₂²)/t − ½ log t, t = σ₁² + a₁σ₂². Where
neighbouring dimensions share a variance they share t, and the numerator summed over them is a matrix product of rows
(μ₁, −½‖μ₁‖², −½a₁) and (μ₂, a₂, ‖μ₂‖²): a product, a division and a logarithm for each group of dimensions. Variances
that all differ need a compiled loop over dimensions (`loops.py`).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from hedged._parallel import share
from hedged._tracing import is_exporting
from hedged.distributions import Gaussian

MOST_GROUPS = 16  # groups of dimensions up to which matrix products are quicker than a loop over dimensions
LEAST_IN_GROUP = 3  # dimensions a group needs to have, on average
TILE_ROWS, TILE_COLUMNS = 256, 2048  # pairs worked out at a time: their products stay in a core's cache
ROWS_EACH = 16  # rows that are worth a thread of their own
ROUNDING = 2e-4  # in log-odds, above which products are made in double precision
LEAST_PRODUCT = {torch.float32: 1e-36, torch.float64: 1e-290}  # of variances, before their logarithm is taken


def shared_groups(*variances: Tensor) -> list[slice]:
    """Neighbouring dimensions that share a variance in every row, as slices; variances `(N, D)` each.

    >>> v = torch.tensor([[0.1, 0.1, 0.3]])
    >>> shared_groups(v)
    [slice(0, 2, None), slice(2, 3, None)]
    """
    dim = variances[0].shape[-1]
    differs = torch.zeros(dim - 1, dtype=torch.bool)
    for v in variances:
        if differs.sum() < min(MOST_GROUPS, dim // LEAST_IN_GROUP):  # else it is settled: there are too many
            differs |= (v[:, 1:] != v[:, :-1]).any(0).cpu()
    edges = [0, *(differs.nonzero().flatten() + 1).tolist(), dim]
    return [slice(a, b) for a, b in pairwise(edges)]


def are_few(groups: list[slice]) -> bool:
    """Whether matrix products pay for so many groups of dimensions."""
    return len(groups) == 1 or len(groups) <= min(MOST_GROUPS, groups[-1].stop // LEAST_IN_GROUP)


def factored(z: Gaussian, groups: list[slice]) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """The rows of both sides of the products, one matrix for each group, and the variances of the groups `(K, N)`."""
    left, right, spreads = [], [], []
    for group in groups:
        mean, spread = z.mean[..., group], z.variance[..., group.start, None]
        square, rest = mean.square().sum(-1, keepdim=True), 1 - spread
        left.append(torch.cat([mean, -0.5 * square, -0.5 * rest], -1))
        right.append(torch.cat([mean, rest, square], -1))
        spreads.append(spread.squeeze(-1))
    return left, right, torch.stack(spreads)


def log_factors(z1: Gaussian, z2: Gaussian, groups: list[slice]) -> Tensor:
    """log BF of all pairs, `(N, M)`, by matrix products, with gradients; groups as `shared_groups` has them."""
    if len({group.stop - group.start for group in groups}) == 1:
        return _equal_groups(z1, z2, len(groups))
    if is_exporting():
        return _padded_groups(z1, z2, groups)
    left, _, spread1 = factored(z1, groups)
    _, right, spread2 = factored(z2, groups)
    total = z1.mean.new_zeros(())
    for k, group in enumerate(groups):
        s1, s2 = spread1[k, :, None], spread2[k, None, :]
        t = s1 + (1 - s1) * s2
        total = total + left[k] @ right[k].T / t - 0.5 * (group.stop - group.start) * t.log()
    return total


def _equal_groups(z1: Gaussian, z2: Gaussian, groups: int) -> Tensor:
    """The same for groups of one size, all at once: fewer and larger operations, for training."""
    (mean1, spread1), (mean2, spread2) = (
        (x.view(x.shape[0], groups, -1).movedim(1, 0) for x in z.tensors) for z in (z1, z2)
    )
    return _all_groups(mean1, spread1[..., :1], mean2, spread2[..., :1], mean1.shape[-1])


def _padded_groups(z1: Gaussian, z2: Gaussian, groups: list[slice]) -> Tensor:
    """The same for groups of any size, filled up with dimensions that say nothing: few operations to be exported."""
    widest = max(group.stop - group.start for group in groups)
    rows = [[*range(group.start, group.stop)] for group in groups]
    places = torch.tensor([row + [z1.dim] * (widest - len(row)) for row in rows])  # the last is a mean of zero
    means = (torch.nn.functional.pad(z.mean, (0, 1))[:, places].movedim(1, 0) for z in (z1, z2))
    starts = torch.tensor([group.start for group in groups])
    spreads = (z.variance[:, starts].T.unsqueeze(-1) for z in (z1, z2))
    sizes = z1.mean.new_tensor([group.stop - group.start for group in groups])
    (mean1, mean2), (spread1, spread2) = means, spreads
    return _all_groups(mean1, spread1, mean2, spread2, sizes[:, None, None])


def _all_groups(mean1: Tensor, s1: Tensor, mean2: Tensor, s2: Tensor, sizes: Tensor | int) -> Tensor:
    """log BF of all pairs, `(N, M)`, from means `(K, N, W)` and variances `(K, N, 1)` of K groups of such sizes."""
    squares1, squares2 = (m.square().sum(-1, keepdim=True) for m in (mean1, mean2))
    left = torch.cat([mean1, -0.5 * squares1, -0.5 * (1 - s1)], -1)
    right = torch.cat([mean2, 1 - s2, squares2], -1)
    t = torch.baddbmm(s1, 1 - s1, s2.mT)  # (K, N, M)
    return (left @ right.mT / t - 0.5 * sizes * t.log()).sum(0)


def rounding(z1: Gaussian, z2: Gaussian, groups: list[slice]) -> float:
    """About what single precision costs `log_factors`, in log-odds: products that cancel, divided by small t."""
    worst = 0.0
    for group in groups:
        square = max(float(z.mean[:, group].square().sum(-1).max()) for z in (z1, z2))
        least = sum(float(z.variance[:, group.start].min()) for z in (z1, z2))
        worst = max(worst, square / least)
    return worst * torch.finfo(torch.float32).eps


@torch.no_grad()
def logit_matrix(z1: Gaussian, z2: Gaussian, log_odds: float, temper: float) -> Tensor:
    """c + κ log BF of all pairs, `(N, M)`, on a CPU; its memory beside the result is bounded."""
    groups = shared_groups(z1.variance, z2.variance)
    dtype = z1.dtype
    # Memory of numpy's is in huge pages where the system has them, and ready five times sooner.
    out = torch.from_numpy(np.empty((len(z1), len(z2)), torch.empty(0, dtype=dtype).numpy().dtype))
    if not out.numel():
        return out
    if are_few(groups):
        _by_products(z1, z2, groups, log_odds, temper, out)
    else:
        _by_dimensions(z1, z2, log_odds, temper, out)
    return out


def _by_products(z1: Gaussian, z2: Gaussian, groups: list[slice], log_odds: float, temper: float, out: Tensor) -> None:
    from hedged.match._evidence.loops import add_up  # late: numba is slow to import

    wide = z1.dtype if rounding(z1, z2, groups) < ROUNDING else torch.float64
    left, _, spread1 = factored(z1.to(wide), groups)
    _, right, spread2 = factored(z2.to(wide), groups)
    sizes = torch.tensor([group.stop - group.start for group in groups], dtype=wide)
    told = torch.tensor([log_odds, temper], dtype=wide)
    products = torch.empty(len(groups), TILE_ROWS, TILE_COLUMNS, dtype=wide)
    for left_edge in range(0, len(z2), TILE_COLUMNS):
        across = slice(left_edge, min(left_edge + TILE_COLUMNS, len(z2)))
        columns = [r[across].T for r in right]
        others = spread2[:, across].contiguous()
        for top in range(0, len(z1), TILE_ROWS):
            down = slice(top, min(top + TILE_ROWS, len(z1)))
            height, width = down.stop - down.start, across.stop - across.start
            tile = products.flatten()[: len(groups) * height * width].view(len(groups), height, width)
            for k, column in enumerate(columns):
                torch.mm(left[k][down], column, out=tile[k])
            target = out[down, across] if wide == out.dtype else torch.empty(height, width, dtype=wide)
            share(add_up, height, ROWS_EACH, tile, spread1[:, down].contiguous(), others, sizes, told, target)
            if target.dtype != out.dtype:
                out[down, across] = target


def _by_dimensions(z1: Gaussian, z2: Gaussian, log_odds: float, temper: float, out: Tensor) -> None:
    from hedged.match._evidence.loops import sum_up  # late: numba is slow to import

    least = min(float(z.variance.min()) for z in (z1, z2))
    every = max(int(np.log(LEAST_PRODUCT[out.dtype]) / min(np.log(least), -1e-9)), 1) if least < 1 else z1.dim
    told = torch.tensor([log_odds, temper], dtype=out.dtype)
    rows = [x.contiguous() for x in z1.tensors]
    for left_edge in range(0, len(z2), TILE_COLUMNS):
        across = slice(left_edge, left_edge + TILE_COLUMNS)
        columns = [x[across].T.contiguous() for x in z2.tensors]
        share(sum_up, len(z1), ROWS_EACH, *rows, *columns, every, told, out[:, across])

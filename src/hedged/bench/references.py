"""The ways in which others compute the same, written plainly: what the ratios are taken against.

All sample K times from each embedding and average K² sigmoids a pair. They differ in the tensors they make of it.
`fastest` finds out which of them to compare with, and how large a tensor it should hold.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from hedged.bench.timing import seconds
from hedged.distributions import Distribution
from hedged.match import MatchCurve
from hedged.match._closed_form.expansion import expand

SAMPLES = 8  # K
CHUNK = 2**24  # numbers of the largest tensor that is held
CHUNKS = (2**18, 2**20, 2**22, 2**24)  # what `fastest` tries
FEW, MORE, TRIES = 2_000, 20_000, 3  # pairs on which it times all ways, and the promising ones; how often

Way = Callable[..., Tensor]


def cdist(
    z1: Distribution, z2: Distribution, curve: MatchCurve, samples: int = SAMPLES, chunk: int | None = None
) -> Tensor:
    """The paper's estimate, equation 5, `(N, M)`: `torch.cdist` of all samples, `(n·K, M·K)`, in chunks of rows.

    Args:
        z1: N embeddings.
        z2: M embeddings.
        curve: The match curve.
        samples: K, drawn from each embedding.
        chunk: Numbers of the largest tensor that is held; `CHUNK` if not given.
    """
    first, second = _samples(z1, samples), _samples(z2, samples)
    rows = []
    for some in first.split(_rows(second, samples, chunk)):  # type: ignore[no-untyped-call]
        p = curve(torch.cdist(some.flatten(0, 1), second.flatten(0, 1)))
        rows.append(p.view(len(some), samples, len(second), samples).mean((1, 3)))
    return torch.cat(rows)


def eager(
    z1: Distribution, z2: Distribution, curve: MatchCurve, samples: int = SAMPLES, chunk: int | None = None
) -> Tensor:
    """The same with all differences of samples, `(n, M, K, K, D)`.

    Args:
        z1: N embeddings.
        z2: M embeddings.
        curve: The match curve.
        samples: K, drawn from each embedding.
        chunk: Numbers of the largest tensor that is held; `CHUNK` if not given.
    """
    first, second = _samples(z1, samples), _samples(z2, samples)
    rows = []
    for some in first.split(_rows(second, samples * first.shape[-1], chunk)):  # type: ignore[no-untyped-call]
        differences = some[:, None, :, None] - second[None, :, None, :]
        rows.append(curve(differences.norm(dim=-1)).mean((-2, -1)))
    return torch.cat(rows)


def matmul(
    z1: Distribution, z2: Distribution, curve: MatchCurve, samples: int = SAMPLES, chunk: int | None = None
) -> Tensor:
    """The same with distances from one product of matrices, `(n·K, M·K)`, as ‖x‖² − 2xᵀy + ‖y‖².

    Args:
        z1: N embeddings.
        z2: M embeddings.
        curve: The match curve.
        samples: K, drawn from each embedding.
        chunk: Numbers of the largest tensor that is held; `CHUNK` if not given.
    """
    first, second = _samples(z1, samples), _samples(z2, samples)
    columns = second.flatten(0, 1)
    rows = []
    for some in first.split(_rows(second, samples, chunk)):  # type: ignore[no-untyped-call]
        x = some.flatten(0, 1)
        squares = x.square().sum(1, keepdim=True) - 2 * x @ columns.T + columns.square().sum(1)
        p = curve(squares.clamp(min=0).sqrt())
        rows.append(p.view(len(some), samples, len(second), samples).mean((1, 3)))
    return torch.cat(rows)


def gather(
    z1: Distribution, z2: Distribution, curve: MatchCurve, samples: int = SAMPLES, chunk: int | None = None
) -> Tensor:
    """The same with a list of all pairs: samples are gathered pair by pair, `(n·M, D)`, K² times over.

    Args:
        z1: N embeddings.
        z2: M embeddings.
        curve: The match curve.
        samples: K, drawn from each embedding.
        chunk: Numbers of the largest tensor that is held; `CHUNK` if not given.
    """
    first, second = _samples(z1, samples), _samples(z2, samples)
    columns = torch.arange(len(second))
    rows = []
    for some in first.split(_rows(second, first.shape[-1], chunk)):  # type: ignore[no-untyped-call]
        i, j = torch.arange(len(some)).repeat_interleave(len(columns)), columns.repeat(len(some))
        total = torch.zeros(len(i))
        for one in range(samples):
            for other in range(samples):
                total += curve((some[i, one] - second[j, other]).norm(dim=-1))
        rows.append((total / samples**2).view(len(some), -1))
    return torch.cat(rows)


PLAIN: dict[str, Way] = {
    "torch.cdist": cdist,
    "a matrix product": matmul,
    "all differences": eager,
    "gathering": gather,
}


def fastest(z: Distribution, curve: MatchCurve) -> tuple[str, Way]:
    """Whichever of `PLAIN`, and in chunks of whichever size, takes least time here: its name, and a call.

    All are timed in chunks of one size, and the better two in chunks of all.

    Args:
        z: N embeddings; some of them are matched with all of them.
        curve: The match curve.
    """

    def timed(name: str, chunk: int, pairs: int) -> tuple[float, str, int]:
        run = partial(PLAIN[name], z[: max(pairs // len(z), 1)], z, curve, chunk=chunk)
        return min(seconds(run) for _ in range(TRIES)), name, chunk

    first = sorted(timed(name, CHUNKS[1], FEW) for name in PLAIN)
    _, name, chunk = min(timed(name, chunk, MORE) for _, name, _ in first[:2] for chunk in CHUNKS)
    return name, partial(PLAIN[name], chunk=chunk)


def compiled_eager(rows: int, dim: int, samples: int = SAMPLES) -> Callable[..., Tensor]:
    """The paper's estimate under torch.compile, loops over dimensions and samples unrolled, `rows` at a time.

    It needs a C++ compiler, and a minute of it.

    Args:
        rows: Embeddings of the first list at a time.
        dim: Of the embeddings.
        samples: K, drawn from each embedding.
    """

    def block(first: Tensor, second: Tensor, scale: Tensor, bias: Tensor) -> Tensor:  # (K, D, n, 1), (K, D, 1, M)
        total = torch.zeros(())
        for one in range(samples):
            for other in range(samples):
                squares = torch.zeros(())
                for d in range(dim):
                    squares = squares + (first[one, d] - second[other, d]).square()
                total = total + torch.sigmoid(bias - scale * squares.sqrt())
        return total / samples**2

    quick = torch.compile(block, dynamic=False)

    def matrix(z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
        first, second = (_samples(z, samples).permute(1, 2, 0).contiguous() for z in (z1, z2))
        parts = first.unsqueeze(-1).split(rows, dim=2)  # type: ignore[no-untyped-call]
        return torch.cat([quick(part, second.unsqueeze(2), curve.scale, curve.bias) for part in parts])

    return matrix


def eager_costs(z: Distribution, labels: Tensor, curve: MatchCurve, positive_weight: float) -> Tensor:
    """The mean cost of all pairs of a batch in closed form, all terms of all pairs in one tensor, `(B, B, J)`.

    Args:
        z: Embeddings of a batch.
        labels: The class of each, `(B,)`.
        curve: The match curve.
        positive_weight: The share of matching pairs in the mean.
    """
    mean, variance = (part[:, 0] * unit for part, unit in zip(z.parts(), (curve.scale, curve.scale**2), strict=True))
    widths, weights = (x.to(mean.dtype) for x in expand(curve.bias))
    squares = (mean[:, None] - mean).square().unsqueeze(-1)  # (B, B, D, 1)
    stretch = 1 + 2 * widths * (variance[:, None] + variance).unsqueeze(-1)  # (B, B, D, J)
    terms = (-(widths * squares / stretch).sum(2)).exp() / stretch.prod(2).sqrt()
    p = (terms @ weights).clamp(1e-6, 1 - 1e-6)
    pairs = torch.triu(torch.ones_like(p, dtype=torch.bool), diagonal=1)
    same = (labels[:, None] == labels)[pairs]
    costs = -torch.where(same, p[pairs].log(), (1 - p[pairs]).log())
    return positive_weight * costs[same].mean() + (1 - positive_weight) * costs[~same].mean()


def _samples(z: Distribution, samples: int) -> Tensor:
    """`(N, K, D)`."""
    return z.sample(samples, torch.Generator().manual_seed(0)).movedim(0, 1).contiguous()


def _rows(second: Tensor, numbers: int, chunk: int | None) -> int:
    return max((chunk or CHUNK) // (len(second) * second.shape[1] * numbers), 1)

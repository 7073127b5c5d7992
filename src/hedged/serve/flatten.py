"""Embeddings in the plane that shows most of how they differ, each with the ellipse of its uncertainty."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.distributions import Distribution

MOST_FITTED = 20_000  # embeddings that choose the plane


def centres(z: Distribution) -> torch.Tensor:
    """The mean of each embedding over its components, `(N, D)`.

    Args:
        z: N embeddings.
    """
    return z.parts()[0].mean(dim=-2)


def spreads(z: Distribution) -> torch.Tensor:
    """The variance of each embedding in each dimension, `(N, D)`; that of a mixture is about its own mean.

    Args:
        z: N embeddings.
    """
    means, variances = z.parts()
    return (variances + (means - means.mean(dim=-2, keepdim=True)).square()).mean(dim=-2).expand(len(z), z.dim)


def flattened(z: Distribution, chosen: NDArray[np.int64]) -> dict[str, Any]:
    """Places and ellipses of some embeddings in the plane of the two main components of all.

    Args:
        z: All embeddings.
        chosen: Which are shown.

    >>> from hedged import Gaussian
    >>> means = torch.tensor([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 2.0, 0.0], [4.0, 2.0, 0.0]])
    >>> found = flattened(Gaussian(means, torch.full((4, 3), 0.25)), np.arange(4))
    >>> found["explained"], found["major"][0], sorted(found["x"])
    (1.0, 0.5, [-2.0, -2.0, 2.0, 2.0])
    """
    means, variances = centres(z).double().numpy(), spreads(z).double().numpy()
    if not len(means):
        return {"explained": 1.0, **{name: [] for name in ("x", "y", "major", "minor", "angle")}}
    step = max(1, len(means) // MOST_FITTED)
    middle = means.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov((means - middle)[::step].T, bias=True).reshape(z.dim, z.dim))
    plane = np.zeros((z.dim, 2))
    plane[:, : min(2, z.dim)] = vectors[:, ::-1][:, :2]
    total = float(values.sum())
    places = (means[chosen] - middle) @ plane
    (xx, xy), (_, yy) = np.einsum("nd,di,dj->ijn", variances[chosen], plane, plane)
    middle_axis, apart = (xx + yy) / 2, np.hypot((xx - yy) / 2, xy)
    return {
        "explained": float(values[::-1][:2].sum() / total) if total > 0 else 1.0,
        "x": _short(places[:, 0]),
        "y": _short(places[:, 1]),
        "major": _short(np.sqrt(np.maximum(middle_axis + apart, 0))),
        "minor": _short(np.sqrt(np.maximum(middle_axis - apart, 0))),
        "angle": _short(np.arctan2(2 * xy, xx - yy) / 2),
    }


def _short(values: NDArray[np.float64]) -> list[float]:
    """Numbers with the digits that a picture needs."""
    return [float(f"{value:.5g}") for value in values]

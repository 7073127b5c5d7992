"""Vectors made alike before anything is learnt: standardised, of one length if told, on their principal axes.

Beside them, three signs of quality: the length that a vector had, how much it looks like a poorer view, and how near it
is to others.
"""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hedged._tracing import is_exporting

Floats = NDArray[np.floating[Any]]
SIGNS = 3  # of quality
NEIGHBOURS = 5  # that say how near a vector is to others
AT_ONCE = 4096  # vectors compared with those known at a time
NEVER_NEAR = -2.0  # nearer than this, beside the usual, is every vector
LEAST_SCALE = 1e-6  # of a feature, relative to the largest: one that hardly varies is left as it is
LEAST_VARIANCE = 1e-10  # along an axis, relative to the first: on one with less, new vectors lie beyond all bounds


@final
class Front(nn.Module):
    """u = Uᵀ(n(x) − c), n(x) = √F · s/‖s‖ with s = (x − m)/d: `(n, F)` to `(n, P)`; and signs of quality, `(n, 3)`.

    The length of a vector, log ‖s‖/√F, tells of its quality more than of whom it shows, so it is set apart. So does
    eᵀu, by the direction e in which vectors move when inputs get worse (`hedged.retrofit.decline`; 0 where nothing is
    known of it), and so does the mean cosine of u with the five nearest of some known vectors: an input like no other
    is seldom understood. One that is farther from all of them than those that taught is strange.

    Args:
        features: F, the width of the vectors.
        axes: P, the principal axes that are kept.
        unit: whether vectors are brought to one length; if not, n(x) = s.
        known: how many known vectors say how near an input is to others; 0: none, and this sign is 0.
    """

    mean: Tensor
    scale: Tensor
    centre: Tensor
    basis: Tensor
    decline: Tensor
    known: Tensor
    usual: Tensor
    least: Tensor
    spread: Tensor

    def __init__(self, features: int, axes: int, unit: bool, known: int = 0) -> None:
        super().__init__()
        self.unit = unit
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))
        self.register_buffer("centre", torch.zeros(features))
        self.register_buffer("basis", torch.zeros(features, axes))
        self.register_buffer("decline", torch.zeros(axes))
        self.register_buffer("known", torch.zeros(known, axes))
        self.register_buffer("usual", torch.zeros(()))
        self.register_buffer("least", torch.tensor(NEVER_NEAR))
        self.register_buffer("spread", torch.ones(()))

    @classmethod
    def fitted(cls, x: Floats, axes: int, unit: bool) -> Self:
        """The front of vectors.

        Args:
            x: (n, F) vectors.
            axes: the principal axes to keep, at most as many as these vectors vary along.
            unit: whether vectors are brought to one length.
        """
        x = np.asarray(x, np.float64)
        mean, scale = x.mean(0), x.std(0)
        scale = np.where(scale > LEAST_SCALE * max(scale.max(), 1e-300), scale, 1.0)
        alike = _alike((x - mean) / scale, unit)[0]
        centre = alike.mean(0)
        variances, basis = np.linalg.eigh(np.cov(alike, rowvar=False, bias=True).reshape(x.shape[1], x.shape[1]))
        axes = min(axes, max(int((variances > LEAST_VARIANCE * variances[-1]).sum()), 1))
        front = cls(x.shape[1], axes, unit)
        front.mean, front.scale = torch.tensor(mean).float(), torch.tensor(scale).float()
        front.centre, front.basis = torch.tensor(centre).float(), torch.tensor(basis[:, ::-1][:, :axes].copy()).float()
        return front

    @property
    def axes(self) -> int:
        """P, the number of principal axes."""
        return int(self.basis.shape[1])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        alike, length = _alike((x - self.mean) / self.scale, self.unit)
        u = (alike - self.centre) @ self.basis
        near = nearness(u, self.known) - self.usual if len(self.known) else torch.zeros_like(length[:, 0])
        return u, torch.cat([length, (u @ self.decline)[:, None], near[:, None]], dim=1)

    def strangeness(self, signs: Tensor) -> Tensor:
        """How many deviations a vector is farther from all that is known than vectors were that taught, `(n,)`.

        Args:
            signs: of quality, (n, 3).
        """
        return ((self.least - signs[:, 2]) / self.spread).relu()


def nearness(u: Tensor, known: Tensor) -> Tensor:
    """The mean cosine with the five nearest of known vectors, `(n,)`.

    Args:
        u: vectors on their principal axes, (n, P).
        known: the same of others, (m, P).

    >>> nearness(torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor([0.5000])
    """
    there = torch.nn.functional.normalize(known, dim=1).T
    near = [
        (torch.nn.functional.normalize(some, dim=1) @ there).topk(min(NEIGHBOURS, len(known)), dim=1).values.mean(1)
        for some in ([u] if is_exporting() else torch.split(u, AT_ONCE))
    ]
    return torch.cat(near)


def _alike(s: Any, unit: bool) -> tuple[Any, Any]:
    """Standardised vectors, of one length if told, and the logarithm of their length; arrays or tensors."""
    square = (s * s).mean(1)[:, None]
    length = (square + 1e-12) ** 0.5
    log = length.log() if isinstance(length, Tensor) else np.log(length)
    return (s / length if unit else s), log

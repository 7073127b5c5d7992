"""`Embeddings`: what an exported model makes of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Parts(NamedTuple):
    """Means and variances of the components of embeddings, `(n, C, D)` each, in double precision."""

    mean: Floats
    variance: Floats


@final
@dataclass(frozen=True, eq=False)
class Embeddings:
    """Distributions of n inputs, with what is known of each.

    Args:
        mean: `(n, D)`; of mixtures, `(n, C, D)`.
        variance: of the same shape; 0 of points.
        uncertainty: η, `(n,)`.
        novelty: how unlike the training inputs each is, `(n,)`; None: it is not known.
    """

    mean: NDArray[np.float32]
    variance: NDArray[np.float32]
    uncertainty: NDArray[np.float32]
    novelty: Floats | None

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> Self:
        """Some of them, still a batch.

        Args:
            index: a slice, places or flags.
        """
        novelty = None if self.novelty is None else self.novelty[index]
        return type(self)(self.mean[index], self.variance[index], self.uncertainty[index], novelty)

    def parts(self) -> Parts:
        """Means and variances of the components, `(n, C, D)` each; C = 1 unless they are mixtures."""
        shape = (len(self), -1, self.mean.shape[-1]) if len(self) else (0, 1, self.mean.shape[-1])
        return Parts(*(x.reshape(shape).astype(np.float64) for x in (self.mean, self.variance)))


def joined(parts: Sequence[Embeddings]) -> Embeddings:
    """Several batches as one.

    Args:
        parts: at least one.
    """
    novelty = [part.novelty for part in parts if part.novelty is not None]
    return Embeddings(
        np.concatenate([part.mean for part in parts]),
        np.concatenate([part.variance for part in parts]),
        np.concatenate([part.uncertainty for part in parts]),
        np.concatenate(novelty) if novelty else None,
    )

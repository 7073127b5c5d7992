"""`Novelty`: features to a percentile of novelty, fitted in one pass and saved beside the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor

from hedged._tensors import load_tensors, save_tensors
from hedged.errors import DataError, RunError, ShapeError
from hedged.novelty.gaussians import Floats, IdentityGaussians, Ints, Moments, kept_identities
from hedged.novelty.percentile import Percentile

FILE = "novelty.safetensors"
FORMAT = "2"
LEAST_IDENTITIES = 20  # to say what a new one looks like; with fewer, inputs are held out, not identities
MOST_INPUTS = 20_000  # that a fit looks at
LENGTH_SHARE = 0.25  # of the interquartile range of scores by directions: what a deviation of the length squared counts
PARTS = ("centre", "axes", "whiten", "means", "spread", "outside", "length")


@final
@dataclass(frozen=True, eq=False)
class Novelty:
    """u(s(x)): the share of held-out training inputs that are less novel than x, by the features of a backbone.

    An input of a new identity is no novelty: each held-out input is compared with the means of all identities but its
    own, where there are enough of them. High is what is unlike all of training: another domain, another sensor, noise.

    Args:
        gaussians: the score s.
        percentile: the score as a share u.
        held_out: what was held out, "identities" or "inputs".

    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(40), 25)
    >>> f = rng.normal(size=(40, 16))[y] + 0.3 * rng.normal(size=(1000, 16))
    >>> novelty = Novelty.fitted(f, y)
    >>> bool(novelty(torch.tensor(f)).mean() < 0.6), novelty.held_out
    (True, 'identities')
    """

    gaussians: IdentityGaussians
    percentile: Percentile
    held_out: str

    @classmethod
    def fitted(cls, features: NDArray[Any] | Tensor, labels: NDArray[Any] | Tensor, seed: int = 0) -> Self:
        """Fit Gaussians to features, and percentiles to the same as if the identity of each were a new one.

        The same held-out scores say what the length counts: a quarter of the interquartile range that they have by
        directions alone, so that neither of the two drowns the other.

        Args:
            features: of training inputs, (n, F).
            labels: the identity each shows, (n,).
            seed: which inputs are looked at, if there are more than enough, and which are held out together.
        """
        x, y = _checked(features, labels)
        rng = np.random.default_rng(seed)
        if len(x) > MOST_INPUTS:
            kept = np.sort(rng.permutation(len(x))[:MOST_INPUTS])
            x, y = x[kept], np.unique(y[kept], return_inverse=True)[1].reshape(-1)
        identities = int(y.max()) + 1
        everything = Moments.of(x, y, identities)
        gaussians = IdentityGaussians.fitted(everything)
        held_out, parts = "inputs", list[tuple[IdentityGaussians, Tensor, Tensor | None]]()
        if identities >= LEAST_IDENTITIES:
            places = np.full(identities, -1)
            places[kept_identities(identities)] = np.arange(len(gaussians.means))
            held_out, parts = "identities", [(gaussians, torch.from_numpy(x), torch.from_numpy(places[y]))]
        else:
            half = rng.permutation(len(x)) % 2 == 0
            first = Moments.of(x[half], y[half], identities)
            fits = (IdentityGaussians.fitted(moments) for moments in (first, everything.without(first)))
            parts = [(fit, torch.from_numpy(x[rows]), None) for fit, rows in zip(fits, (~half, half), strict=True)]
        upper, lower = np.quantile(_held_out_scores(parts, 0.0), (0.75, 0.25))
        weight = LENGTH_SHARE * float(upper - lower)
        percentile = Percentile.fitted(_held_out_scores(parts, weight))
        return cls(gaussians.weighing_length(weight), percentile, held_out)

    def __call__(self, features: Tensor) -> Tensor:
        """Percentiles of novelty, `(n,)` in (0, 1), in double precision.

        Args:
            features: `(n, F)`.
        """
        if features.ndim != 2 or features.shape[1] != self.gaussians.width:
            raise ShapeError(
                f"novelty was fitted to features of shape (n, {self.gaussians.width}), got {tuple(features.shape)}"
            )
        return self.percentile.of(self.gaussians.score(features))

    def save(self, folder: Path, model: str) -> None:
        """Write it beside a model, whole or not at all.

        Args:
            folder: of the model.
            model: its fingerprint.
        """
        tensors = {name: getattr(self.gaussians, name) for name in PARTS}
        tensors |= {"scores": self.percentile.scores, "shares": self.percentile.shares}
        save_tensors(folder / FILE, tensors, {"format": FORMAT, "model": model, "held_out": self.held_out})

    @classmethod
    def load(cls, folder: Path, model: str) -> Self | None:
        """What `save` wrote beside a model; None if there is none, or if it is that of another model.

        Args:
            folder: of the model.
            model: its fingerprint.
        """
        path = folder / FILE
        try:
            tensors, words = load_tensors(path)
            if words.get("format") != FORMAT:
                raise RunError(
                    f"{path} is of format {words.get('format')!r}, this version of hedged reads format {FORMAT}: "
                    f"remove it, and fit novelty again with `hedged novelty {folder}`"
                )
            if words["model"] != model:
                return None
            gaussians = IdentityGaussians(*(tensors[name].float() for name in PARTS))
            _check_shapes(gaussians)
            percentile = Percentile(tensors["scores"].double(), tensors["shares"].double())
            if not len(percentile.scores) or percentile.scores.shape != percentile.shares.shape:
                raise ValueError(f"it has {len(percentile.scores)} quantiles and {len(percentile.shares)} shares")
            return cls(gaussians, percentile, words["held_out"])
        except FileNotFoundError:
            return None
        except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
            if isinstance(error, RunError):
                raise
            raise RunError(
                f"{path} is damaged or truncated ({error}): remove it, and fit novelty again with "
                f"`hedged novelty {folder}`"
            ) from error


def _held_out_scores(parts: Sequence[tuple[IdentityGaussians, Tensor, Tensor | None]], weight: float) -> Floats:
    """The scores of inputs as if they were new.

    Args:
        parts: Gaussians, the features that they score, and the means that these are not compared with, if any.
        weight: of the length.
    """
    scores = [gaussians.weighing_length(weight).score(features, own) for gaussians, features, own in parts]
    return torch.cat(scores).numpy()


def _check_shapes(found: IdentityGaussians) -> None:
    """A ValueError if the parts do not belong together."""
    width, axes = len(found.centre), len(found.spread)
    expected = {
        "centre": (width,),
        "axes": (width, axes),
        "whiten": (axes, axes),
        "spread": (axes,),
        "outside": (2,),
        "length": (2,),
    }
    for name, shape in {**expected, "means": (len(found.means), axes + 1)}.items():
        if tuple(getattr(found, name).shape) != shape or not torch.isfinite(getattr(found, name)).all():
            raise ValueError(f"its {name} are not finite numbers of shape {shape}")


def _checked(features: NDArray[Any] | Tensor, labels: NDArray[Any] | Tensor) -> tuple[NDArray[np.float32], Ints]:
    """Features in single precision, and identities numbered from 0 without gaps."""
    x = np.asarray(features.detach().cpu().float() if isinstance(features, Tensor) else features, np.float32)
    given = np.asarray(labels.cpu() if isinstance(labels, Tensor) else labels)
    if x.ndim != 2 or given.shape != (len(x),):
        raise ShapeError(f"novelty is fitted to features (n, F) with labels (n,), got {x.shape} and {given.shape}")
    if not np.isfinite(x).all():
        raise DataError("novelty cannot be fitted to features that are NaN or infinite: leave those inputs out")
    _, y, counts = np.unique(given, return_inverse=True, return_counts=True)
    if len(counts) < 2 or counts.max() < 2:
        raise DataError(
            f"novelty is fitted to two identities or more, some with two inputs or more, got {len(counts)} identities "
            f"with at most {counts.max(initial=0)} each"
        )
    return x, y.reshape(-1)

"""What Retrofit refuses, in words: what was given, what was expected, what to do."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedged.errors import DataError, ShapeError

Floats = NDArray[np.float32]


def vectors(name: str, x: ArrayLike, features: int | None = None) -> Floats:
    """Vectors (n, F) as float32, or an error that names what is wrong with them.

    Args:
        name: of the argument, for the message.
        x: array, tensor or list of rows.
        features: F, if the width is known already.
    """
    try:
        given = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
        if given.dtype.kind == "c":
            raise TypeError("its numbers are complex")
        array = given.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} cannot be read as an array of numbers ({error}); expected shape (n, F)") from error
    if array.ndim != 2 or 0 in array.shape:
        raise ShapeError(
            f"{name} has shape {array.shape}; expected (n, F), a row for each vector"
            + (f": {name}.reshape(1, -1) for one" if array.ndim == 1 else "")
        )
    if features is not None and array.shape[1] != features:
        raise ShapeError(
            f"{name} has vectors of {array.shape[1]} numbers; it was fitted to vectors of {features}: "
            "embed with the network that made the training vectors"
        )
    if not np.isfinite(array).all():
        rows = np.flatnonzero(~np.isfinite(array).all(1))
        raise DataError(
            f"{len(rows)} of {len(array)} rows of {name} hold NaN, infinite or too large numbers (row {rows[0]} is the "
            "first): drop them, as X[np.isfinite(X).all(1)]"
        )
    return array


def labelled(x: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[Any]]:
    """Vectors and their identities, checked for what a head can be fitted to.

    Args:
        x: vectors (n, F).
        y: identities (n,), numbers or words.
    """
    array = vectors("X", x)
    if isinstance(y, str | bytes):
        raise ShapeError(f"y is one word, {reprlib.repr(y)}, for {len(array)} vectors; expected a label for each")
    try:
        labels = np.asarray(y.detach().cpu() if hasattr(y, "detach") else y)
    except (TypeError, ValueError) as error:
        raise ShapeError(
            f"y cannot be read as a list of labels ({error}); expected ({len(array)},), a number or a word each"
        ) from error
    if labels.ndim != 1 or len(labels) != len(array):
        raise ShapeError(
            f"y has shape {labels.shape} for {len(array)} vectors; expected ({len(array)},), one label each"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise DataError("y holds NaN: every vector needs the identity it shows; leave out those without")
    if labels.dtype.kind == "O" and any(label is None for label in labels):
        raise DataError("y holds None: every vector needs the identity it shows; leave out those without")
    _, counts = np.unique(labels.astype(str) if labels.dtype.kind == "O" else labels, return_counts=True)
    if len(counts) < 2:
        raise DataError(
            f"y has {len(counts)} identity; expected two or more: what tells identities apart needs several of them"
        )
    if counts.max() < 2:
        raise DataError(
            f"each of the {len(counts)} identities has one vector; expected two or more of some: a match needs a pair"
        )
    if not (array.std(0) > 0).any():
        raise DataError("all vectors of X are equal: nothing tells them apart. Check how they were made")
    return array, labels


def poorer(poor: ArrayLike | None, x: Floats) -> Floats | None:
    """Poorer vectors, row for row those of X.

    Args:
        poor: (n, F), or None.
        x: the vectors they are poorer views of.
    """
    if poor is None:
        return None
    array = vectors("poor", poor, x.shape[1])
    if len(array) != len(x):
        raise ShapeError(
            f"poor has {len(array)} rows and X has {len(x)}; expected the same inputs, row by row, seen worse: embed a "
            "degraded copy of each"
        )
    return array

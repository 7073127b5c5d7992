"""What every metric asks of the arrays it is given, and the words it uses when they are something else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedged.errors import DataError, ShapeError, ValueRangeError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


def vector(name: str, values: ArrayLike) -> NDArray[Any]:
    """`values` as a 1-D array of any dtype, such as class labels."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ShapeError(f"{name} has shape {array.shape}; expected one value an item, shape (n,)")
    if array.size == 0:
        raise DataError(f"{name} is empty; expected at least one value")
    return array


def numbers(name: str, values: ArrayLike) -> FloatArray:
    """`values` as a 1-D float array without NaN; infinities are ordered, so they may stay."""
    array = vector(name, values).astype(np.float64, copy=False)
    if np.isnan(array).any():
        raise ValueRangeError(f"{name} holds {np.isnan(array).sum()} NaN of {array.size}: it cannot be ranked")
    return array


def flags(name: str, values: ArrayLike) -> BoolArray:
    """`values` as a 1-D array of booleans; 0 and 1 are taken for False and True."""
    array = vector(name, values)
    if array.dtype != np.bool_ and not np.isin(array, (0, 1)).all():
        raise ValueRangeError(f"{name} must be True or False for each item, not {array.dtype} values")
    return array.astype(np.bool_, copy=False)


def integers(name: str, values: ArrayLike) -> IntArray:
    """`values` as a 1-D array of whole numbers, such as class numbers."""
    array = vector(name, values)
    if not np.issubdtype(array.dtype, np.integer):
        raise DataError(f"{name} has dtype {array.dtype}; expected whole numbers")
    return array.astype(np.intp, copy=False)


def check_same_length(**arrays: NDArray[Any]) -> None:
    """Refuse arrays that do not speak of the same items."""
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{name} {len(array)}" for name, array in arrays.items())
        raise ShapeError(f"lengths differ: {lengths}; expected one entry an item in each")


def check_at_least(name: str, value: int, minimum: int) -> None:
    """Refuse a count or size that leaves nothing to do."""
    if value < minimum:
        raise ValueRangeError(f"{name} is {value}; expected at least {minimum}")

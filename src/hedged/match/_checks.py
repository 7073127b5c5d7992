"""What the functions on any match model are given, checked: the message names the function that was called."""

from __future__ import annotations

import numpy as np

from hedged.distributions import Distribution
from hedged.errors import ShapeError


def require_embedding(caller: str, z: Distribution) -> None:
    """Refuse what is no distribution, such as a tensor.

    Args:
        caller: The function that was called.
        z: What it was given.
    """
    if not isinstance(z, Distribution):
        raise ShapeError(f"{caller} takes embeddings, got a {type(z).__name__}: wrap it, as Point(z) for instance")


def require_broadcast(caller: str, z1: Distribution, z2: Distribution) -> None:
    """Refuse two batches that cannot be compared one by one.

    Args:
        caller: The function that was called.
        z1: The first embeddings.
        z2: The second embeddings.
    """
    _require_same_space(caller, z1, z2)
    try:
        np.broadcast_shapes(z1.batch_shape, z2.batch_shape)  # torch's own imports sympy
    except ValueError as error:
        raise ShapeError(
            f"batches of shapes {tuple(z1.batch_shape)} and {tuple(z2.batch_shape)} do not broadcast: "
            "compare equal batches, or all pairs with match_matrix(z1, z2, model)"
        ) from error


def require_lists(caller: str, z1: Distribution, z2: Distribution) -> None:
    """Refuse two batches that are not lists of one space.

    Args:
        caller: The function that was called.
        z1: The first embeddings.
        z2: The second embeddings.
    """
    _require_same_space(caller, z1, z2)
    for name, z in (("first", z1), ("second", z2)):
        if len(z.batch_shape) != 1:
            raise ShapeError(f"{caller} takes two lists of embeddings, the {name} is {z!r}")


def _require_same_space(caller: str, z1: Distribution, z2: Distribution) -> None:
    for z in (z1, z2):
        require_embedding(caller, z)
    if z1.dim != z2.dim:
        raise ShapeError(f"{caller} takes embeddings of the same dimension, got {z1.dim} and {z2.dim}")

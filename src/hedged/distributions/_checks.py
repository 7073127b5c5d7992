"""What distributions are made of, checked: shapes, dtypes and ranges, in words."""

from __future__ import annotations

import torch
from torch import Tensor

from hedged._tracing import is_exporting
from hedged.errors import ShapeError, ValueRangeError


def require_floats(kind: str, **tensors: Tensor) -> None:
    """Refuse what is no tensor of finite floating-point numbers.

    Args:
        kind: The distribution that is made of them.
        tensors: By the names of its parameters.
    """
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            given = type(tensor).__name__
            raise ShapeError(f"{kind} takes tensors, got a {given} as {name}: wrap it in torch.as_tensor(...)")
        if not tensor.is_floating_point() or tensor.ndim == 0 or tensor.shape[-1] == 0:
            raise ShapeError(
                f"{kind} takes a floating-point {name} of shape (..., D) with D ≥ 1, "
                f"got {tensor.dtype} of shape {tuple(tensor.shape)}"
            )
        if not is_exporting() and not torch.isfinite(tensor).all():
            bad = int((~torch.isfinite(tensor)).sum())
            raise ValueRangeError(
                f"the {name} of this {kind} has {bad} of {tensor.numel()} values that are NaN or infinite"
            )


def require_variance(kind: str, mean: Tensor, variance: Tensor) -> None:
    """Refuse variances that are not positive, or not of the shape of the means.

    Args:
        kind: The distribution that is made of them.
        mean: Its means.
        variance: Its variances.
    """
    if mean.shape != variance.shape or mean.dtype != variance.dtype:
        raise ShapeError(
            f"{kind} takes a mean and a variance of one shape and dtype, got {tuple(mean.shape)} {mean.dtype} "
            f"and {tuple(variance.shape)} {variance.dtype}: use variance.expand_as(mean) or .to(mean.dtype)"
        )
    if not is_exporting() and not (variance > 0).all():
        raise ValueRangeError(
            f"the variance of a {kind} is positive, got a smallest value of {variance.min().item():g}: "
            "use Point(mean) for certainty, or pass exp(log_variance)"
        )


def require_count(count: int, components: int) -> None:
    """Refuse numbers of samples that components cannot share equally.

    Args:
        count: How many samples.
        components: How many components.
    """
    if count < 1 or count % components:
        raise ValueRangeError(
            f"{count} samples cannot be shared equally by {components} component(s): "
            f"ask for a positive multiple of {components}"
        )


def require_width(kind: str, packed: Tensor, dim: int, multiple: int, exact: bool) -> None:
    """Refuse packed rows of another length than the distribution has.

    Args:
        kind: The distribution that is made of them.
        packed: The rows.
        dim: D.
        multiple: How many numbers a dimension takes.
        exact: Whether there are just so many, or any multiple of them.
    """
    if not isinstance(packed, Tensor):
        raise ShapeError(f"{kind}.unpack takes a tensor, got a {type(packed).__name__}")
    width = packed.shape[-1] if packed.ndim else 0
    if dim < 1 or width == 0 or width % (multiple * dim) or (exact and width != multiple * dim):
        wanted = f"{multiple * dim}" if exact else f"a multiple of {multiple * dim}"
        raise ShapeError(f"a packed {kind} of dimension {dim} has rows of {wanted} numbers, got {width}")

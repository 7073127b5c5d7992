"""What stays in single precision: of a model made smaller, the numbers that probabilities are computed with; and what
is made while torch has another default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

Change = Callable[[Tensor], Tensor]  # what `nn.Module._apply` does to each tensor
LOW = (torch.float16, torch.bfloat16)
SINGLE = 32  # bits of a number in single precision


@contextmanager
def single_by_default() -> Iterator[None]:
    """Make new tensors in single precision, whatever `torch.set_default_dtype` says outside; also a decorator."""
    before = torch.get_default_dtype()
    if before == torch.float32:
        yield
        return
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def at_least_single(change: Change) -> Change:
    """The same change of device and dtype, but that floats keep single precision: variances need its range.

    Args:
        change: What `.half()`, `.to(...)` and their like do to a tensor.
    """

    def changed(tensor: Tensor) -> Tensor:
        new = change(tensor)
        return tensor.to(new.device) if new.dtype in LOW and tensor.dtype not in LOW else new

    return changed


def rounds(change: Change, tensors: Iterable[Tensor]) -> bool:
    """Whether a change of device and dtype takes digits from any of these tensors.

    Args:
        change: What `.half()`, `.to(...)` and their like do to a tensor.
        tensors: Those that it is going to change.
    """
    kinds = {tensor.dtype for tensor in tensors if tensor.is_floating_point() and not tensor.is_meta}
    changes = ((kind, change(torch.zeros(0, dtype=kind)).dtype) for kind in kinds)
    return any(new != kind and new.is_floating_point and torch.finfo(new).bits < SINGLE for kind, new in changes)

"""What stays in single precision when a model is made smaller: the few numbers that probabilities are computed with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Change = Callable[[Tensor], Tensor]  # what `nn.Module._apply` does to each tensor
LOW = (torch.float16, torch.bfloat16)


def at_least_single(change: Change) -> Change:
    """The same change of device and dtype, but that floats keep single precision: variances need its range.

    Args:
        change: What `.half()`, `.to(...)` and their like do to a tensor.
    """

    def changed(tensor: Tensor) -> Tensor:
        new = change(tensor)
        return tensor.to(new.device) if new.dtype in LOW and tensor.dtype not in LOW else new

    return changed

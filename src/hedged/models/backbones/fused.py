"""Convolution, pooling and ReLU as one differentiable step on a CPU: the function of torch's layers, faster.

A training step of the demo takes 1.7 times as long with torch's layers instead: the 10th percentile of 300 steps, in
three runs of each in turns, ratios 1.72 to 1.79. That was on two cores with other work on them (load 5.6 to 6.4), which
the low percentile is to leave out; an idle machine has not been measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from hedged._parallel import share

GROUP = 32  # images that are worked on together: what they need stays in a core's cache


def is_fused(images: Tensor, layers: Sequence[nn.Conv2d]) -> bool:
    """Whether there is a compiled loop for these images and layers, and nobody looks at what the layers do.

    Args:
        images: `(B, C, H, W)`.
        layers: the convolutions, in order.
    """
    tensors = [images, *(parameter for layer in layers for parameter in layer.parameters())]
    plain = all(x.dtype == torch.float32 and x.device.type == "cpu" for x in tensors) and len(images) > 0
    watched = any(layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks for layer in layers)
    followed = torch.jit._trace.is_tracing() or torch.compiler.is_compiling()  # type: ignore[no-untyped-call]
    return plain and not watched and not followed


def convolve(images: Tensor, layers: Sequence[nn.Conv2d]) -> Tensor:
    """Each 5×5 convolution followed by 2×2 max pooling and ReLU; `(B, C, H, W)` to `(B, features)`.

    Args:
        images: `(B, C, H, W)`, float32.
        layers: the convolutions, in order.
    """
    x = _grouped(images)
    for layer in layers:
        x = _ConvolvePoolRelu.apply(x, layer.weight, layer.bias)  # type: ignore[no-untyped-call]
    by_image = x.view(*x.shape[:3], -1, GROUP).permute(0, 4, 1, 2, 3)
    return by_image.flatten(2).flatten(0, 1)[: len(images)]


def _grouped(images: Tensor) -> Tensor:
    """`(G, C, H, W·32)` with the images of a group side by side; the last group is filled up with blanks."""
    missing = -len(images) % GROUP
    full = pad(images, (0, 0, 0, 0, 0, 0, 0, missing)) if missing else images
    return full.reshape(-1, GROUP, *full.shape[1:]).permute(0, 2, 3, 4, 1).contiguous().flatten(3)


class _ConvolvePoolRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        from hedged.models.backbones._convolution import EDGE, forward  # late: numba is slow to import

        groups, _, height, width = x.shape
        weight = weight.contiguous()
        shape = (groups, len(weight), (height - EDGE) // 2, (width // GROUP - EDGE) // 2 * GROUP)
        out, place = torch.empty(shape), torch.empty(shape, dtype=torch.uint8)
        share(forward, groups, 1, x, weight, bias, out, place, GROUP)
        ctx.save_for_backward(x, weight, place)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        from hedged.models.backbones._convolution import backward

        x, weight, place = ctx.saved_tensors
        by_group, bias = torch.empty(len(x), *weight.shape), torch.empty(len(x), len(weight))
        to_x = torch.empty_like(x) if ctx.needs_input_grad[0] else x[:0]
        turned = weight.flip(2, 3).transpose(0, 1).contiguous()
        share(backward, len(x), 1, x, grads[0].contiguous(), place, turned, by_group, bias, to_x, GROUP)
        return to_x if ctx.needs_input_grad[0] else None, by_group.sum(0), bias.sum(0)

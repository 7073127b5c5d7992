"""Adam with weight decay apart (Loshchilov & Hutter, 2019), number for number what `torch.optim.AdamW` does.

To make an optimiser of torch imports its compiler, which takes seconds; a fit of some thousand small steps has none to
spare.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

FIRST, SECOND, EPSILON = 0.9, 0.999, 1e-8


@final
class Adam:
    """w ← (1 − rate·decay)·w − rate·m̂/(√v̂ + ε), m̂ and v̂ the running means of the gradient and of its square.

    Args:
        weights: what is learnt, in place.
        decay: of the weights.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> adam = Adam([w], decay=0.0)
    >>> (3 * w).sum().backward()
    >>> adam.step(rate=0.1)
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    def __init__(self, weights: Sequence[Tensor], decay: float) -> None:
        self.weights, self._decay, self._steps = list(weights), decay, 0
        self._means = [torch.zeros_like(w) for w in self.weights]
        self._squares = [torch.zeros_like(w) for w in self.weights]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """One step down the gradients that the weights hold; weights without one stay.

        Args:
            rate: the learning rate.
        """
        self._steps += 1
        length = rate / (1 - FIRST**self._steps)
        unbiased = math.sqrt(1 - SECOND**self._steps)
        for w, mean, square in zip(self.weights, self._means, self._squares, strict=True):
            if w.grad is None:
                continue
            w.mul_(1 - rate * self._decay)
            mean.lerp_(w.grad, 1 - FIRST)
            square.mul_(SECOND).addcmul_(w.grad, w.grad, value=1 - SECOND)
            w.addcdiv_(mean, (square.sqrt() / unbiased).add_(EPSILON), value=-length)

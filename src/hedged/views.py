"""Several views of one input, such as a photo and its mirror image: what is known of it from all of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hedged.distributions import AnyDistribution, Gaussian, Mixture, Point


def blend(views: Sequence[AnyDistribution]) -> AnyDistribution:
    """(1/V) Σ_v p_v(z), one distribution for V views of the same inputs, or the nearest of their own kind.

    For mixtures it is this mixture itself. For Gaussians it is the one Gaussian with its mean and variance: the mean of
    the means, and the mean of the variances plus the variance of the means, so that an input whose views disagree is
    uncertain. For points, which cannot disagree, it is their mean.

    >>> here, there = torch.tensor([[0.0]]), torch.tensor([[2.0]])
    >>> z = blend([Gaussian(here, torch.ones(1, 1)), Gaussian(there, torch.ones(1, 1))])
    >>> z.mean, z.variance
    (tensor([[1.]]), tensor([[2.]]))
    """
    kind, parts = type(views[0]), zip(*(z.parts() for z in views), strict=True)
    joined = Mixture._unchecked(*(torch.cat(each, -2) for each in parts))
    tensors = {Mixture: joined.tensors, Gaussian: (joined.mean, joined.variance), Point: (joined.mean,)}
    return kind._unchecked(*tensors[kind])

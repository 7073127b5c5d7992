"""Several views of one input, such as a photo and its mirror image: what is known of it from all of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hedged.distributions import AnyDistribution, Gaussian, Mixture, Point

COUNTED = 0.25  # of the variance between the views of a Gaussian; chosen on photos (docs/recipe.md)


def blend(views: Sequence[AnyDistribution]) -> AnyDistribution:
    """One distribution for V views of the same inputs, of the kind that theirs are.

    For points, which cannot disagree, it is their mean, and for mixtures the mixture (1/V) Σ_v p_v(z). A Gaussian has
    the mean of the means, and the mean of the variances plus a quarter of the variance of the means (`COUNTED`), so
    that an input whose views disagree is uncertain.

    >>> here, there = torch.tensor([[0.0]]), torch.tensor([[2.0]])
    >>> z = blend([Gaussian(here, torch.ones(1, 1)), Gaussian(there, torch.ones(1, 1))])
    >>> z.mean, z.variance
    (tensor([[1.]]), tensor([[1.2500]]))
    """
    means, variances = (torch.cat(part, -2) for part in zip(*(z.parts() for z in views), strict=True))  # (..., V·C, D)
    disagreement = means.var(-2, correction=0)
    tensors = {
        Point: (means.mean(-2),),
        Gaussian: (means.mean(-2), variances.mean(-2) + COUNTED * disagreement),
        Mixture: (means, variances),
    }
    kind = type(views[0])
    return kind._unchecked(*tensors[kind])

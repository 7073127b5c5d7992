"""p(m | x₁, x₂) for any match model: of pairs, of all pairs of two lists, of an input with itself.

Each function checks what it is given and asks the model. `estimator` is for a `MatchCurve` alone: another way to
integrate it than its own.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid

from hedged._tracing import untraced
from hedged.distributions import Distribution
from hedged.match._checks import require_broadcast, require_embedding, require_lists
from hedged.match._numbers import probability
from hedged.match.estimators import Estimator
from hedged.match.model import MatchModel


def match_logit(z1: Distribution, z2: Distribution, model: MatchModel, estimator: Estimator | None = None) -> Tensor:
    """log p/(1 − p) of p(m | x₁, x₂), `(...)`: what losses and rankings use.

    Args:
        z1: The first embeddings, of any batch shape.
        z2: The second embeddings; both batch shapes broadcast.
        model: When two embeddings match, such as a `MatchCurve`.
        estimator: How to integrate a `MatchCurve`, if not in its own way.
    """
    return _logit("match_logit", z1, z2, _with(model, estimator))


def match_probability(
    z1: Distribution, z2: Distribution, model: MatchModel, estimator: Estimator | None = None
) -> Tensor:
    """p(m | x₁, x₂), `(...)`, with gradients.

    Args:
        z1: The first embeddings, of any batch shape.
        z2: The second embeddings; both batch shapes broadcast.
        model: When two embeddings match, such as a `MatchCurve`.
        estimator: How to integrate a `MatchCurve`, if not in its own way.

    >>> import torch
    >>> from hedged import Gaussian, MatchCurve
    >>> sure, unsure = (Gaussian(torch.zeros(2), torch.full((2,), v)) for v in (1e-4, 1.0))
    >>> curve = MatchCurve(scale=10.0, bias=3.0).requires_grad_(False)
    >>> match_probability(sure, sure, curve), match_probability(sure, unsure, curve)
    (tensor(0.9437), tensor(0.0574))
    """
    return probability(_logit("match_probability", z1, z2, _with(model, estimator)))


def log_match_probability(
    z1: Distribution, z2: Distribution, model: MatchModel, estimator: Estimator | None = None
) -> Tensor:
    """log p(m | x₁, x₂), `(...)`: finite and falling with distance however far apart the inputs are.

    Args:
        z1: The first embeddings, of any batch shape.
        z2: The second embeddings; both batch shapes broadcast.
        model: When two embeddings match, such as a `MatchCurve`.
        estimator: How to integrate a `MatchCurve`, if not in its own way.
    """
    return logsigmoid(_logit("log_match_probability", z1, z2, _with(model, estimator)))


@untraced
def self_mismatch(z: Distribution, model: MatchModel, estimator: Estimator | None = None) -> Tensor:
    """η(x) = 1 − p(m | x, x), `(...)`: the chance that two draws of one embedding do not match (equation 9).

    Args:
        z: The embeddings, of any batch shape.
        model: When two embeddings match, such as a `MatchCurve`.
        estimator: How to integrate a `MatchCurve`, if not in its own way.

    >>> import torch
    >>> from hedged import MatchCurve, Point
    >>> curve = MatchCurve(scale=10.0, bias=3.0).requires_grad_(False)
    >>> self_mismatch(Point(torch.zeros(2)), curve)
    tensor(0.0474)
    """
    require_embedding("self_mismatch", z)
    return _with(model, estimator).self_mismatch(z)


@untraced
def match_matrix(z1: Distribution, z2: Distribution, model: MatchModel, estimator: Estimator | None = None) -> Tensor:
    """p(m | x_i, x_j) for all pairs of two lists, `(N, M)`, without gradients.

    Beyond the result itself the memory is bounded, whatever N and M are. With a `MatchCurve` in closed form the result
    is that of `match_probability` up to rounding, but for pairs whose true p is certainly below 10⁻⁵: they get a lower
    bound on it (Jensen's), where `match_probability` may be off by as much as `MatchCurve.error_bound`. With any other
    estimator or model both agree up to rounding.

    Args:
        z1: N embeddings.
        z2: M embeddings.
        model: When two embeddings match, such as a `MatchCurve`.
        estimator: How to integrate a `MatchCurve`, if not in its own way.

    >>> import torch
    >>> from hedged import Gaussian, MatchCurve
    >>> z = Gaussian(torch.randn(5, 2), torch.ones(5, 2))
    >>> match_matrix(z[:3], z, MatchCurve()).shape
    torch.Size([3, 5])
    """
    require_lists("match_matrix", z1, z2)
    return _with(model, estimator).probability_matrix(z1, z2)


@untraced
def _logit(caller: str, z1: Distribution, z2: Distribution, model: MatchModel) -> Tensor:
    require_broadcast(caller, z1, z2)
    rank = max(len(z1.batch_shape), len(z2.batch_shape))
    z1, z2 = (z[(None,) * (rank - len(z.batch_shape))] for z in (z1, z2))
    return model.logit(z1, z2)


def _with(model: MatchModel, estimator: Estimator | None) -> MatchModel:
    return model if estimator is None else model.with_estimator(estimator)

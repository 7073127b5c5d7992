"""Ways that embed as distributions: by the mutual likelihood, by the paper's match curve, and by evidence."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, cast, final

import numpy as np
import torch
from torch import Tensor, nn

from hedged.bench.uncertainty.points import DIMS, KEPT, trained_point
from hedged.bench.uncertainty.sets import Floats, Ints, Vectors
from hedged.bench.uncertainty.way import Fitted, Scores, Standard, Way, train_head
from hedged.distributions import Gaussian
from hedged.losses import HedgedLoss
from hedged.match import MatchCurve, MatchModel, self_mismatch
from hedged.models import GaussianHead
from hedged.retrofit import Retrofit

AT_ONCE = 4  # rows of likelihoods at a time: few enough to stay in the cache


@final
class _Likely(Fitted):
    """Points of one length with a variance each, as in probabilistic face embeddings (Shi and Jain 2019)."""

    def __init__(self, point: nn.Module, log_variance: nn.Module, train: Vectors) -> None:
        self.point, self.log_variance, self.standard = point, log_variance, Standard(train)

    @torch.no_grad()
    def _embedded(self, x: Floats) -> tuple[Tensor, Tensor]:
        seen = self.standard(x)
        return nn.functional.normalize(self.point(seen), dim=1), self.log_variance(seen).exp()

    def scores(self, a: Floats, b: Floats) -> Scores:
        (mean1, spread1), (mean2, spread2) = self._embedded(a), self._embedded(b)
        parts = []
        for k in range(0, len(a), AT_ONCE):
            total = spread1[k : k + AT_ONCE, None] + spread2
            apart = (mean1[k : k + AT_ONCE, None] - mean2).square()
            parts.append((-0.5 * (apart / total + total.log()).sum(-1)).double().numpy())
        return np.concatenate(parts)

    def uncertainty(self, x: Floats) -> Scores:
        """The harmonic mean of the variances, by which the paper ranks quality."""
        return np.asarray((1 / (1 / self._embedded(x)[1].double()).mean(1)).numpy())


@final
class MutualScore(Way):
    """Variances learnt by the mutual likelihood on top of fixed points; pairs are scored by it, too."""

    name = "mutual likelihood"
    settings = DIMS

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        point = trained_point(train, seed, setting["dim"])
        log_variance = nn.Linear(train.clean.shape[1], setting["dim"])
        nn.init.zeros_(log_variance.weight)
        nn.init.constant_(log_variance.bias, -float(np.log(setting["dim"])))

        def cost(x: Tensor, labels: Tensor) -> Tensor:
            mean, spread = nn.functional.normalize(point(x), dim=1), torch.exp(log_variance(x))
            match = (labels[:, None] == labels) & ~torch.eye(len(labels), dtype=torch.bool)
            first, second = match.nonzero(as_tuple=True)
            total = spread[first] + spread[second]
            apart: Tensor = (mean[first] - mean[second]).square() / total + total.log()
            return 0.5 * apart.mean()

        train_head(nn.Identity(), cost, log_variance.parameters(), train, seed, 0.0)
        return _Likely(point, log_variance.requires_grad_(False), train)


class _Embedded(Fitted):
    """Gaussians and a match model."""

    def __init__(self, head: GaussianHead, model: MatchModel, train: Vectors) -> None:
        self.head, self.model, self.standard = head, model, Standard(train)

    @torch.no_grad()
    def embedded(self, x: Floats) -> Gaussian:
        """What the head makes of vectors."""
        return self.head.distribution(self.standard(x))

    def scores(self, a: Floats, b: Floats) -> Scores:
        with torch.no_grad():
            return np.asarray(self.model.matrix(self.embedded(a), self.embedded(b)).double().numpy())


@final
class _Hedged(_Embedded):
    def uncertainty(self, x: Floats) -> Scores:
        with torch.no_grad():
            return np.asarray(self_mismatch(self.embedded(x), self.model).double().numpy())


@final
class _Spread(_Embedded):
    def uncertainty(self, x: Floats) -> Scores:
        return np.asarray(self.embedded(x).variance.sum(-1).double().numpy())


@lru_cache(maxsize=KEPT)
def trained_gaussian(train: Vectors, seed: int, dim: int, beta: float) -> tuple[GaussianHead, MatchCurve]:
    """A Gaussian head by the paper's loss; the ways that share one do not train it again.

    Args:
        train: what to learn from.
        seed: of everything random.
        dim: D.
        beta: the weight of the KL term.
    """
    torch.manual_seed(seed)
    head = GaussianHead(train.clean.shape[1], dim)
    with torch.no_grad():
        apart = torch.pdist(head.distribution(Standard(train)(train.clean[:500])).mean).mean().item()
    curve = MatchCurve(scale=3 / apart, bias=3.0)  # it starts where the points are
    loss = HedgedLoss(curve, beta=beta, positive_weight=0.5)
    train_head(head, loss, [*head.parameters(), *curve.parameters()], train, seed)
    return head.requires_grad_(False), curve.requires_grad_(False)


PAPER_SETTINGS = tuple({"dim": dim, "beta": beta} for dim in (3, 20) for beta in (1e-4, 1e-3))


@final
class PaperEta(Way):
    """η(x) = 1 − p(m | x, x) of Gaussians trained by the match curve: the paper's."""

    name = "the paper's η"
    settings = PAPER_SETTINGS

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        return _Hedged(*trained_gaussian(train, seed, **setting), train)


@final
class Trace(Way):
    """The trace of Σ of the same Gaussians."""

    name = "trace"
    settings = PAPER_SETTINGS

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        return _Spread(*trained_gaussian(train, seed, **setting), train)


@final
class _Fitted(Fitted):
    """A fitted head; `known`, one template of each identity of training, if doubt is about which of them it is."""

    def __init__(self, head: Retrofit, known: Gaussian | None) -> None:
        self.head, self.known = head, known

    def scores(self, a: Floats, b: Floats) -> Scores:
        return np.asarray(self.head.match_model.matrix(self.head.embed(a), self.head.embed(b)).double().numpy())

    def uncertainty(self, x: Floats) -> Scores:
        z = self.head.embed(x)
        if self.known is not None:
            log_p = self.head.match_model.matrix(z, self.known).double().log_softmax(1)
            return np.asarray(-(log_p.exp() * log_p).sum(1).numpy())
        return np.asarray(-self.head.match_model.self_logit(z.to(torch.float64)).detach().numpy())

    def novelty(self, x: Floats) -> Scores:
        return self.head.novelty(x)

    def template_scores(self, probes: Floats, enrolled: Floats, owner: Ints) -> Scores:
        templates = self.head.match_model.fuse(self.head.embed(enrolled), torch.from_numpy(owner))
        return np.asarray(self.head.match_model.matrix(self.head.embed(probes), templates).double().numpy())


@lru_cache(maxsize=KEPT)
def fitted_head(train: Vectors, seed: int, **setting: Any) -> Retrofit:
    """A head by `Retrofit`; both doubts share it.

    Args:
        train: what to learn from.
        seed: of everything random.
        setting: what else `Retrofit` takes.
    """
    held_out: Literal["identities", "inputs"] = "inputs" if train.is_closed else "identities"
    return Retrofit(held_out=held_out, seed=seed, **setting).fit(train.clean, train.y, poor=train.poor)


@final
class ByEvidence(Way):
    """`Retrofit`: evidence, its uncertainty, and its novelty.

    Where others to come show the identities of training, doubt may also be the entropy of which of them an input
    shows, by the templates of all.
    """

    name = "evidence"
    settings = ({"doubt": "eta"}, {"doubt": "identity"})

    def settings_for(self, train: Vectors) -> tuple[dict[str, Any], ...]:
        return self.settings if train.is_closed else ({},)

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        doubt = setting.pop("doubt", "eta")
        head = fitted_head(train, seed, **setting)
        if doubt == "eta":
            return _Fitted(head, None)
        z = head.embed(train.clean)
        return _Fitted(head, cast("Gaussian", head.match_model.fuse(z, torch.from_numpy(train.y))))

"""Do two inputs show one latent identity, or two? The exact Bayes factor of embeddings, with a prior.

Where the match curve averages a probability of distances, `Evidence` asks which story explains both inputs better. In
many dimensions this matters: there, noise only adds to a distance, so that the less a curve knows of two inputs the
surer it is that they differ. Evidence falls back to the prior odds instead.
"""

from __future__ import annotations

import math
from typing import Self, final

import torch
from torch import Tensor, nn

from hedged.distributions import Distribution, Gaussian, Mixture, Point
from hedged.errors import ShapeError, ValueRangeError
from hedged.match import _pairs
from hedged.match._evidence.formula import give_way, log_factor
from hedged.match._evidence.matrix import are_few, log_factors, logit_matrix, shared_groups
from hedged.match._evidence.turned import chosen_log_factors, turned_log_factor, turned_log_factors, widest
from hedged.match._numbers import cross_entropy
from hedged.match._products import turned_product
from hedged.match.model import MatchModel
from hedged.match.nearness import Nearness, evidence_nearness
from hedged.match.portable import PortableEvidence
from hedged.match.score import Score, evidence_score, require_diagonal

WIDEST = 1 + 1e-5  # a variance that is 1 but for rounding
BLOCK = 2**20  # numbers held at a time, per intermediate result


@final
class Evidence(MatchModel, kind="evidence"):
    """log p/(1 − p) = c + κ log ∫ p(z|x₁) p(z|x₂) / r(z) dz, with the prior r = N(0, I) of a latent identity z.

    The integral is the Bayes factor of one identity against two: p(x₁, x₂ | same) / p(x₁) p(x₂). It is exact for
    Gaussians and mixtures. With means μ, variances σ² ≤ 1 and t = σ₁² + σ₂² − σ₁²σ₂², the log factor of Gaussians is

        ½ Σ_d [(σ₂²μ₁² + σ₁²μ₂² − (μ₁ − μ₂)²)/t − log t].

    Where covariances are not diagonal it is as exact, by determinants (`hedged.match._evidence.turned`).

    An input of which nothing is known, p(z|x) = r, leaves the prior: log-odds of c. Several inputs of one identity are
    fused by adding what each knows, λ = 1/σ² − 1 and ν = μ/σ² (`fuse`).

    Identities are not spread as evenly as r has it: where many are alike, two inputs that are alike tell less. A head
    that knows (`hedged.models.evidence.strangers`) says so in a last dimension, which is none of z: its mean w is how
    rare the input is, and with e = ρ(w₁ + w₂) a log factor L > 0 becomes L + eL/(L + |e|). Evidence for a match gives
    way to strangers, and never turns into evidence against it. In the same way a head may say how clear an input is.

    Args:
        log_odds: c, the prior log-odds of a match: 0 if half of all pairs match. Learnt with the rest in training.
        temper: κ > 0, how far the factor is trusted; 1 is Bayes' rule. Calibration sets it, training leaves it alone.
        self_log_odds: c′ of the uncertainty η(x) = 1/(1 + exp(c′ + κ′ log BF(x, x))), where held-out identities have
            told how often pairs with x are decided wrongly; None: c, so that η(x) = 1 − p(m | x, x).
        self_temper: κ′ > 0 of the same; None: κ.
        rarity: ρ > 0, where the last dimension of embeddings says how rare they are; 0: it is a dimension of z.
        clarity: ρ′ > 0, where a last dimension, after the rarity, says how clear an input is: ρ′ times its mean is
            added to the log-odds c′ + κ′ log BF(x, x) that it is understood; 0: there is none.

    >>> sure, unsure, nothing = (Gaussian(torch.full((4,), m), torch.full((4,), v)) for m, v in
    ...                          [(1.0, 0.01), (0.6, 0.4), (0.0, 1.0)])
    >>> model = Evidence().requires_grad_(False)
    >>> [round(model.logit(sure, z).item(), 2) for z in (sure, unsure, nothing)]
    [9.84, 3.0, 0.0]
    """

    temper: Tensor

    def __init__(
        self,
        log_odds: float = 0.0,
        temper: float = 1.0,
        self_log_odds: float | None = None,
        self_temper: float | None = None,
        rarity: float = 0.0,
        clarity: float = 0.0,
    ) -> None:
        super().__init__()
        _require_finite(log_odds=log_odds)
        for name, weight in (("rarity", rarity), ("clarity", clarity)):
            if not 0 <= weight < math.inf:
                raise ValueRangeError(f"{name} is weighed by a number from 0 up, got {name}={weight}: 0 is Bayes' rule")
        if clarity and self_log_odds is None:
            raise ValueRangeError(f"clarity={clarity} is a part of the uncertainty: give self_log_odds and self_temper")
        self._rarity, self._clarity = float(rarity), float(clarity)
        self._asides = (rarity > 0) + (clarity > 0)  # last dimensions that are none of z
        _require_positive(temper=temper)
        if (self_log_odds is None) != (self_temper is None):
            raise ValueRangeError(
                f"the uncertainty has both its numbers or neither, got {self_log_odds=} and {self_temper=}: give both"
            )
        self._of_self: dict[str, float] = {}
        if self_log_odds is not None and self_temper is not None:
            _require_finite(self_log_odds=self_log_odds)
            _require_positive(self_temper=self_temper)
            self._of_self = {"self_log_odds": float(self_log_odds), "self_temper": float(self_temper)}
        self.log_odds = nn.Parameter(torch.tensor(float(log_odds)))
        self.register_buffer("temper", torch.tensor(float(temper)))

    def at_base_rate(self, rate: float) -> Self:
        """The same model where a share `rate` of all pairs match, not half of them: exact, by Bayes' rule.

        Args:
            rate: the share of pairs that match where the model is used, in (0, 1).

        >>> z = Gaussian(torch.zeros(3), torch.ones(3))
        >>> round(Evidence().at_base_rate(0.01).logit(z, z).sigmoid().item(), 4)
        0.01
        """
        if not 0 < rate < 1:
            raise ValueRangeError(f"a base rate is a share of pairs between 0 and 1, got {rate}")
        log_odds = self.log_odds.item() + math.log(rate) - math.log1p(-rate)
        shifted = type(self)(**{**self.settings(), "log_odds": log_odds})
        return shifted.to(self.log_odds.device)

    def log_factor(self, z1: Distribution, z2: Distribution) -> Tensor:
        """log ∫ p(z|x₁) p(z|x₂) / r(z) dz, broadcast over the batch dimensions `(...)`, with gradients.

        Args:
            z1: Gaussians or mixtures with variances of at most 1.
            z2: the same; batches broadcast.
        """
        _require_posteriors(z1, z2)
        z1, z2 = self._latent(z1), self._latent(z2)
        if z1.is_diagonal and z2.is_diagonal:
            (mean1, spread1), (mean2, spread2) = z1.parts(), z2.parts()
            each = log_factor(
                mean1.unsqueeze(-2), spread1.unsqueeze(-2), mean2.unsqueeze(-3), spread2.unsqueeze(-3)
            )  # (..., C1, C2)
        else:
            each = turned_log_factor(z1, z2).to(torch.promote_types(z1.dtype, z2.dtype))
        each = each.flatten(-2)
        return each.logsumexp(-1) - math.log(each.shape[-1]) if each.shape[-1] > 1 else each[..., 0]

    def logit(self, z1: Distribution, z2: Distribution) -> Tensor:
        """c + κ log BF, less what strangers would give, broadcast over the batch dimensions `(...)`, with gradients.

        Args:
            z1: Gaussians or mixtures with variances of at most 1.
            z2: the same; batches broadcast.
        """
        factor = self.log_factor(z1, z2)
        if self._rarity:
            factor = give_way(factor, self._rare(z1) + self._rare(z2))
        return self.log_odds.to(factor.dtype) + self.temper.to(factor.dtype) * factor

    def by_dimension(self, z1: Distribution, z2: Distribution) -> Tensor | None:
        """κ log BF of each dimension of z by itself, `(..., D)`; c and what strangers take off are beside their sum.

        Args:
            z1: Gaussians with variances of at most 1; of mixtures and turned covariances nothing is said.
            z2: the same; batches broadcast.

        >>> z1, z2 = (Gaussian(torch.tensor(mean), torch.full((2,), 0.1)) for mean in ([1.0, 0.0], [1.0, 1.0]))
        >>> [round(share, 2) for share in Evidence().requires_grad_(False).by_dimension(z1, z2).tolist()]
        [1.36, -1.54]
        """
        if not (z1.is_diagonal and z2.is_diagonal) or z1.n_components * z2.n_components > 1:
            return None
        _require_posteriors(z1, z2)
        (mean1, spread1), (mean2, spread2) = (self._latent(z).parts() for z in (z1, z2))
        alone = [part.squeeze(-2).unsqueeze(-1) for part in (mean1, spread1, mean2, spread2)]  # each dimension a batch
        each = log_factor(alone[0], alone[1].expand_as(alone[0]), alone[2], alone[3].expand_as(alone[2]))
        return self.temper.to(each.dtype) * each

    def self_logit(self, z: Distribution) -> Tensor:
        """c′ + κ′ log BF(x, x), and the clarity, `(...)`; c + κ log BF(x, x) where c′ and κ′ are not set.

        Args:
            z: Gaussians or mixtures with variances of at most 1.
        """
        if not self._of_self:
            return self.logit(z, z)
        logit = self._of_self["self_log_odds"] + self._of_self["self_temper"] * self.log_factor(z, z)
        return logit + self._clarity * z.mean[..., -1] if self._clarity else logit

    @torch.no_grad()
    def matrix(self, z1: Distribution, z2: Distribution) -> Tensor:
        """Log-odds of all pairs of two lists, `(N, M)`, without gradients, in bounded memory.

        Matrix products where neighbouring dimensions share a variance in a few groups (one variance an input is one
        group), a compiled loop over dimensions otherwise, another one where covariances are not diagonal. All are
        exact.

        Args:
            z1: a list of N Gaussians or mixtures.
            z2: a list of M of them.
        """
        _require_lists(z1, z2)
        _require_posteriors(z1, z2)
        dtype = torch.promote_types(z1.dtype, z2.dtype)
        log_odds, temper = self.log_odds.item(), self.temper.item()
        latent1, latent2 = self._latent(z1), self._latent(z2)
        if not (z1.is_diagonal and z2.is_diagonal):
            if all(z.n_components == 1 and z.device.type == "cpu" for z in (z1, z2)):
                return turned_log_factors(z1, z2, log_odds, temper).to(dtype)
            return super().matrix(z1, z2)
        if not self._rarity:
            return self._lines(latent1, latent2, dtype, log_odds, temper)
        out = self._lines(latent1, latent2, dtype, 0.0, 1.0)
        first, second = (self._rare(z).to(dtype) for z in (z1, z2))
        for top in range(0, len(z1), rows := max(BLOCK // max(len(z2), 1), 1)):
            part = out[top : top + rows]
            part.copy_(log_odds + temper * give_way(part, first[top : top + rows, None] + second))
        return out

    def pair_costs(self, z: Distribution, labels: Tensor) -> Tensor:
        if z.is_diagonal or z.n_components > 1:
            return super().pair_costs(z, labels)
        _require_posteriors(z)
        first, second, match = _pairs.pairs_of(labels)
        factor = chosen_log_factors(self._latent(z), first, second).to(z.dtype)
        costs = cross_entropy(self.log_odds.to(factor.dtype) + self.temper.to(factor.dtype) * factor, match)
        return torch.stack([torch.where(mask, costs, 0).sum() for mask in (match, ~match)])

    def _latent(self, z: Distribution) -> Distribution:
        """What an embedding says of z: all dimensions, but for rarity and clarity."""
        if not self._asides:
            return z
        if not z.is_diagonal:
            raise ShapeError(f"embeddings that say how rare or clear they are have diagonal covariances, got {z!r}")
        if z.dim <= self._asides:
            raise ShapeError(
                f"embeddings that say how rare or clear they are have at least {self._asides + 1} dimensions, got {z!r}"
            )
        return z._map(lambda t: t[..., : -self._asides])

    def _rare(self, z: Distribution) -> Tensor:
        """ρw, `(...)`."""
        return self._rarity * z.mean[..., -self._asides]

    def _lines(self, z1: Distribution, z2: Distribution, dtype: torch.dtype, log_odds: float, temper: float) -> Tensor:
        """c + κ log BF of all pairs, `(N, M)`."""
        first, second = _components(z1), _components(z2)
        each1, each2 = len(first) // max(len(z1), 1), len(second) // max(len(z2), 1)
        if each1 == each2 == 1:
            return self._gaussian_matrix(first, second, dtype, log_odds, temper)
        out = torch.empty(len(z1), len(z2), dtype=dtype, device=z1.device)
        rows = max(BLOCK // (each1 * max(len(second), 1)), 1)
        for top in range(0, len(z1), rows):
            down = slice(top, min(top + rows, len(z1)))
            part = first[down.start * each1 : down.stop * each1]
            factors = self._gaussian_matrix(part, second, dtype, 0.0, 1.0)
            factors = factors.view(-1, each1, len(z2), each2).transpose(1, 2).flatten(2).logsumexp(-1)
            out[down] = log_odds + temper * (factors - math.log(each1 * each2))
        return out

    def _gaussian_matrix(
        self, z1: Gaussian, z2: Gaussian, dtype: torch.dtype, log_odds: float, temper: float
    ) -> Tensor:
        wide = dtype if dtype == torch.float64 else torch.float32
        z1, z2 = (Gaussian._unchecked(*(t.to(wide) for t in z.tensors)) for z in (z1, z2))
        if z1.device.type == z2.device.type == "cpu":
            return logit_matrix(z1, z2, log_odds, temper).to(dtype)
        groups = shared_groups(z1.variance, z2.variance)
        if are_few(groups):
            return (log_odds + temper * log_factors(z1.to(torch.float64), z2.to(torch.float64), groups)).to(dtype)
        out = torch.empty(len(z1), len(z2), dtype=dtype, device=z1.device)
        rows = max(BLOCK // max(len(z2) * z2.dim, 1), 1)
        for top in range(0, len(z1), rows):
            part = z1[top : top + rows]
            factors = log_factor(part.mean[:, None], part.variance[:, None], z2.mean, z2.variance)
            out[top : top + rows] = log_odds + temper * factors
        return out

    def fuse(self, z: Distribution, owner: Tensor) -> Distribution:
        """What several inputs of one identity tell of it together: λ = Σ λ_i and ν = Σ ν_i, the exact posterior.

        Args:
            z: a list of N Gaussians, of any covariances.
            owner: (N,), integers from 0: the identity each belongs to; identity k becomes row k of the result. An
                identity without inputs gets the prior N(0, I).

        >>> z = Gaussian(torch.ones(2, 1), torch.full((2, 1), 0.5))
        >>> fused = Evidence().fuse(z, torch.tensor([0, 0]))
        >>> fused.mean.item(), fused.variance.item()
        (1.3333..., 0.3333...)
        """
        _require_posteriors(z)
        if z.n_components > 1 or isinstance(z, Mixture):
            raise ShapeError(
                f"Gaussians are fused, got a {type(z).__name__}: n mixtures of C components would make one of Cⁿ of "
                "unequal weight. Fuse Gaussian(z.mean, z.variance), or use a Gaussian head"
            )
        if len(z.batch_shape) != 1 or owner.shape != z.batch_shape or owner.is_floating_point():
            raise ShapeError(
                f"a list of N Gaussians is fused by the N integers of their owners, got {z!r} and owners of shape "
                f"{tuple(owner.shape)} and {owner.dtype}"
            )
        if len(owner) and int(owner.min()) < 0:
            raise ShapeError(f"owners are numbered from 0, got {int(owner.min())}")
        if not z.is_diagonal:
            return turned_product(self._latent(z), owner, prior=1.0)
        count = int(owner.max()) + 1 if len(owner) else 0
        latent = self._latent(z)
        mean, spread = latent.mean, latent.variance.expand_as(latent.mean)
        precision = torch.zeros(count, latent.dim, dtype=z.dtype, device=z.device)
        known = precision.index_add(0, owner, (1 - spread).clamp(min=0) / spread)  # Σ λ
        pull = precision.index_add(0, owner, mean / spread)  # Σ ν
        spread = 1 / (1 + known)
        mean = pull * spread
        if self._asides:  # as rare and as clear as its inputs, on average
            total = precision.new_zeros(count, self._asides).index_add(0, owner, z.mean[..., -self._asides :])
            mean = torch.cat([mean, total / owner.bincount(minlength=count).clamp(min=1)[:, None]], dim=-1)
            spread = torch.cat([spread, torch.ones_like(total)], dim=-1)
        return Gaussian(mean, spread)

    def information(self, z: Distribution) -> Tensor:
        """½ Σ_d log(1 + λ_d) = −½ log |Σ| in nats, `(...)`: how much narrower than the prior an embedding is.

        Args:
            z: Gaussians, or mixtures, whose components are averaged.
        """
        _require_posteriors(z)
        if not z.is_diagonal:
            return -0.5 * self._latent(z).covariances().logdet().mean(-1)
        mean, spread = self._latent(z).parts()
        return -0.5 * (spread.expand_as(mean)).log().sum(-1).mean(-1)

    def settings(self) -> dict[str, float]:
        asides = {n: w for n, w in (("rarity", self._rarity), ("clarity", self._clarity)) if w}
        return {"log_odds": self.log_odds.item(), "temper": self.temper.item(), **self._of_self, **asides}

    def portable(self) -> PortableEvidence:
        return PortableEvidence({**self.describe(), "error_bound": 0.0})

    def score(self, like: Distribution) -> Score:
        require_diagonal(like)
        _require_posteriors(like)
        latent = self._latent(like)
        if self._rarity and like.n_components > 1:
            raise ShapeError(
                f"engines weigh how rare an input is for Gaussians, got {like!r} of {like.n_components} components: "
                "use a head of one component, or Evidence without rarity"
            )
        return evidence_score(self.settings(), latent.dim, like.dim - self._asides if self._rarity else None)

    def nearness(self, probes: Distribution) -> Nearness | None:
        """−log BF itself; what strangers take off is left to the ranking of candidates.

        Args:
            probes: The probes.
        """
        return evidence_nearness(probes, self._asides) if probes.is_diagonal and not probes.is_point else None

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value:g}" for name, value in self.settings().items())


def _require_finite(**log_odds: float) -> None:
    for name, value in log_odds.items():
        if not math.isfinite(value):
            raise ValueRangeError(f"prior log-odds are finite, got {name}={value}: 0 if half of all pairs match")


def _require_positive(**temper: float) -> None:
    for name, value in temper.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueRangeError(f"evidence is tempered by a positive number, got {name}={value}: 1 is Bayes' rule")


def _components(z: Distribution) -> Gaussian:
    """All components of a list, one after the other."""
    mean, spread = z.parts()
    return Gaussian._unchecked(mean.flatten(0, -2), spread.expand_as(mean).flatten(0, -2))


def _require_posteriors(*zs: Distribution) -> None:
    for z in zs:
        if isinstance(z, Point):
            raise ValueRangeError(
                "a Point claims infinite evidence, which no finite prior odds can weigh: give it the variance of what "
                "it does not know, as Gaussian(z.mean, variance) with 0 < variance ≤ 1, or compare by a MatchCurve"
            )
        if not isinstance(z, Distribution):
            raise ShapeError(f"embeddings are compared, got a {type(z).__name__}: wrap it as Gaussian(mean, variance)")
        most = _widest(z) if z.is_diagonal else widest(z)
        if most > WIDEST:
            raise ValueRangeError(
                f"evidence compares posteriors of an identity with the prior N(0, I), so no variance exceeds 1; got "
                f"one of {most:g}. Rescale the space, or use a head that keeps to it (EvidenceHead)"
            )
    if len({z.dim for z in zs}) > 1:
        raise ShapeError(f"embeddings of one space are compared, got dimensions {[z.dim for z in zs]}")


def _widest(z: Distribution) -> float:
    variance = z.parts()[1].detach()
    return float(variance.max()) if variance.numel() else 0.0


def _require_lists(z1: Distribution, z2: Distribution) -> None:
    for name, z in (("first", z1), ("second", z2)):
        if len(z.batch_shape) != 1:
            raise ShapeError(f"all pairs of two lists of embeddings are compared, the {name} is {z!r}")

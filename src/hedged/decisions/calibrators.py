"""Calibrators turn the log-odds of a model into calibrated log-odds: by a temperature, or by any rising function.

Both are fitted with matches and non-matches weighing one half each, whatever the balance of the pairs, and so speak of
a world in which every second pair matches. `base_rate_shift` takes them to any other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self, final

import numpy as np
from pydantic import ConfigDict, TypeAdapter

from hedged._odds import expit, logit
from hedged.decisions.pairs import Floats, ScoredPairs
from hedged.errors import ValueRangeError

FLATTEST = 1e-6  # steepness of a temperature, of scores of size one
DECIMALS = 9  # of probabilities that are told apart


class Calibrator(ABC):
    """A rising function from the log-odds of a model to calibrated log-odds, where half of the pairs match.

    Subclasses are final, dataclasses of plain numbers, and name themselves: `class Mine(Calibrator, kind="mine")`. The
    kind and the fields are what calibration.json holds of one.
    """

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type[Calibrator]]] = {}
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)

    def __init_subclass__(cls, kind: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.kind = kind
        Calibrator._kinds[kind] = cls

    @classmethod
    @abstractmethod
    def fit(cls, pairs: ScoredPairs) -> Self:
        """The one of its kind that makes these pairs most likely, matches and non-matches weighing the same.

        Args:
            pairs: Labelled pairs to learn from.
        """

    @abstractmethod
    def log_odds(self, scores: Floats) -> Floats:
        """Calibrated log-odds, of the shape of `scores`.

        Args:
            scores: The model's log-odds of a match.
        """

    @abstractmethod
    def inverse(self, log_odds: float) -> float:
        """The least score whose calibrated log-odds reach `log_odds`; ∞ if none does, −∞ if all do.

        Args:
            log_odds: Calibrated log-odds.
        """

    def describe(self) -> dict[str, Any]:
        """The kind and the fields, as plain data: what `restore` takes."""
        return {"kind": self.kind, **vars(self)}

    @staticmethod
    def restore(described: Mapping[str, Any]) -> Calibrator:
        """The calibrator that `describe` describes.

        Args:
            described: Its kind and its fields; a `ValueError` names what is wrong with them.
        """
        fields = dict(described)
        kind = fields.pop("kind", None)
        if not isinstance(kind, str) or kind not in Calibrator._kinds:
            raise ValueRangeError(f"unknown calibrator {kind!r}, expected one of: {', '.join(Calibrator._kinds)}")
        restored: Calibrator = TypeAdapter(Calibrator._kinds[kind]).validate_python(fields)
        return restored


@final
@dataclass(frozen=True)
class Temperature(Calibrator, kind="temperature"):
    """x ↦ x / T + c.

    Args:
        temperature: T > 0, which cools or heats.
        shift: c, which takes the balance of pairs in training to one half.

    >>> Temperature(temperature=2.0, shift=1.0).log_odds(np.array([-2.0, 0.0])), Temperature(2.0, 1.0).inverse(0.0)
    (array([0., 1.]), -2.0)
    """

    temperature: float
    shift: float

    def __post_init__(self) -> None:
        """Refuse what is no rising function."""
        if not self.temperature > 0:
            raise ValueRangeError(f"a temperature must be positive, got {self.temperature:g}")

    @classmethod
    def fit(cls, pairs: ScoredPairs) -> Self:
        pairs.require_enough()
        unit = float(np.sqrt((pairs.weights * pairs.logit**2).sum())) or 1.0
        targets = np.where(pairs.matches, 1 - _least(pairs), _least(pairs))
        steepness, shift = fit_logistic(pairs.logit, targets, pairs.weights, unit)
        return cls(unit / steepness, shift)

    def log_odds(self, scores: Floats) -> Floats:
        return scores / self.temperature + self.shift

    def inverse(self, log_odds: float) -> float:
        return (log_odds - self.shift) * self.temperature


@final
@dataclass(frozen=True)
class Isotonic(Calibrator, kind="isotonic"):
    """The rising function nearest to the pairs: straight between (`scores[i]`, `values[i]`), flat beyond the ends.

    Pool-adjacent-violators gives blocks of equal probability; the function goes through the middle of each, so that it
    does not jump.

    Args:
        scores: Rising scores of the model.
        values: Calibrated log-odds there, rising too.

    >>> rising = Isotonic(scores=(0.0, 2.0), values=(-1.0, 3.0))
    >>> rising.log_odds(np.array([-9.0, 1.0])), rising.inverse(1.0)
    (array([-1.,  1.]), 1.0)
    """

    scores: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse what is no rising function."""
        rising = all(low < high for knots in (self.scores, self.values) for low, high in pairwise(knots))
        if not rising or not self.scores or len(self.scores) != len(self.values):
            raise ValueRangeError("an isotonic function needs as many values as scores, both rising")

    @classmethod
    def fit(cls, pairs: ScoredPairs) -> Self:
        from sklearn.isotonic import IsotonicRegression  # type: ignore[import-untyped]  # late: slow to import

        pairs.require_enough()
        model = IsotonicRegression(y_min=_least(pairs), y_max=1 - _least(pairs))
        fitted = model.fit_transform(pairs.logit, pairs.matches.astype(float), sample_weight=pairs.weights)
        levels, block = np.unique(fitted.round(DECIMALS), return_inverse=True)
        centres = np.bincount(block, weights=pairs.weights * pairs.logit) / np.bincount(block, weights=pairs.weights)
        return cls(tuple(centres.tolist()), tuple(logit(levels).tolist()))

    def log_odds(self, scores: Floats) -> Floats:
        return np.interp(scores, self.scores, self.values)

    def inverse(self, log_odds: float) -> float:
        if log_odds > self.values[-1]:
            return np.inf
        if log_odds <= self.values[0]:
            return -np.inf
        return float(np.interp(log_odds, self.values, self.scores))


def fit_logistic(
    scores: Floats,
    targets: Floats,
    weights: Floats,
    unit: float = 1.0,
    start: tuple[float, float] = (1.0, 0.0),
    bounds: Sequence[tuple[float | None, float | None]] = ((FLATTEST, None), (None, None)),
) -> tuple[float, float]:
    """The slope a and shift c of P(1 | s) = σ(a s / u + c) of greatest likelihood, as Platt fits them.

    Minimises −Σ w [t log P + (1 − t) log(1 − P)], which is convex in a and c, by L-BFGS.

    Args:
        scores: s, `(n,)`.
        targets: t in (0, 1), `(n,)`: Platt's, so that no score becomes certain.
        weights: w, `(n,)`.
        unit: u, a typical size of the scores.
        start: a and c to start from.
        bounds: The least and the greatest a and c.
    """
    from scipy.optimize import minimize  # late, as above

    def cost(parameters: Floats) -> tuple[float, Floats]:
        x = parameters[0] * scores / unit + parameters[1]
        slope = weights * (expit(x) - targets)
        value = float((weights * (np.logaddexp(0, x) - targets * x)).sum())
        return value, np.array([slope @ scores / unit, slope.sum()])

    steepness, shift = minimize(cost, np.array(start), jac=True, bounds=list(bounds), method="L-BFGS-B").x
    return float(steepness), float(shift)


def _least(pairs: ScoredPairs) -> float:
    """The least probability to be learnt, of a match or of none: no certainty, one wrong pair more is allowed for."""
    matches = int(pairs.matches.sum())
    return 1 / (2 + min(matches, len(pairs) - matches))


def base_rate_shift(base_rate: float) -> float:
    """log π/(1 − π): what calibrated log-odds gain when a share π of the pairs matches instead of one half.

    By Bayes' rule the log-odds are those of the prior plus the evidence, and only the prior changes.

    Args:
        base_rate: π, the share of pairs that match, in (0, 1).

    >>> base_rate_shift(0.5), round(base_rate_shift(0.01), 3)
    (0.0, -4.595)
    """
    if not 0 < base_rate < 1:
        raise ValueRangeError(f"a base rate is the share of pairs that match, between 0 and 1, got {base_rate:g}")
    return float(logit(base_rate))

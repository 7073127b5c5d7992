"""The log-odds of a match as a formula that other programs compute: databases, search engines, compiled code.

`MatchModel.score()` gives one; `hedged.search.engine_score` writes it in the language of an engine. It is the formula
of `ClosedForm` and of `Evidence`, cut where they are cut, and avoids what engines refuse: logarithms of 0, and powers
too small for a double.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

from hedged.distributions import Distribution
from hedged.errors import ShapeError, ValueRangeError
from hedged.match._closed_form.expansion import Terms
from hedged.match._closed_form.loops.limits import FARTHEST, TINY_64, TOO_SMALL
from hedged.match._expression import Expression, exp, greatest, least, ln, name, number, sinh, size, sqrt, total, where

LOWEST = -690.0  # a power below counts as this, which is next to nothing, and not too small for a double
# Where the compiled loops of the closed form stop: −log of a power and of a term, and the log of a volume, beyond which
# they count as nothing. What is left then is Jensen's bound.
LEAST_POWER, LEAST_TERM, MOST_VOLUME = 660.0, 295 * math.log(10), math.log(1.7976931348623157e308)
LEAST = -1e300
CERTAIN = -40.0  # log p, below which log-odds are log p to the last digit
MOST = 999_999_995_904.0  # m² and s beyond count as this, 10¹² in single precision: as in the compiled loops
MOST_BIAS = 100.0  # of a curve that engines compute: beyond, weights are too small for a double

GIVEN = ("mean1", "variance1", "mean2", "variance2")
MEAN1, VARIANCE1, MEAN2, VARIANCE2 = map(name, GIVEN)
LOG_MEAN = "log_mean"


class Step(NamedTuple):
    """A number that is worked out, and what it is called in what follows."""

    name: str
    value: Expression


@final
@dataclass(frozen=True)
class Score:
    """Log-odds in four stages, each of which knows what came before.

    Args:
        dimensions: D, over how many of the dimensions sums run: all, or all but the last.
        has_variance: Whether variances count; of points there are none.
        by_dimension: Steps for each dimension, from `mean1`, `variance1`, `mean2` and `variance2` there.
        sums: Of each dimension, added up over all of them.
        by_pair: Steps for each pair of components, from the sums; the last is called `log_mean`: of mixtures, what
            follows gets the logarithm of the mean of its exponentials over all pairs of components.
        log_odds: Steps from `log_mean`, and from `aside1` and `aside2`; the last is the log-odds.
        aside: The dimension whose means are `aside1` and `aside2`, counted from 0; None: there is none.
    """

    dimensions: int
    has_variance: bool
    by_dimension: tuple[Step, ...]
    sums: tuple[Step, ...]
    by_pair: tuple[Step, ...]
    log_odds: tuple[Step, ...]
    aside: int | None = None

    @staticmethod
    def mixed(components: int) -> tuple[Step, ...]:
        """Steps for `log_mean` of mixtures, from `pair_i_j` of their components i and j.

        Args:
            components: C.
        """
        logs = [name(f"pair_{i}_{j}") for i in range(components) for j in range(components)]
        most = logs[0]
        for one in logs[1:]:
            most = greatest(most, one)
        shares = total([exp(greatest(one - name("most"), LOWEST)) for one in logs])
        return Step("most", most), Step(LOG_MEAN, name("most") + ln(shares * (1 / len(logs))))

    @property
    def given(self) -> tuple[str, ...]:
        """What the score is worked out from, in this order: of `GIVEN`, what counts."""
        return GIVEN if self.has_variance else GIVEN[::2]


def require_diagonal(like: Distribution) -> None:
    """Refuse embeddings whose covariances are not diagonal: engines have no determinants.

    Args:
        like: The embeddings.
    """
    if not like.is_diagonal:
        raise ShapeError(
            f"engines compare points, Gaussians and mixtures with diagonal covariances, got a {type(like).__name__}: "
            "search in a store of hedged, or train a head with diagonal covariances"
        )


def distance_score(scale: float, bias: float, dim: int) -> Score:
    """b − a‖μ₁ − μ₂‖ of points.

    Args:
        scale: a.
        bias: b.
        dim: D.
    """
    apart = MEAN1 - MEAN2
    distance = sqrt(greatest(name("squares"), TINY_64))
    return Score(
        dim,
        False,
        (Step("apart", apart),),
        (Step("squares", least(name("apart") * name("apart"), FARTHEST**2)),),
        (Step(LOG_MEAN, distance),),
        (Step("log_odds", bias - scale * name(LOG_MEAN)),),
    )


def curve_score(scale: float, bias: float, terms: Terms, chord_end: float, dim: int) -> Score:
    """log p/(1 − p) with p = Σ_j w_j Π_d (1 + 2c_j s_d)^(−1/2) exp(−c_j m_d² / (1 + 2c_j s_d)).

    m = a (μ₁ − μ₂) and s = a² (σ₁² + σ₂²). The mean over pairs of components; none below Jensen's bound, all at most
    σ(b), as in `ClosedForm`.

    Args:
        scale: a.
        bias: b.
        terms: c_j and w_j.
        chord_end: Where Jensen's bound turns from a chord to the curve itself.
        dim: D.
    """
    if abs(bias) > MOST_BIAS:
        raise ValueRangeError(
            f"engines compute a match curve whose bias b is between −{MOST_BIAS:g} and {MOST_BIAS:g}, got {bias:g}: "
            "beyond, its weights are too small for a double"
        )
    a = min(max(scale, 1 / FARTHEST), FARTHEST)
    apart = a * (MEAN1 - MEAN2)
    wide1, wide2 = (least(a**2 * variance, FARTHEST**2) for variance in (VARIANCE1, VARIANCE2))
    near, wide = least(name("square"), MOST), least(name("spread"), MOST)
    used = [(c, w) for c, w in zip(terms.widths.tolist(), terms.weights.tolist(), strict=True) if w]
    widest = min(used)[0]
    sums = [
        Step("reach", name("square") + name("spread")),
        Step("exponent", widest * name("near") / (1 + (2 * widest) * name("wide"))),
        Step("volume", ln(1 + (2 * widest) * name("wide"))),
    ]
    powers = []
    for j, (c, w) in enumerate(used):
        power = name("exponent") + 0.5 * name("volume")
        if c > widest:
            stretch = 1 + (2 * c) * name("wide")
            sums.append(Step(f"power{j}", c * name("near") / stretch + 0.5 * ln(stretch)))
            power = name(f"power{j}")
        powers.append(where(power, LEAST_TERM, w * exp(-power), 0.0))
    lowest = TOO_SMALL * TINY_64
    highest = bias - math.log1p(math.exp(bias)) if bias < 0 else -math.log1p(math.exp(-bias))
    half = name("log_p") * 0.5
    return Score(
        dim,
        True,
        (
            Step("apart", apart),
            Step("square", least(name("apart") * name("apart"), FARTHEST**2)),
            Step("spread", wide1 + wide2),
            Step("near", near),
            Step("wide", wide),
        ),
        tuple(sums),
        (
            Step("far", sqrt(greatest(name("reach"), lowest))),
            Step("bound", _log_floor(name("far"), bias, chord_end)),
            Step("counts", where(name("exponent"), LEAST_POWER, where(name("volume"), MOST_VOLUME, 1.0, 0.0), 0.0)),
            Step("p", where(0.5, name("counts"), total(powers), 0.0)),
            Step(LOG_MEAN, greatest(where(lowest, name("p"), ln(greatest(name("p"), lowest)), LEAST), name("bound"))),
        ),
        (
            Step("log_p", least(name(LOG_MEAN), highest)),
            Step(
                "log_odds",
                where(name("log_p"), CERTAIN, name("log_p"), half - ln(2 * sinh(-greatest(half, CERTAIN)))),
            ),
        ),
    )


def _log_floor(far: Expression, bias: float, touch: float) -> Expression:
    """log of Jensen's bound at a·√E‖δ‖²."""
    if touch == 0:
        return _log_sigmoid(bias - far)
    first, last = (1 / (1 + math.exp(u - bias)) for u in (0.0, touch))
    chord = first + ((last - first) / touch) * least(far, touch)
    return where(far, touch, ln(chord), _log_sigmoid(bias - greatest(far, touch)))


def _log_sigmoid(x: Expression) -> Expression:
    """log σ(x) of x ≤ 0."""
    return x - ln(1 + exp(greatest(x, LOWEST)))


def evidence_score(settings: Mapping[str, float], dim: int, aside: int | None) -> Score:
    """c + κ L, L = ½ Σ_d [(σ₂²μ₁² + σ₁²μ₂² − (μ₁ − μ₂)²)/t − log t], t = σ₁² + (1 − σ₁²)σ₂².

    Of mixtures, e^L is the mean over pairs of components. With rarity, L > 0 becomes L + eL/(L + |e|).

    Args:
        settings: Of the match model.
        dim: D, without the dimensions that are none of z.
        aside: The dimension that says how rare an input is; None: there is none.
    """
    rarity = settings.get("rarity", 0.0)
    apart = MEAN1 - MEAN2
    t = name("t")
    factor = (VARIANCE2 * MEAN1 * MEAN1 + VARIANCE1 * MEAN2 * MEAN2 - apart * apart) / t - ln(t)
    steps = [Step("factor", name(LOG_MEAN))]
    if rarity:
        steps = [
            Step("excess", rarity * (name("aside1") + name("aside2"))),
            Step("known", greatest(name(LOG_MEAN), 0.0)),
            Step(
                "factor",
                name(LOG_MEAN) + name("excess") * (name("known") / (name("known") + size(name("excess")) + TINY_64)),
            ),
        ]
    return Score(
        dim,
        True,
        (Step("t", VARIANCE1 + (1 - VARIANCE1) * VARIANCE2),),
        (Step("factors", factor),),
        (Step(LOG_MEAN, number(0.5) * name("factors")),),
        (*steps, Step("log_odds", settings["log_odds"] + settings["temper"] * name("factor"))),
        aside,
    )

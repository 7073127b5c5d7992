"""By what ways are compared: telling errors, telling novel inputs, and what is left when the uncertain are refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedged.bench.uncertainty.sets import Floats, Ints, TrialSet
from hedged.bench.uncertainty.way import Fitted, Scores
from hedged.metrics import reject_curve, roc_auc

FALSE_MATCHES = 0.01
FALSE_ALARMS = 0.1
TEMPLATE = 3
DRAWS = 5
SHARES = np.linspace(0, 0.5, 11)  # of inputs discarded
MOST_TESTED = 4000  # test inputs; of more, so many are drawn


class Measure(NamedTuple):
    """A column of the table.

    Args:
        name: as it stands in the table.
        is_better_higher: whether more is better.
    """

    name: str
    is_better_higher: bool


MEASURES = {
    "r_auroc": Measure("R-AUROC", True),
    "aurc": Measure("AURC", False),
    "error_discarded": Measure("FNMR, discarding", False),
    "novelty_auroc": Measure("novelty AUROC", True),
    "dir": Measure("DIR", True),
}


def measured(fitted: Fitted, trial: TrialSet, seed: int) -> dict[str, Any]:
    """All measures of a way on a set, by name; `curve` is the error at each share of `SHARES`.

    Args:
        fitted: the way.
        trial: the set.
        seed: which inputs are seen worse, and who is enrolled.
    """
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(trial.test.y))[:MOST_TESTED])
    test = trial.test.of(rows)
    x, y = test.mixed(seed), test.y
    scores, doubt = fitted.scores(x, x), fitted.uncertainty(x)
    found: dict[str, Any] = told_errors(scores, doubt, y)
    curve = [miss_rate(scores, y, kept_of(doubt, share)) for share in SHARES]
    found["curve"], found["error_discarded"] = curve, float(np.mean(curve))
    if trial.novel is not None and len(trial.novel):
        told = fitted.novelty(np.concatenate([test.clean, trial.novel]))
        found["novelty_auroc"] = roc_auc(told, np.repeat([False, True], [len(test.clean), len(trial.novel)]))
    found["dir"] = float(np.mean([identified(fitted, x, y, draw) for draw in range(DRAWS)]))
    return found


def best_matches(fitted: Fitted, x: Floats, y: Ints) -> dict[str, float]:
    """What tuning looks at: how uncertainty tells inputs whose best match among the others is wrong.

    Args:
        fitted: the way.
        x: vectors, (n, F).
        y: identities, (n,).
    """
    return told_errors(fitted.scores(x, x), fitted.uncertainty(x), y)


def told_errors(scores: Scores, doubt: Scores, y: Ints) -> dict[str, float]:
    """R-AUROC and AURC of best matches, of inputs that have another of their identity.

    Args:
        scores: of all pairs, (n, n).
        doubt: how uncertain each input is, (n,).
        y: identities, (n,).
    """
    has_match = np.bincount(y, minlength=int(y.max()) + 1)[y] > 1
    right = first_is_right(scores, y)[has_match]
    is_even = right.all() or not right.any()
    return {
        "r_auroc": 0.5 if is_even else roc_auc(doubt[has_match], ~right),
        "aurc": reject_curve(doubt[has_match], right).aurc,
    }


def first_is_right(scores: Scores, y: Ints) -> NDArray[np.bool_]:
    """Whether the best match of each input among the others is of its identity, (n,).

    Args:
        scores: of all pairs, (n, n).
        y: identities, (n,).
    """
    others = np.where(np.eye(len(y), dtype=bool), -np.inf, scores)
    right: NDArray[np.bool_] = y[others.argmax(1)] == y
    return right


def kept_of(doubt: Scores, share: float) -> NDArray[np.intp]:
    """The inputs that are left when a share, the most uncertain, is discarded.

    Args:
        doubt: (n,).
        share: in [0, 1).
    """
    return np.sort(np.argsort(doubt, kind="stable")[: len(doubt) - round(share * len(doubt))])


def miss_rate(scores: Scores, y: Ints, kept: NDArray[np.intp]) -> float:
    """The share of matches that are missed at a false match rate of 0.01, among the inputs that are kept.

    Args:
        scores: of all pairs, (n, n).
        y: identities, (n,).
        kept: rows.
    """
    first, second = np.triu_indices(len(kept), 1)
    values = scores[np.ix_(kept, kept)][first, second]
    match = y[kept][first] == y[kept][second]
    threshold = np.quantile(values[~match], 1 - FALSE_MATCHES)
    return float((values[match] <= threshold).mean())


def identified(fitted: Fitted, x: Floats, y: Ints, draw: int) -> float:
    """The share of probes found under their name at a false alarm rate of 0.1, half of the identities enrolled.

    Args:
        fitted: the way.
        x: vectors, (n, F).
        y: identities, (n,).
        draw: who is enrolled, and by which vectors.
    """
    rng = np.random.default_rng(draw)
    enrolled: list[int] = []
    known: list[int] = []
    strangers: list[int] = []
    names = rng.permutation(np.unique(y))
    number = {int(name): k for k, name in enumerate(names[::2])}
    for k, name in enumerate(names):
        rows = rng.permutation(np.flatnonzero(y == name)).tolist()
        if k % 2:
            strangers += rows
        else:
            enrolled += rows[:TEMPLATE]
            known += rows[TEMPLATE:]
    if not known or not strangers:
        return float("nan")
    owner = np.array([number[int(name)] for name in y[enrolled]])
    scores = fitted.template_scores(x[known + strangers], x[enrolled], owner)
    alarm = np.quantile(scores[len(known) :].max(1), 1 - FALSE_ALARMS)
    of_known = scores[: len(known)]
    truth = np.array([number[int(name)] for name in y[known]])
    return float(((of_known.argmax(1) == truth) & (of_known.max(1) >= alarm)).mean())

"""`calibration.json`: what `hedged calibrate` found, beside the model that it holds for."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self, final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hedged._files import CALIBRATION, write_json
from hedged._odds import expit
from hedged._reading import read_json
from hedged.decisions.calibrators import Calibrator, base_rate_shift
from hedged.decisions.guarantees import FalsePositiveThreshold, GalleryThresholds
from hedged.decisions.policy import Policy, Verdict
from hedged.errors import HedgedError, RunError

FORMAT = 3
READABLE = (1, 2, FORMAT)  # the first knew nothing of galleries, the second nothing of scores


class Answer(NamedTuple):
    """The answer to "do these two match?".

    Args:
        verdict: What is done about the pair.
        probability: The calibrated probability that it matches.
    """

    verdict: Verdict
    probability: float


@final
@dataclass(frozen=True)
class Decider:
    """Turns the log-odds of a model into calibrated probabilities, and those into decisions.

    Args:
        fingerprint: That of the model it was made for.
        calibrator: From the model's log-odds to calibrated ones.
        base_rate: The share of pairs that match where it is used.
        policy: When to accept, reject and abstain.
        gallery: Thresholds for identification, if `hedged calibrate --fpir` found some.
        reference: What inputs were like, by statistic, one input an identity, for `hedged drift`; None: not known.
        scores: The model's log-odds of the pairs it was made on, sorted, under "match" and "non_match", thinned out
            where they are many; None: not known.

    >>> from hedged.decisions import Temperature
    >>> decider = Decider("0123456789abcdef", Temperature(2.0, 1.0), 0.5, Policy(-2.0, 3.0))
    >>> decider.answer(4.0)
    Answer(verdict=<Verdict.ACCEPT: 'accept'>, probability=0.9525741268224334)
    """

    fingerprint: str
    calibrator: Calibrator
    base_rate: float
    policy: Policy
    gallery: GalleryThresholds | None = None
    reference: dict[str, tuple[float, ...]] | None = None
    scores: dict[str, tuple[float, ...]] | None = None

    def log_odds(self, scores: Any) -> Any:
        """Calibrated log-odds at the base rate, an array of the shape of `scores`.

        Args:
            scores: The model's log-odds of a match.
        """
        return self.calibrator.log_odds(np.asarray(scores, dtype=np.float64)) + base_rate_shift(self.base_rate)

    def probability(self, scores: Any) -> Any:
        """Calibrated match probabilities at the base rate, an array of the shape of `scores`.

        Args:
            scores: The model's log-odds of a match.
        """
        return expit(self.log_odds(scores))

    def answer(self, score: float) -> Answer:
        """The decision about one pair.

        Args:
            score: The model's log-odds that it matches.
        """
        return Answer(self.policy.verdict(score), float(self.probability(score)))

    def describe(self) -> dict[str, Any]:
        """What decides about pairs, as plain data: the calibrator, the base rate and both thresholds."""
        return {
            "calibrator": self.calibrator.describe(),
            "base_rate": self.base_rate,
            "reject_below": _finite(self.policy.reject_below),
            "accept_from": _finite(self.policy.accept_from),
        }

    def save(self, folder: str | Path, report: dict[str, Any] | None = None) -> Path:
        """Write `calibration.json` into a folder.

        Args:
            folder: That of the model.
            report: For readers; `load_decider` does not look at it.
        """
        content = {
            "format": FORMAT,
            "model": self.fingerprint,
            **self.describe(),
            "gallery": self.gallery.describe() if self.gallery else None,
            "reference": self.reference,
            "scores": self.scores,
            "report": report or {},
        }
        write_json(Path(folder) / CALIBRATION, content)
        return Path(folder) / CALIBRATION

    @classmethod
    def _of(cls, saved: _Saved) -> Self:
        policy = Policy(saved.reject_below, saved.accept_from)
        gallery = saved.gallery.restored() if saved.gallery else None
        calibrator = Calibrator.restore(saved.calibrator)
        scores = saved.scores.model_dump() if saved.scores else None
        return cls(saved.model, calibrator, saved.base_rate, policy, gallery, saved.reference, scores)


def load_decider(folder: str | Path, fingerprint: str) -> Decider | None:
    """The decider saved beside a model, or None if there is none.

    Args:
        folder: That of the model.
        fingerprint: That of the model; a calibration of another one is refused.
    """
    path = Path(folder) / CALIBRATION
    try:
        content = read_json(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}): write it again with `hedged calibrate`") from error
    version = content.get("format") if isinstance(content, dict) else None
    if version not in READABLE:
        raise RunError(
            f"{path} is of format {version!r}, this version of hedged reads formats {READABLE[0]} to {FORMAT}: write "
            "it again with `hedged calibrate`"
        )
    decider = _parse(content, path)
    if decider.fingerprint != fingerprint:
        raise RunError(
            f"{path} was made for another model ({decider.fingerprint}, not {fingerprint}): calibrate this one with "
            "`hedged calibrate`"
        )
    return decider


class _Checked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _SavedThreshold(_Checked):
    rate: Annotated[float, Field(gt=0, lt=1)]
    score: float


class _SavedGallery(_Checked):
    identities: Annotated[int, Field(ge=1)]
    strangers: Annotated[int, Field(ge=1)]
    thresholds: Annotated[list[_SavedThreshold], Field(min_length=1)]

    def restored(self) -> GalleryThresholds:
        found = tuple(FalsePositiveThreshold(one.rate, one.score) for one in self.thresholds)
        return GalleryThresholds(self.identities, self.strangers, found)


class _SavedScores(_Checked):
    match: tuple[float, ...]
    non_match: tuple[float, ...]


class _Saved(_Checked):
    format: int
    model: str
    calibrator: dict[str, Any]
    base_rate: Annotated[float, Field(gt=0, lt=1)]
    reject_below: float
    accept_from: float
    gallery: _SavedGallery | None = None
    reference: dict[str, tuple[float, ...]] | None = None
    scores: _SavedScores | None = None
    report: dict[str, Any]


def _parse(content: Any, path: Path) -> Decider:
    try:
        return Decider._of(_Saved.model_validate(content))
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc']))}: {first['msg'].lower()}"
    except HedgedError as error:
        problem = str(error)
    raise RunError(f"{path} is no calibration ({problem}): write it again with `hedged calibrate`")


def _finite(score: float) -> float:
    """A threshold for JSON, which has no infinity: the greatest number is as far out of reach."""
    return min(max(score, -sys.float_info.max), sys.float_info.max)

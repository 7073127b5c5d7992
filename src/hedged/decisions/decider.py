"""`calibration.json`: what `hedged calibrate` found, beside the model that it holds for."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from scipy.special import expit

from hedged._files import CALIBRATION, write_json
from hedged.decisions.calibrators import Calibrator, Isotonic, Temperature, base_rate_shift
from hedged.decisions.policy import Policy, Verdict
from hedged.errors import HedgedError, RunError

FORMAT = 1


class Answer(NamedTuple):
    """What is done about a pair, and the calibrated probability that it matches."""

    verdict: Verdict
    probability: float


@final
@dataclass(frozen=True)
class Decider:
    """Turns the log-odds of a model into probabilities that come true, and those into decisions.

    `base_rate` is the share of pairs that match where it is used; `fingerprint` is that of the model it was made for.

    >>> decider = Decider("0123456789abcdef", Temperature(2.0, 1.0), 0.5, Policy(-2.0, 3.0))
    >>> decider.answer(4.0)
    Answer(verdict=<Verdict.ACCEPT: 'accept'>, probability=0.9525741268224334)
    """

    fingerprint: str
    calibrator: Calibrator
    base_rate: float
    policy: Policy

    def log_odds(self, scores: Any) -> Any:
        """Calibrated log-odds at the base rate, an array of the shape of `scores`: the model's log-odds of a match."""
        return self.calibrator.log_odds(np.asarray(scores, dtype=np.float64)) + base_rate_shift(self.base_rate)

    def probability(self, scores: Any) -> Any:
        """Calibrated match probabilities at the base rate, an array of the shape of `scores`."""
        return expit(self.log_odds(scores))

    def answer(self, score: float) -> Answer:
        """The decision about one pair, given the model's log-odds that it matches."""
        return Answer(self.policy.verdict(score), float(self.probability(score)))

    def save(self, folder: Path, report: dict[str, Any] | None = None) -> Path:
        """Write `calibration.json` into a folder, with a report for readers that `load_decider` does not look at."""
        content = {
            "format": FORMAT,
            "model": self.fingerprint,
            "calibrator": _described(self.calibrator),
            "base_rate": self.base_rate,
            "reject_below": _finite(self.policy.reject_below),
            "accept_from": _finite(self.policy.accept_from),
            "report": report or {},
        }
        write_json(folder / CALIBRATION, content)
        return folder / CALIBRATION

    @classmethod
    def _of(cls, saved: _Saved) -> Self:
        policy = Policy(saved.reject_below, saved.accept_from)
        return cls(saved.model, saved.calibrator.build(), saved.base_rate, policy)


def load_decider(folder: str | Path, fingerprint: str) -> Decider | None:
    """The decider saved beside the model of this fingerprint, or None if there is none."""
    path = Path(folder) / CALIBRATION
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}): write it again with `hedged calibrate`") from error
    version = content.get("format") if isinstance(content, dict) else None
    if version != FORMAT:
        raise RunError(
            f"{path} is of format {version!r}, this version of hedged reads format {FORMAT}: write it again with "
            "`hedged calibrate`"
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


class _Temperature(_Checked):
    kind: Literal["temperature"]
    temperature: Annotated[float, Field(gt=0)]
    shift: float

    def build(self) -> Calibrator:
        return Temperature(self.temperature, self.shift)


class _Isotonic(_Checked):
    kind: Literal["isotonic"]
    scores: Annotated[tuple[float, ...], Field(min_length=1)]
    values: Annotated[tuple[float, ...], Field(min_length=1)]

    def build(self) -> Calibrator:
        return Isotonic(self.scores, self.values)


class _Saved(_Checked):
    format: int
    model: str
    calibrator: Annotated[_Temperature | _Isotonic, Field(discriminator="kind")]
    base_rate: Annotated[float, Field(gt=0, lt=1)]
    reject_below: float
    accept_from: float
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


def _described(calibrator: Calibrator) -> dict[str, Any]:
    if isinstance(calibrator, Temperature):
        return {"kind": "temperature", "temperature": calibrator.temperature, "shift": calibrator.shift}
    if isinstance(calibrator, Isotonic):
        return {"kind": "isotonic", "scores": list(calibrator.scores), "values": list(calibrator.values)}
    raise RunError(f"a {type(calibrator).__name__} cannot be saved: use Temperature or Isotonic")


def _finite(score: float) -> float:
    """A threshold for JSON, which has no infinity: the greatest number is as far out of reach."""
    return min(max(score, -sys.float_info.max), sys.float_info.max)

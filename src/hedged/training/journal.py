"""What training writes about itself: a line of JSON every so many steps, and a warning in words when a part fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from hedged._files import write_text
from hedged._reading import MAX_TABLE_BYTES, parse_json, read_bytes
from hedged.distributions import Distribution, Gaussian
from hedged.errors import RunError
from hedged.losses import LossParts
from hedged.match import MatchModel, self_mismatch

DEAD, EXPLODED = 1e-2, 50.0  # mean variance, in units of the match model


class Journal:
    """The log of a run.

    Args:
        path: The file, one line of JSON a record.
        resume_from: The step the run resumes from; what the log says of later ones is cut off.
    """

    def __init__(self, path: Path, resume_from: int = 0) -> None:
        self.path = path
        lines = _lines(self.path) if self.path.exists() else []
        kept = [line for line in lines if 0 < _step(line) <= resume_from]
        write_text(self.path, "".join(f"{line}\n" for line in kept))

    def write(self, record: dict[str, Any]) -> None:
        """Add a line.

        Args:
            record: What it says.
        """
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise RunError(
                f"cannot write {self.path}: {error.strerror}. Free space, then continue with --resume"
            ) from error


def _step(line: str) -> int:
    """The step a line of the log is about; 0 for one that a kill has cut, or that is none of ours."""
    try:
        return int(parse_json(line)["step"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return 0


def last_step(path: Path) -> int:
    """The last step that a log tells of; 0 if there is none.

    Args:
        path: The log.
    """
    try:
        lines = _lines(path)
    except RunError:
        return 0
    return max(map(_step, lines[-2:]), default=0)


def _lines(path: Path) -> list[str]:
    try:
        return read_bytes(path, MAX_TABLE_BYTES).decode(errors="replace").splitlines()
    except (OSError, ValueError) as error:
        raise RunError(f"{path} is no log of a run ({error}): train into a new folder") from error


@torch.no_grad()
def describe(step: int, loss: LossParts, z: Distribution, model: MatchModel) -> dict[str, Any]:
    """Loss parts, the match model, and how the batch's embeddings are spread."""
    record: dict[str, Any] = {"step": step, **{name: value.item() for name, value in loss._asdict().items()}}
    record |= model.settings()
    if z.is_point:
        return record
    mean, variance = (part.flatten(0, -2) for part in z.parts())
    record["kl_per_dim"] = Gaussian(mean, variance).kl_per_dim().mean(0).tolist()
    record["variance"] = variance.mean().item()
    record["variance_spread"] = variance.log().std().item()
    record["uncertainty"] = self_mismatch(z, model).mean().item()
    if warning := diagnose(record["variance"] / model.unit_variance()):
        record["warning"] = warning
    return record


def diagnose(relative: float) -> str | None:
    """A warning where the mean variance, in units of `MatchModel.unit_variance`, no longer says anything.

    >>> print(diagnose(0.001))
    the variances have died (0.001 of the match model's unit): embeddings are points; raise loss.beta or lower ...
    """
    if relative < DEAD:
        return (
            f"the variances have died ({relative:.1g} of the match model's unit): embeddings are points; "
            'raise loss.beta or lower train.learning_rate, and use loss.likelihood = "marginal"'
        )
    if relative > EXPLODED:
        return (
            f"the variances have exploded ({relative:.1g} of the match model's unit): every input looks uncertain; "
            "lower loss.beta or train.learning_rate"
        )
    return None

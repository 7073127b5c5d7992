"""A fitted head on disk: a model as any other, with two files beside it of what only `Retrofit` knows.

| file | holds |
|---|---|
| model.json, model.safetensors | the head and its calibrated match model: `Embedder.load` opens them |
| retrofit.json | the parameters of `Retrofit` and its report |
| retrofit.safetensors | training vectors that novelty is measured from |
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError

from hedged._files import make_folder, write_json
from hedged._reading import read_json
from hedged._tensors import load_tensors, save_tensors
from hedged.errors import RunError
from hedged.models import Embedder
from hedged.models.saved import DESCRIPTION as MODEL
from hedged.retrofit.distance import NeighbourDistance
from hedged.retrofit.select import Report

FORMAT = 2
DESCRIPTION, WEIGHTS = "retrofit.json", "retrofit.safetensors"


class Saved(NamedTuple):
    """What a folder holds.

    Args:
        parameters: of `Retrofit`.
        embedder: vectors to Gaussians, with the calibrated match model.
        novelty: the training vectors.
        report: what was compared and chosen.
    """

    parameters: dict[str, Any]
    embedder: Embedder
    novelty: NeighbourDistance
    report: Report


def write(folder: Path, content: Saved) -> None:
    """Write all files; each appears whole or not at all, and `read` tells if they are of two heads.

    Args:
        folder: made if need be; files of a head in it are replaced.
        content: what to write.
    """
    make_folder(folder)
    save_tensors(folder / WEIGHTS, content.novelty.state_dict())
    described = {
        "format": FORMAT,
        "model": content.embedder.fingerprint(),
        "parameters": content.parameters,
        "report": content.report.as_dict(),
    }
    write_json(folder / DESCRIPTION, described)
    content.embedder.save(folder)


def read(folder: Path) -> Saved:
    """What `write` wrote, or why it cannot be read.

    Args:
        folder: where it is.
    """
    described = _described(folder)
    embedder = Embedder.load(folder)
    if described["model"] != embedder.fingerprint():
        raise RunError(
            f"{folder / DESCRIPTION} belongs to another head than {folder / MODEL}: restore the files of one head, or "
            "fit it again"
        )
    try:
        known = load_tensors(folder / WEIGHTS).tensors
        novelty = NeighbourDistance(embedder.head.features, len(known["known"]))
        novelty.load_state_dict(known)
        report = Report.restored(described["report"])
        return Saved(dict(described["parameters"]), embedder, novelty, report)
    except FileNotFoundError as error:
        raise RunError(f"{folder / WEIGHTS} is missing: restore the files of one head, or fit it again") from error
    except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise RunError(f"the head in {folder} cannot be read ({error}): restore its files, or fit it again") from error


def _described(folder: Path) -> dict[str, Any]:
    """What `retrofit.json` says, as far as it can be told without the model."""
    path = folder / DESCRIPTION
    try:
        content = read_json(path)
    except FileNotFoundError as error:
        if (folder / MODEL).exists():
            raise RunError(
                f"{folder} holds a model that was trained, not fitted by Retrofit ({DESCRIPTION} is missing): open it "
                f"with Embedder.load({str(folder)!r})"
            ) from error
        raise RunError(
            f"{folder} holds no head ({DESCRIPTION} is missing): fit one and head.save({str(folder)!r})"
        ) from error
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}): restore the file, or fit the head again") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RunError(f"{path} is of another format than {FORMAT}: use the version that wrote it, or fit it again")
    if not {"model", "parameters", "report"} <= content.keys():
        raise RunError(f"{path} is not whole: restore the file, or fit the head again")
    return content

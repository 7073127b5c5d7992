"""A fitted head on disk: a model as any other, with a file beside it of what only `Retrofit` knows.

| file | holds |
|---|---|
| model.json, model.safetensors, novelty.safetensors | head, match model and novelty: `Embedder.load` opens them |
| retrofit.json | the parameters of `Retrofit` and its report |

Format 2, which is still read, kept training vectors for another novelty in retrofit.safetensors: of such a head, it is
not known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from hedged._files import make_folder, write_json
from hedged._reading import read_json
from hedged.errors import RunError
from hedged.models import Embedder
from hedged.models.saved import DESCRIPTION as MODEL
from hedged.retrofit.select import Report

FORMAT, FIRST_FORMAT = 3, 2
DESCRIPTION, FIRST_WEIGHTS = "retrofit.json", "retrofit.safetensors"


class Saved(NamedTuple):
    """What a folder holds.

    Args:
        parameters: of `Retrofit`.
        embedder: vectors to Gaussians, with the calibrated match model and novelty.
        report: what was compared and chosen.
    """

    parameters: dict[str, Any]
    embedder: Embedder
    report: Report


def write(folder: Path, content: Saved) -> None:
    """Write all files; each appears whole or not at all, and `read` tells if they are of two heads.

    Args:
        folder: made if need be; files of a head in it are replaced.
        content: what to write.
    """
    make_folder(folder)
    (folder / FIRST_WEIGHTS).unlink(missing_ok=True)
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
        return Saved(dict(described["parameters"]), embedder, Report.restored(described["report"]))
    except (KeyError, TypeError, ValueError) as error:
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
    if not isinstance(content, dict) or content.get("format") not in (FIRST_FORMAT, FORMAT):
        raise RunError(
            f"{path} is of another format than {FIRST_FORMAT} or {FORMAT}: use the version that wrote it, or fit again"
        )
    if not {"model", "parameters", "report"} <= content.keys():
        raise RunError(f"{path} is not whole: restore the file, or fit the head again")
    return content

"""A model on disk: `model.json`, which describes it in words, and `model.safetensors`, its weights.

Format 2 names the match model and the views beside the architecture. Format 1, which is still read, knew the match
curve alone, whose weights were called `curve.*`, and the views that `mirrored` in the architecture stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError
from safetensors import SafetensorError
from torch import Tensor

from hedged._files import make_folder, write_json
from hedged._reading import read_json
from hedged._tensors import load_tensors, read_shapes, save_tensors
from hedged.errors import RunError
from hedged.match import MatchModel
from hedged.models.config import Architecture
from hedged.models.views import Views

T = TypeVar("T")

FORMAT = 2
DESCRIPTION, WEIGHTS = "model.json", "model.safetensors"
MODEL_PREFIX = "hedged:"  # before the name of a model that comes with the package
MODELS = Path(__file__).parent / "shipped"
FIRST_KIND = {"kind": "curve"}  # the match model of format 1
MATCH_MODEL, FIRST_NAME = "match_model.", "curve."  # before the names of its weights, now and in format 1


class Description(NamedTuple):
    """What `model.json` says.

    Args:
        architecture: backbone, head and the shape of inputs.
        match_model: when two embeddings match; its weights follow.
        views: what `Embedder.embed` looks at.
        notes: where the weights come from.
    """

    architecture: Architecture
    match_model: MatchModel
    views: Views
    notes: dict[str, Any]


def write_model(folder: Path, description: Description, weights: Mapping[str, Tensor]) -> None:
    """Write both files; each appears whole or not at all.

    Args:
        folder: where to; it is made if it is not there.
        description: what `model.json` says.
        weights: by name.
    """
    make_folder(folder)
    save_tensors(folder / WEIGHTS, weights)
    described = {
        "format": FORMAT,
        "architecture": description.architecture.model_dump(mode="json"),
        "match_model": description.match_model.describe(),
        "views": description.views.describe(),
        "notes": description.notes,
    }
    write_json(folder / DESCRIPTION, described)


def read_description(folder: Path) -> Description:
    """What `model.json` in a folder says.

    Args:
        folder: of the model.
    """
    path = folder / DESCRIPTION
    try:
        content = read_json(path)
    except FileNotFoundError as error:
        raise RunError(
            f"{folder} holds no model ({DESCRIPTION} is missing): train one with `hedged train`, or fit one "
            "to vectors with `hedged retrofit`"
        ) from error
    except NotADirectoryError as error:
        raise RunError(
            f"{folder} is a file, not a model: give the folder that `hedged train` or `hedged retrofit` made"
        ) from error
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read ({error}): train the model again or restore the file") from error
    version = content.get("format") if isinstance(content, dict) else None
    if version not in (1, FORMAT):
        raise RunError(
            f"{path} is of format {version!r}, this version of hedged reads formats 1 to {FORMAT}: "
            "use the version that wrote it, or train the model again"
        )
    try:
        architecture = Architecture.model_validate(content.get("architecture"))
        match_model = MatchModel.restore(FIRST_KIND if version == 1 else content["match_model"])
        views = architecture.section.views if version == 1 else Views.restore(content["views"])
        notes = content.get("notes") or {}
        if not isinstance(notes, dict):
            raise ValueError(f"its notes are {notes!r}")
        return Description(architecture, match_model, views, notes)
    except (ValidationError, KeyError, ValueError) as error:
        raise RunError(f"{path} describes a model this version of hedged does not have: {error}") from error


def check_shapes(path: Path, expected: Mapping[str, Tensor]) -> None:
    """Refuse a file whose header says that its weights are those of another model, before memory is taken for either.

    Args:
        path: of the file of weights.
        expected: tensors of the shapes that they have to have, such as those of a model on the device "meta".
    """
    found = with_current_names(_reading(path, read_shapes))
    wrong = [n for n in expected.keys() | found.keys() if n not in expected or n not in found]
    wrong += [n for n in expected.keys() & found.keys() if tuple(expected[n].shape) != found[n]]
    if wrong:
        raise RunError(
            f"{path} holds the weights of another model than {path.parent / DESCRIPTION} describes "
            f"(they differ in {', '.join(sorted(wrong)[:3])}): restore the files of one run, or train the model again"
        )


def read_weights(path: Path) -> dict[str, Tensor]:
    """The weights in a file, by the names they have now.

    Args:
        path: of the file, whose shapes were checked.
    """
    return with_current_names(_reading(path, load_tensors).tensors)


def _reading(path: Path, read: Callable[[Path], T]) -> T:
    """What a reader finds in a file of weights, or why it cannot be read."""
    try:
        return read(path)
    except FileNotFoundError as error:
        raise RunError(f"{path} is missing: the folder holds a description without weights") from error
    except (OSError, ValueError, SafetensorError) as error:
        raise RunError(
            f"{path} is damaged or truncated ({error}): train the model again or restore the file"
        ) from error


def with_current_names(weights: Mapping[str, T]) -> dict[str, T]:
    """Weights, or their shapes, under the names they have now: those of the match curve were called `curve.*` once.

    Args:
        weights: by name, as they were saved.
    """
    return {_renamed(name, FIRST_NAME, MATCH_MODEL): tensor for name, tensor in weights.items()}


def with_first_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights under the names of format 1, by which the hash of a model stays what it was.

    Args:
        weights: by name, as they are now.
    """
    return {_renamed(name, MATCH_MODEL, FIRST_NAME): tensor for name, tensor in weights.items()}


def _renamed(name: str, old: str, new: str) -> str:
    return new + name.removeprefix(old) if name.startswith(old) else name


def model_folder(name: str | Path) -> Path:
    """The folder of a model: of one that ships, by name, or the folder that is given.

    Args:
        name: such as "hedged:ndigit-2d", or a path.
    """
    if not str(name).startswith(MODEL_PREFIX):
        return Path(name)
    if str(name) not in shipped_models():
        there = ", ".join(shipped_models()) or "none at all"
        raise RunError(f"no model ships as {name}; there are: {there}. Choose one, or give a folder")
    return MODELS / str(name).removeprefix(MODEL_PREFIX)


def shipped_models() -> list[str]:
    """The names under which trained models ship."""
    return [MODEL_PREFIX + path.parent.name for path in sorted(MODELS.glob(f"*/{DESCRIPTION}"))]

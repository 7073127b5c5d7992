"""The file of an embedded index: nothing in it that the store does not hold, only quicker to read."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from hedged._files import write_atomically
from hedged.errors import HedgedError
from hedged.search.first_stage import FirstStage, Plan
from hedged.search.rows import Header, Keys, Packed
from hedged.search.sqlite import State

FORMAT = "1"


class IndexFile(NamedTuple):
    """An index as it is kept: `alive` tells the rows that are still in the store; an exact first stage is not kept."""

    plan: Plan
    state: State
    keys: Keys
    packed: Packed
    alive: NDArray[np.bool_]
    stage: FirstStage | None


def file_of(store: Path) -> Path:
    return store.with_name(f"{store.name}.index")


def write_index_file(path: Path, index: IndexFile) -> None:
    tensors: dict[str, NDArray[Any]] = {"keys": index.keys, "packed": index.packed, "alive": index.alive}
    if index.stage is not None:
        tensors["stage"] = index.stage.content()
    metadata = {"format": FORMAT, "plan": json.dumps(asdict(index.plan)), "state": json.dumps(index.state)}
    content = save(tensors, metadata)
    write_atomically(path, lambda part: part.write_bytes(content))


def read_index_file(path: Path, header: Header) -> IndexFile | None:
    """The index that was kept; None if there is none, or if it is damaged or of another version."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                return None
            plan, state = Plan(**json.loads(metadata["plan"])), State(*json.loads(metadata["state"]))
            keys, packed, alive = (file.get_tensor(name) for name in ("keys", "packed", "alive"))
            stage = None if plan.kind == "exact" else FirstStage.read(plan, file.get_tensor("stage"))
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, RuntimeError, HedgedError):
        return None
    if packed.shape != (len(keys), header.width) or alive.shape != keys.shape:
        return None
    return IndexFile(plan, state, keys, packed, alive, stage)

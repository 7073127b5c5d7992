"""The index of an SQLite store as a file beside it: it saves the time to build the index, and is never trusted."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from hedged._files import remove_parts, write_atomically
from hedged._reading import named_in_utf8, parse_json
from hedged.errors import ConfigError, RunError, StoreError
from hedged.search.engines._first_stage import FirstStage
from hedged.search.engines.sqlite import SqliteStore, State
from hedged.search.index import Plan
from hedged.search.rows import Header, Keys, Packed

FORMAT = "2"  # the first had no checksum, and is made again
DTYPES = {"I64", "F32", "BOOL", "U8"}  # of the tensors in it, as safetensors calls them
DAMAGED = (OSError, SafetensorError, ConfigError)  # StoreError among them; anything else is a bug

logger = logging.getLogger("hedged")


class IndexFile(NamedTuple):
    """An index as it is saved: `alive` marks rows that are still in the store; an exact first stage is not saved."""

    plan: Plan
    state: State
    keys: Keys
    packed: Packed
    alive: NDArray[np.bool_]
    stage: FirstStage | None


def file_of(store: Path) -> Path:
    """The index file of a store.

    Args:
        store: The file of the store.
    """
    return store.with_name(f"{store.name}.index")


def write_index_file(path: Path, index: IndexFile) -> None:
    """Write an index file, which appears whole or not at all.

    Args:
        path: The file.
        index: Its content.
    """
    tensors: dict[str, NDArray[Any]] = {"keys": index.keys, "packed": index.packed, "alive": index.alive}
    if index.stage is not None:
        tensors["stage"] = index.stage.content()
    metadata = {"format": FORMAT, "plan": json.dumps(asdict(index.plan)), "state": json.dumps(index.state)}
    content = save(tensors, {**metadata, "checksum": str(_checksum(tensors, metadata))})
    write_atomically(path, lambda part: part.write_bytes(content))


def read_index_file(path: Path, header: Header) -> IndexFile | None:
    """The index in a file; None if there is none, or, with a warning, if it is damaged or of another version.

    Args:
        path: The file.
        header: Of the store.
    """
    if not path.exists():
        return None
    try:
        return _read(path, header)
    except DAMAGED as error:
        logger.warning("%s cannot be used (%s): the index is made again from the store", path, error)
        return None


def _read(path: Path, header: Header) -> IndexFile:
    with named_in_utf8(path) as name, safe_open(name, framework="numpy") as file:
        metadata = _metadata(file)
        names = set(file.keys())
        if any(file.get_slice(name).get_dtype() not in DTYPES for name in names):
            raise StoreError("it holds numbers of another type")
        tensors = {name: file.get_tensor(name) for name in names}
    stated = metadata.pop("checksum", None)
    if stated != str(_checksum(tensors, metadata)):
        raise StoreError("it is not what was written")
    plan, state = _plan(metadata), _state(metadata)
    if not names >= {"keys", "packed", "alive"}:
        raise StoreError("a part of it is missing")
    keys, packed, alive = (tensors[name] for name in ("keys", "packed", "alive"))
    dtypes = tuple(part.dtype for part in (keys, packed, alive))
    is_whole = keys.ndim == 1 and packed.shape == (len(keys), header.width) and alive.shape == keys.shape
    if not is_whole or dtypes != (np.int64, np.float32, np.bool_) or len(np.unique(keys)) < len(keys):
        raise StoreError("its parts do not fit together")
    stage = FirstStage.read(plan, tensors["stage"]) if "stage" in tensors else None
    if stage is not None and not stage.fits(len(keys) * header.components, header.dim):
        raise StoreError("its first stage is of other vectors")
    return IndexFile(plan, state, keys, packed, alive, stage)


def _metadata(file: Any) -> dict[str, str]:
    metadata = dict(file.metadata() or {})
    if metadata.get("format") != FORMAT:
        raise StoreError(f"it is of format {metadata.get('format')}")
    return metadata


def _plan(metadata: Mapping[str, str]) -> Plan:
    described = _parsed(metadata, "plan")
    if not isinstance(described, dict) or not described.keys() <= {field.name for field in fields(Plan)}:
        raise StoreError("it does not say how candidates are found")
    return Plan(**described)


def _state(metadata: Mapping[str, str]) -> State:
    described = _parsed(metadata, "state")
    if not isinstance(described, list) or tuple(map(type, described)) != (str, int, str):
        raise StoreError("it does not say of which moment of the store it is")
    return State(*described)


def _parsed(metadata: Mapping[str, str], key: str) -> Any:
    text = metadata.get(key, "")
    try:
        return parse_json(text)
    except ValueError as error:
        raise StoreError(f"its {key} cannot be read: {error}") from error


def forget_rows(store: SqliteStore) -> None:
    """Empty the index file of a store, of which rows were removed: the next search fills it by the same plan.

    Args:
        store: The store.
    """
    path = file_of(store.path)
    try:
        remove_parts(path.parent, path.name)
        if path.exists():
            _empty(path, store)
    except OSError as error:
        logger.warning("%s still holds rows that were removed (%s): delete it", path, error)


def _empty(path: Path, store: SqliteStore) -> None:
    try:
        with named_in_utf8(path) as name, safe_open(name, framework="numpy") as file:
            plan = _plan(_metadata(file))
    except DAMAGED:
        path.unlink()
        return
    width = store.header.width
    nothing = np.empty(0, np.int64), np.empty((0, width), np.float32), np.empty(0, np.bool_)
    try:
        write_index_file(path, IndexFile(plan, store.state()._replace(change=0, token=""), *nothing, None))
    except RunError:  # of a full disk; there is always room for no file
        path.unlink()


def _checksum(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> int:
    """CRC-32 of all that an index file holds."""
    found = zlib.crc32(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        found = zlib.crc32(f"{name} {tensor.dtype} {tensor.shape}".encode(), found)
        found = zlib.crc32(tensor.reshape(-1).view(np.uint8).data, found)
    return found


def index_file_faults(store: SqliteStore) -> list[str]:
    """How the index file of a store disagrees with it; a file that is of another past is not used, and passes.

    Args:
        store: The store.
    """
    path, header = file_of(store.path), store.header
    if not path.exists():
        return []
    kept = read_index_file(path, header)
    if kept is None:
        return [f"{path} is damaged: delete it, and it is made again"]
    if not store.has_been(kept.state):
        return []
    since = [part for part, _ in store.changed_since(kept.state.change)]
    outdated = np.concatenate([store.removed_since(kept.state.change), *since])
    places = np.flatnonzero(kept.alive & ~np.isin(kept.keys, outdated))
    rows = dict(zip(kept.keys[places].tolist(), places.tolist(), strict=True))
    new = set(np.concatenate([np.empty(0, np.int64), *since]).tolist())
    agrees = len(rows) == len(places)
    for keys, packed in store.changed_since(0):
        for key, numbers in zip(keys.tolist(), packed, strict=True):
            place = rows.pop(key, None)
            agrees &= key in new if place is None else bool((kept.packed[place] == numbers).all())
    return [] if agrees and not rows else [f"{path} disagrees with the store: delete it, and it is made again"]

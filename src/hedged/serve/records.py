"""What the store holds, for people: items, a map, pictures; and how it is changed. Writes have their own thread."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hedged.distributions import Distribution
from hedged.errors import DataError, RunError
from hedged.match import self_mismatch
from hedged.search import Described, Rows, Where, open_store
from hedged.search.rows import stored_novelty, with_novelty
from hedged.serve.audits import DISMISSED, Audits, mark, marks, without_marks
from hedged.serve.flatten import flattened
from hedged.serve.pictures import Pictures
from hedged.serve.refusals import conflict
from hedged.serve.room import Model, Room, Worker
from hedged.serve.tasks import Kept

LOGGER = logging.getLogger("hedged.serve")
SECOND = " (2)"  # what is added to a label that stood for two
DOUBT = 0.9  # the probability that a new item shows the identity of another label, from which on its enroller is told


@final
@dataclass(frozen=True)
class _Content:
    """All rows of one moment."""

    rows: list[Described]
    z: Distribution
    etas: NDArray[np.float64]

    def item(self, i: int) -> dict[str, Any]:
        row = self.rows[i]
        return {
            "id": row.id,
            "label": row.label,
            "uncertainty": float(self.etas[i]),
            "novelty": stored_novelty(row.metadata),
            "metadata": without_marks(row.metadata),
        }


@final
class Records:
    """The rows of the store, as they are looked at and changed.

    Args:
        model: The model.
        location: The path or address of the store.
        pictures: What items look like.
        audits: What may be wrong with the store.
    """

    def __init__(self, model: Model, location: str, pictures: Pictures, audits: Audits) -> None:
        self._model, self._pictures, self._audits = model, pictures, audits
        with open_store(location) as store:  # a store that cannot be used is told at the start
            store.header.check_model(model.fingerprint)
            self.name = store.name
        self._reader, self._writer = Worker(model, location, "hedged-reads"), Worker(model, location, "hedged-writes")
        self._content: _Content | None = None  # these two belong to the thread that reads
        self._moment: Hashable = None

    async def count(self) -> tuple[int, int]:
        """How many items and labels there are."""
        return await self._reader.read(lambda room: (room.store.count(), room.store.label_count()))

    async def items(self, order: str, offset: int, limit: int) -> dict[str, Any]:
        """Some items.

        Args:
            order: "added", or "uncertainty": the most uncertain first.
            offset: How many are passed over.
            limit: How many are wanted.
        """

        def work(room: Room) -> dict[str, Any]:
            content = self._current(room)
            numbers = np.arange(len(content.rows))
            if order == "uncertainty":
                numbers = np.argsort(-content.etas, kind="stable")
            found = [content.item(int(i)) for i in numbers[offset : offset + limit]]
            return {"total": len(content.rows), "items": found}

        return await self._reader.read(work)

    async def map(self, limit: int) -> dict[str, Any]:
        """The items in the plane that shows most of how they differ.

        Args:
            limit: How many at most, evenly spaced in the order they were added.
        """

        def work(room: Room) -> dict[str, Any]:
            content = self._current(room)
            total = len(content.rows)
            chosen = np.linspace(0, total - 1, min(total, limit)).round().astype(int) if total else np.arange(0)
            rows = [content.rows[i] for i in chosen]
            labels = sorted({row.label for row in rows if row.label is not None})
            number = {label: i for i, label in enumerate(labels)}
            return {
                "total": total,
                "ids": [row.id for row in rows],
                "labels": labels,
                "label": [-1 if row.label is None else number[row.label] for row in rows],
                "uncertainty": content.etas[chosen].round(6).tolist(),
                **flattened(content.z, chosen),
            }

        return await self._reader.read(work)

    async def picture(self, name: str) -> bytes | None:
        """The picture of an item; None if it has none.

        Args:
            name: Its id, which the store has, or it is refused.
        """

        def work(room: Room) -> bytes | None:
            if not room.store.count([Where("id", name)]):
                raise LookupError(f"there is no item {name!r}")
            return self._pictures.of(name)

        return await self._reader.read(work)

    async def enrol(self, kept: Sequence[Kept], inputs: Any, columns: Mapping[str, list[Any]]) -> dict[str, Any]:
        """Store new items, all or none, and say what looks wrong about them.

        Args:
            kept: What the model says of each.
            inputs: What was embedded: image files are kept as small pictures.
            columns: Their labels, ids and metadata, as far as they are given.
        """

        def work(room: Room) -> dict[str, Any]:
            rows = self._rows(room, kept, columns)
            _add(room, rows)
            warnings = self._doubts(rows, kept)
            if isinstance(inputs, list):
                warnings += self._keep_pictures(rows.ids, inputs)
            return {"ids": list(rows.ids), "warnings": warnings}

        return await self._writer.write(work)

    async def remove(self, ids: Sequence[str]) -> int:
        """Remove items and what was kept of their pictures, and return how many there were.

        Args:
            ids: Their ids.
        """
        return await self._writer.write(lambda room: self._remove(room, ids))

    async def accept(self, kind: str, names: Sequence[str]) -> str:
        """Do what a finding of the audit suggests, if it still holds, and return what was done.

        Args:
            kind: Of finding.
            names: What names it: the item, both items, or the label.
        """
        finding = await self._audits.finding(kind, names)

        def work(room: Room) -> str:
            match kind:
                case "mislabelled":
                    self._relabel(room, {finding["id"]: finding["label"]}, finding["likelier"])
                    return f"{finding['id']} is {finding['likelier']} now"
                case "divided":
                    new = _free_label(room, finding["label"] + SECOND)
                    self._relabel(room, dict.fromkeys(finding["second"], finding["label"]), new)
                    return f"{len(finding['second'])} items of {finding['label']} are {new} now"
                case _:
                    name = finding["second"] if kind == "duplicates" else finding["id"]
                    _stored(room, name, finding["second_label" if kind == "duplicates" else "label"])
                    self._remove(room, [name])
                    return f"{name} was removed"

        return await self._writer.write(work)

    async def dismiss(self, kind: str, names: Sequence[str]) -> str:
        """Never show a finding again, as long as its first item is stored.

        Args:
            kind: Of finding.
            names: What names it.
        """
        finding = await self._audits.finding(kind, names)
        holder = finding["first"][0] if kind == "divided" else finding["first" if kind == "duplicates" else "id"]
        remembered = mark(kind, names)

        def dismissed(row: Described) -> Described:
            return row._replace(metadata={**row.metadata, DISMISSED: sorted({*marks(row), remembered})})

        def work(room: Room) -> str:
            self._rewrite(room, [holder], dismissed)
            return "the finding will not be shown again"

        return await self._writer.write(work)

    def close(self) -> None:
        """Finish what is being written, and stop."""
        self._writer.close()
        self._reader.close()

    def _current(self, room: Room) -> _Content:
        """All rows as they are now, read again if anything was written."""
        moment = room.store.moment()
        if self._content is None or moment != self._moment:
            self._moment, self._content = moment, _read(room)
        return self._content

    def _rows(self, room: Room, kept: Sequence[Kept], columns: Mapping[str, list[Any]]) -> Rows:
        """New items as rows."""
        given: Sequence[Any] = columns.get("metadata") or [{}] * len(kept)
        if any(isinstance(one, Mapping) and DISMISSED in one for one in given):
            raise DataError(f"the key {DISMISSED!r} of metadata is the service's own: choose another")
        novelty = [one.novelty for one in kept if one.novelty is not None]
        return Rows(
            columns.get("ids") or [uuid.uuid4().hex for _ in kept],
            room.store.header.unpack(np.stack([one.packed for one in kept])),
            self._model.fingerprint,
            columns.get("labels", ()),
            with_novelty(given, novelty) if all(isinstance(one, Mapping) for one in given) else given,
        )

    def _doubts(self, rows: Rows, kept: Sequence[Kept]) -> list[str]:
        """What looks wrong about the labels of new items, by what matched them best before."""
        return [
            f"check the label of {row.id!r}: it is {row.label!r}, and matches {hit.id!r}, which is {hit.label!r}, "
            f"with probability {one.probability:.3f}"
            for row, one in zip(rows.described(), kept, strict=True)
            if (hit := one.best) is not None
            and None not in (row.label, hit.label)
            and row.label != hit.label
            and one.probability >= DOUBT
        ]

    def _keep_pictures(self, names: Sequence[str], images: Sequence[bytes]) -> list[str]:
        """Keep pictures of items that are stored; where that fails, the items are no less stored."""
        try:
            for name, image in zip(names, images, strict=True):
                self._pictures.keep(name, image)
        except (OSError, RunError, DataError) as error:
            LOGGER.warning("a picture was not kept: %s", error)
            return ["the items are stored, but not all of their pictures could be kept"]
        return []

    def _remove(self, room: Room, names: Sequence[str]) -> int:
        removed = room.store.remove(names)
        for name in names:
            self._pictures.forget(name)
        return removed

    def _relabel(self, room: Room, known: Mapping[str, str], label: str) -> None:
        """Give items another label, if they still have the one that they were known by."""
        for name, old in known.items():
            _stored(room, name, old)
        self._rewrite(room, list(known), lambda row: row._replace(label=label))

    def _rewrite(self, room: Room, names: Sequence[str], change: Callable[[Described], Described]) -> None:
        """Replace rows by changed ones with the same embeddings, all or none."""
        store, changed, packed = room.store, [], []
        for name in names:
            batches = list(store.batches([Where("id", name)]))
            if not batches:
                raise conflict(f"{name!r} is not in the store any more: look again")
            changed.append(change(batches[0].described[0]))
            packed.append(batches[0].packed[:1])
        z = store.header.unpack(np.ascontiguousarray(np.concatenate(packed)))
        columns = [list(column) for column in zip(*changed, strict=True)]
        store.upsert(Rows(columns[0], z, self._model.fingerprint, columns[1], columns[2]))


def _add(room: Room, rows: Rows) -> None:
    """Add rows whose ids are new, or say which is taken."""
    store = room.store
    store.header.check(rows.z, rows.fingerprint)
    try:
        store.add(rows)
    except DataError as error:  # the one that is left: an id is taken
        taken = next((name for name in rows.ids if store.count([Where("id", name)])), rows.ids[0])
        raise conflict(f"the store has {taken!r} already, nothing was added: choose another id") from error


def _stored(room: Room, name: str, label: str) -> None:
    """Refuse what is about an item that has gone or changed."""
    if not room.store.count([Where("id", name), Where("label", label)]):
        raise conflict(f"{name!r} is not in the store as {label!r} any more: look again")


def _free_label(room: Room, label: str) -> str:
    """A label that nobody has yet, the one that is wished for if possible."""
    number = 2
    found = label
    while room.store.count([Where("label", found)]):
        number += 1
        found = f"{label.removesuffix(SECOND)} ({number})"
    return found


def _read(room: Room) -> _Content:
    header, rows, packed = room.store.header, [], []
    for batch in room.store.batches():
        rows += batch.described
        packed.append(batch.packed)
    joined = np.concatenate(packed) if packed else np.zeros((0, header.width), dtype=np.float32)
    z = header.unpack(np.ascontiguousarray(joined))
    etas = self_mismatch(z, header.match_model).double().numpy() if len(rows) else np.zeros(0)
    return _Content(rows, z, etas)

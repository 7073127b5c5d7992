"""What the store holds, for people: items, a map, an audit, new items. Slow reads in one thread, writes in another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.distributions import Distribution
from hedged.errors import ConfigError, DataError
from hedged.match import self_mismatch
from hedged.search import Audit, Described, Rows, Where, audit_of_added, open_store, read_audit
from hedged.search.rows import stored_novelty, with_novelty
from hedged.serve.flatten import flattened
from hedged.serve.pictures import Pictures
from hedged.serve.room import Model, Room

MOST_AUDITED = 20_000  # items; more take minutes: `hedged index audit` has the time
DISMISSED = "audit_dismissed"  # the key of metadata that holds the findings that were dismissed
LIKELIER_ITEMS = 3  # shown beside an item that is likely mislabelled
MOST_WARNINGS = 10
SECOND = " (2)"  # what is added to a label that stood for two
T = TypeVar("T")


class Conflict(Exception):
    """What was asked for does not fit what the store holds now."""


@final
@dataclass(frozen=True)
class _Content:
    """All rows of one moment."""

    rows: list[Described]
    z: Distribution
    etas: NDArray[np.float64]

    def item(self, i: int) -> dict[str, Any]:
        row = self.rows[i]
        shown = {key: value for key, value in row.metadata.items() if key != DISMISSED}
        return {
            "id": row.id,
            "label": row.label,
            "uncertainty": float(self.etas[i]),
            "novelty": stored_novelty(row.metadata),
            "metadata": shown,
        }


@final
class Records:
    """The rows of the store, as they are looked at and changed.

    Args:
        model: The model.
        location: The path or address of the store.
        pictures: What items look like.
    """

    def __init__(self, model: Model, location: str, pictures: Pictures) -> None:
        self._model, self._pictures = model, pictures
        with open_store(location) as store:  # a store that cannot be used is told at the start
            store.header.check_model(model.fingerprint)
            self.name = store.name
        self._reader, self._writer = _Worker(model, location, "hedged-reads"), _Worker(model, location, "hedged-writes")
        self._content: _Content | None = None  # these three belong to the thread that reads
        self._audit: Audit | None = None
        self._moment: object = None

    async def count(self) -> tuple[int, int]:
        """How many items and labels there are."""
        return await self._reader.do(lambda room: (room.store.count(), room.store.label_count()))

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

        return await self._reader.do(work)

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

        return await self._reader.do(work)

    async def picture(self, name: str) -> bytes | None:
        """The picture of an item; None if it has none.

        Args:
            name: Its id, which the store has, or it is refused.
        """

        def work(room: Room) -> bytes | None:
            if not room.store.count([Where("id", name)]):
                raise LookupError(f"there is no item {name!r}")
            return self._pictures.of(name)

        return await self._reader.do(work)

    async def audit(self) -> dict[str, Any]:
        """What may be wrong, without what was dismissed."""
        return await self._reader.do(self._shown_audit)

    async def enrol(
        self,
        packed: NDArray[np.float32],
        novelty: Sequence[float | None],
        inputs: Any,
        columns: Mapping[str, list[Any]],
    ) -> dict[str, Any]:
        """Store new items, all or none, and say what looks wrong about them.

        Args:
            packed: Their embeddings, `(n, width)`.
            novelty: Of each; None where it is not known.
            inputs: What was embedded: image files are kept as small pictures.
            columns: Their labels, ids and metadata, as far as they are given.
        """

        def work(room: Room) -> dict[str, Any]:
            store = room.store
            ids = columns.get("ids") or _fresh_ids(room, len(packed))
            metadata: Sequence[Mapping[str, Any]] = columns.get("metadata") or [{}] * len(packed)
            if any(isinstance(one, Mapping) and DISMISSED in one for one in metadata):
                raise DataError(f"the key {DISMISSED!r} of metadata is the service's own: choose another")
            told = [one for one in novelty if one is not None]
            rows = Rows(
                ids,
                store.header.unpack(np.ascontiguousarray(packed)),
                self._model.fingerprint,
                columns.get("labels", ()),
                with_novelty(metadata, told) if all(isinstance(one, Mapping) for one in metadata) else metadata,
            )
            taken = [name for name in rows.ids if store.count([Where("id", name)])]
            if taken:
                raise Conflict(f"the store has {taken[0]!r} already, nothing was added: choose another id")
            store.add(rows)
            if self._pictures and isinstance(inputs, list):
                for name, image in zip(rows.ids, inputs, strict=True):
                    self._pictures.keep(name, image)
            found = audit_of_added(store, rows.ids)[:MOST_WARNINGS]
            warnings = [f"check the label: {one.words} (probability {one.probability:.3f})" for one in found]
            return {"ids": list(rows.ids), "warnings": warnings}

        return await self._writer.do(work)

    async def remove(self, ids: Sequence[str]) -> int:
        """Remove items and what was kept of their pictures, and return how many there were.

        Args:
            ids: Their ids.
        """

        def work(room: Room) -> int:
            removed = room.store.remove(ids)
            for name in ids:
                self._pictures.forget(name)
            return removed

        return await self._writer.do(work)

    async def accept(self, kind: str, ids: Sequence[str]) -> str:
        """Do what a finding of the audit suggests, and return what was done.

        Args:
            kind: Of finding.
            ids: What names it: the item, both items, or the label.
        """

        def work(room: Room) -> str:
            content = self._shown_audit(room)
            finding = _found(content, kind, ids)
            match kind:
                case "mislabelled":
                    self._relabel(room, [finding["id"]], finding["likelier"])
                    return f"{finding['id']} is {finding['likelier']} now"
                case "divided":
                    self._relabel(room, finding["second"], finding["label"] + SECOND)
                    return f"{len(finding['second'])} items of {finding['label']} are {finding['label']}{SECOND} now"
                case _:
                    name = finding["second"] if kind == "duplicates" else finding["id"]
                    room.store.remove([name])
                    self._pictures.forget(name)
                    return f"{name} was removed"

        return await self._writer.do(work)

    async def dismiss(self, kind: str, ids: Sequence[str]) -> str:
        """Never show a finding again, as long as its first item is stored.

        Args:
            kind: Of finding.
            ids: What names it.
        """

        def work(room: Room) -> str:
            finding = _found(self._shown_audit(room), kind, ids)
            holder = finding["first"][0] if kind == "divided" else finding["first" if kind == "duplicates" else "id"]
            mark = _mark(kind, ids)

            def dismissed(row: Described) -> Described:
                marks = [*_marks(row), mark]
                return row._replace(metadata={**row.metadata, DISMISSED: marks})

            self._rewrite(room, [holder], dismissed)
            return "the finding will not be shown again"

        return await self._writer.do(work)

    def close(self) -> None:
        """Finish what is being written, and stop."""
        self._writer.close()
        self._reader.close()

    def _current(self, room: Room) -> _Content:
        """All rows as they are now, read again if anything was written."""
        moment = room.store.moment()
        if self._content is None or moment != self._moment:
            self._moment, self._audit = moment, None
            self._content = _read(room)
        return self._content

    def _shown_audit(self, room: Room) -> dict[str, Any]:
        """The findings that were not dismissed; the writer looks for itself, the reader remembers."""
        store = room.store
        if store.count() > MOST_AUDITED:
            raise ConfigError(
                f"the store holds {store.count():,} items, of which an audit takes long: run "
                "`hedged index audit` beside the service"
            )
        decider = self._model.decider
        calibrated = decider.calibrator.log_odds if decider else None
        if store.label_count() < 2:
            labelled = sum(row.label is not None for row in _read_rows(room))
            return {**Audit(labelled, store.label_count(), [], [], [], []).content(), "dismissed": 0}
        content = self._current(room) if room is self._reader.room else _read(room)
        audit = self._audit if room is self._reader.room else None
        if audit is None:
            audit = read_audit(store, calibrated=calibrated)
            if room is self._reader.room:
                self._audit = audit
        return _without_dismissed(audit, content.rows)

    def _relabel(self, room: Room, ids: Sequence[str], label: str) -> None:
        self._rewrite(room, ids, lambda row: row._replace(label=label))

    def _rewrite(self, room: Room, ids: Sequence[str], change: Callable[[Described], Described]) -> None:
        """Replace rows by changed ones with the same embeddings, all or none."""
        store, changed, packed = room.store, [], []
        for name in ids:
            batches = list(store.batches([Where("id", name)]))
            if not batches:
                raise Conflict(f"{name!r} is not in the store any more: look again")
            changed.append(change(batches[0].described[0]))
            packed.append(batches[0].packed[:1])
        z = store.header.unpack(np.ascontiguousarray(np.concatenate(packed)))
        columns = [list(column) for column in zip(*changed, strict=True)]
        store.upsert(Rows(columns[0], z, self._model.fingerprint, columns[1], columns[2]))


@final
class _Worker:
    """A thread with a room of its own."""

    def __init__(self, model: Model, location: str, name: str) -> None:
        self.room = Room(model, location)
        self._thread = ThreadPoolExecutor(1, name)

    async def do(self, work: Callable[[Room], T]) -> T:
        """What `work` returns, done in the thread.

        Args:
            work: What is to be done in the room.
        """

        @torch.no_grad()
        def task() -> T:
            return self.room.asked(lambda: work(self.room))

        return await asyncio.wrap_future(self._thread.submit(task))

    def close(self) -> None:
        """Finish what waits, and let go of the store."""
        self._thread.submit(self.room.close)
        self._thread.shutdown()


def _read_rows(room: Room) -> list[Described]:
    return [row for batch in room.store.batches() for row in batch.described]


def _read(room: Room) -> _Content:
    header, rows, packed = room.store.header, [], []
    for batch in room.store.batches():
        rows += batch.described
        packed.append(batch.packed)
    joined = np.concatenate(packed) if packed else np.zeros((0, header.width), dtype=np.float32)
    z = header.unpack(np.ascontiguousarray(joined))
    etas = self_mismatch(z, header.match_model).double().numpy() if len(rows) else np.zeros(0)
    return _Content(rows, z, etas)


def _fresh_ids(room: Room, number: int) -> list[str]:
    """Ids that count on from the key of the last row, as galleries give them."""
    keys = room.store.keys()
    first = int(keys[-1]) + 1 if len(keys) else 1
    found: list[str] = []
    while len(found) < number:
        if not room.store.count([Where("id", str(first))]):
            found.append(str(first))
        first += 1
    return found


def _marks(row: Described) -> list[str]:
    marks = row.metadata.get(DISMISSED)
    return [mark for mark in marks if isinstance(mark, str)] if isinstance(marks, list) else []


def _mark(kind: str, names: Sequence[str]) -> str:
    """How a dismissed finding is remembered."""
    return "\t".join((kind, *names))


def _names(kind: str, finding: Mapping[str, Any]) -> list[str]:
    """What names a finding."""
    if kind == "duplicates":
        return [finding["first"], finding["second"]]
    return [finding["label" if kind == "divided" else "id"]]


def _without_dismissed(audit: Audit, rows: Sequence[Described]) -> dict[str, Any]:
    marks = {mark for row in rows for mark in _marks(row)}
    content, dismissed = audit.content(), 0
    for kind in ("mislabelled", "duplicates", "divided", "poor"):
        kept = [one for one in content[kind] if _mark(kind, _names(kind, one)) not in marks]
        dismissed += len(content[kind]) - len(kept)
        content[kind] = kept
    by_label: dict[str, list[str]] = {}
    for row in rows:
        if row.label is not None and len(by_label.setdefault(row.label, [])) < LIKELIER_ITEMS:
            by_label[row.label].append(row.id)
    for one in content["mislabelled"]:
        one["likelier_items"] = by_label.get(one["likelier"], [])
    return {**content, "dismissed": dismissed}


def _found(content: Mapping[str, Any], kind: str, names: Sequence[str]) -> Mapping[str, Any]:
    for one in content[kind]:
        if _names(kind, one) == list(names):
            return dict(one)
    raise Conflict(f"the audit has no such finding about {', '.join(map(repr, names))} now: look again")

"""What may be wrong with the store, found in a thread of its own: it takes seconds in a store of thousands."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, final

from hedged.errors import ConfigError
from hedged.search import Audit, Described, Identities, audit_gallery
from hedged.serve.refusals import busy, conflict
from hedged.serve.room import Model, Room, Worker

MOST_AUDITED = 20_000  # items; more take minutes: `hedged index audit` has the time
DISMISSED = "audit_dismissed"  # the key of metadata that holds the findings that were dismissed
LIKELIER_ITEMS = 3  # shown beside an item that is likely mislabelled
KINDS = ("mislabelled", "duplicates", "divided", "poor")

SPARE = 1.0  # seconds of a request that are left to say that the audit takes longer
T = TypeVar("T")


@final
class Audits:
    """The audit of the store as it is, made again when items or labels have changed.

    Args:
        model: The model.
        location: The path or address of the store.
        seconds: That a request may take.
    """

    def __init__(self, model: Model, location: str, seconds: float) -> None:
        self._model, self._seconds = model, seconds
        self._worker = Worker(model, location, "hedged-audits")
        self._moment: Hashable = None  # these three belong to the thread
        self._content, self._audit = b"", Audit(0, 0, [], [], [], [])
        self._shown: dict[str, Any] | None = None

    async def shown(self) -> dict[str, Any]:
        """What may be wrong, without what was dismissed."""
        return await self._in_time(self._current)

    async def finding(self, kind: str, names: Sequence[str]) -> Mapping[str, Any]:
        """A finding that was shown; refused if there is none. Whether it still holds is for who acts on it to see.

        Args:
            kind: Of finding.
            names: What names it: the item, both items, or the label.
        """

        def look(room: Room) -> Mapping[str, Any]:
            found = _named(self._shown, kind, names) if self._shown else None
            found = found or _named(self._current(room), kind, names)  # another worker may have shown a newer one
            if found is not None:
                return found
            raise conflict(f"the audit has no such finding about {', '.join(map(repr, names))}: look again")

        return await self._in_time(look)

    def close(self) -> None:
        """Finish what waits, and stop."""
        self._worker.close()

    async def _in_time(self, work: Callable[[Room], T]) -> T:
        try:
            return await asyncio.wait_for(self._worker.read(work), max(self._seconds - SPARE, self._seconds / 2))
        except TimeoutError:
            raise busy("the audit is still being made: ask again in a few seconds", 5) from None

    def _current(self, room: Room) -> dict[str, Any]:
        store = room.store
        if store.count() > MOST_AUDITED:
            raise ConfigError(
                f"the store holds {store.count():,} items, of which an audit takes long: run "
                "`hedged index audit` beside the service"
            )
        if self._shown is None or store.moment() != self._moment:
            with store.reading():  # all of one moment
                moment = store.moment()
                batches = list(store.batches())
                rows = [row for batch in batches for row in batch.described]
                content = _digest(rows, (batch.packed.tobytes() for batch in batches))
                gallery = Identities.read(store) if len({row.label for row in rows} - {None}) > 1 else None
            if content != self._content:
                self._audit, self._content = self._made(gallery, rows), content
            self._shown, self._moment = _without_dismissed(self._audit, rows), moment
        return self._shown

    def _made(self, gallery: Identities | None, rows: Sequence[Described]) -> Audit:
        labelled = [row.id for row in rows if row.label is not None]
        if gallery is None:
            return Audit(len(labelled), len({row.label for row in rows} - {None}), [], [], [], [])
        decider = self._model.decider
        return audit_gallery(gallery, labelled, calibrated=decider.calibrator.log_odds if decider else None)


def mark(kind: str, names: Sequence[str]) -> str:
    """How a finding that was dismissed is remembered.

    Args:
        kind: Of finding.
        names: What names it.
    """
    return "\t".join((kind, *names))


def marks(row: Described) -> list[str]:
    """The dismissed findings that a row remembers.

    Args:
        row: The row.
    """
    found = row.metadata.get(DISMISSED)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def without_marks(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as their owner gave them.

    Args:
        metadata: Of a row.
    """
    return {key: value for key, value in metadata.items() if key != DISMISSED}


def _digest(rows: Sequence[Described], packed: Iterable[bytes]) -> bytes:
    """Something that is another when items, labels or embeddings are."""
    found = hashlib.sha256(repr([(row.id, row.label) for row in rows]).encode(errors="surrogatepass"))
    for part in packed:
        found.update(part)
    return found.digest()


def _names(kind: str, finding: Mapping[str, Any]) -> list[str]:
    """What names a finding."""
    if kind == "duplicates":
        return [finding["first"], finding["second"]]
    return [finding["label" if kind == "divided" else "id"]]


def _named(shown: Mapping[str, Any], kind: str, names: Sequence[str]) -> Mapping[str, Any] | None:
    """The finding that some names name; None if there is none."""
    return next((dict(one) for one in shown[kind] if _names(kind, one) == list(names)), None)


def _without_dismissed(audit: Audit, rows: Sequence[Described]) -> dict[str, Any]:
    dismissed = {one for row in rows for one in marks(row)}
    content, left_out = audit.content(), 0
    for kind in KINDS:
        kept = [one for one in content[kind] if mark(kind, _names(kind, one)) not in dismissed]
        left_out += len(content[kind]) - len(kept)
        content[kind] = kept
    by_label: dict[str, list[str]] = {}
    for row in rows:
        if row.label is not None and len(by_label.setdefault(row.label, [])) < LIKELIER_ITEMS:
            by_label[row.label].append(row.id)
    for one in content["mislabelled"]:
        one["likelier_items"] = by_label.get(one["likelier"], [])
    return {**content, "dismissed": left_out}

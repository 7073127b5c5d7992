"""What is whole of a damaged store, in a new one. The damaged store is left as it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from hedged.errors import StoreError
from hedged.search.rows import Batch, Header, Rows
from hedged.search.store import build_store, reserve, salvaging


@final
@dataclass(frozen=True)
class Repaired:
    """What became of a damaged store.

    Args:
        kept: How many rows were whole, and are in the new store.
        lost: What is not there, and why: rows by id where it is known, else by key.
    """

    kept: int
    lost: list[str] = field(default_factory=list)


def repair_store(location: str | Path, into: str | Path, header: Header | None = None) -> Repaired:
    """Copy every row of a store that is whole into a new store.

    It also gives checksums to the rows of a store that was made before there were any.

    Args:
        location: The damaged store, which is only read.
        into: The path or the address of the new store; nothing may be there. A file appears whole or not at all.
        header: What the embeddings have in common, for a store whose own header is damaged: `Header.of(embedder)`.
    """
    with reserve(into), salvaging(location, header) as found:
        if found.header is None:
            raise StoreError(
                f"{found.name} no longer says which model it is of: give the model that it was built with, `hedged "
                "index repair STORE NEW --model RUN` or repair_store(..., header=Header.of(embedder))"
            )
        common, ids = found.header, set[str]()
        kept = build_store(into, common, (_rows(common, batch, ids) for batch in found.batches))
        return Repaired(kept, found.lost)


def _rows(header: Header, batch: Batch, ids: set[str]) -> Rows:
    """A batch as rows to be written, without ids that were there before."""
    new = [i for i, row in enumerate(batch.described) if row.id not in ids]
    described = [batch.described[i] for i in new]
    ids.update(row.id for row in described)
    z = header.unpack(batch.packed[new])
    labels, metadata = [row.label for row in described], [row.metadata for row in described]
    return Rows([row.id for row in described], z, header.fingerprint, labels, metadata)

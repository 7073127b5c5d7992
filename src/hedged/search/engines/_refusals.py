"""What every store refuses, in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from hedged.errors import DataError, StoreError

MAX_NAMED = 20  # faults that a message names


def damaged(name: str, faults: Sequence[str]) -> StoreError:
    """The error that names faults, and what to do about them.

    Args:
        name: Of the store.
        faults: What is wrong with it.
    """
    named = "".join(f"\n  {fault}" for fault in faults[:MAX_NAMED])
    more = f"\n  and {len(faults) - MAX_NAMED:,} more" if len(faults) > MAX_NAMED else ""
    return StoreError(
        f"{name} is damaged: restore a backup, or keep what is whole with `hedged index repair {name} NEW`{named}{more}"
    )


def taken(name: str, ids: Sequence[str]) -> DataError:
    """The error that ids exist.

    Args:
        name: Of the store.
        ids: Those that it holds already, at least one.
    """
    return DataError(
        f"{name} holds {ids[0]!r} already, and {len(ids) - 1} more of these ids: nothing was added. Give new ids, or "
        "replace the rows (upsert, `hedged index add --replace`)"
    )


def written_while_read(name: str) -> StoreError:
    """The error that a store is written inside `reading`.

    Args:
        name: Of the store.
    """
    return StoreError(f"{name} cannot be written while it is read from: finish reading, or open it twice")

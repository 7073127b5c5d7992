"""Stores and indices by where they are: a file, or the address of a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

from hedged.search.embedded import EmbeddedIndex
from hedged.search.first_stage import Plan
from hedged.search.index import EF_SEARCH, Index
from hedged.search.rows import Header
from hedged.search.sqlite import SqliteStore
from hedged.search.store import Store

SERVERS = ("postgresql://", "postgres://")


def create_store(location: str, header: Header) -> Store:
    """A new store for the embeddings of one model: in a file, or on a server if `location` is its address."""
    return SqliteStore.create(Path(location), header)


def open_store(location: str) -> Store:
    """The store in a file or on a server."""
    return SqliteStore(Path(location))


def open_index(store: Store, plan: Plan | None = None, ef_search: int = EF_SEARCH) -> Index:
    """The index of a store; with a `plan`, by that first stage, which is built if it is not there."""
    assert isinstance(store, SqliteStore)
    return EmbeddedIndex(store, plan, ef_search)

"""Stores and indices by where they are: a file, or the address of a PostgreSQL server."""

from __future__ import annotations

from hedged.errors import ConfigError, StoreError
from hedged.search.embedded import EmbeddedIndex
from hedged.search.first_stage import Plan
from hedged.search.index import EF_SEARCH, Index
from hedged.search.postgres import PostgresIndex, PostgresStore
from hedged.search.rows import Header
from hedged.search.sqlite import SqliteStore
from hedged.search.store import Store

SERVERS = ("postgresql://", "postgres://")


def create_store(location: str, header: Header) -> Store:
    """A new store for the embeddings of one model: in a file, or on a server if `location` is its address."""
    return PostgresStore.create(location, header) if is_server(location) else SqliteStore.create(location, header)


def open_store(location: str) -> Store:
    """The store in a file or on a server."""
    return PostgresStore(location) if is_server(location) else SqliteStore(location)


def is_server(location: str) -> bool:
    return location.startswith(SERVERS)


def open_index(store: Store, plan: Plan | None = None, ef_search: int = EF_SEARCH) -> Index:
    """The index of a store; with a `plan`, by that first stage, which is built if it is not there."""
    if isinstance(store, SqliteStore):
        return EmbeddedIndex(store, plan, ef_search)
    if not isinstance(store, PostgresStore):
        raise StoreError(f"there is no index for a {type(store).__name__}: write one, see Index")
    if plan and plan.kind == "ivf":
        raise ConfigError("a server has no first stage ivf: choose exact or hnsw")
    if plan and plan.kind == "hnsw":
        store.build_graph(plan.links, plan.ef_construction)
    return PostgresIndex(store, ef_search, exact=plan is not None and plan.kind == "exact")

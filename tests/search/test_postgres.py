"""Search on a server: the same as in the embedded store, and nearly so by its graph; a server that is not there."""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest
import torch
from search.gallery import KINDS, MODEL, Make, embeddings, header_of, rows
from search.recall import recall_of

from hedged import MatchCurve
from hedged.errors import ConfigError, MissingDependencyError, StoreError, ValueRangeError
from hedged.search import (
    FaissIndex,
    Plan,
    PostgresIndex,
    PostgresStore,
    Rows,
    SqliteStore,
    Where,
    create_store,
    open_store,
)
from hedged.search.engines import _postgres_server
from hedged.search.engines._postgres_server import Address

pytestmark = pytest.mark.postgres
ITEMS, PART = 20_000, 5_000


@pytest.fixture(scope="module")
def pair(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqliteStore, PostgresStore]]:
    """The same 20,000 items in both stores, some removed and some replaced."""
    header = header_of("gaussian", dim=20)
    z = embeddings("gaussian", ITEMS, dim=20)
    again = embeddings("gaussian", 100, seed=2, dim=20)
    path = tmp_path_factory.mktemp("pair") / "a.db"
    with SqliteStore.create(path, header) as sqlite, PostgresStore.create(f"{server}#pair", header) as postgres:
        for store in (sqlite, postgres):
            for start in range(0, ITEMS, PART):
                ids = [f"row {i}" for i in range(start, start + PART)]
                metadata = [{"parity": i % 2} for i in range(start, start + PART)]
                store.add(Rows(ids, z[start : start + PART], MODEL, metadata=metadata))
            store.remove([f"row {i}" for i in range(0, ITEMS, 1000)])
            store.upsert(Rows([f"row {i}" for i in range(1, 101)], again, MODEL, metadata=[{"parity": 1}] * 100))
        yield sqlite, postgres


def test_with_an_exact_scan_the_server_finds_the_same_to_the_last_rank(
    pair: tuple[SqliteStore, PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among all rows; and among the candidates that both find by means, where those by nearness are left out."""
    sqlite, postgres = pair
    probes = embeddings("gaussian", 25, seed=1, dim=20)
    ours, theirs = FaissIndex(sqlite), PostgresIndex(postgres, exact=True)
    where = [Where("parity", "1")]
    assert ours.search(probes[:2], 10, (), ITEMS) == theirs.search(probes[:2], 10, (), ITEMS)
    assert recall_of(theirs.search(probes, 10), ours.search(probes, 10)) > 0.98
    monkeypatch.setattr(MatchCurve, "nearness", lambda curve, z: None)
    ours = FaissIndex(sqlite)
    for arguments in ((10, (), None), (10, where, None), (100, (), 1000), (3, (), 5)):
        assert ours.search(probes, *arguments) == theirs.search(probes, *arguments)


def test_recall_of_the_graph_rises_with_ef_search(pair: tuple[SqliteStore, PostgresStore]) -> None:
    sqlite, postgres = pair
    probes = embeddings("gaussian", 25, seed=1, dim=20)
    wanted = FaissIndex(sqlite).search(probes, 10, candidates=ITEMS)
    postgres.build_graph(Plan("hnsw", links=16, ef_construction=64))
    assert postgres.has_graph()
    found = {ef: recall_of(PostgresIndex(postgres, ef_search=ef).search(probes, 10), wanted) for ef in (10, 100, 400)}
    print({ef: round(share, 4) for ef, share in found.items()})
    assert found[10] < found[100] <= found[400]
    assert found[400] >= 0.97
    filtered = PostgresIndex(postgres, ef_search=100).search(probes, 10, [Where("parity", "1")])
    assert all(len(hits) == 10 and all(hit.metadata["parity"] == 1 for hit in hits) for hits in filtered)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_embedding_is_searched(make_postgres: Make, make_sqlite: Make, kind: str) -> None:
    postgres, sqlite, probes = make_postgres(kind), make_sqlite(kind), embeddings(kind, 5, seed=1)
    assert postgres.index().search(probes) == [[]] * 5
    for store in (postgres, sqlite):
        store.add(rows(kind, 700))
    assert postgres.index().search(probes, 5, candidates=50) == sqlite.index().search(probes, 5, candidates=50)
    graph, scan = (index.search(probes, 20) for index in (postgres.index(Plan("hnsw")), sqlite.index()))
    same = [len({hit.id for hit in a} & {hit.id for hit in b}) for a, b in zip(graph, scan, strict=True)]
    assert sum(same) >= 0.9 * 5 * 20  # a graph may miss some


def test_a_plan_for_a_server(make_postgres: Make) -> None:
    store = make_postgres("gaussian")
    with pytest.raises(ConfigError, match="no first stage ivf"):
        store.index(Plan("ivf"))
    assert isinstance(store, PostgresStore)
    with pytest.raises(ValueRangeError, match="ef_search must be at least 1"):
        PostgresIndex(store, ef_search=0)
    assert not store.has_graph()
    store.index(Plan("hnsw"))
    assert store.has_graph()


def test_readers_see_one_moment(make_postgres: Make, server: str) -> None:
    store = make_postgres("gaussian")
    store.add(rows("gaussian", 10))
    with PostgresStore(f"{server}#{store.name.partition('#')[2]}") as reader:
        with reader.reading():
            assert reader.count() == 10
            store.add(rows("gaussian", 10, first=10))
            assert reader.count() == 10
        assert reader.count() == 20


def test_what_is_not_there_or_there_already(server: str) -> None:
    with pytest.raises(StoreError, match=r"there is no store postgresql://.*#nothing: make one with"):
        open_store(f"{server}#nothing")
    with create_store(f"{server}#twice", header_of("gaussian")), pytest.raises(StoreError, match="exists already"):
        create_store(f"{server}#twice", header_of("gaussian"))


def test_a_version_of_the_future_is_refused(server: str) -> None:
    with PostgresStore.create(f"{server}#future", header_of("gaussian")) as store:
        store._connection.execute("UPDATE store SET version = 99")
    with pytest.raises(StoreError, match="is of version 99, this version of hedged reads versions 1, 2, 3 and 4"):
        open_store(f"{server}#future")


def test_a_connection_that_breaks_loses_nothing(make_postgres: Make, server: str) -> None:
    store = make_postgres("gaussian")
    store.add(rows("gaussian", 10))
    name = store.name.partition("#")[2]
    assert isinstance(store, PostgresStore)
    with PostgresStore(f"{server}#{name}") as other:
        other._connection.execute("SELECT pg_terminate_backend(%s)", (store._connection.info.backend_pid,))
        for fails in (lambda: store.add(rows("gaussian", 5, first=10)), store.count):
            with pytest.raises(StoreError, match="cannot be reached or gave up"):
                fails()
        assert other.count() == 10
        other.verify()


def test_a_lock_that_another_holds_is_waited_for_with_a_limit(
    make_postgres: Make, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_postgres_server.STATEMENT_LIMITS, "lock_timeout", "100ms")
    store = make_postgres("gaussian")
    store.add(rows("gaussian", 3))
    name = store.name.partition("#")[2]
    with PostgresStore(f"{server}#{name}") as other, other._connection.transaction():
        other._connection.execute("LOCK TABLE item")
        with pytest.raises(StoreError, match=r"gave up \(canceling statement due to lock timeout"):
            store.add(rows("gaussian", 2, first=3))
    assert store.count() == 3


def test_an_address_is_told_without_its_password() -> None:
    address = Address.of("postgresql://me:secret@db.example/dogs#gallery")
    assert str(address) == "postgresql://db.example/dogs#gallery"
    assert Address.of("postgres://localhost/dogs").store == "hedged"
    with pytest.raises(StoreError, match="lower-case letters"):
        Address.of("postgresql://localhost/dogs#My Store")


@pytest.mark.parametrize("location", ["postgresql://127.0.0.1:1/dogs", "postgresql:///dogs?host={tmp}"])
def test_a_server_that_is_not_there(tmp_path: Path, location: str) -> None:
    for use in (open_store, lambda where: create_store(where, header_of("gaussian"))):
        with pytest.raises(StoreError, match=r"cannot be reached .*: start it, or check the address"):
            use(location.format(tmp=tmp_path))


def test_a_server_that_takes_calls_and_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        with pytest.raises(StoreError, match=r"127.0.0.1/dogs#g does not answer: .*\?connect_timeout=30") as refusal:
            open_store(f"postgresql://me:secret@127.0.0.1:{silent.getsockname()[1]}/dogs#g")
        assert time.monotonic() - began < 6
        assert "secret" not in str(refusal.value)
        asked = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/dogs?connect_timeout=2"
        began = time.monotonic()
        with pytest.raises(StoreError, match="does not answer"):
            create_store(asked, header_of("gaussian"))
        assert time.monotonic() - began < 4


@pytest.fixture
def database(server: str) -> Iterator[str]:
    """An empty database of its own."""
    name = f"old_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield server.replace("/postgres?", f"/{name}?", 1)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def schemas(conninfo: str) -> set[str]:
    with psycopg.connect(conninfo) as connection:
        return {name for (name,) in connection.execute("SELECT schema_name FROM information_schema.schemata")}


def test_a_pgvector_that_is_too_old_is_refused_before_any_work(database: str) -> None:
    create_store(f"{database}#dogs", header_of("gaussian")).close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    words = r"version 0\.8 or later, and the server has 0\.7\.4: nothing was done\. .* ALTER EXTENSION vector UPDATE"
    before = schemas(database)
    with pytest.raises(StoreError, match=words):
        open_store(f"{database}#dogs")
    with pytest.raises(StoreError, match=words):
        create_store(f"{database}#cats", header_of("gaussian"))
    with pytest.raises(StoreError, match=words), PostgresStore.reserve(f"{database}#cats"):
        pytest.fail("work begins")
    assert schemas(database) == before


def test_a_server_without_pgvector_is_refused(database: str) -> None:
    with psycopg.connect(database) as connection:
        _postgres_server.require_pgvector(
            connection, Address.of(f"{database}#cats")
        )  # it is there, for CREATE EXTENSION
        hidden = "SELECT name, default_version FROM pg_catalog.pg_available_extensions WHERE false"
        connection.execute(f"CREATE TEMPORARY VIEW pg_available_extensions AS {hidden}")
        with pytest.raises(StoreError, match=r"version 0\.8 or later, and the server has none: nothing was done"):
            _postgres_server.require_pgvector(connection, Address.of(f"{database}#cats"))


def test_without_psycopg_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'hedged\[postgres\]'"):
        open_store("postgresql://localhost/dogs")


def test_vectors_lose_nothing_on_their_way(make_postgres: Make) -> None:
    store = make_postgres("point")
    given = rows("point", 50)
    store.add(given)
    assert isinstance(store, PostgresStore)
    texts = store._connection.execute("SELECT mean::text FROM component ORDER BY item").fetchall()
    stored = np.array([[float(x) for x in text.strip("[]").split(",")] for (text,) in texts], np.float32)
    assert torch.equal(torch.from_numpy(stored), given.z.mean)

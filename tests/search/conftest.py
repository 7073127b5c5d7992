"""Stores of every kind, made anew for each test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from search.gallery import Make, header_of

from hedged.search import SqliteStore, Store


@pytest.fixture
def make_sqlite(tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as opened:

        def make(kind: str) -> Store:
            return opened.enter_context(SqliteStore.create(tmp_path / f"{kind}.db", header_of(kind)))

        yield make


@pytest.fixture(params=["sqlite"])
def make(request: pytest.FixtureRequest) -> Make:
    """Make a store of every sort there is."""
    made: Make = request.getfixturevalue(f"make_{request.param}")
    return made

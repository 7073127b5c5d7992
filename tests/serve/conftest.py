"""A service for tests that only ask it, and a fresh one for tests that change it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from search.conftest import server  # noqa: F401 - a fixture
from serve.running import Place, Running, make_place, make_vector_place, running


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("service")
    with running(make_place(folder), folder / "here") as found:
        yield found


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_vector_place(tmp_path_factory.mktemp("vectors"))

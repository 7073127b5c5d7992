"""A service for tests that only ask it, and a fresh one for tests that change it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import chromium
from search.conftest import server  # noqa: F401 - a fixture
from serve.browsing import Page
from serve.flawed import make_digits, make_vectors
from serve.running import Place, Running, make_place, make_vector_place, running


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("service")
    with running(make_place(folder), folder / "here") as found:
        yield found


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return make_vector_place(tmp_path_factory.mktemp("vectors"))


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service on pictures of digits, some of them flawed."""
    folder = tmp_path_factory.mktemp("digits")
    with running(make_digits(folder), folder / "here") as found:
        yield found


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service on vectors of people, some of them with a wrong label."""
    folder = tmp_path_factory.mktemp("people")
    with running(make_vectors(folder), folder / "here") as found:
        yield found


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser that all tests of a process share; each opens the page anew."""
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture
def page(driver: Any, digits: Running) -> Iterator[Page]:
    """The page of digits; no test may leave a word on the console."""
    yield from fresh_page(driver, digits)


@pytest.fixture
def vectors_page(driver: Any, people: Running) -> Iterator[Page]:
    """The page of people."""
    yield from fresh_page(driver, people)


def fresh_page(driver: Any, service: Running) -> Iterator[Page]:
    found = Page(driver, service)
    found.prefer()
    found.resize(1280, 800)
    found.open()
    yield found
    waits = ("/v1/audit ", " 503 ")  # an audit that takes long on a busy machine, for which the page waits
    assert [one for one in found.complaints() if not all(word in one for word in waits)] == []

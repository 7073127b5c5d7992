"""Figures made once for all tests of them."""

from __future__ import annotations

import pytest
from paper.exhibition import Exhibition


@pytest.fixture(scope="session")
def _exhibition(tmp_path_factory: pytest.TempPathFactory) -> Exhibition:
    return Exhibition(tmp_path_factory.mktemp("exhibition"))


@pytest.fixture(scope="module")
def exhibition(_exhibition: Exhibition, tiny_recipe: None) -> Exhibition:
    """All figures; the recipe is a tiny one as long as a test of them runs."""
    return _exhibition

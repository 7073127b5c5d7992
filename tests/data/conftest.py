"""Digits for the tests of the data: the stand-in, and the real ones where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hedged.data import Digits, offline_digits


@pytest.fixture(scope="session")
def train_digits() -> Digits:
    return offline_digits("train")


@pytest.fixture(scope="session")
def test_digits() -> Digits:
    return offline_digits("test")


@pytest.fixture(scope="session")
def blank_digits() -> Digits:
    """50 digits whose every pixel is their own id: an image tells which digits it is made of."""
    ids = torch.arange(50, dtype=torch.uint8)
    return Digits(ids.view(-1, 1, 1).expand(-1, 28, 28).contiguous(), torch.arange(50) % 10, "blank")


@pytest.fixture(scope="session")
def standard_files() -> Path:
    """The folder of google/n-digit-mnist's index files."""
    folder = Path(__file__).parents[3] / "shared" / "data" / "ndigit-standard"
    if not folder.is_dir():
        pytest.skip(f"needs the index files of google/n-digit-mnist in {folder}")
    return folder

"""An exported model for tests that only use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hedged import Embedder
from hedged.decisions import Decider
from hedged.decisions.calibrators import Temperature
from hedged.decisions.policy import Policy
from hedged.models.export import export_onnx


@pytest.fixture(scope="session")
def decider() -> Decider:
    embedder = Embedder.load("hedged:ndigit-2d")
    return Decider(embedder.fingerprint(), Temperature(1.5, -0.2), 0.1, Policy(-1.0, 0.5))


@pytest.fixture(scope="session")
def digits(decider: Decider, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that ships, as a file, with a calibration."""
    path = tmp_path_factory.mktemp("exported") / "digits.onnx"
    export_onnx(Embedder.load("hedged:ndigit-2d"), path, decider.describe())
    return path

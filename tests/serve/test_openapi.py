"""Requests that schemathesis makes of the description of a running service: answered as described, never with 5xx."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from serve.running import Place, Running, call, running

from hedged.serve.examples import EXAMPLES

PROGRAM = Path(sys.executable).parent / "schemathesis"
# Bytes that are no image, and ids that are not stored, fit the description and are refused.
LEFT_OUT = "positive_data_acceptance"


@pytest.mark.parametrize("model", EXAMPLES, ids=str)
def test_examples_are_answers_and_leave_nothing_out(model: Any) -> None:
    kept = TypeAdapter(model).dump_python(TypeAdapter(model).validate_python(EXAMPLES[model]))
    assert kept == EXAMPLES[model]


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["place", "vectors"])
def test_whatever_is_sent_is_answered_as_described(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> None:
    place: Place = request.getfixturevalue(kind)
    with running(place, tmp_path / "here") as service:
        found = fuzzed(service, tmp_path)
        assert not found, found
        assert call(service, "GET", "/health").content["status"] == "ok"
        assert "Traceback" not in service.log.read_text()


def fuzzed(service: Running, folder: Path) -> str:
    """What schemathesis finds, bounded in examples and in time."""
    options = ("--checks", "all", "--exclude-checks", LEFT_OUT, "--max-examples", "10", "--seed", "1")
    limits = ("--request-timeout", "25", "--suppress-health-check", "all", "--continue-on-failure", "--no-color")
    key = f"Authorization: Bearer {service.write}"
    done = subprocess.run(
        [str(PROGRAM), "run", f"{service.address}/openapi.json", "-H", key, *options, *limits],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=folder,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr

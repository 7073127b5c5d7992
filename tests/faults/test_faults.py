"""A part of `python -m faults`: some of the calls to the disk of each verb, a kill, and memory limits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults.disk import compiler

TESTS = Path(__file__).parents[1]


@pytest.mark.heavy
@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
def test_nothing_is_lost_whatever_fails() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "faults", "--every", "15", "--kills", "1"],
        cwd=TESTS,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

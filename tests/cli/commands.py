"""How the tests of the command line type commands and look at what came of them."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PROGRAM = Path(sys.executable).parent / "hedged"
TINY = """
[data]
source = "offline"
train_images = 1000
test_images = 400
per_class = 4
[model]
channels = [2, 4]
hidden = 16
[train]
steps = 20
warmup = 2
batch_size = 32
classes_per_batch = 4
images_per_class = 4
checkpoint_every = 10
log_every = 5
"""


class Result(NamedTuple):
    code: int
    out: str
    err: str


Hedged = Callable[..., Result]


def snapshot(folder: Path) -> dict[str, str]:
    """Every path below a folder with the hash of its content: equal if nothing was changed, added or removed."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def arrays_of(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file, which is closed again."""
    with np.load(path) as content:
        return dict(content)


def check_refused(result: Result, *words: str) -> None:
    """Exit code 2 and one message with these words, no traceback and no output."""
    assert result.code == 2, result
    assert result.out == ""
    messages = [line for line in result.err.splitlines() if line.startswith("hedged: ")]
    assert len(messages) == 1, result.err
    assert "Traceback" not in result.err
    for word in words:
        assert word in result.err


def start(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start the installed program, with Ctrl-C as a shell would have it."""
    return subprocess.Popen(
        [str(PROGRAM), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )

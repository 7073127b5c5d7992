"""The command line as a user types it: in this process where that will do, for it is quicker, else the real program."""

from __future__ import annotations

import logging
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from cli.commands import TINY, Hedged, Result, start
from PIL import Image

from hedged import Embedder
from hedged.cli import main
from hedged.training import build_data, load_config, train

MAX_SECONDS, MAX_BYTES, AT_START = 5.0, 1.5e9, 0.5e9  # of a command; what it takes before it reads a file


@pytest.fixture(autouse=True)
def _quiet_surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("HEDGED_DEBUG", raising=False)
    logger = logging.getLogger("hedged")
    handlers, level, threads = logger.handlers[:], logger.level, torch.get_num_threads()
    torch.set_num_threads(1)  # two workers on two cores: more threads only wait for each other
    yield
    logger.handlers[:], logger.level = handlers, level
    torch.set_num_threads(threads)


@pytest.fixture
def hedged(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Hedged:
    """Run the command line in this process."""

    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["hedged", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return Result(int(stop.value.code or 0), out, err)

    return run


@pytest.fixture
def installed() -> Hedged:
    """Run the installed program."""

    def run(*arguments: object, **environment: str) -> Result:
        process = start(*arguments, **environment)
        out, err = process.communicate(timeout=120)
        return Result(process.returncode, out, err)

    return run


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A config that trains in a second."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run, for tests that do not change it."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.toml").write_text(TINY)
    config = load_config(folder / "tiny.toml")
    train(config, build_data(config).train, folder / "run")
    return folder / "run"


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    """A trained run, for tests that may change it."""
    return Path(shutil.copytree(finished_run, tmp_path / "run"))


@pytest.fixture(scope="session")
def compiled(finished_run: Path) -> None:
    """Loops that are compiled on their first use are not what `within_limits` measures."""
    embedder = Embedder.load(finished_run)
    z = embedder.embed(np.zeros((3, 28, 56), np.uint8))
    for _ in (embedder.match(z, z), embedder.match_matrix(z, z), embedder.nearest(z, z)):
        pass


@pytest.fixture
def within_limits(compiled: None) -> Iterator[None]:
    """In little time, and little memory beyond the most that tests of this process took before."""
    begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.process_time() - begun < MAX_SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before <= (MAX_BYTES - AT_START) / 1024


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    """Three images of the right size."""
    folder = tmp_path / "images"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (3, 28, 56), dtype=np.uint8)
    for i, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"{i}.png")
    return sorted(folder.iterdir())

"""Verbs that write files of embeddings, data sets and figures."""

from __future__ import annotations

import json
import os
import signal
import traceback
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
from cli.commands import arrays_of
from conftest import TINY_RECIPE
from faults.verb import Verb, Words, hedged, train_tiny, write_images
from PIL import Image

from hedged.training import Run
from hedged.training.checkpoint import read_checkpoint


@final
class Embed(Verb):
    """Embeddings written over older ones."""

    name = "embed"

    def make_ready(self, folder: Path) -> None:
        train_tiny(folder)
        write_images(folder / "old", 3)
        write_images(folder / "new", 4, first=5)
        for ending in ("npz", "parquet"):
            assert hedged("embed", folder / "run", folder / "old", "--out", folder / f"out.{ending}") == 0

    def command(self, folder: Path) -> Words:
        return ["embed", str(folder / "run"), str(folder / "new"), "--out", str(folder / "out.npz"), "--force"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        assert len(arrays_of(folder / "out.npz")["uncertainty"]) in (3, 4)

    def result(self, folder: Path) -> Any:
        arrays = arrays_of(folder / "out.npz")
        return {name: arrays[name].tobytes() for name in ("means", "variances", "uncertainty")}


@final
class EmbedTable(Verb):
    """The same as a Parquet file."""

    name = "embed (Parquet)"

    def make_ready(self, folder: Path) -> None:
        Embed().make_ready(folder)

    def command(self, folder: Path) -> Words:
        return ["embed", str(folder / "run"), str(folder / "new"), "--out", str(folder / "out.parquet"), "--force"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        assert len(self.result(folder)) in (3, 4)

    def result(self, folder: Path) -> Any:
        from pyarrow import parquet  # type: ignore[import-untyped]

        rows = parquet.read_table(folder / "out.parquet").to_pylist()
        return [{name: row[name] for name in ("means", "variances", "uncertainty")} for row in rows]


@final
class DataSet(Verb):
    """An index file and a preview of a data set over older ones."""

    name = "data ndigit"

    def make_ready(self, folder: Path) -> None:
        assert hedged(*self.command(folder), "--seed", "1") == 0

    def command(self, folder: Path) -> Words:
        written = ["--out", str(folder / "index.npz"), "--preview", str(folder / "preview.png")]
        return ["data", "ndigit", "--offline", "--digits", "1", "--force", *written]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        assert arrays_of(folder / "index.npz")
        with Image.open(folder / "preview.png") as picture:
            picture.load()

    def result(self, folder: Path) -> Any:
        indices = {name: array.tobytes() for name, array in arrays_of(folder / "index.npz").items()}
        return indices, (folder / "preview.png").read_bytes()


@final
class PaperRun(Verb):
    """A figure: a model trained and measured by a worker, then drawn."""

    name = "paper run"
    figure: ClassVar[str] = "uncertainty-vs-performance"

    def make_ready(self, folder: Path) -> None:
        from hedged.paper import recipe, workers

        recipe._file = lambda: TINY_RECIPE  # type: ignore[assignment]
        workers._start = forked_worker  # type: ignore[assignment]
        workers.POLL = 0.01

    def command(self, folder: Path) -> Words:
        return ["paper", "run", self.figure, "--out", str(folder / "paper"), "--jobs", "1"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        for model in (folder / "paper" / "models").glob("*"):
            run = Run(model)
            if run.checkpoint_file.exists():
                read_checkpoint(run.checkpoint_file)
            if run.state == "finished":
                run.trained()
        for path in (folder / "paper").rglob("*.json"):
            json.loads(path.read_text(encoding="utf-8"))

    def result(self, folder: Path) -> Any:
        with Image.open(folder / "paper" / f"{self.figure}.png") as picture:
            pixels = np.asarray(picture).tobytes()
        models = sorted((folder / "paper" / "models").iterdir())
        return pixels, [(model.name, (model / "model.safetensors").read_bytes()) for model in models]


class ForkedWorker:
    """A worker of `hedged paper run` as a fork of this process, which is quicker and has the same disk.

    Args:
        process: Its id.
    """

    def __init__(self, process: int) -> None:
        self.pid, self.returncode = process, 0

    def poll(self) -> int | None:
        done, status = os.waitpid(self.pid, os.WNOHANG)
        if not done:
            return None
        self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float = 0) -> int:
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def forked_worker(shelf: Any, need: Any) -> ForkedWorker:
    """What `hedged.paper.workers._start` does, with a fork.

    Args:
        shelf: Where models are.
        need: The model.
    """
    from hedged._files import make_folder, write_json
    from hedged.paper.workers import NEED, WORDS, _main

    place = shelf.place(need.config)
    make_folder(place)
    content = {"config": need.config.model_dump(mode="json"), "tests": need.tests, "shelf": str(shelf.folder)}
    write_json(place / NEED, content)
    with (place / WORDS).open("wb") as words:
        process = os.fork()
        if process:
            return ForkedWorker(process)
        for stream in (1, 2):
            os.dup2(words.fileno(), stream)
        try:
            _main(place / NEED, os.getppid())
        except SystemExit as stop:
            os.write(2, str(stop.code).encode())
            os._exit(1)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
            os._exit(1)
        os._exit(0)

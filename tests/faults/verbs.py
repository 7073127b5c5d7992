"""Short runs of the verbs that write, and what has to hold of their files, whatever happened."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, final
from unittest.mock import patch

import numpy as np
from cli.commands import TINY, arrays_of
from conftest import TINY_RECIPE
from PIL import Image

from hedged.cli import main
from hedged.errors import RunError
from hedged.search import SqliteStore
from hedged.training import Run, loop
from hedged.training.checkpoint import Checkpoint, read_checkpoint, save_checkpoint
from hedged.training.config import load_run_config

Words = list[str]

STEPS = 4
PEOPLE = 12  # that are calibrated on
SHORT = (
    TINY.replace("steps = 20", f"steps = {STEPS}")
    .replace("warmup = 2", "warmup = 1")
    .replace("checkpoint_every = 10", f"checkpoint_every = {STEPS // 2}")
    .replace("log_every = 5", "log_every = 2")
    .replace("train_images = 1000", "train_images = 200")
    .replace("test_images = 400", "test_images = 100")
)


def hedged(*words: object) -> int:
    """Run the command line in this process; its exit code.

    Args:
        words: As they are typed.
    """
    sys.argv = ["hedged", *map(str, words)]
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


class Verb(ABC):
    """A verb as a user types it, in a folder that was made ready for it."""

    name: ClassVar[str]

    @abstractmethod
    def make_ready(self, folder: Path) -> None:
        """Make all that the verb needs, and files of an earlier time that it must not lose.

        Args:
            folder: Where to.
        """

    @abstractmethod
    def command(self, folder: Path) -> Words:
        """The words of the command.

        Args:
            folder: That was made ready.
        """

    def command_again(self, folder: Path) -> Words:
        """The command to go on with after a failure; the same if it is not said otherwise.

        Args:
            folder: As the failure left it.
        """
        return self.command(folder)

    @abstractmethod
    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        """Assert that what was there is whole, and what is new as well.

        Args:
            before: The folder as it was.
            folder: As the failure left it.
        """

    @abstractmethod
    def result(self, folder: Path) -> Any:
        """What the verb made, to be compared with what it makes undisturbed.

        Args:
            folder: After the verb was done.
        """


def write_images(folder: Path, count: int, first: int = 0) -> None:
    """Images of the size that the tiny model takes."""
    folder.mkdir()
    for number in range(first, first + count):
        pixels = np.random.default_rng(number).integers(0, 256, (28, 56), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")


def train_tiny(folder: Path) -> None:
    (folder / "tiny.toml").write_text(SHORT, encoding="utf-8")
    assert hedged("train", folder / "tiny.toml", "--out", folder / "run") == 0


@final
class Train(Verb):
    """A short training with a checkpoint in the middle."""

    name = "train"

    def make_ready(self, folder: Path) -> None:
        (folder / "tiny.toml").write_text(SHORT, encoding="utf-8")

    def command(self, folder: Path) -> Words:
        return ["train", str(folder / "tiny.toml"), "--out", str(folder / "run")]

    def command_again(self, folder: Path) -> Words:
        resumed = ["--resume"] if (folder / "run" / "checkpoint.safetensors").exists() else []
        return [*self.command(folder), *resumed]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        checkpoint = folder / "run" / "checkpoint.safetensors"
        if checkpoint.exists():
            assert read_checkpoint(checkpoint).step in (STEPS // 2, STEPS)
        if Run(folder / "run").state == "finished":
            Run(folder / "run").trained()

    def result(self, folder: Path) -> Any:
        names = ("model.json", "model.safetensors", "config.toml", "log.jsonl")
        checkpoint = read_checkpoint(folder / "run" / "checkpoint.safetensors")
        tensors = {name: tensor.numpy().tobytes() for name, tensor in checkpoint.tensors.items()}
        return [checkpoint.step, tensors, {name: (folder / "run" / name).read_bytes() for name in names}]


@final
class Resume(Verb):
    """The same from a checkpoint, which must not be lost."""

    name = "train --resume"

    def make_ready(self, folder: Path) -> None:
        Train().make_ready(folder)
        with patch.object(loop, "save_checkpoint", _save_and_interrupt):
            assert hedged(*Train().command(folder)) == 2
        assert read_checkpoint(folder / "run" / "checkpoint.safetensors").step == STEPS // 2

    def command(self, folder: Path) -> Words:
        return ["train", str(folder / "tiny.toml"), "--out", str(folder / "run"), "--resume"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        assert read_checkpoint(folder / "run" / "checkpoint.safetensors").step in (STEPS // 2, STEPS)

    def result(self, folder: Path) -> Any:
        return Train().result(folder)


def _save_and_interrupt(path: Path, checkpoint: Checkpoint) -> None:
    save_checkpoint(path, checkpoint)
    raise KeyboardInterrupt


@final
class Retrofit(Verb):
    """A head fitted over an older one, with `--force`."""

    name = "retrofit"

    def make_ready(self, folder: Path) -> None:
        generator = np.random.default_rng(0)
        labels = np.repeat(np.arange(PEOPLE), 4)
        vectors = generator.normal(size=(PEOPLE, 6))[labels] + generator.normal(size=(len(labels), 6)) / 4
        for name, some in (("old", vectors[:, :5]), ("new", vectors)):
            np.savez(folder / f"{name}.npz", features=some.astype(np.float32), labels=labels)
        assert hedged("retrofit", folder / "old.npz", "--out", folder / "run") == 0

    def command(self, folder: Path) -> Words:
        return ["retrofit", str(folder / "new.npz"), "--out", str(folder / "run"), "--force"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        try:
            head = Run(folder / "run").embedder
        except RunError:
            return  # files of two heads are told from those of one
        assert head.architecture.shape in ((5,), (6,))

    def result(self, folder: Path) -> Any:
        return Run(folder / "run").embedder.fingerprint(), load_run_config(folder / "run" / "config.toml")


@final
class Calibrate(Verb):
    """A calibration over an older one."""

    name = "calibrate"

    def make_ready(self, folder: Path) -> None:
        train_tiny(folder)
        write_images(folder / "images", 3 * PEOPLE)
        people = range(PEOPLE)
        pairs = [(3 * k + n, 3 * k + (n + 1) % 3, 1) for k in people for n in range(3)]
        pairs += [(3 * k + n, 3 * j + n, 0) for k in people for j in range(k) for n in range(3)]
        lines = [f"images/{one}.png,images/{other}.png,{same}" for one, other, same in pairs]
        (folder / "pairs.csv").write_text("\n".join(["pathA,pathB,same", *lines]), encoding="utf-8")
        assert hedged(*self.command(folder), "--false-match-rate", "0.2") == 0

    def command(self, folder: Path) -> Words:
        return ["calibrate", str(folder / "run"), "--pairs", str(folder / "pairs.csv")]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        from hedged.decisions import load_decider

        run = Run(folder / "run")
        assert load_decider(run.folder, run.embedder.fingerprint()) is not None
        with Image.open(run.reliability_file) as picture:
            picture.load()
        rate = json.loads((run.folder / "calibration.json").read_text(encoding="utf-8"))["report"]["threshold"][
            "target"
        ]
        assert rate in (0.2, 0.01)

    def result(self, folder: Path) -> Any:
        return (folder / "run" / "calibration.json").read_bytes()


@final
class IndexAdd(Verb):
    """Rows added to a store that has some."""

    name = "index add"

    def make_ready(self, folder: Path) -> None:
        train_tiny(folder)
        write_images(folder / "old", 5)
        write_images(folder / "new", 4, first=5)
        assert hedged("index", "build", folder / "run", folder / "a.db", folder / "old", "--first-stage", "hnsw") == 0

    def command(self, folder: Path) -> Words:
        return ["index", "add", str(folder / "run"), str(folder / "a.db"), str(folder / "new")]

    def command_again(self, folder: Path) -> Words:
        return [*self.command(folder), "--replace"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        old, now = rows_of(before / "a.db"), rows_of(folder / "a.db")
        assert old.items() <= now.items()
        assert len(now) in (5, 9)

    def result(self, folder: Path) -> Any:
        return rows_of(folder / "a.db")


@final
class IndexRemove(Verb):
    """Rows removed from a store."""

    name = "index remove"

    def make_ready(self, folder: Path) -> None:
        IndexAdd().make_ready(folder)

    def command(self, folder: Path) -> Words:
        return ["index", "remove", str(folder / "a.db"), str(folder / "old" / "1.png")]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        old, now = rows_of(before / "a.db"), rows_of(folder / "a.db")
        assert now.items() <= old.items()
        assert set(old) - set(now) <= {"1.png"}

    def result(self, folder: Path) -> Any:
        return rows_of(folder / "a.db")


@final
class IndexBuild(Verb):
    """A new store."""

    name = "index build"

    def make_ready(self, folder: Path) -> None:
        train_tiny(folder)
        write_images(folder / "old", 5)

    def command(self, folder: Path) -> Words:
        return ["index", "build", str(folder / "run"), str(folder / "a.db"), str(folder / "old")]

    def command_again(self, folder: Path) -> Words:
        if not (folder / "a.db").exists():
            return self.command(folder)
        return ["index", "add", str(folder / "run"), str(folder / "a.db"), str(folder / "old"), "--replace"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        if (folder / "a.db").exists():
            assert len(rows_of(folder / "a.db")) in (0, 5)

    def result(self, folder: Path) -> Any:
        return rows_of(folder / "a.db")


def rows_of(path: Path) -> dict[str, bytes]:
    """The embeddings of a store that was found whole, by the names of their images."""
    with SqliteStore(path) as store:
        store.verify()
        return {
            Path(row.id).name: packed.tobytes()
            for batch in store.batches()
            for row, packed in zip(batch.described, batch.packed, strict=True)
        }


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


VERBS: dict[str, type[Verb]] = {
    verb.name: verb
    for verb in (Train, Resume, Retrofit, Calibrate, IndexBuild, IndexAdd, IndexRemove, Embed, EmbedTable, PaperRun)
}

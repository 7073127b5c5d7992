"""Verbs that make models, or something beside them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, final
from unittest.mock import patch

import numpy as np
from faults.verb import SHORT, STEPS, Verb, Words, hedged, train_tiny, write_images
from PIL import Image

from hedged.errors import RunError
from hedged.novelty.novelty import FILE as NOVELTY
from hedged.runtime import Model
from hedged.training import Run, loop
from hedged.training.checkpoint import Checkpoint, read_checkpoint, save_checkpoint
from hedged.training.config import load_run_config

PEOPLE = 12  # that are calibrated on


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
class TrainOnPhotos(Verb):
    """A short training on photos, which are decoded into the cache."""

    name = "train on photos"

    def make_ready(self, folder: Path) -> None:
        for number in range(6):
            write_images(folder / "photos" / f"{number}", 4, first=4 * number)
        data = f'[data]\nsource = "images"\npath = "{folder / "photos"}"\nsize = 16\n'
        config = data + SHORT[SHORT.index("[model]") :].replace("classes_per_batch = 4", "classes_per_batch = 2")
        config = config.replace("batch_size = 32", "batch_size = 8")
        (folder / "tiny.toml").write_text(config, encoding="utf-8")
        os.environ["HEDGED_CACHE"] = str(folder / "cache")

    def command(self, folder: Path) -> Words:
        return Train().command(folder)

    def command_again(self, folder: Path) -> Words:
        return Train().command_again(folder)

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        Train().check_nothing_lost(before, folder)

    def result(self, folder: Path) -> Any:
        decoded = sorted(path for path in (folder / "cache").rglob("*") if path.is_file())
        return Train().result(folder), [path.read_bytes() for path in decoded]


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
class Evaluate(Verb):
    """Numbers and a report over older ones."""

    name = "evaluate"

    def make_ready(self, folder: Path) -> None:
        train_tiny(folder)
        assert hedged(*self.command(folder)) == 0
        run = Run(folder / "run")
        metrics = json.loads(run.metrics_file().read_text(encoding="utf-8"))
        run.metrics_file().write_text(json.dumps(metrics | {"older": True}), encoding="utf-8")
        report = run.report_file().read_text(encoding="utf-8")
        run.report_file().write_text(f"<!-- older -->{report}", encoding="utf-8")

    def command(self, folder: Path) -> Words:
        return ["evaluate", str(folder / "run"), "--report"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        assert self.result(folder)[0]["settings"]

    def result(self, folder: Path) -> Any:
        """Without the seconds that it took."""
        run = Run(folder / "run")
        metrics, report = (path.read_text(encoding="utf-8").strip() for path in (run.metrics_file(), run.report_file()))
        assert report.endswith("</html>")
        return {key: value for key, value in json.loads(metrics).items() if key != "seconds"}, "older" in report


@final
class Novelty(Verb):
    """What novelty is told from, for a model that has it already."""

    name = "novelty"

    def make_ready(self, folder: Path) -> None:
        train_tiny(folder)

    def command(self, folder: Path) -> Words:
        return ["novelty", str(folder / "run")]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        assert Run(folder / "run").embedder.novelty_model is not None

    def result(self, folder: Path) -> Any:
        return (folder / "run" / NOVELTY).read_bytes()


@final
class Export(Verb):
    """A model as an ONNX file over that of another."""

    name = "export"

    def make_ready(self, folder: Path) -> None:
        train_tiny(folder)
        assert hedged("export", "hedged:ndigit-2d", "--onnx", folder / "model.onnx") == 0

    def command(self, folder: Path) -> Words:
        return ["export", str(folder / "run"), "--onnx", str(folder / "model.onnx"), "--force"]

    def check_nothing_lost(self, before: Path, folder: Path) -> None:
        Model.load(folder / "model.onnx")

    def result(self, folder: Path) -> Any:
        return (folder / "model.onnx").read_bytes()

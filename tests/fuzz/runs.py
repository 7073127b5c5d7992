"""What `hedged train`, `retrofit` and `calibrate` leave: models, heads, calibrations, checkpoints and configs."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any, final

import numpy as np
import torch
from fuzz.seeds import FileTarget

from hedged.decisions import Decider, Isotonic, Policy, Temperature, load_decider
from hedged.models import Architecture, Embedder
from hedged.retrofit import Retrofit
from hedged.training import Run, load_config, shipped_config, shipped_configs
from hedged.training.checkpoint import Checkpoint, read_checkpoint, save_checkpoint
from hedged.training.config import load_run_config

MODEL = "0123456789abcdef"
MAX_INPUT = 100_000  # numbers of an input that a model that was loaded is tried on


@final
class Models(FileTarget):
    """model.json and model.safetensors."""

    name = "models"

    def write_seeds(self, folder: Path) -> list[Path]:
        small: dict[str, Any] = {"shape": [1, 28, 56], "channels": [2, 4], "hidden": 8, "dim": 2}
        heads: tuple[dict[str, Any], ...] = (
            {"head": "gaussian"},
            {"head": "point"},
            {"head": "mixture", "components": 2},
            {"mirrored": True},
            {"backbone": "mobilenet", "shape": [3, 32, 32], "resize": 40, "width": 0.05},
        )
        for number, head in enumerate(heads):
            given = small | head
            if "backbone" in head:
                given = {key: value for key, value in given.items() if key not in ("channels", "hidden")}
            Embedder.new(Architecture.model_validate(given), seed=number).save(folder / str(number))
        old = folder / "old"
        Embedder.new(Architecture.model_validate(small), seed=9).save(old)
        text = (old / "model.json").read_text(encoding="utf-8").replace('"format": 2', '"format": 1')
        (old / "model.json").write_text(text, encoding="utf-8")
        return sorted(folder.iterdir())

    def use(self, folder: Path) -> None:
        embedder = Embedder.load(folder)
        embedder.fingerprint()
        if math.prod(embedder.shape) <= MAX_INPUT:
            z = embedder.embed(np.full((2, *embedder.shape), 0.5, np.float32))
            embedder.match(z, z)


@final
class Heads(FileTarget):
    """What `hedged retrofit` writes."""

    name = "heads"

    def write_seeds(self, folder: Path) -> list[Path]:
        from retrofit.people import people
        from retrofit.test_saved import WAYS, fitted

        self._new = people(4, seed=1).x
        for way in WAYS:
            fitted(way).save(folder / way)
        return sorted(folder.iterdir())

    def use(self, folder: Path) -> None:
        head = Retrofit.load(folder)
        head.match_proba(self._new[:2], self._new[2:5])
        head.novelty(self._new[:2])


@final
class Calibrations(FileTarget):
    """calibration.json."""

    name = "calibrations"

    def write_seeds(self, folder: Path) -> list[Path]:
        calibrators = (Temperature(2.0, 1.0), Isotonic((-1.0, 0.5, 2.0), (-2.0, 0.0, 3.0)))
        for number, calibrator in enumerate(calibrators):
            (folder / str(number)).mkdir()
            report = {"pairs": 10, "curve": [[0.1, 0.2], [0.3, None]]}
            Decider(MODEL, calibrator, 0.3, Policy(-2.0, 3.0)).save(folder / str(number), report)
        return sorted(folder.iterdir())

    def use(self, folder: Path) -> None:
        decider = load_decider(folder, MODEL)
        assert decider is not None
        for score in (-50.0, 0.1, 1e30):
            decider.answer(score)


@final
class Checkpoints(FileTarget):
    """checkpoint.safetensors."""

    name = "checkpoints"

    def write_seeds(self, folder: Path) -> list[Path]:
        (folder / "run").mkdir()
        tensors = {"weight": torch.arange(6.0), "optimiser.0.step": torch.tensor(3), "random": torch.zeros(20).byte()}
        save_checkpoint(folder / "run" / "checkpoint.safetensors", Checkpoint(7, "digest", tensors))
        return [folder / "run"]

    def use(self, folder: Path) -> None:
        read_checkpoint(folder / "checkpoint.safetensors")


@final
class Configs(FileTarget):
    """TOML, of a training and of a run; and what `--set` takes."""

    name = "configs"

    _override = "train.seed=1"

    def write_seeds(self, folder: Path) -> list[Path]:
        from tiny import tiny_config

        contents = [shipped_config(name).read_text(encoding="utf-8") for name in shipped_configs()]
        contents += [tiny_config(loss={"estimator": "monte-carlo"}).to_toml()]
        for number, content in enumerate(contents):
            (folder / str(number)).mkdir()
            (folder / str(number) / "config.toml").write_text(content, encoding="utf-8")
        return sorted(folder.iterdir())

    def damage(self, random: Random, folder: Path) -> None:
        super().damage(random, folder)
        keys = ("train.steps", "data.source", "model.dim", "loss.beta", "train", "", "model.head", "x.y", "data.path")
        self._override = f"{random.choice(keys)}={random.choice(OVERRIDES)}"

    def use(self, folder: Path) -> None:
        path = folder / "config.toml"
        load_run_config(path).digest()
        load_config(path).digest()
        load_config(path, [self._override]).digest()
        _ = Run(folder).state


OVERRIDES = ("1", "-1", "x", "[", "[" * 20_000, "9" * 5_000, "", '"', "{a=1}", "nan", "\x00", "1e400", "é", "'''")

"""A kind of data that only this file knows: it trains, is evaluated and reported, and answers on the command line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, final

import numpy as np
import pytest
import torch
from torch import Tensor

from hedged._section import Positive
from hedged.cli import main
from hedged.data import Batch, Batches, BatchPlan, ClassSampler, DataSection, Dataset, NDigitConfig, Splits
from hedged.data.config import checked
from hedged.data.random import Purpose, keyed
from hedged.errors import ConfigError
from hedged.evaluation import Evaluation, measure
from hedged.training import Config, Run, build_data, parse_config, train

BINS = 12  # of a spectrum


@final
@dataclass(frozen=True, eq=False)
class Tones(Dataset):
    """Spectra of bells: each bell has its own partials, each stroke is a little different."""

    spectra: Tensor
    labels: Tensor
    source: str = "made-up bells"

    @property
    def damage(self) -> str:
        return "they are heard through a wall"

    @property
    def has_pictures(self) -> bool:
        return False

    def clean(self, index: Tensor | None = None) -> Tensor:
        return self.spectra if index is None else self.spectra[index]

    def corrupt(self, seed: int, index: Tensor | None = None) -> Tensor:
        noise = torch.from_numpy(keyed(seed, Purpose.TWIN).normal(0, 1.5, self.spectra.shape).astype(np.float32))
        return self.clean(index) + (noise if index is None else noise[index])


@final
@dataclass(frozen=True, eq=False)
class Strokes:
    """Bells as they are struck, drawn by a sampler."""

    tones: Tones
    sampler: ClassSampler

    def batch(self, step: int) -> Batch:
        index, _ = self.sampler.draw(step)
        return Batch(self.tones.clean(index), self.tones.labels[index])


@final
class TonesConfig(DataSection):
    """The section [data] of bells."""

    default_backbone: ClassVar[str | None] = "vectors"

    source: Literal["tones"]
    bells: Positive = 12
    strokes: Positive = 20

    @property
    def shape(self) -> tuple[int]:
        return (BINS,)

    def open(self) -> Splits[Tones]:
        purposes = (Purpose.TRAIN, Purpose.VALIDATION, Purpose.SEEN, Purpose.UNSEEN)
        train, validation, near, far = map(self._ring, purposes)
        return Splits(train, validation, {"near": near, "far": far})

    def _ring(self, purpose: Purpose) -> Tones:
        generator = keyed(0, purpose)
        bells = generator.normal(0, 2, (self.bells, 1, BINS))
        spectra = bells + generator.normal(0, 0.3, (self.bells, self.strokes, BINS))
        labels = torch.arange(self.bells).repeat_interleave(self.strokes)
        return Tones(torch.from_numpy(spectra.reshape(-1, BINS).astype(np.float32)), labels)

    def batches(self, train: Dataset, plan: BatchPlan) -> Batches:
        tones = checked(self, train, Tones)
        return Strokes(tones, plan.sampler(tones.labels))


SETTINGS = {
    "data": {"source": "tones"},
    "model": {"dim": 3},
    "train": {"steps": 40, "warmup": 2, "batch_size": 32, "classes_per_batch": 4, "images_per_class": 4},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of bells, trained."""
    config = parse_config(SETTINGS)
    folder = tmp_path_factory.mktemp("runs") / "bells"
    train(config, build_data(config).train, folder)
    return folder


def test_its_section_is_known_by_its_source() -> None:
    config = parse_config(SETTINGS)
    assert config.data == TonesConfig(source="tones")
    assert (config.model.backbone, config.architecture.shape) == ("vectors", (BINS,))
    with pytest.raises(ConfigError, match=r"data\.bell: unknown key; did you mean bells\?"):
        parse_config(SETTINGS | {"data": {"source": "tones", "bell": 3}})
    with pytest.raises(ConfigError, match="this needs a run on N-digit MNIST"):
        NDigitConfig.of(config.data)


def test_it_is_trained_and_evaluated(run: Path) -> None:
    from hedged import Embedder

    config = parse_config(SETTINGS)
    data = build_data(config)
    embedder = Embedder.load(run)
    found = Evaluation(embedder, data.test["near"]).metrics()
    assert found["verification_ap"]["clean"] > max(0.8, found["verification_ap"]["corrupt"])
    assert found["test_set"]["corruption"] == "they are heard through a wall"
    results = measure(Run(run), embedder, data.test["near"], report=True, validation=data.validation)
    assert results.metrics["decisions"]["threshold"]["chosen_on"] == "validation identities"
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "240 inputs of 12 identities" in page
    assert "<img class" not in page
    assert "image" not in re.sub(r'src="[^"]*"', "", page.split("</style>")[1])


def test_it_cannot_be_taken_for_another_kind(tmp_path: Path) -> None:
    tones = build_data(parse_config(SETTINGS)).train
    with pytest.raises(ConfigError, match=r'data\.source = "mnist" draws batches from NDigit, got Tones'):
        train(Config(), tones, tmp_path / "run")


def test_the_command_line_works_with_it(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def hedged(*arguments: object) -> str:
        monkeypatch.setattr("sys.argv", ["hedged", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        assert not stop.value.code, err
        return out

    assert "240 test inputs of 12 identities (near), of made-up bells" in hedged("evaluate", run)
    for part in ("validation", "far"):
        measured = json.loads(hedged("evaluate", run, "--split", part, "--json"))
        assert measured["test_set"]["source"] == "made-up bells"
    assert "clean validation inputs of made-up bells" in hedged("calibrate", run, "--json")
    np.save(tmp_path / "bells.npy", build_data(parse_config(SETTINGS)).test["near"].clean().numpy())
    assert hedged("embed", run, tmp_path / "bells.npy", "--out", tmp_path / "bells.npz").startswith("embedded 240")

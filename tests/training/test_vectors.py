"""Training a head on vectors, and networks of the user's own: they learn, resume, and come back as they were saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from vectors import SIZE, write_vectors

from hedged.data import Features
from hedged.errors import ConfigError
from hedged.evaluation import Evaluation
from hedged.models import Embedder
from hedged.training import Config, build_data, load_config, train
from hedged.training.build import build_parts
from hedged.training.checkpoint import save_checkpoint
from hedged.training.loop import Trainer
from hedged.training.run import Run


def settings(folder: Path, *overrides: str) -> Config:
    return load_config(write_vectors(folder), overrides)


def test_a_head_on_vectors_learns_and_knows_what_is_worse(tmp_path: Path) -> None:
    config = settings(tmp_path)
    data = build_data(config)
    embedder = train(config, data.train, tmp_path / "run")
    found = Evaluation(embedder, data.test["test"]).metrics()
    assert found["verification_ap"]["clean"] > 0.9
    assert found["verification_ap"]["clean"] > found["verification_ap"]["corrupt"]
    assert found["uncertainty"]["corrupt"] > found["uncertainty"]["clean"]
    vectors = data.test["test"].clean()
    loaded = Embedder.load(tmp_path / "run")
    assert torch.equal(loaded.embed(vectors).mean, embedder.embed(vectors).mean)
    assert torch.equal(loaded.uncertainty(vectors.numpy()), embedder.uncertainty(vectors))


@pytest.mark.parametrize("means", ["hedged", "points"])
def test_a_run_on_vectors_resumes_to_the_same_weights(tmp_path: Path, means: str) -> None:
    config = settings(
        tmp_path, "model.backbone=frozen-hidden", "model.hidden=8", "train.steps=60", f"loss.means={means}"
    )
    data = build_data(config).train
    whole = train(config, data, tmp_path / "whole")
    parts = build_parts(config, data)
    trainer = Trainer(config, parts)
    for _ in range(40):
        trainer.take_step()
    (tmp_path / "half").mkdir()
    save_checkpoint(Run(tmp_path / "half").checkpoint_file, trainer._checkpoint())
    half = train(config, data, tmp_path / "half", resume=True)
    for name, weights in whole.state_dict().items():
        assert torch.equal(weights, half.state_dict()[name]), name


def test_vectors_are_standardised_by_the_training_part(tmp_path: Path) -> None:
    config = settings(tmp_path)
    train_part = build_data(config).train
    assert isinstance(train_part, Features)
    backbone = build_parts(config, train_part).embedder.backbone
    seen = backbone(train_part.vectors)
    torch.testing.assert_close(seen.mean(0), torch.zeros(SIZE), atol=1e-4, rtol=0)
    torch.testing.assert_close(seen.std(0, correction=0), torch.ones(SIZE), atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("data.size=7", r"data\.size = 7, but the vectors in .* have 12 numbers: set it to 12"),
        ("model.backbone=mobilenet", 'backbone = "mobilenet" takes images, which data.source = "features" does not'),
        ("data.split=pattern", "go together"),
        ("data.corruption=2.0", "data.corruption"),
        ("data.labls=x", "did you mean labels"),
        ("data.source=feature", "data.source is one of features, images, mnist, offline"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, override: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_data(settings(tmp_path, override))


def test_a_network_for_vectors_needs_vectors() -> None:
    with pytest.raises(ValueError, match=r'"frozen" takes vectors, which data.source = "mnist" does not give'):
        Config.model_validate({"model": {"backbone": "frozen"}})


class Own(nn.Module):
    """A network of a user's: a frozen layer, and one that is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen, self.trained = nn.Linear(SIZE, 16), nn.Linear(16, 8)
        self.frozen.requires_grad_(False)

    def forward(self, vectors: Tensor) -> Tensor:
        return torch.relu(self.trained(torch.relu(self.frozen((vectors - 7) / 3))))


def test_a_module_of_the_users_is_trained_saved_and_loaded(tmp_path: Path) -> None:
    config = settings(tmp_path, "model.backbone=module", "train.steps=50", "train.checkpoint_every=20")
    data = build_data(config)
    own = Own()
    before = {name: value.clone() for name, value in own.state_dict().items()}
    embedder = train(config, data.train, tmp_path / "run", backbone=own)
    changed = {name for name, value in own.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"trained.weight", "trained.bias"}
    loaded = Embedder.load(tmp_path / "run", backbone=Own())
    vectors = np.asarray(data.test["test"].clean())
    assert torch.equal(loaded.embed(vectors).mean, embedder.embed(vectors).mean)
    with pytest.raises(ConfigError, match=r"Embedder\.load\(run, backbone=network\)"):
        Embedder.load(tmp_path / "run")
    with pytest.raises(ConfigError, match='goes with backbone = "module"'):
        train(config, data.train, tmp_path / "other")


def test_a_module_of_the_users_resumes(tmp_path: Path) -> None:
    config = settings(tmp_path, "model.backbone=module", "train.steps=30", "train.warmup=2")
    data = build_data(config).train
    torch.manual_seed(0)
    own, twin = Own(), Own()
    twin.load_state_dict(own.state_dict())
    whole = train(config, data, tmp_path / "whole", backbone=own)
    # The checkpoint of the last step: to resume from it restores everything, and trains no further.
    again = train(config, data, tmp_path / "whole", resume=True, backbone=twin)
    for name, weights in whole.state_dict().items():
        assert torch.equal(weights, again.state_dict()[name]), name

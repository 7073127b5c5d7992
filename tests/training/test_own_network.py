"""Networks of the user's own: they are trained, resume, and come back as they were saved."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny import TINY, tiny_data
from torch import Tensor, nn

from hedged.errors import ConfigError
from hedged.models import Embedder
from hedged.training import Config, parse_config, train


class Own(nn.Module):
    """A network of a user's: a frozen layer, and one that is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen, self.trained = nn.Linear(28 * 56, 16), nn.Linear(16, 8)
        self.frozen.requires_grad_(False)

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(self.trained(torch.relu(self.frozen(images.flatten(1)))))


def settings(**train: int) -> Config:
    return parse_config({"data": TINY["data"], "model": {"backbone": "module"}, "train": TINY["train"] | train})


def test_a_module_of_the_users_is_trained_saved_and_loaded(tmp_path: Path) -> None:
    config = settings(steps=50, checkpoint_every=20)
    data = tiny_data(config)
    own = Own()
    before = {name: value.clone() for name, value in own.state_dict().items()}
    embedder = train(config, data, tmp_path / "run", backbone=own)
    changed = {name for name, value in own.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"trained.weight", "trained.bias"}
    loaded = Embedder.load(tmp_path / "run", backbone=Own())
    images = data.clean(torch.arange(50))
    assert torch.equal(loaded.embed(images).mean, embedder.embed(images).mean)
    with pytest.raises(ConfigError, match=r"Embedder\.load\(run, backbone=network\)"):
        Embedder.load(tmp_path / "run")
    with pytest.raises(ConfigError, match='goes with backbone = "module"'):
        train(config, data, tmp_path / "other")


def test_a_module_of_the_users_resumes(tmp_path: Path) -> None:
    config = settings(steps=30, warmup=2)
    data = tiny_data(config)
    torch.manual_seed(0)
    own, twin = Own(), Own()
    twin.load_state_dict(own.state_dict())
    whole = train(config, data, tmp_path / "whole", backbone=own)
    # The checkpoint of the last step: to resume from it restores everything, and trains no further.
    again = train(config, data, tmp_path / "whole", resume=True, backbone=twin)
    for name, weights in whole.state_dict().items():
        assert torch.equal(weights, again.state_dict()[name]), name

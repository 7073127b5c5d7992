"""From points to evidence: the second stage starts as PLDA, a run may stop anywhere, and a posterior is left."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny import tiny_config, tiny_data

from hedged import Embedder, Evidence, Gaussian, PosteriorHead
from hedged.data import TwoStream
from hedged.errors import ConfigError
from hedged.models import GaussianHead, PointHead
from hedged.models.evidence.plda import covariances, directions
from hedged.training import Config, Run, train
from hedged.training.build import build_parts
from hedged.training.loop import Trainer

SWITCH = 24  # of 60 steps


def evidence_config(**sections: dict[str, object]) -> Config:
    loss = {"kind": "evidence", "warm_share": SWITCH / 60, **sections.pop("loss", {})}
    return tiny_config(model={"channels": [2, 4], "hidden": 16, "head": "posterior"}, loss=loss, **sections)


def test_the_head_starts_as_two_covariance_plda_of_the_points() -> None:
    """Against the textbook: log N([x1 x2]; same) − log N([x1 x2]; different), with full covariances."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(300), 4)
    x = rng.normal(size=(300, 3))[y] @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(1200, 3)) + 2.0
    points = PointHead(features=5, dim=3)
    with torch.no_grad():
        points.mean.weight.copy_(torch.eye(3, 5))
        points.mean.bias.copy_(torch.tensor([0.5, -1.0, 0.0]))
    head = PosteriorHead(features=5, dim=3)
    head.start_from_plda(directions(x, y, ridge=0.0, count=3), points.mean)
    features = torch.zeros(6, 5)
    features[:, :3] = torch.tensor(x[:6]).float() - points.mean.bias.detach()
    with torch.no_grad():
        got = Evidence().logit(head(features)[:3], head(features)[3:])
    between, within = covariances(x - x.mean(0), y)
    total = between + within
    for k in range(3):
        pair = np.concatenate([x[k], x[k + 3]]) - np.tile(x.mean(0), 2)
        same = np.block([[total, between], [between, total]])
        other = np.block([[total, 0 * between], [0 * between, total]])
        expected = _log_normal(pair, same) - _log_normal(pair, other)
        assert got[k].item() == pytest.approx(expected, abs=1e-3)


def test_the_head_starts_from_gaussians_with_a_floor_under_their_variance() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        gaussians, head = GaussianHead(5, 3), PosteriorHead(5, 3)
        torch.nn.init.normal_(gaussians.log_variance.weight, std=0.1)
    torch.nn.init.constant_(gaussians.log_variance.bias, -2.0)
    features = torch.randn(400, 5, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        z = gaussians(features)
        mean, sd = z.mean.mean(0), z.mean.std(0)
        head.start_from_gaussians(gaussians, mean, sd)
        got = head(features)
    evidence = sd**2 / (z.variance + np.exp(-4))
    assert torch.allclose(1 / got.variance - 1, evidence, rtol=0.05)  # a Gaussian head bounds log-variances softly
    assert torch.allclose(got.mean / (1 - got.variance), (z.mean - mean) / sd, atol=1e-3)


def _log_normal(x: np.ndarray, covariance: np.ndarray) -> float:
    return float(-0.5 * (x @ np.linalg.solve(covariance, x) + np.linalg.slogdet(covariance)[1]))


def test_a_posterior_is_never_wider_than_the_prior_whatever_the_features() -> None:
    head = PosteriorHead(features=4, dim=3)
    torch.nn.init.normal_(head.noise.weight)
    for size in (0.0, 1.0, 1e3):
        z = head(size * torch.randn(50, 4, generator=torch.Generator().manual_seed(0)))
        assert z.variance.max() <= 1
        assert torch.isfinite(Evidence().logit(z, z)).all()


def test_until_evidence_takes_over_a_run_is_that_of_a_point() -> None:
    config = evidence_config()
    point = tiny_config(model={"channels": [2, 4], "hidden": 16, "head": "point"}, loss={"kind": "soft-contrastive"})
    ours, theirs = (Trainer(c, build_parts(c, tiny_data(c))) for c in (config, point))
    for _ in range(SWITCH):
        ours.take_step(), theirs.take_step()
    expected = theirs.parts.embedder.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in ours.parts.embedder.state_dict().items())
    network = ours.parts.embedder.backbone
    _, z = ours.take_step()
    assert isinstance(z, Gaussian)
    assert isinstance(ours.parts.embedder.match_model, Evidence)
    assert ours.parts.embedder.backbone is network


@pytest.mark.parametrize("start", ["points", "features", "gaussians"])
def test_interrupted_in_either_stage_and_resumed_it_ends_with_the_same_weights(start: str, tmp_path: Path) -> None:
    config = evidence_config(loss={"warm_start": start})
    data = tiny_data(config)
    train(config, data, tmp_path / "whole")
    whole = TwoStream.batch
    for stop in (SWITCH - 1, SWITCH, 40):  # a checkpoint every 7 steps, at 21, 28, 35
        run = tmp_path / str(stop)

        def stopping(self: TwoStream, step: int, stop: int = stop) -> object:
            if step == stop:
                raise KeyboardInterrupt
            return whole(self, step)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TwoStream, "batch", stopping)
            with pytest.raises(KeyboardInterrupt):
                train(config, data, run)
        train(config, data, run, resume=True)
        weights, expected = (load_file(folder / "model.safetensors") for folder in (run, tmp_path / "whole"))
        assert all(torch.equal(value, weights[name]) for name, value in expected.items())
        assert Run(run).log_file.read_text() == Run(tmp_path / "whole").log_file.read_text()


def test_a_run_leaves_a_model_of_evidence(tmp_path: Path) -> None:
    config = evidence_config()
    trained = train(config, tiny_data(config), tmp_path)
    _, loaded = Run(tmp_path).trained()
    assert loaded.architecture == config.architecture
    assert isinstance(loaded.match_model, Evidence)
    assert isinstance(loaded.head, PosteriorHead)
    images = tiny_data(config).clean(torch.arange(8))
    assert torch.allclose(Embedder.load(tmp_path).uncertainty(images), trained.uncertainty(images), atol=1e-5)
    records = [json.loads(line) for line in Run(tmp_path).log_file.read_text().splitlines()]
    assert {"scale", "bias"} <= records[0].keys()
    assert {"log_odds", "uncertainty"} <= records[-1].keys()


def test_the_prior_that_a_run_leaves_is_of_pairs_of_which_half_match(tmp_path: Path) -> None:
    config = evidence_config(loss={"positive_weight": 0.2})
    trained = train(config, tiny_data(config), tmp_path)
    last = load_file(tmp_path / "checkpoint.safetensors")["model/match_model.log_odds"]
    assert trained.match_model.settings()["log_odds"] == pytest.approx(last.item() + np.log(0.8 / 0.2), abs=1e-5)


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        ({"head": "posterior"}, {}),
        ({"head": "gaussian"}, {"kind": "evidence"}),
        ({"head": "point"}, {"kind": "evidence"}),
    ],
)
def test_head_and_loss_of_evidence_go_together(model: dict[str, object], loss: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"model.head = \"posterior\" and loss.kind = \"evidence\" go together"):
        tiny_config(model=model, loss=loss)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_both_stages_have_steps(share: float) -> None:
    with pytest.raises(ConfigError, match=r"loss\.warm_share"):
        evidence_config(loss={"warm_share": share})

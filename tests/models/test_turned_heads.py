"""Heads whose covariances may turn: what they make, how they train, are saved, stored and refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from hedged import Embedder, FullGaussian, Gallery, HedgedLoss, LowRankGaussian, MatchCurve, match_probability
from hedged.errors import ConfigError, HedgedError, ShapeError, ValueRangeError
from hedged.losses import MutualLikelihood
from hedged.models import Architecture, FullHead, Head, LowRankHead, Mirrored, ModelConfig
from hedged.models.columns import columns_of, write_columns
from hedged.training import parse_config

HEADS: list[dict[str, Any]] = [
    {"head": "full", "dim": 3},
    {"head": "low-rank", "dim": 3},
    {"head": "low-rank", "dim": 6, "rank": 2},
]
every_head = pytest.mark.parametrize("keys", HEADS, ids=lambda keys: f"{keys['head']}-{keys['dim']}")


def embedder(keys: dict[str, Any]) -> Embedder:
    made = Embedder.new(Architecture(backbone="shallow", shape=(1, 16, 16), **keys), seed=0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():  # as after some training
        for parameter in made.head.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return made


def images(count: int) -> torch.Tensor:
    return torch.rand(count, 1, 16, 16, generator=torch.Generator().manual_seed(1))


def test_a_full_covariance_starts_diagonal_and_may_turn() -> None:
    torch.manual_seed(0)
    head, features = FullHead(5, 2), torch.randn(4, 5)
    z = head(features)
    assert isinstance(z, FullGaussian)
    assert not z.factor[:, 1, 0].any()
    with torch.no_grad():
        head.turn.bias.fill_(2.0)
    assert (head(features).covariances()[:, 0, 0, 1] > 0).all()


def test_low_rank_has_the_factors_that_it_says() -> None:
    torch.manual_seed(0)
    head, features = LowRankHead(5, 7, rank=2), torch.randn(4, 5)
    z = head(features)
    assert isinstance(z, LowRankGaussian)
    own, factor = (t[:, 0] for t in z.spreads())
    assert_close(own, head.log_variance(features).div(12).tanh().mul(12).exp())
    assert_close(factor, head.turn(features).view(4, 2, 7) * own.sqrt()[:, None])


@every_head
def test_they_train_until_their_ellipses_turn(keys: dict[str, Any]) -> None:
    """Two classes that covary along the diagonal: a diagonal covariance cannot say so."""
    torch.manual_seed(0)
    network = Embedder(torch.nn.Flatten(), Head.kinds[keys["head"]].build(256, keys["dim"], 1), MatchCurve())
    loss, labels = HedgedLoss(network.curve, beta=1e-3), torch.arange(12) % 4
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    costs = []
    for _ in range(25):
        optimiser.zero_grad()
        cost = loss(network(images(12)), labels)
        torch.autograd.backward(cost)
        optimiser.step()
        costs.append(cost.item())
    assert costs[-1] < 0.7 * costs[0]
    assert network(images(12)).covariances()[:, 0, 0, 1].abs().max() > 1e-5


@every_head
def test_what_is_saved_is_loaded(keys: dict[str, Any], tmp_path: Path) -> None:
    made = embedder(keys)
    made.save(tmp_path / "model")
    again = Embedder.load(tmp_path / "model")
    assert again.architecture == made.architecture
    assert again.head.rank == made.head.rank
    for mine, theirs in zip(again.embed(images(5)).tensors, made.embed(images(5)).tensors, strict=True):
        assert_close(mine, theirs)
    assert_close(again.match(images(2), images(2)), made.match(images(2), images(2)))


@every_head
def test_stores_hold_them_and_find_them(keys: dict[str, Any], tmp_path: Path) -> None:
    made = embedder(keys)
    gallery = Gallery.create(tmp_path / "store.db", made)
    pictures = images(9)
    gallery.add(pictures, labels=[f"class {i % 3}" for i in range(9)])
    z = made.embed(pictures)
    p = match_probability(z.unsqueeze(1), z.unsqueeze(0), made.match_model).detach()
    for i, hits in enumerate(gallery.search(pictures, k=3)):
        best = p[i].double().sort(descending=True).values[:3]
        np.testing.assert_allclose([hit.match_probability for hit in hits], best, atol=1e-4)
    assert len(gallery.identify(pictures[:2])) == 2


@every_head
def test_files_of_embeddings_have_their_covariances(keys: dict[str, Any], tmp_path: Path) -> None:
    made = embedder(keys)
    z = made.embed(images(3))
    write_columns(tmp_path / "z.npz", columns_of(made, z, ["a", "b", "c"]))
    with np.load(tmp_path / "z.npz") as found:
        np.testing.assert_array_equal(found["covariances"], z.covariances()[:, 0].numpy())
        np.testing.assert_allclose(found["variances"], found["covariances"].diagonal(axis1=1, axis2=2), rtol=1e-5)


def test_a_config_names_them() -> None:
    config = parse_config({"model": {"head": "low-rank", "dim": 5, "rank": 2}})
    assert config.model.build_head(8).rank == 2
    assert ModelConfig.model_validate({"head": "low-rank", "dim": 5}).rank == 1
    assert "rank" not in ModelConfig.model_validate({"head": "full"}).model_dump()
    assert parse_config({}).digest() == parse_config({"model": {"head": "gaussian"}}).digest()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"head": "full", "dim": 5}, 'up to 4 dimensions, got dim = 5: use head = "low-rank"'),
        ({"head": "gaussian", "rank": 1}, 'rank = 1 needs head = "low-rank"'),
        ({"head": "low-rank", "dim": 2, "rank": 2}, "dim = 2 dimensions has fewer factors, got rank = 2"),
        ({"head": "low-rank", "dim": 3, "rank": 0}, "rank"),
        ({"head": "full", "components": 2}, "components = 2 needs"),
        ({"head": "full", "mirrored": True}, "joins diagonal covariances"),
    ],
)
def test_a_config_that_cannot_be_is_refused(model: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config({"model": model})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: FullHead(8, 5), ValueRangeError, r"up to 4 dimensions, got dim=5: use LowRankHead"),
        (lambda: LowRankHead(8, 3, rank=3), ValueRangeError, "fewer than 3, got rank=3"),
        (lambda: FullHead.build_of_rank(8, 3, 1), ConfigError, "low-rank"),
        (
            lambda: Mirrored().join([FullHead(8, 2)(torch.ones(1, 8))] * 2),
            ShapeError,
            "diagonal covariances are joined",
        ),
        (
            lambda: MutualLikelihood()(FullHead(8, 2)(torch.ones(4, 8)), torch.tensor([0, 0, 1, 1])),
            ShapeError,
            "teaches diagonal covariances",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words(make: Any, error: type[HedgedError], message: str) -> None:
    with pytest.raises(error, match=message):
        make()

"""A new match model is a class in a file of its own: losses, search and evaluation take it as they take the curve."""

from __future__ import annotations

from pathlib import Path
from typing import final

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hedged import (
    Architecture,
    Embedder,
    Gallery,
    Gaussian,
    HedgedLoss,
    MatchModel,
    best_matches,
    match_matrix,
    match_probability,
    self_mismatch,
)
from hedged.data import build_ndigit, offline_digits
from hedged.distributions import Distribution
from hedged.errors import ValueRangeError
from hedged.evaluation import Evaluation
from hedged.losses import ExpectedLog
from hedged.search import Header, Identifier, Identities, Rows, create_store, open_store

MODEL = "0123456789abcdef"


@final
class ToyModel(MatchModel, kind="toy"):
    """log-odds = b − a‖μ₁ − μ₂‖²: variances do not count."""

    def __init__(self, a: float = 4.0, b: float = 2.0) -> None:
        super().__init__()
        self.a, self.b = (nn.Parameter(torch.tensor(float(value))) for value in (a, b))

    def logit(self, z1: Distribution, z2: Distribution) -> Tensor:
        squared: Tensor = (z1.mean - z2.mean).square().sum(-1)
        return self.b - self.a * squared

    def fuse(self, z: Distribution, owner: Tensor) -> Distribution:
        count = owner.bincount().unsqueeze(1)
        nothing = z.mean.new_zeros(len(count), z.dim)
        mean = nothing.index_add(0, owner, z.mean) / count
        return Gaussian(mean, nothing.index_add(0, owner, z.variance) / count)

    def settings(self) -> dict[str, float]:
        return {"a": self.a.item(), "b": self.b.item()}


def embeddings(count: int, seed: int) -> Gaussian:
    """Four identities, one after the other."""
    generator = torch.Generator().manual_seed(seed)
    centres = 2 * torch.randn(4, 3, generator=torch.Generator().manual_seed(9))
    mean = centres[torch.arange(count) % 4] + 0.2 * torch.randn(count, 3, generator=generator)
    return Gaussian(mean, 0.01 + torch.rand(count, 3, generator=generator))


def by_hand(z1: Gaussian, z2: Gaussian, model: ToyModel) -> Tensor:
    """Log-odds of all pairs."""
    with torch.no_grad():
        return model.b - model.a * (z1.mean.unsqueeze(1) - z2.mean.unsqueeze(0)).square().sum(-1)


def test_matrices_and_best_matches() -> None:
    model, probes, gallery = ToyModel(), embeddings(5, 1), embeddings(40, 2)
    logits = by_hand(probes, gallery, model)
    torch.testing.assert_close(match_matrix(probes, gallery, model), logits.sigmoid())
    torch.testing.assert_close(match_probability(probes, gallery[:5], model), logits.sigmoid().diagonal())
    torch.testing.assert_close(self_mismatch(probes, model), torch.full((5,), 1 - torch.tensor(2.0).sigmoid().item()))
    found = best_matches(probes, gallery, model, k=6)
    torch.testing.assert_close(found.logits, logits.topk(6).values)
    assert MatchModel.restore({"kind": "toy", **model.settings()}).settings() == model.settings()


def test_a_store_remembers_it(tmp_path: Path) -> None:
    model, probes, gallery = ToyModel(a=3.0, b=1.0), embeddings(5, 1), embeddings(40, 2)
    with create_store(tmp_path / "toy.db", Header.for_embeddings(gallery, MODEL, model)) as store:
        store.add(Rows([str(i) for i in range(40)], gallery, MODEL, [f"identity {i % 4}" for i in range(40)]))
    with open_store(tmp_path / "toy.db") as store:
        restored = store.header.match_model
        assert isinstance(restored, ToyModel)
        assert restored.settings() == {"a": 3.0, "b": 1.0}
        found = store.index().search(probes, k=6)
        who = Identifier(Identities.read(store)).identify(probes)
    logits = by_hand(probes, gallery, model)
    best = logits.topk(6)
    assert [[int(hit.id) for hit in hits] for hits in found] == best.indices.tolist()
    np.testing.assert_allclose([[hit.logit for hit in hits] for hits in found], best.values, rtol=1e-5)
    assert [hit.uncertainty for hit in found[0]] == pytest.approx([1 - torch.tensor(1.0).sigmoid().item()] * 6)
    assert [one.best[0].label for one in who] == [f"identity {i % 4}" for i in range(5)]


def test_a_loss_trains_with_it() -> None:
    model, labels = ToyModel(), torch.arange(12) % 4
    mean = embeddings(12, 1).mean.clone().requires_grad_()
    z = Gaussian(mean, torch.full((12, 3), 0.1))
    loss = HedgedLoss(model, beta=0.0, positive_weight=0.3)(z, labels)
    first, second = torch.triu_indices(12, 12, 1)
    logits = by_hand(z, z, model)[first, second]
    match = labels[first] == labels[second]
    cost = torch.nn.functional.binary_cross_entropy_with_logits(logits, match.float(), reduction="none")
    torch.testing.assert_close(loss, 0.3 * cost[match].mean() + 0.7 * cost[~match].mean())
    loss.backward()
    assert mean.grad is not None
    assert mean.grad.abs().sum() > 0
    assert model.a.grad is not None
    assert model.b.grad is not None


def test_a_model_without_samples_says_so() -> None:
    with pytest.raises(ValueRangeError, match=r"ToyModel is exact and has no log-odds of samples: use Marginal\(\)"):
        HedgedLoss(ToyModel(), likelihood=ExpectedLog())(embeddings(12, 1), torch.arange(12) % 4)


@pytest.fixture
def embedder() -> Embedder:
    new = Embedder.new(Architecture(dim=3, shape=(1, 28, 56)), seed=0)
    return Embedder(new.backbone, new.head, ToyModel())


def test_an_embedder_a_gallery_and_an_evaluation_take_it(embedder: Embedder, tmp_path: Path) -> None:
    data = build_ndigit(offline_digits("test"), 2, range(0, 100, 10), 6, np.random.default_rng(0))
    measured = Evaluation(embedder, data)
    z, model = measured.embeddings["clean"], embedder.match_model
    assert isinstance(z, Gaussian)
    assert isinstance(model, ToyModel)
    assert 0 < measured.metrics()["verification_ap"]["clean"] <= 1
    with Gallery.create(tmp_path / "toy.db", embedder) as gallery:
        gallery.add(z, labels=[str(label) for label in measured.labels])
        found = gallery.search(z[:4], k=3)
        assert gallery.identify(z[:1])[0].best
    np.testing.assert_allclose([hits[0].logit for hits in found], by_hand(z[:4], z, model).max(1).values, rtol=1e-4)

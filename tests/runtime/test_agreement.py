"""Exported models say what torch says: means, variances, η, novelty, match probabilities and decisions."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from data.photos.album import fill_album, portrait
from numpy.typing import NDArray
from retrofit.people import people

from hedged import Architecture, Embedder
from hedged.errors import RunError
from hedged.match import Evidence, MatchCurve, MatchModel
from hedged.models import shipped_models
from hedged.models.evidence.front import NEVER_NEAR
from hedged.models.evidence.head import Branch, EvidenceHead
from hedged.models.export import export_onnx
from hedged.retrofit import Retrofit
from hedged.runtime import Model
from hedged.training import Run, build_data, parse_config, train

MEANS, PROBABILITIES = 1e-5, 1e-4  # how far apart they may be
ROUNDED = 1e-2  # the same of novelty told from few photos and many features, which makes rounding larger
PHOTOS: dict[str, Any] = {
    "data": {"source": "images", "size": 32, "cached_size": 36, "test_share": 0.4},
    "model": {"backbone": "mobilenet", "width": 0.25, "dim": 3, "mirrored": True},
    "train": {
        "steps": 60,
        "learning_rate": 1e-3,
        "warmup": 1,
        "batch_size": 24,
        "classes_per_batch": 4,
        "images_per_class": 4,
    },
}


def check_agreement(
    embedder: Embedder, inputs: NDArray[np.generic] | list[Path], path: Path, novelty_within: float = PROBABILITIES
) -> Model:
    """Export a model and compare all that the file says of some inputs with what torch says."""
    model = Model.load(export_onnx(embedder, path).path)
    assert model.fingerprint == embedder.fingerprint()
    (z, novelty), found = embedder.embed_with_novelty(inputs), model.embed(inputs)
    assert found.mean.shape == z.tensors[0].shape
    assert np.abs(found.mean - z.tensors[0].numpy()).max() <= MEANS
    assert np.abs(found.variance - (z.variance if z.is_point else z.tensors[1]).numpy()).max() <= MEANS
    assert np.abs(found.uncertainty - embedder.uncertainty(z).numpy()).max() <= PROBABILITIES
    assert (found.novelty is None) == (novelty is None)
    if novelty is not None and found.novelty is not None:
        assert np.abs(found.novelty - novelty.numpy()).max() <= novelty_within
    expected = embedder.match_matrix(z, z).numpy()
    assert expected.max() - expected.min() > 100 * PROBABILITIES, "these inputs all match alike: take others"
    assert np.abs(model.match_matrix(found, inputs) - expected).max() <= PROBABILITIES
    assert np.abs(model.match(found, found[::-1]) - np.fliplr(expected).diagonal()).max() <= PROBABILITIES
    assert not model.is_calibrated
    with pytest.raises(RunError, match="hedged calibrate RUN"):
        model.decide(found, found)
    return model


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if "mog2" in name else pytest.mark.heavy) for name in shipped_models()]
)
def test_models_that_ship(name: str, tmp_path: Path) -> None:
    embedder = Embedder.load(name)
    digits = parse_config(
        {"data": {"source": "offline", "digits": embedder.shape[2] // 28, "test_images": 40, "per_class": 4}}
    )
    data = digits.ndigit.open().first_test[1]
    index = torch.arange(16)
    check_agreement(embedder, torch.cat([data.clean(index), data.corrupt(0, index)]).numpy(), tmp_path / "digits.onnx")


@pytest.mark.heavy
def test_a_model_of_photos_with_two_views_and_novelty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From files, which are decoded, brought to one size and cut: one is much larger, two lie on their side."""
    monkeypatch.setenv("HEDGED_CACHE", str(tmp_path / "cache"))
    album = fill_album(tmp_path / "album", 24, 6)
    config = parse_config({**PHOTOS, "data": {**PHOTOS["data"], "path": str(album)}})
    train(config, build_data(config).train, tmp_path / "run")
    for k, size in enumerate([(44, 40), (40, 60), (90, 33), (1200, 900)]):
        portrait(k, 0, size).save(tmp_path / f"{k}.jpg")
    photos = [*sorted(album.rglob("*.jpg"))[::7], *sorted(tmp_path.glob("*.jpg"))]
    model = check_agreement(Run(tmp_path / "run").embedder, photos, tmp_path / "photos.onnx", ROUNDED)
    assert model.embed(photos).novelty is not None


@pytest.fixture(scope="module")
def retrofit() -> Embedder:
    train = people(40)
    return Retrofit(branches="unit", strangers=True, ridge=1.0, steps=5).fit(train.x, train.y).embedder_


def strange_and_usual(embedder: Embedder) -> NDArray[np.float32]:
    """Vectors like those that taught, and others that are far from all of them: the evidence of these fades."""
    assert isinstance(embedder.head, EvidenceHead)
    front, x = embedder.head.front, people(12, seed=1).x[:24]
    away = (front.basis[:, -1] * front.scale).numpy()
    vectors = np.concatenate([x, 0.3 * x + 10 * away]).astype(np.float32)
    strangeness = front.strangeness(front(torch.from_numpy(vectors))[1])
    assert (strangeness[:24] == 0).any()
    assert (strangeness[24:] > 1).all()
    return vectors


def test_a_retrofit_that_knows_strangers_and_fades(retrofit: Embedder, tmp_path: Path) -> None:
    check_agreement(retrofit, strange_and_usual(retrofit), tmp_path / "head.onnx")


@pytest.mark.heavy
def test_a_retrofit_that_knows_no_strangers_and_does_not_fade(retrofit: Embedder, tmp_path: Path) -> None:
    head = retrofit.head
    assert isinstance(head, EvidenceHead)
    vectors, front, branch = strange_and_usual(retrofit), copy.deepcopy(head.front), head.branches[0]
    assert isinstance(branch, Branch)
    front.least.fill_(NEVER_NEAR)
    plain = Embedder(retrofit.backbone, EvidenceHead(front, [branch]), Evidence(log_odds=-0.3, temper=0.8))
    check_agreement(plain, vectors, tmp_path / "plain.onnx")


@pytest.mark.heavy
def test_a_retrofit_as_it_is_fitted_unless_told_otherwise(tmp_path: Path) -> None:
    train = people(60)
    embedder = Retrofit(seed=0).fit(train.x, train.y, train.poor).embedder_
    check_agreement(embedder, strange_and_usual(embedder), tmp_path / "head.onnx")


@pytest.mark.heavy
@pytest.mark.parametrize(("head", "match_model"), [("point", MatchCurve(1.0, 3.0)), ("posterior", Evidence())])
def test_points_and_posteriors(head: str, match_model: MatchModel, tmp_path: Path) -> None:
    made = Embedder.new(Architecture(backbone="vectors", shape=(7,), head=head, dim=4), seed=0)
    embedder = Embedder(made.backbone, made.head, match_model)
    check_agreement(embedder, np.random.default_rng(0).normal(0, 2, (9, 7)).astype(np.float32), tmp_path / "p.onnx")

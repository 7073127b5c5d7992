"""A fitted head is a model like any other: saved, and opened as a `Retrofit` or an `Embedder`, it tells the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from retrofit.people import people
from torch.testing import assert_close

from hedged.errors import ConfigError, RunError
from hedged.match import Evidence, MatchCurve
from hedged.models import Architecture, Embedder, GaussianHead
from hedged.models.backbones import Vectors
from hedged.models.evidence.asides import ASIDE
from hedged.models.evidence.front import Front
from hedged.models.evidence.head import EvidenceHead
from hedged.models.evidence.plda import directions
from hedged.models.evidence.strangers import Strangers
from hedged.novelty import Novelty
from hedged.retrofit import Report, Retrofit, simple
from hedged.search import Gallery

TRAIN, NEW = people(30), people(20, seed=1)
SIZE = TRAIN.x.shape[1]
FRONT = Front.fitted(TRAIN.x, axes=20, unit=True)
FRONT.known = FRONT(torch.from_numpy(TRAIN.x[::3]))[0]
FOUND = directions(FRONT(torch.from_numpy(TRAIN.x))[0].double().numpy(), TRAIN.y, ridge=1.0)


def trained() -> EvidenceHead:
    """Branches of all kinds, with weights such as training leaves."""
    branches = [
        simple.started(FOUND, 16, 8, unit=False, hidden=8, seen=5),
        simple.started(FOUND, 8, 4, unit=True, hidden=8, seen=5),
        simple.started(FOUND, 16, 8, unit=False, hidden=6, seen=20, varied=True),
    ]
    head, generator = EvidenceHead(FRONT, branches), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in head.parameters():
            weights.add_(0.2 * torch.randn(weights.shape, generator=generator))
    return head


def heard(head: EvidenceHead) -> EvidenceHead:
    """The same head, with strangers who tell how rare an input is; it tells how clear one is, too."""
    strangers = Strangers.of(head(torch.from_numpy(TRAIN.x[:40])), 0.5)
    return EvidenceHead(FRONT, list(head.branches), strangers, torch.tensor([0.5, -1.0, 2.0]))  # type: ignore[arg-type]


WAYS: dict[str, Callable[[], EvidenceHead]] = {
    "evidence": trained,
    "evidence, strangers and clarity": lambda: heard(trained()),
    "cosine": lambda: EvidenceHead(*simple.cosine(SIZE)),
    "lda-20": lambda: EvidenceHead(FRONT, [simple.lda(FOUND, 20)]),
    "plda": lambda: EvidenceHead(FRONT, [simple.plda(FOUND, 10)]),
}


def fitted(way: str) -> Retrofit:
    """What `fit` leaves if it chooses this way."""
    head = WAYS[way]()
    rarity, clarity = ASIDE * (head.strangers is not None), ASIDE * (head.clarity is not None)
    embedder = Embedder(Vectors(SIZE), head, Evidence(-0.3, 0.6, -1.5, 0.2, rarity, clarity))
    report = Report(way, (), 30, len(TRAIN.y), embedder.head.dim, {}, 0.1, ())
    made = Retrofit()
    embedder.novelty_model = Novelty.fitted(TRAIN.x, TRAIN.y)
    made._keep(embedder, report)
    return made


@pytest.mark.parametrize("way", WAYS)
def test_every_way_tells_the_same_through_every_door(way: str, tmp_path: Path) -> None:
    head = fitted(way)
    head.save(tmp_path / "run")
    embedder, again = Embedder.load(tmp_path / "run"), Retrofit.load(tmp_path / "run")
    expected = head.match_model.matrix(head.embed(NEW.x), head.embed(NEW.x))
    z = embedder.embed(NEW.x)
    assert_close(embedder.match_model.matrix(z, z), expected, atol=1e-5, rtol=0)
    assert_close(embedder.match_model.logit(z[:50], z[50:100]), expected[:50, 50:100].diagonal(), atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(embedder.match_matrix(NEW.x, NEW.x), head.match_proba(NEW.x, NEW.x), atol=1e-6)
    np.testing.assert_allclose(embedder.uncertainty(NEW.x), head.uncertainty(NEW.x), atol=1e-6)
    assert again.embedder_.fingerprint() == embedder.fingerprint() == head.embedder_.fingerprint()
    for what in ("uncertainty", "novelty", "transform"):
        np.testing.assert_array_equal(getattr(again, what)(NEW.x), getattr(head, what)(NEW.x))
    assert again.report_ == head.report_


@pytest.mark.parametrize("way", WAYS)
def test_every_way_can_be_searched(way: str, tmp_path: Path) -> None:
    head = fitted(way)
    with Gallery.create(tmp_path / "people.db", head.embedder_) as gallery:
        gallery.add(NEW.x, labels=[str(k) for k in NEW.y])
        hits = gallery.search(NEW.x[:5], k=3)
        who = gallery.identify(NEW.x[:5])
    p, eta = head.match_proba(NEW.x[:5], NEW.x), head.uncertainty(NEW.x)
    for i, found in enumerate(hits):
        assert found[0].match_probability == pytest.approx(p[i].max(), abs=1e-5)
        assert found[0].probe_uncertainty == pytest.approx(eta[i], abs=1e-5)
        assert 0 <= who[i].none_probability <= 1


def test_few_identities_fall_back_to_a_head_that_can_be_opened(tmp_path: Path) -> None:
    few = people(8, each=4)
    head = Retrofit().fit(few.x, few.y)
    head.save(tmp_path)
    embedder = Embedder.load(tmp_path)
    assert embedder.notes["way"] == head.report_.chosen == "cosine"
    np.testing.assert_allclose(embedder.match_matrix(NEW.x, NEW.x), head.match_proba(NEW.x, NEW.x), atol=1e-6)


def test_files_of_two_heads_are_told_apart(tmp_path: Path) -> None:
    for way in ("cosine", "plda"):
        fitted(way).save(tmp_path / way)
    (tmp_path / "cosine" / "retrofit.json").replace(tmp_path / "plda" / "retrofit.json")
    with pytest.raises(RunError, match="belongs to another head"):
        Retrofit.load(tmp_path / "plda")
    with pytest.raises(RunError, match=r"holds a model that was trained.*Embedder\.load"):
        Retrofit.load(tmp_path / "cosine")
    (tmp_path / "cosine" / "model.safetensors").replace(tmp_path / "plda" / "model.safetensors")
    with pytest.raises(RunError, match="weights of another model"):
        Embedder.load(tmp_path / "plda")


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("retrofit.json", "{", "cannot be read"),
        ("retrofit.json", '{"format": 1}', "another format than 2 or 3"),
        ("retrofit.json", '{"format": 2}', "is not whole"),
        ("novelty.safetensors", "short", "damaged or truncated.*hedged novelty"),
        ("model.json", None, "model.json is missing"),
        ("model.safetensors", "short", "damaged or truncated"),
    ],
)
def test_damaged_files_are_told(tmp_path: Path, file: str, content: str | None, words: str) -> None:
    fitted("plda").save(tmp_path)
    (tmp_path / file).unlink() if content is None else (tmp_path / file).write_text(content)
    with pytest.raises(RunError, match=words):
        Retrofit.load(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"evidence": None}, "fitted to vectors, not trained"),
        ({"dim": 3}, "the head has 10 dimensions in all, got dim = 3"),
        ({"head": "gaussian"}, 'got head = "gaussian"'),
        ({"backbone": "mobilenet"}, 'backbone = "mobilenet" has no setting evidence'),
        ({"evidence": {"axes": 20, "unit": True, "branches": []}}, "at least 1 item"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(tmp_path: Path, change: dict[str, object], words: str) -> None:
    fitted("plda").save(tmp_path)
    path = tmp_path / "model.json"
    described = json.loads(path.read_text())
    described["architecture"] |= change
    path.write_text(json.dumps(described))
    with pytest.raises((RunError, ConfigError), match=words):
        Embedder.load(tmp_path)


def test_vectors_as_they_are_take_any_head(tmp_path: Path) -> None:
    embedder = Embedder(Vectors(SIZE), GaussianHead(SIZE, 3), MatchCurve())
    assert embedder.architecture == Architecture(backbone="vectors", dim=3, shape=(SIZE,))
    embedder.save(tmp_path)
    assert_close(Embedder.load(tmp_path).embed(NEW.x).mean, embedder.embed(NEW.x).mean)

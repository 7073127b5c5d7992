"""`Retrofit` keeps its promises: better than the cosine, calibrated, unsure of what is poor, and plain about errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from retrofit.people import people
from sklearn.base import clone  # type: ignore[import-untyped]
from sklearn.exceptions import NotFittedError  # type: ignore[import-untyped]
from sklearn.model_selection import GridSearchCV  # type: ignore[import-untyped]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

from hedged.errors import ConfigError, DataError, HedgedError, RunError, ShapeError
from hedged.metrics import reliability, roc_auc
from hedged.retrofit import Retrofit

TRAIN, NEW = people(80), people(60, seed=1)
QUICK: dict[str, Any] = {"steps": 10, "ridge": 1.0}


@pytest.fixture(scope="module")
def head() -> Retrofit:
    return Retrofit(steps=100).fit(TRAIN.x, TRAIN.y, poor=TRAIN.poor)


def pairs(y: Any) -> tuple[Any, Any, Any]:
    first, second = np.triu_indices(len(y), 1)
    return first, second, y[first] == y[second]


def cosine_accuracy(x: Any, y: Any) -> float:
    """The best balanced accuracy of the cosine over all thresholds."""
    first, second, matches = pairs(y)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    order = np.argsort(-(unit @ unit.T)[first, second])
    hits = matches[order]
    return float(0.5 + 0.5 * (np.cumsum(hits) / hits.sum() - np.cumsum(~hits) / (~hits).sum()).max())


def test_new_identities_are_told_apart_better_than_by_the_cosine(head: Retrofit) -> None:
    assert head.report_.chosen.startswith("evidence")
    assert head.score(NEW.x, NEW.y) > cosine_accuracy(NEW.x, NEW.y) + 0.01


def test_probabilities_hold_for_new_identities(head: Retrofit) -> None:
    first, second, matches = pairs(NEW.y)
    p = head.match_proba(NEW.x, NEW.x)[first, second]
    weights = np.where(matches, 0.5 / matches.sum(), 0.5 / (~matches).sum())
    assert reliability(p, matches, weights=weights).ece < 0.06


def test_what_was_seen_badly_is_unsure(head: Retrofit) -> None:
    eta = head.uncertainty(NEW.x)
    assert ((eta >= 0) & (eta <= 1)).all()
    assert roc_auc(eta, NEW.is_bad) > 0.8
    assert len(np.unique(eta)) == len(eta)  # no ties


def test_vectors_of_another_kind_are_novel_and_new_identities_are_not(head: Retrofit) -> None:
    other = people(20, seed=2).x + np.float32(8)  # a sensor that adds to everything
    novelty = head.novelty(np.concatenate([NEW.x, other]))
    assert roc_auc(novelty, np.arange(len(novelty)) >= len(NEW.x)) > 0.9


def test_embeddings_and_match_model_tell_the_same(head: Retrofit) -> None:
    z = head.embed(NEW.x[:5])
    assert z.batch_shape == (5,)
    logits = head.match_model.matrix(z, z)
    np.testing.assert_allclose(logits.sigmoid().numpy(), head.match_proba(NEW.x[:5], NEW.x[:5]), atol=1e-6)
    np.testing.assert_array_equal(head.transform(NEW.x[:5]), z.mean.numpy())
    assert (z.variance <= 1).all()


def test_templates_of_several_vectors_are_surer(head: Retrofit) -> None:
    z, y = head.embed(NEW.x), torch.from_numpy(NEW.y)
    fused = head.match_model.fuse(z, y)
    assert head.match_model.information(fused).mean() > head.match_model.information(z).mean()


def test_the_same_seed_gives_the_same_head() -> None:
    first, second = (Retrofit(**QUICK, seed=3).fit(TRAIN.x, TRAIN.y) for _ in range(2))
    np.testing.assert_array_equal(first.match_proba(NEW.x, NEW.x), second.match_proba(NEW.x, NEW.x))


def test_words_are_identities_and_their_order_does_not_matter() -> None:
    names = np.array([f"dog {k}" for k in TRAIN.y])
    assert Retrofit(**QUICK).fit(TRAIN.x, names).score(NEW.x, NEW.y) > 0.8


def test_without_poorer_vectors_it_says_so_and_is_calibrated_on_what_there_is() -> None:
    alone = Retrofit(**QUICK).fit(TRAIN.x, TRAIN.y)
    assert any("real ones teach more" in note for note in alone.report_.notes)
    first, second, matches = pairs(NEW.y)
    p = alone.match_proba(NEW.x, NEW.x)[first, second]
    weights = np.where(matches, 0.5 / matches.sum(), 0.5 / (~matches).sum())
    assert reliability(p, matches, weights=weights).ece < 0.06


def test_of_known_identities_inputs_are_held_out_and_few_are_enough() -> None:
    few = people(10, each=60, seed=3)
    is_later = np.arange(len(few.y)) % 3 == 0
    heads = [
        Retrofit(**QUICK, held_out=held).fit(few.x[~is_later], few.y[~is_later]) for held in ("identities", "inputs")
    ]
    assert heads[0].report_.chosen == "cosine"
    assert heads[1].report_.chosen.startswith("evidence")
    assert heads[1].report_.settings["held_out"] == "inputs"
    accuracy = [head.score(few.x[is_later], few.y[is_later]) for head in heads]
    assert accuracy[1] > accuracy[0] + 0.02


@pytest.mark.parametrize("seed", range(5))
def test_few_identities_are_no_worse_than_the_cosine(seed: int) -> None:
    few = people(10, each=5, seed=10 + seed)
    head = Retrofit(seed=seed).fit(few.x, few.y)
    assert not head.report_.chosen.startswith("evidence")
    assert "too few" in head.report_.notes[-1]
    first, second, matches = pairs(NEW.y)
    scores = head.match_proba(NEW.x, NEW.x)[first, second]
    order = np.argsort(-scores)
    hits = matches[order]
    best = 0.5 + 0.5 * (np.cumsum(hits) / hits.sum() - np.cumsum(~hits) / (~hits).sum()).max()
    assert best >= cosine_accuracy(NEW.x, NEW.y) - 0.01


def test_two_identities_are_enough_to_say_something() -> None:
    two = people(2, each=3)
    assert Retrofit().fit(two.x, two.y).match_proba(two.x, two.x).shape == (6, 6)


def test_the_report_compares_with_the_simpler_ways(head: Retrofit) -> None:
    ways = [m.way for m in head.report_.compared]
    assert {"cosine", "lda-20", "plda", "evidence own+unit"} <= set(ways)
    assert "was chosen for 480 vectors of 80 identities" in str(head.report_)


def test_saved_and_loaded_it_is_the_same(head: Retrofit, tmp_path: Path) -> None:
    head.save(tmp_path / "run")
    loaded = Retrofit.load(tmp_path / "run")
    assert loaded.report_ == head.report_
    assert loaded.get_params() == head.get_params()
    for way in ("uncertainty", "novelty", "transform"):
        np.testing.assert_array_equal(getattr(loaded, way)(NEW.x), getattr(head, way)(NEW.x))
    np.testing.assert_array_equal(loaded.match_proba(NEW.x, NEW.x), head.match_proba(NEW.x, NEW.x))


@pytest.mark.parametrize("seed", range(4))
def test_few_dimensions_need_not_be_as_many_in_every_fold(seed: int) -> None:
    few = people(30, each=4, features=8, seed=seed)
    assert Retrofit(steps=5, branches="unit", seed=seed).fit(few.x, few.y).score(few.x, few.y) > 0.5


def test_what_cannot_be_loaded_is_told(head: Retrofit, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no head"):
        Retrofit.load(tmp_path / "nowhere")
    head.save(tmp_path)
    (tmp_path / "novelty.safetensors").write_bytes(b"short")
    with pytest.raises(RunError, match="damaged or truncated"):
        Retrofit.load(tmp_path)


def test_scikit_learn_knows_it() -> None:
    asked = clone(Retrofit(dim=16, seed=4))
    assert asked.get_params() == Retrofit(dim=16, seed=4).get_params()
    chain = make_pipeline(StandardScaler(), Retrofit(**QUICK))
    assert chain.fit(TRAIN.x, TRAIN.y).score(NEW.x, NEW.y) > 0.8
    assert chain.transform(NEW.x).shape[0] == len(NEW.x)
    search = GridSearchCV(Retrofit(**QUICK), {"dim": [8, 16]}, cv=2)
    assert search.fit(TRAIN.x[:240], TRAIN.y[:240] % 40).best_params_["dim"] in (8, 16)


BAD = [
    (lambda: Retrofit().fit(TRAIN.x, TRAIN.y[:-1]), ShapeError, "y has shape"),
    (lambda: Retrofit().fit(TRAIN.x, np.zeros(len(TRAIN.y))), DataError, "1 identity"),
    (lambda: Retrofit().fit(TRAIN.x, np.arange(len(TRAIN.y))), DataError, "one vector"),
    (lambda: Retrofit().fit(TRAIN.x[0], TRAIN.y), ShapeError, "expected"),
    (lambda: Retrofit().fit(np.where(TRAIN.x > 3, np.nan, TRAIN.x), TRAIN.y), DataError, "NaN"),
    (lambda: Retrofit().fit(np.ones_like(TRAIN.x), TRAIN.y), DataError, "all vectors of X are equal"),
    (lambda: Retrofit().fit(TRAIN.x, TRAIN.y, poor=TRAIN.poor[:-1]), ShapeError, "row by row"),
    (lambda: Retrofit().fit(TRAIN.x, TRAIN.y, poor=TRAIN.poor[:, :-1]), ShapeError, "fitted to vectors of 24"),
    (lambda: Retrofit(dim=0).fit(TRAIN.x, TRAIN.y), ConfigError, "got dim=0"),
    (lambda: Retrofit(steps=1.5).fit(TRAIN.x, TRAIN.y), ConfigError, "got steps=1.5"),  # type: ignore[arg-type]
    (lambda: Retrofit(branches="unit+broad").fit(TRAIN.x, TRAIN.y), ConfigError, "got branches='unit.broad'"),
    (lambda: Retrofit(branches="unit+unit").fit(TRAIN.x, TRAIN.y), ConfigError, "some of plain, own, unit"),
    (lambda: Retrofit(branches="unit").fit(TRAIN.x[:60], TRAIN.y[:60]), DataError, "10 identities are too few"),
    (lambda: Retrofit(strangers="some").fit(TRAIN.x, TRAIN.y), ConfigError, "got strangers='some'"),  # type: ignore[arg-type]
    (lambda: Retrofit().fit([["a", "b"]], ["a"]), DataError, "array of numbers"),
    (lambda: Retrofit().fit(TRAIN.x[:3], "rex"), ShapeError, "y is one word, 'rex', for 3 vectors"),
    (lambda: Retrofit().fit(TRAIN.x[:3], b"rex"), ShapeError, "y is one word, b'rex', for 3 vectors"),
    (lambda: Retrofit().fit(TRAIN.x[:3], [["a"], ["b", "c"], "d"]), ShapeError, r"a list of labels .*expected \(3,\)"),
]


@pytest.mark.parametrize(("call", "kind", "words"), BAD)
def test_what_cannot_be_fitted_is_told(call: Any, kind: type[HedgedError], words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_vectors_of_another_width_are_refused(head: Retrofit) -> None:
    with pytest.raises(ShapeError, match="vectors of 23 numbers; it was fitted to vectors of 24"):
        head.match_proba(NEW.x[:, :-1], NEW.x)


def test_nothing_is_told_before_fit() -> None:
    with pytest.raises(NotFittedError, match="call fit"):
        Retrofit().uncertainty(NEW.x)


def test_constant_features_and_equal_rows_do_no_harm() -> None:
    x = TRAIN.x.copy()
    x[:, 3] = 7.0
    x[1] = x[0]
    assert np.isfinite(Retrofit(**QUICK).fit(x, TRAIN.y).match_proba(x[:9], x[:9])).all()

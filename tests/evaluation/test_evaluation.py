"""Measurements: each is made once, and the same as by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from evaluation.conftest import Evaluate

from hedged.distributions import Gaussian, Mixture
from hedged.evaluation import CONDITIONS, Evaluation, decide, evaluation, match_scores
from hedged.evaluation.headline import headline_rows
from hedged.evaluation.report.page import render
from hedged.evaluation.strangers import strangers_told
from hedged.match import Evidence, MatchCurve
from hedged.metrics import average_precision, balanced_pairs, random_pairs


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each expensive thing was done."""
    counted: Counter[str] = Counter()

    def count(name: str, whole: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **kwargs: Any) -> Any:
            counted[name] += 1
            return whole(*args, **kwargs)

        return counting

    for name in ("embed_all_with_novelty", "match_scores", "best_matches", "self_mismatch", "ap_curve", "knn_curve"):
        monkeypatch.setattr(evaluation, name, count(name, getattr(evaluation, name)))
    return counted


def test_metrics_table_and_report_measure_each_thing_once(evaluate: Evaluate, calls: Counter[str]) -> None:
    measured = evaluate(each=60)
    first = measured.metrics()
    headline_rows(measured)
    render(measured, {})
    assert measured.metrics() == first
    conditions, kinds_of_pairs, grid = len(CONDITIONS), 2, 3
    assert calls == {
        "embed_all_with_novelty": conditions,
        "self_mismatch": conditions,
        "match_scores": conditions * kinds_of_pairs,
        "best_matches": grid,
        "ap_curve": conditions,
        "knn_curve": grid,
    }


def test_defaults_and_keywords_are_the_same_measurement(evaluate: Evaluate) -> None:
    measured = evaluate(each=10)
    assert measured.knn_curve("clean") is measured.knn_curve("clean", probe="clean", vote="majority")
    assert measured.knn_curve("clean") is not measured.knn_curve("clean", vote="plurality")


def test_scores_are_kept_as_long_as_their_pairs(evaluate: Evaluate) -> None:
    measured = evaluate()
    pairs = random_pairs(measured.labels, 50)
    scores = measured.scores(pairs, "clean")
    assert measured.scores(pairs, "clean") is scores
    assert np.array_equal(scores, match_scores(pairs, measured.embeddings["clean"], measured.embedder.match_model))
    assert not np.array_equal(scores, measured.scores(pairs, "corrupt"))
    held = len(measured._scores)
    del pairs
    assert len(measured._scores) == held - 1


def test_verification_is_the_average_precision_of_balanced_pairs(evaluate: Evaluate) -> None:
    measured = evaluate()
    pairs = balanced_pairs(measured.labels, seed=measured.seed)
    assert measured.verification_ap("clean") == average_precision(measured.scores(pairs, "clean"), pairs.matches)


def test_novelty_is_told_of_the_embeddings_and_measured(evaluate: Evaluate) -> None:
    measured = evaluate(each=10, novelty=True)
    known = measured.embedder.novelty(measured.data.clean())
    assert measured.novelty is not None
    np.testing.assert_allclose(measured.novelty["clean"], known)
    told = measured.metrics()["novelty"]
    assert told["corrupt"] == measured.novelty["corrupt"].mean()
    higher = measured.novelty["corrupt"] > measured.novelty["clean"][:, None]
    assert told["auroc"] == pytest.approx(higher.mean(), abs=1e-3)
    rows = {row.name: row.measured for row in headline_rows(measured)}
    assert rows["corrupt from clean, by novelty"] == told["auroc"]
    silent = evaluate(each=10)
    assert silent.novelty is None
    assert "novelty" not in silent.metrics()


def test_strangers_are_told_by_their_best_match() -> None:
    rng = np.random.default_rng(0)
    places, labels = 10 * np.arange(40), np.repeat(np.arange(40), 5)
    mean = torch.from_numpy(places[labels] + 0.1 * rng.normal(size=200))[:, None]
    z, model = Gaussian(mean, torch.full_like(mean, 0.01)), MatchCurve()
    assert strangers_told(z, labels, model) == 1.0  # far from all that are enrolled
    assert strangers_told(z, rng.permutation(labels), model) == pytest.approx(0.5, abs=0.2)
    assert strangers_told(z[:15], labels[:15], model) is None
    assert strangers_told(z, np.arange(200), model) is None


def test_mixtures_that_evidence_does_not_fuse_have_no_gallery() -> None:
    parts = torch.rand(20, 2, 3)
    assert strangers_told(Mixture(parts, parts / 2 + 0.1), np.repeat(np.arange(5), 4), Evidence()) is None


def test_two_evaluations_share_nothing(evaluate: Evaluate) -> None:
    one, other = evaluate(), evaluate(dim=3)
    assert one.verification_ap("clean") != other.verification_ap("clean")
    assert isinstance(decide(one, other).threshold, float)
    assert isinstance(one, Evaluation)

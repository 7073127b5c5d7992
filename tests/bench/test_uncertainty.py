"""The fair fight: measures by their definitions, every way on people, results that are resumed, and its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from retrofit.people import people

from hedged.bench.uncertainty import way as way_module
from hedged.bench.uncertainty.fight import WAYS, fight, tuned
from hedged.bench.uncertainty.gaussians import ByEvidence
from hedged.bench.uncertainty.measures import (
    FALSE_MATCHES,
    MEASURES,
    SHARES,
    first_is_right,
    identified,
    kept_of,
    measured,
    miss_rate,
)
from hedged.bench.uncertainty.page import behind, table, write_page
from hedged.bench.uncertainty.sets import TrialSet, Vectors, offline_digits, read_set
from hedged.bench.uncertainty.way import Fitted, Way
from hedged.errors import DataError


def trial() -> TrialSet:
    known, new = people(40), people(20, seed=1)
    novel = 3 * np.random.default_rng(0).normal(size=(50, known.x.shape[1])).astype(np.float32)
    return TrialSet("people", Vectors(known.x, known.poor, known.y), Vectors(new.x, new.poor, new.y), novel)


class Told(Fitted):
    """Scores by a table over inputs whose first number is their row."""

    def __init__(self, scores: NDArray[np.float64], doubt: NDArray[np.float64]) -> None:
        self.table, self.doubt = scores, doubt

    def scores(self, a: Any, b: Any) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.table[np.ix_(a[:, 0].astype(int), b[:, 0].astype(int))]
        return found

    def uncertainty(self, x: Any) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self.doubt[x[:, 0].astype(int)]
        return found


def test_the_best_match_is_sought_among_the_others() -> None:
    scores = np.array([[9.0, 1, 2], [1, 9, 0], [2, 0, 9]])
    np.testing.assert_array_equal(first_is_right(scores, np.array([5, 5, 6])), [False, True, False])


def test_misses_are_counted_at_the_false_match_rate() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(10), 4)
    scores = rng.normal(size=(40, 40)) + 2 * (y[:, None] == y)
    kept = np.sort(rng.permutation(40)[:30])
    strangers = sorted(scores[i, j] for i in kept for j in kept if i < j and y[i] != y[j])
    threshold = np.quantile(strangers, 1 - FALSE_MATCHES)
    matches = [scores[i, j] for i in kept for j in kept if i < j and y[i] == y[j]]
    assert miss_rate(scores, y, kept) == pytest.approx(np.mean([s <= threshold for s in matches]))


def test_the_most_uncertain_are_discarded() -> None:
    np.testing.assert_array_equal(kept_of(np.array([0.3, 0.9, 0.1, 0.5]), 0.5), [0, 2])
    assert len(kept_of(np.arange(7.0), 0.0)) == 7


def test_a_way_that_knows_everything_is_perfect_and_one_that_knows_nothing_is_not() -> None:
    y = np.repeat(np.arange(12), 5)
    rows = np.arange(60, dtype=np.float32)[:, None]
    same = (y[:, None] == y).astype(float)
    sets = TrialSet("told", Vectors(rows, rows, y), Vectors(rows, rows, y), None)
    perfect = measured(Told(same, np.zeros(60)), sets, 0)
    assert (perfect["aurc"], perfect["error_discarded"], perfect["dir"]) == (0.0, 0.0, 1.0)
    noise = np.random.default_rng(0).normal(size=(60, 60))
    assert identified(Told(noise, np.zeros(60)), rows, y, 0) < 0.2
    blind = np.arange(60) % 5 == 0  # these inputs look like nobody; a way that says so tells all errors
    worse = np.where(blind[:, None] | blind, noise, 10 * same)
    told = measured(Told(worse, blind.astype(float)), sets, 0)
    silent = measured(Told(worse, np.zeros(60)), sets, 0)
    assert told["r_auroc"] > 0.95 > silent["r_auroc"] == 0.5
    assert told["aurc"] < silent["aurc"]
    assert told["curve"][len(SHARES) // 2] < told["curve"][0]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_way_matches_people_and_says_how_uncertain_it_is(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(way_module, "STEPS", 150)
    sets = trial()
    setting = way.settings[0] if way.name != "evidence" else {"steps": 20, "branches": "unit+wide"}
    fitted = way.fit(sets.train, 0, **setting)
    found = measured(fitted, sets, 0)
    assert set(MEASURES) <= found.keys()
    assert found["aurc"] < 0.8  # by chance 0.96
    x = sets.test.clean
    assert np.isfinite(fitted.uncertainty(x)).all()
    assert len(np.unique(fitted.uncertainty(x))) > 50
    np.testing.assert_allclose(fitted.uncertainty(x[:7]), fitted.uncertainty(x)[:7], rtol=1e-3, atol=1e-5)


def test_evidence_may_doubt_which_of_the_known_it_is_and_only_of_the_known() -> None:
    known = people(25)
    closed, open_ = (Vectors(known.x, known.poor, known.y, is_closed) for is_closed in (True, False))
    way = ByEvidence()
    assert way.settings_for(closed) == ({"doubt": "eta"}, {"doubt": "identity"})
    assert way.settings_for(open_) == ({},)
    quick = {"steps": 5, "branches": "unit+wide"}
    by_identity = way.fit(closed, 0, doubt="identity", **quick)
    by_eta = way.fit(closed, 0, doubt="eta", **quick)
    between = (known.x[known.y == 0][:4] + known.x[known.y == 1][:4]) / 2  # sure to be one of two
    entropy = by_identity.uncertainty(np.concatenate([known.x, between]))
    assert 0 <= entropy.min() <= entropy.max() <= np.log(25) + 1e-9
    assert np.median(entropy[-4:]) > np.median(entropy[:-4])
    np.testing.assert_array_equal(by_eta.scores(between, known.x), by_identity.scores(between, known.x))


class Counted(Way):
    name = "counted"
    settings: ClassVar[tuple[dict[str, Any], ...]] = ({"good": False}, {"good": True})
    fits = 0

    def fit(self, train: Vectors, seed: int, **setting: Any) -> Fitted:
        type(self).fits += 1
        y = np.arange(10_000) // 6
        noise = np.random.default_rng(0).normal(size=(240, 240))
        return Told((y[:240, None] == y[:240]) * 5.0 * setting["good"] + noise, noise[0])


def test_a_fight_is_tuned_on_training_rows_and_resumed(tmp_path: Path) -> None:
    rows, y = np.arange(240, dtype=np.float32)[:, None], np.repeat(np.arange(40), 6)
    train, test = Vectors(rows[:120], rows[:120], y[:120]), Vectors(rows[120:], rows[120:], y[120:])
    sets, way = TrialSet("told", train, test, None), Counted()
    assert tuned(way, sets) == {"good": True}
    Counted.fits = 0
    fight([sets], tmp_path, seeds=1, ways=(way,))
    assert Counted.fits == 3  # two settings, one seed
    fight([sets], tmp_path, seeds=2, ways=(way,))
    assert Counted.fits == 4  # the second seed alone, with the setting of the first
    first, second = json.loads((tmp_path / "told.json").read_text())
    assert "tuning_seconds" in first
    assert "tuning_seconds" not in second
    assert all(result["measuring_seconds"] >= 0 for result in (first, second))


def test_results_of_settings_that_are_no_longer_tried_are_measured_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows, y = np.arange(240, dtype=np.float32)[:, None], np.repeat(np.arange(40), 6)
    sets = TrialSet("told", Vectors(rows[:120], rows[:120], y[:120]), Vectors(rows[120:], rows[120:], y[120:]), None)
    old = {"set": "told", "way": "counted", "seed": 0, "setting": {}, "aurc": 0.5}
    other = old | {"way": "somebody else's"}
    (tmp_path / "told.json").write_text(json.dumps([old, other]))
    fight([sets], tmp_path, seeds=1, ways=(Counted(),))
    kept, again = json.loads((tmp_path / "told.json").read_text())
    assert kept == other
    assert (again["way"], again["setting"]) == ("counted", {"good": True})
    assert "1 results are measured again, of settings that are no longer tried: counted" in caplog.text


def test_sets_in_processes_of_their_own_are_measured_alike(tmp_path: Path) -> None:
    rows, y = np.arange(240, dtype=np.float32)[:, None], np.repeat(np.arange(40), 6)
    train, test = Vectors(rows[:120], rows[:120], y[:120]), Vectors(rows[120:], rows[120:], y[120:])
    sets = [TrialSet(name, train, test, None) for name in ("first", "second")]
    alone, apart = (fight(sets, tmp_path / str(n), seeds=1, ways=(Counted(),), processes=n) for n in (1, 2))
    for one, two in zip(alone, apart, strict=True):
        assert one.name == two.name
        (a,), (b,) = (json.loads(path.read_text()) for path in (one, two))
        assert {key: a[key] for key in a if "seconds" not in key} == {key: b[key] for key in b if "seconds" not in key}


def test_tuning_holds_out_whole_identities_unless_classes_are_the_same() -> None:
    sets = trial()
    held = sets.for_tuning
    assert not np.isin(held.test.y, held.train.y).any()
    assert len(held.test.y) + len(held.train.y) == len(sets.train.y)
    digits = offline_digits()
    assert digits.train.is_closed
    assert set(digits.for_tuning.test.y) == set(range(10))


def test_a_page_shows_the_best_in_bold(tmp_path: Path) -> None:
    results = [
        {"way": way, "seed": seed, "r_auroc": value + 0.001 * seed, "aurc": 0.1, "curve": [0.1] * len(SHARES)}
        for way, value in (("distance", 0.6), ("evidence", 0.9))
        for seed in range(3)
    ]
    lines = table(results).splitlines()
    assert lines[2].startswith("| distance | 0.601")
    assert "| **0.901" in lines[3]
    assert behind(results).endswith("in every column.")
    (tmp_path / "people.json").write_text(json.dumps(results))
    assert [path.name for path in write_page(tmp_path)] == ["README.md", "uncertainty.png"]


def test_a_page_says_where_ours_is_behind_and_by_how_much() -> None:
    results = [
        {"way": way, "seed": seed, "r_auroc": value + 0.001 * seed, "aurc": 0.1, "dir": high}
        for way, value, high in (("distance", 0.9, 0.5), ("evidence", 0.6, 0.51))
        for seed in range(3)
    ]
    assert behind(results).strip() == "`evidence` is behind in R-AUROC (by 0.300 ± 0.001, distance is first)."


def test_sets_are_read_from_files(tmp_path: Path) -> None:
    known = people(6)
    is_test = known.y % 3 == 0
    np.savez(tmp_path / "few-v.npz", X=known.x, poor=known.poor, y=known.y, test=is_test, novel=known.x[:3])
    sets = read_set(tmp_path / "few-v.npz")
    assert sets.name == "few"
    assert not sets.train.is_closed
    assert len(sets.train.y) == (~is_test).sum()
    assert sets.novel is not None
    assert len(sets.novel) == 3
    np.savez(tmp_path / "bad.npz", X=known.x)
    with pytest.raises(DataError, match="has no array 'poor'"):
        read_set(tmp_path / "bad.npz")

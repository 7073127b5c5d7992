"""Promises about strangers and candidates on the command line: `calibrate --fpir`, `identify --fpir --coverage`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from cli.commands import Hedged, check_refused

from hedged.retrofit import Retrofit

PEOPLE, OF_EACH, SIZE = 120, 4, 12


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors of people: some to fit and calibrate on, some for a store, and later ones of both kinds."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("vectors")
    for name, people, first in (("fitted", 80, 0), ("gallery", PEOPLE, 1000), ("strangers", 60, 2000)):
        y = np.repeat(np.arange(first, first + people), OF_EACH)
        x = rng.normal(size=(people, SIZE))[y - first] + 0.2 * rng.normal(size=(len(y), SIZE))
        labels = np.array([f"p{k}" for k in y])
        if name == "gallery":
            later = np.arange(len(y)) % OF_EACH == 0
            np.savez(folder / "later.npz", features=x[later].astype(np.float32), labels=labels[later])
            x, labels = x[~later], labels[~later]
        np.savez(folder / f"{name}.npz", features=x.astype(np.float32), labels=labels)
    return folder


def test_promises_are_made_kept_and_shown(
    hedged: Hedged, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simple = partial(Retrofit, branches="plain", strangers=False, steps=5)  # a fit in a second
    monkeypatch.setattr("hedged.retrofit.Retrofit", simple)
    run, store = tmp_path / "run", tmp_path / "people.db"
    fitted = hedged("retrofit", vectors / "fitted.npz", "--out", run, "--test-share", "0", "--validation-share", "0.4")
    assert fitted.code == 0, fitted.err
    assert hedged("index", "build", run, store, vectors / "gallery.npz").code == 0
    strangers, later = vectors / "strangers.npz", vectors / "later.npz"
    check_refused(hedged("identify", run, store, later, "--fpir", "0.1"), "hedged calibrate", "--fpir 0.1")

    check_refused(hedged("calibrate", run, "--fpir", "0.01", "--store", store), "0.01 cannot be promised", "least 99")
    assert not (run / "calibration.json").exists()
    told = hedged("calibrate", run, "--fpir", "0.2", "--fpir", "0.1", "--store", store)
    assert told.code == 0, told.err
    assert "strangers taken for one of up to 120 identities" in told.out
    saved = json.loads((run / "calibration.json").read_text())["gallery"]
    assert saved["identities"] == PEOPLE
    assert [one["rate"] for one in saved["thresholds"]] == [0.1, 0.2]
    assert saved["thresholds"][0]["score"] > saved["thresholds"][1]["score"]

    options = ("--fpir", "0.1", "--coverage", "0.95", "--json")
    known, unknown = (json.loads(hedged("identify", run, store, file, *options).out) for file in (later, strangers))
    assert np.mean([one["at_fpir"] is not None for one in unknown[::OF_EACH]]) <= 0.25
    assert np.mean([one["at_fpir"] == f"p{1000 + i}" for i, one in enumerate(known)]) >= 0.5
    assert np.mean([f"p{1000 + i}" in one["candidates"]["labels"] for i, one in enumerate(known)]) >= 0.88
    assert np.mean([one["candidates"]["nobody"] for one in unknown[::OF_EACH]]) >= 0.85
    assert np.mean([len(one["candidates"]["labels"]) for one in known]) < 10
    text = hedged("identify", run, store, f"{later}:0", "--fpir", "0.1", "--coverage", "0.95").out
    assert "candidates (right in 0.95 of such sets): p1000" in text
    assert "at the promised FPIR: p1000" in text

    check_refused(hedged("identify", run, store, later, "--fpir", "0.05"), "0.05 was not calibrated for")
    check_refused(hedged("identify", run, store, later, "--coverage", "0.999"), "takes at least 999")
    within = hedged("calibrate", run, "--fpir", "0.1", "--json")
    assert json.loads(within.out)["gallery"]["identities"] < PEOPLE
    check_refused(hedged("identify", run, store, later, "--fpir", "0.1"), "--store STORE", "has 120")


@pytest.mark.parametrize(
    ("verb", "options", "words"),
    [
        ("calibrate", ["--fpir", "1"], ["between 0 and 1, got 1"]),
        ("calibrate", ["--store", "a.db"], ["--fpir", "give both"]),
        ("calibrate", ["--fpir", "0.1", "--pairs", "a.csv"], ["leave out --pairs"]),
        ("identify", ["a.db", "x.png", "--coverage", "0"], ["--coverage", "got 0"]),
        ("identify", ["a.db", "x.png", "--fpir", "0.1", "--fusion", "mixture"], ["--fusion product"]),
    ],
)
def test_wrong_options(hedged: Hedged, verb: str, options: list[str], words: list[str]) -> None:
    check_refused(hedged(verb, "nowhere", *options), *words)


def test_drift_is_seen_in_stores_and_inputs_and_not_where_there_is_none(
    hedged: Hedged, vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hedged.retrofit.Retrofit", partial(Retrofit, branches="plain", strangers=False, steps=5))
    run, store = tmp_path / "run", tmp_path / "people.db"
    shares = ("--test-share", "0", "--validation-share", "0.4")
    assert hedged("retrofit", vectors / "fitted.npz", "--out", run, *shares).code == 0
    assert hedged("index", "build", run, store, vectors / "gallery.npz").code == 0
    check_refused(hedged("drift", run, store), "does not say what its inputs were like", "hedged calibrate")
    assert hedged("calibrate", run).code == 0
    told = json.loads(hedged("drift", run, store, "--json").out)
    assert (told["inputs"], told["reference"]) == (PEOPLE, 32)
    assert not told["changed"]
    assert told["alarm_id"] is None
    assert "no change seen" in hedged("drift", run, vectors / "strangers.npz").out
    with np.load(vectors / "strangers.npz") as file:
        np.savez(tmp_path / "worse.npz", features=4 * file["features"], labels=file["labels"])
    changed = hedged("drift", run, tmp_path / "worse.npz", "--false-alarms", "0.05")
    assert "the inputs have changed: first seen at" in changed.out
    told = json.loads(hedged("drift", run, tmp_path / "worse.npz", "--json").out)
    assert told["inputs"] == 60
    assert told["evidence"] >= 100
    check_refused(hedged("drift", run, store, "--false-alarms", "0"), "--false-alarms", "got 0")
    check_refused(hedged("drift", run, store, "--where", "label=nobody"), "nothing to look at")
    check_refused(hedged("drift", run, vectors / "later.npz", "--folder-labels"), "in no folders")
    check_refused(hedged("drift", run, tmp_path / "nowhere.npz"), "nowhere.npz")

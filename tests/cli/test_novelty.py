"""Three numbers, told apart by every verb: uncertainty, novelty and the probability of nobody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner
from vectors import write_vectors

from hedged.cli import app
from hedged.models import Embedder
from hedged.search import Gallery, open_store


def typed(*words: object) -> str:
    """What a command prints that succeeds."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


def as_json(*words: object) -> Any:
    return json.loads(typed(*words, "--json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors, a head that was fitted to them, and vectors of another kind."""
    folder = tmp_path_factory.mktemp("novelty")
    vectors = write_vectors(folder)
    typed("retrofit", vectors, "--out", folder / "run", "--test-share", 0, "--validation-share", 0)
    with np.load(vectors, allow_pickle=False) as content:
        known = next(content[name] for name in content.files if content[name].ndim == 2)
    np.save(folder / "known.npy", known[:20])
    np.save(folder / "other.npy", np.random.default_rng(5).normal(size=known[:20].shape).astype(np.float32) ** 3)
    return folder


def test_every_verb_tells_them_apart(folder: Path) -> None:
    run, known, other = folder / "run", folder / "known.npy", folder / "other.npy"
    compared = as_json("match", run, f"{known}:0", f"{other}:0")
    a, b = compared["images"]
    assert 0 < a["novelty"] < b["novelty"] < 1
    shown = typed("match", run, f"{known}:0", f"{other}:0")
    assert f"{b['novelty']:.4f}" in shown
    typed("embed", run, known, other, "--out", folder / "both.npz")
    with np.load(folder / "both.npz") as columns:
        novelty = columns["novelty"]
    np.testing.assert_allclose(novelty[[0, 20]], [a["novelty"], b["novelty"]], atol=1e-5)
    assert novelty[20:].min() > np.median(novelty[:20])
    store = folder / "people.db"
    typed("index", "build", run, store, folder / "vectors.npz")
    found = as_json("search", run, store, known, other, "-k", 2)
    np.testing.assert_allclose([one["novelty"] for one in found], novelty, atol=1e-5)
    assert all(0 < hit["novelty"] < 1 for one in found for hit in one["hits"])
    who = as_json("identify", run, store, known, other)
    np.testing.assert_allclose([one["novelty"] for one in who], novelty, atol=1e-5)
    assert all({"uncertainty", "novelty", "none_probability"} <= one.keys() for one in who)
    assert f"novelty {novelty[20]:.4f}" in typed("identify", run, store, f"{other}:0")
    with Gallery.open(store, Embedder.load(run)) as gallery:
        assert gallery.search(np.load(other), k=1)[0][0].probe_novelty == pytest.approx(novelty[20], abs=1e-5)
        assert gallery.identify(np.load(other))[0].novelty == pytest.approx(novelty[20], abs=1e-5)
        assert gallery.search(gallery.embedder.embed(np.load(other)), k=1)[0][0].probe_novelty is None
        gallery.add(np.load(other)[:1], ids=["mine"], metadata=[{"novelty": "by hand"}])
        assert gallery.search(np.load(other)[:1], k=1)[0][0].novelty is None  # what a user wrote stays


def test_models_and_stores_from_before_say_that_it_is_unknown(folder: Path, tmp_path: Path) -> None:
    run, known = folder / "run", folder / "known.npy"
    before = as_json("match", run, f"{known}:0", f"{known}:1")["images"]
    kept = (run / "novelty.safetensors").read_bytes()
    (run / "novelty.safetensors").unlink()
    try:
        assert [one["novelty"] for one in as_json("match", run, f"{known}:0", f"{known}:1")["images"]] == [None, None]
        told = f"unknown, fit it with `hedged novelty {run}`"
        assert told in typed("match", run, f"{known}:0", f"{known}:1").replace("\n", "")
        typed("index", "build", run, tmp_path / "old.db", folder / "vectors.npz")
        typed("embed", run, known, "--out", tmp_path / "old.npz")
        with np.load(tmp_path / "old.npz") as columns:
            assert "novelty" not in columns
        for verb in ("search", "identify"):
            assert as_json(verb, run, tmp_path / "old.db", f"{known}:0")[0]["novelty"] is None
            assert f"novelty: {told}" in typed(verb, run, tmp_path / "old.db", f"{known}:0")
        fitted = as_json("novelty", run)
        assert fitted["held_out"] == "identities"
        after = as_json("match", run, f"{known}:0", f"{known}:1")["images"]
        np.testing.assert_allclose([o["novelty"] for o in after], [o["novelty"] for o in before], atol=0.02)
        with open_store(tmp_path / "old.db") as store:
            assert store.metadata_keys() == []
        typed("index", "add", run, tmp_path / "old.db", known)
        assert as_json("search", run, tmp_path / "old.db", f"{known}:0", "-k", 1)[0]["novelty"] is not None
    finally:
        (run / "novelty.safetensors").write_bytes(kept)


def test_what_cannot_be_fitted_is_told(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["novelty", str(tmp_path / "nowhere")])
    assert done.exit_code == 2
    assert "holds no model" in done.output

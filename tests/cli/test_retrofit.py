"""`hedged retrofit`: vectors in, a head out, or one clear message and nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from cli.commands import Hedged, check_refused
from retrofit.people import people

from hedged.retrofit import Retrofit

FEW = people(12, each=4)


def test_vectors_become_a_head(hedged: Hedged, tmp_path: Path) -> None:
    np.savez(tmp_path / "vectors.npz", features=FEW.x, labels=FEW.y)
    np.save(tmp_path / "poor.npy", FEW.poor)
    run = tmp_path / "run"
    made = hedged("retrofit", tmp_path / "vectors.npz", "--poor", tmp_path / "poor.npy", "--out", run, "--json")
    assert made.code == 0, made.err
    assert json.loads(made.out)["identities"] == 12
    assert Retrofit.load(run).match_proba(FEW.x, FEW.x).shape == (48, 48)
    check_refused(hedged("retrofit", tmp_path / "vectors.npz", "--out", run), "--force")


def test_vectors_without_labels_are_refused(hedged: Hedged, tmp_path: Path) -> None:
    np.save(tmp_path / "bare.npy", FEW.x)
    check_refused(hedged("retrofit", tmp_path / "bare.npy", "--out", tmp_path / "run"), "--labels")
    assert not (tmp_path / "run").exists()

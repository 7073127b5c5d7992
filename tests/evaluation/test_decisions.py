"""Decisions on pairs, listed ones and others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data.photos.album import BROKEN, fill_album

from hedged import Architecture, Embedder
from hedged.data import read_pairs
from hedged.errors import DataError
from hedged.evaluation import EVEN_ODDS, Decisions, decide_listed
from hedged.metrics import Pairs, all_pairs, pair_reject_curve


def test_listed_pairs_are_scored_as_the_model_matches_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGED_CACHE", str(tmp_path / "cache"))
    album = fill_album(tmp_path / "album", 4, 3)
    (album / "00" / "half.jpg").write_bytes(BROKEN["half.jpg"]())
    rows = ["00/0.jpg,00/1.jpg,1", "00/0.jpg,01/0.jpg,0", "00/half.jpg,00/0.jpg,1", "02/0.jpg,02/2.jpg,1"]
    (album / "p.csv").write_text("\n".join(["pathA,pathB,same", *rows]))
    embedder = Embedder.new(Architecture(channels=(2, 4), hidden=8, shape=(3, 16, 16), resize=20), seed=0)
    decisions = decide_listed(embedder, read_pairs(album / "p.csv"))
    firsts, seconds = zip(*(row.split(",")[:2] for i, row in enumerate(rows) if i != 2), strict=True)
    p = embedder.match([album / name for name in firsts], [album / name for name in seconds]).numpy()
    np.testing.assert_allclose(1 / (1 + np.exp(-decisions.scores)), p, rtol=1e-4)
    assert decisions.pairs.matches.tolist() == [True, False, True]
    assert (decisions.threshold, decisions.chosen_on) == (0.0, EVEN_ODDS)
    with pytest.raises(DataError, match=r"half\.jpg"):
        decide_listed(embedder, read_pairs(album / "p.csv"), broken="refuse")


def test_a_curve_ends_where_nothing_is_left_to_tell_apart() -> None:
    pairs = Pairs(np.array([0, 0]), np.array([1, 2]), np.array([True, False]))
    curve = pair_reject_curve([0.1, 0.2, 0.3], pairs, [1.0, 0.0], 0.5, rejected=[0, 0.4])
    assert curve.rejected.tolist() == [0]
    decisions = Decisions(pairs, np.array([1.0, -1.0]), np.array([0.1, 0.2, 0.3]))
    assert decisions.without_a_fifth is None or decisions.without_a_fifth == 1
    assert decisions.curve is None
    assert decisions.metrics()["balanced_accuracy"] == 1


def test_points_have_nothing_to_refuse_by() -> None:
    decisions = Decisions(all_pairs([0, 0, 1]), np.array([1.0, -1.0, -1.0]), np.zeros(3))
    assert decisions.rejects is None
    assert decisions.curve is None
    assert "bin_correlation" not in decisions.metrics()

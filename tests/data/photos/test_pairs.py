"""Lists of pairs, and decisions on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data.photos.album import BROKEN, fill_album

from hedged import Architecture, Embedder
from hedged.data import PairList, read_pairs
from hedged.errors import DataError
from hedged.evaluation import EVEN_ODDS, Decisions, decide_listed
from hedged.metrics import Pairs, all_pairs, balanced_accuracy, pair_reject_curve


def test_lfw(tmp_path: Path) -> None:
    (tmp_path / "Al_B").mkdir()
    (tmp_path / "Al_B" / "Al_B_0012.png").touch()
    (tmp_path / "pairs.txt").write_text("10\t300\nAl_B\t1\t12\nAl_B\t2\tCy\t3\n\n")
    listed = read_pairs(tmp_path / "pairs.txt")
    names = [str(path.relative_to(tmp_path)) for path in listed.paths]
    assert names == ["Al_B/Al_B_0001.jpg", "Al_B/Al_B_0012.png", "Al_B/Al_B_0002.jpg", "Cy/Cy_0003.jpg"]
    assert (listed.first.tolist(), listed.second.tolist()) == ([0, 2], [1, 3])
    assert listed.matches.tolist() == [True, False]
    assert read_pairs(tmp_path / "pairs.txt", Path("lfw")).paths[0] == Path("lfw/Al_B/Al_B_0001.jpg")


def test_tables(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "p.csv").write_text("pathA,pathB,same\na.jpg,b.jpg,1\nb.jpg,/c.jpg,False\n")
    parquet.write_table(
        pa.table({"path_a": ["a.jpg", "b.jpg"], "path_b": ["b.jpg", "/c.jpg"], "same": [True, False]}),
        tmp_path / "p.parquet",
    )
    for name in ("p.csv", "p.parquet"):
        listed = read_pairs(tmp_path / name)
        assert listed.paths == [tmp_path / "a.jpg", tmp_path / "b.jpg", Path("/c.jpg")]
        assert (listed.first.tolist(), listed.second.tolist()) == ([0, 1], [1, 2])
        assert listed.matches.tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("p.csv", "pathA,pathB\na,b\n", "no column same; a list of pairs has pathA, pathB and same"),
        ("p.csv", "pathA,pathB,same\na,b,maybe\n", "row 1: expected two paths and 1 or 0 for same, .*'maybe'"),
        ("p.csv", "pathA,pathB,same\n", "lists no pair"),
        ("p.txt", "10 300\nann 1\n", 'line 2: expected "name i j"'),
        ("p.txt", "ann one two\n", 'line 1: expected "name i j"'),
        ("p.txt", "", "lists no pair"),
    ],
)
def test_lists_that_cannot_be_used(name: str, content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=words):
        read_pairs(tmp_path / name)


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no list of pairs"):
        read_pairs(tmp_path / "none.csv")


def test_pairs_of_sound_files() -> None:
    paths = [Path(name) for name in "abcd"]
    listed = PairList(paths, np.array([0, 1, 2]), np.array([1, 3, 3]), np.array([True, False, True]))
    sound, places = listed.without([0])
    assert [path.name for path in sound.paths] == ["b", "c", "d"]
    assert places.tolist() == [1, 2, 3]
    assert (sound.first.tolist(), sound.second.tolist(), sound.matches.tolist()) == ([0, 1], [2, 2], [False, True])


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


def test_refusing_items_against_counting_again() -> None:
    generator = np.random.default_rng(0)
    labels, eta = generator.integers(0, 6, 40), generator.random(40)
    pairs = all_pairs(labels)
    scores = pairs.matches + 2 * generator.random(len(pairs)) * (eta[pairs.first] + eta[pairs.second])
    curve = pair_reject_curve(eta, pairs, scores, threshold=1.0, rejected=[0, 0.25, 0.5])
    for share, error in zip(curve.rejected, curve.error, strict=True):
        kept = set(np.argsort(eta)[: 40 - round(40 * share)].tolist())
        left = np.array([i in kept and j in kept for i, j in zip(pairs.first, pairs.second, strict=True)])
        assert error == pytest.approx(1 - balanced_accuracy(scores[left], pairs.matches[left], 1.0))
    assert curve.error[-1] < curve.error[0]


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

"""Lists of pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hedged.data import PairList, read_pairs
from hedged.errors import DataError


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

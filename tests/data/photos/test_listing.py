"""Folders, tables and file names say which photos there are and whom they show; slips are told in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from data.photos.album import fill_album, portrait

from hedged.data import list_photos
from hedged.errors import DataError, MissingDependencyError


def test_a_folder_for_each_identity(tmp_path: Path) -> None:
    fill_album(tmp_path, 3, 2)
    (tmp_path / "01" / "notes.txt").write_text("no image")
    (tmp_path / "01" / "2.PNG").write_bytes((tmp_path / "01" / "0.jpg").read_bytes())
    listing = list_photos(tmp_path)
    assert list(listing.identities) == ["00", "00", "01", "01", "01", "02", "02"]
    assert [path.name for path in listing.paths][2:5] == ["0.jpg", "1.jpg", "2.PNG"]


def test_folders_within_folders_are_identities_of_their_own(tmp_path: Path) -> None:
    fill_album(tmp_path / "cats", 2, 1)
    fill_album(tmp_path / "dogs", 2, 1)
    assert list(list_photos(tmp_path).identities) == ["cats/00", "cats/01", "dogs/00", "dogs/01"]


def test_identity_by_a_regular_expression_on_the_file_name(tmp_path: Path) -> None:
    for name in ("ann_1.jpg", "ann_2.jpg", "bob_1.jpg"):
        portrait(0, 0).save(tmp_path / name)
    assert list(list_photos(tmp_path, r"([^/]+)_\d+\.").identities) == ["ann", "ann", "bob"]


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("(ann", "not a regular expression"),
        ("ann", "0 groups, expected one"),
        ("(ann)_", "2 of 3 .*, not in bob_1.jpg"),
    ],
)
def test_rules_that_do_not_fit(rule: str, words: str, tmp_path: Path) -> None:
    for name in ("ann_1.jpg", "ann_2.jpg", "bob_1.jpg"):
        portrait(0, 0).save(tmp_path / name)
    with pytest.raises(DataError, match=words):
        list_photos(tmp_path, rule)


def test_tables(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "t.csv").write_text("\ufeffPath,label,split\na b.jpg,ann,train\n/x/c.jpg,7,test\n", encoding="utf-8")
    columns = {"path": ["a b.jpg", "/x/c.jpg"], "label": ["ann", "7"], "split": ["train", "test"]}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        listing = list_photos(tmp_path / name)
        assert listing.paths == [tmp_path / "a b.jpg", Path("/x/c.jpg")]
        assert listing.identities == ["ann", "7"]
        assert listing.parts == ["train", "test"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", "path,who\na,b\n", "no column label; it has path, who"),
        ("t.csv", "path,label\na\n", "row 1 has 1 values, the header 2"),
        ("t.csv", "path,label\na,\nb,c\n", "no label in row 1"),
        ("t.csv", "path,label\n", "holds no image"),
        ("t.csv", "", "no column path"),
        ("t.csv", "\xff\xfe", "cannot be read as CSV"),
        ("t.parquet", "no parquet", "cannot be read as Parquet"),
        ("t.txt", "what is this", "neither a folder of images nor"),
    ],
)
def test_tables_that_cannot_be_used(name: str, content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=words):
        list_photos(tmp_path / name)


def test_places_that_hold_no_images(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no image"):
        list_photos(tmp_path)
    with pytest.raises(DataError, match=r"there is no .*nowhere"):
        list_photos(tmp_path / "nowhere")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "t.parquet").write_bytes(b"")
    with pytest.raises(MissingDependencyError, match=r"hedged\[parquet\]"):
        list_photos(tmp_path / "t.parquet")

"""Files that are no store, are damaged, or cannot be written: told so, and left as they are."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from search.gallery import MODEL, embeddings, header_of, rows

from hedged.errors import HedgedError, MissingDependencyError, RunError, StoreError
from hedged.search import FaissIndex, Plan, Rows, SqliteStore, create_store, open_store, repair_store
from hedged.search.engines._sqlite_file import log_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of some hundred rows, at rest."""
    with SqliteStore.create(tmp_path / "a.db", header_of("gaussian")) as store:
        store.add(rows("gaussian", 500))
    return tmp_path / "a.db"


def cut(path: Path, share: float) -> None:
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def scribble(path: Path) -> None:
    """Overwrite the middle of the file, the first page excepted."""
    content = bytearray(path.read_bytes())
    content[5000:-5000] = b"\xaa" * (len(content) - 10_000)
    path.write_bytes(content)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.99])
def test_a_truncated_store_is_refused_and_left_as_it_is(path: Path, share: float) -> None:
    cut(path, share)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"is truncated|not a store of hedged, or it is damaged") as error:
        open_store(str(path))
    assert "restore a backup, or keep what is whole with `hedged index repair`" in str(error.value)
    assert path.read_bytes() == before


def test_a_damaged_store_is_noticed(path: Path) -> None:
    scribble(path)

    def use() -> None:
        with SqliteStore(path) as store:
            store.verify()

    with pytest.raises(StoreError, match="damaged"):
        use()


def test_files_that_are_no_store(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("hello " * 100)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE item (key)")
    for name, words in (("text.db", "not a store"), ("other.db", "is not a store of hedged"), ("no.db", "there is no")):
        with pytest.raises(StoreError, match=words):
            open_store(str(tmp_path / name))
    assert not (tmp_path / "no.db").exists()


@pytest.mark.parametrize("name", ["", ".", "/", "lance://."])
def test_a_store_without_a_name(name: str, tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if "lance" in name:
        pytest.importorskip("lancedb")
    for make in (lambda: create_store(name, header_of("point")), lambda: repair_store(path, name)):
        with pytest.raises(StoreError, match="is a folder"):
            make()
    with pytest.raises(StoreError, match=r"is a folder, where a store needs a file|there is no store|cannot be"):
        open_store(name)


def test_what_is_no_file_is_refused_by_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, kind in (("pipe", "a pipe"), ("/dev/zero", "a device"), (".", "a folder")):
        for use in (open_store, lambda store: repair_store(store, tmp_path / "new.db")):
            with pytest.raises(StoreError, match=f"is {kind}, where a store needs a file"):
                use(tmp_path / name)


@pytest.mark.parametrize("ending", ["wal", "shm", "journal"])
@pytest.mark.parametrize("kind", ["a pipe", "a folder", "a link"])
def test_what_is_no_file_beside_a_store_is_not_waited_for(path: Path, ending: str, kind: str) -> None:
    beside = path.with_name(f"a.db-{ending}")
    if kind == "a pipe":
        os.mkfifo(beside)
    elif kind == "a folder":
        beside.mkdir()
    else:
        beside.symlink_to("somewhere")
    for use in (open_store, lambda store: repair_store(store, store.with_name("new.db"))):
        with pytest.raises(StoreError, match=f"{beside} is {kind}, where a store needs a file: remove it"):
            use(path)


def test_a_link_to_a_store_has_the_log_of_the_store(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "folder" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with SqliteStore(link) as store:
        store.remove(["row 3"])
        assert log_of(link).resolve() == path.with_name("a.db-wal").resolve()
        assert log_of(link).exists()
    assert [one.name for one in link.parent.iterdir()] == ["link.db"]


def test_a_version_of_the_future_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="is of version 99, this version of hedged reads versions 1, 2 and 3"):
        open_store(str(path))


def test_a_store_is_never_made_over_a_file(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(StoreError, match="exists already"):
        SqliteStore.create(path, header_of("point"))
    assert path.read_bytes() == before
    with pytest.raises(RunError, match=r"cannot write|No such file"):
        SqliteStore.create(path.parent / "nowhere" / "b.db", header_of("point"))


@pytest.fixture
def read_only(path: Path, tmp_path: Path) -> Iterator[Path]:
    """The store on a disk that cannot be written, even by root."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0:
        shutil.copy(path, disk / "a.db")
        disk.chmod(0o500)
        (disk / "a.db").chmod(0o400)
        yield disk / "a.db"
        disk.chmod(0o700)
        return
    try:
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    try:
        shutil.copy(path, disk / "a.db")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True, capture_output=True)
        yield disk / "a.db"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_read_only_disk_can_be_read_and_says_no_to_writes(path: Path, read_only: Path) -> None:
    probes = embeddings("gaussian", 3, seed=1)
    with SqliteStore(path) as usual, SqliteStore(read_only) as store:
        index = FaissIndex(store)
        index.keep()  # cannot, and does without
        assert index.search(probes) == FaissIndex(usual).search(probes)
        for write in (lambda: store.add(rows("gaussian", 1, first=900)), lambda: store.remove(["row 1"])):
            with pytest.raises(StoreError, match=r"cannot be written .*: nothing was changed"):
                write()
        assert store.count() == 500
    with pytest.raises(HedgedError, match="cannot write"):
        SqliteStore.create(read_only.parent / "b.db", header_of("gaussian"))


def test_a_full_disk_loses_nothing(path: Path) -> None:
    with SqliteStore(path) as store:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20_000, hard))
        try:
            with pytest.raises(StoreError, match="nothing was changed"):
                store.add(rows("gaussian", 5000, first=500))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert store.count() == 500
        store.add(rows("gaussian", 10, first=500))
        store.verify()
    with SqliteStore(path) as again:
        assert again.count() == 510


def test_a_second_writer_waits_and_then_gives_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedged.search.engines._sqlite_file.TIMEOUT_SECONDS", 0.1)
    with SqliteStore(path) as one, SqliteStore(path) as other, one._writing():
        with pytest.raises(StoreError, match="is being written by another process"):
            other.remove(["row 1"])
        assert other.count() == 500


def test_writing_in_the_middle_of_reading_is_refused(path: Path) -> None:
    with SqliteStore(path) as store:
        for batch in store.batches(size=100):
            with pytest.raises(StoreError, match="cannot be written while it is read from"):
                store.remove([batch.described[0].id])
        assert store.count() == 500


def test_a_write_that_fails_half_way_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> Iterator[tuple[str, str]]:
        yield "number", "1"
        raise KeyboardInterrupt

    with SqliteStore(path) as store:
        state = store.state()
        with monkeypatch.context() as patch:
            patch.setattr("hedged.search.engines.sqlite.tags", fail)
            with pytest.raises(KeyboardInterrupt):
                store.add(rows("gaussian", 10, first=500))
        assert (store.count(), store.state()) == (500, state)
        store.verify()


def test_without_faiss_it_is_said_how_to_get_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with SqliteStore(path) as store:
        FaissIndex(store)  # looks at all rows, and needs none
        with pytest.raises(MissingDependencyError, match=r"pip install 'hedged\[search\]'"):
            FaissIndex(store, Plan("hnsw"))


@pytest.mark.parametrize("change", ["DELETE FROM tag WHERE value = '7'", "UPDATE item SET embedding = x'00'"])
def test_verify_finds_what_does_not_fit(path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    with SqliteStore(path) as store, pytest.raises(StoreError, match="is damaged"):
        store.verify()


def test_a_store_with_a_strange_name(tmp_path: Path) -> None:
    path = tmp_path / "a b?c#d%20é.db"
    with SqliteStore.create(path, header_of("point")) as store:
        store.add(Rows(["x"], embeddings("point", 1), MODEL))
    with open_store(str(path)) as again:
        assert again.count() == 1

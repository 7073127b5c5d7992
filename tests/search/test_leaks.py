"""What is removed leaves nothing behind, and passwords are never shown."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from search.gallery import KINDS, MODEL, embeddings, header_of

from hedged.errors import StoreError
from hedged.search import FaissIndex, Plan, Rows, SqliteStore, create_store, open_store, refuse_existing, reserve
from hedged.search.engines._index_file import file_of
from hedged.search.index import Kind

REMOVED = 40
ADDRESS = "postgresql://me:{}@127.0.0.1:1/dogs#gallery"
DIE_AFTER_REMOVING = """
import os, sys
from hedged.search import SqliteStore
SqliteStore(sys.argv[1]).remove(sys.argv[2:])
os.kill(os.getpid(), 9)
"""
DIE_WHILE_FORGETTING = """
import os, sys
import hedged._files
from hedged.search import SqliteStore
hedged._files._force_to_disk = lambda path: os.kill(os.getpid(), 9)
SqliteStore(sys.argv[1]).remove(sys.argv[2:])
"""
SAVE_AND_DIE = """
import os, sys, time
import hedged._files
from hedged.search import FaissIndex, SqliteStore
from pathlib import Path
def die(*_):
    print("written", flush=True)
    time.sleep(float(sys.argv[3]))
    os.kill(os.getpid(), 9)
if sys.argv[2] == "before it is in its place":
    hedged._files._force_to_disk = die
else:
    replace = Path.replace
    Path.replace = lambda part, path: (replace(part, path), die())
FaissIndex(SqliteStore(sys.argv[1])).save()
"""


def many(kind: str, count: int, dim: int, seed: int = 0) -> Rows:
    """Rows whose ids occur nowhere else, in no order, and whose sizes differ."""
    generator = np.random.default_rng(seed)
    ids = [str(UUID(bytes=generator.bytes(16))) for _ in range(count)]
    labels = [f"of {one}" for one in ids]
    metadata = [{"self": one, "long": "x" * int(generator.integers(0, 900))} for one in ids]
    return Rows(ids, embeddings(kind, count, seed, dim), MODEL, labels, metadata)


def left_of(folder: Path, given: Rows, places: list[int]) -> list[str]:
    """Files that hold an id, or part of an embedding, of some rows."""
    parts = [given.ids[i].encode() for i in places]
    for numbers in (given.packed()[i].tobytes() for i in places[::5]):  # to search for all of them takes long
        parts += [numbers[start : start + 12] for start in range(0, len(numbers) - 11, 12 * (len(numbers) // 72 + 1))]
    contents = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return [name for name, content in contents.items() if any(part in content for part in parts)]


@pytest.mark.parametrize("stage", ["exact", "hnsw", "ivf"])
@pytest.mark.parametrize(("kind", "dim"), [("gaussian", 4), ("gaussian", 520), ("mixture", 8), ("point", 3)])
def test_nothing_is_left_of_rows_that_were_removed(tmp_path: Path, kind: str, dim: int, stage: Kind) -> None:
    path, given = tmp_path / "a.db", many(kind, 150, dim)
    with SqliteStore.create(path, header_of(kind, dim)) as store:
        store.add(given)
        FaissIndex(store, Plan(stage)).save()
    assert set(left_of(tmp_path, given, [0])) == {"a.db", "a.db.index"}
    removed = np.random.default_rng(1).permutation(150)[:REMOVED].tolist()
    with SqliteStore(path) as store:
        index = FaissIndex(store)  # which knew them
        store.remove([given.ids[i] for i in removed[:20]])
        store.upsert(many(kind, 50, dim, seed=3))
        store.remove([given.ids[i] for i in removed[20:]])
        index.save()
    assert left_of(tmp_path, given, removed) == []
    with SqliteStore(path) as store:
        store.verify()
        assert store.count() == 200 - REMOVED
        again = FaissIndex(store)
        assert again.plan.kind == stage
        assert len(again) == 200 - REMOVED


@pytest.mark.parametrize("stage", ["exact", "hnsw"])
def test_nothing_is_left_of_embeddings_that_were_replaced(tmp_path: Path, stage: Kind) -> None:
    path, given, new = tmp_path / "a.db", many("gaussian", 150, 24), embeddings("gaussian", 150, 7, 24)
    with SqliteStore.create(path, header_of("gaussian", 24)) as store:
        store.add(given)
        FaissIndex(store, Plan(stage)).save()
    replaced = list(range(0, 150, 4))
    ids = [given.ids[i] for i in replaced]
    with SqliteStore(path) as store:
        store.upsert(Rows(ids, new[: len(ids)], MODEL, ["of somebody else"] * len(ids)))
    forgotten = Rows([f"of {one}" for one in ids], given.z[replaced], MODEL)  # their labels, and their embeddings
    assert left_of(tmp_path, forgotten, list(range(len(ids)))) == []
    with SqliteStore(path) as store:
        store.verify()
        assert store.count() == len(FaissIndex(store)) == 150


def test_an_index_that_knew_removed_rows_does_not_write_them_again(tmp_path: Path) -> None:
    path, given = tmp_path / "a.db", many("gaussian", 50, 4)
    with SqliteStore.create(path, header_of("gaussian")) as store, SqliteStore(path) as other:
        store.add(given)
        index = FaissIndex(other)
        store.remove(given.ids[:10])
        index.save()  # it had not looked since
    assert left_of(tmp_path, given, list(range(10))) == []
    assert file_of(path).exists()


def test_what_a_reader_holds_goes_when_it_is_done(tmp_path: Path) -> None:
    path, given = tmp_path / "a.db", many("gaussian", 50, 4)
    with SqliteStore.create(path, header_of("gaussian")) as store:
        store.add(given)
    with SqliteStore(path) as reader:
        with reader.reading():
            assert reader.count() == 50
            with SqliteStore(path) as store:
                assert store.remove(given.ids[:10]) == 10
            assert reader.count() == 50  # a snapshot
        assert reader.count() == 40
    assert left_of(tmp_path, given, list(range(10))) == []


@pytest.mark.parametrize("how", [DIE_AFTER_REMOVING, DIE_WHILE_FORGETTING], ids=["removed", "index half emptied"])
def test_what_a_killed_process_removed_goes_with_the_next(tmp_path: Path, how: str) -> None:
    path, given = tmp_path / "a.db", many("gaussian", 50, 4)
    with SqliteStore.create(path, header_of("gaussian")) as store:
        store.add(given)
        FaissIndex(store).save()
    killed = subprocess.run(
        [sys.executable, "-c", how, str(path), *given.ids[:10]],
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert killed.returncode == -signal.SIGKILL
    with SqliteStore(path) as store:
        assert store.count() == 40
        assert store.remove(["nobody"]) == 0
    assert left_of(tmp_path, given, list(range(10))) == []
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize("moment", ["before it is in its place", "after"])
def test_what_is_removed_while_an_index_is_saved_is_not_left_by_a_kill(tmp_path: Path, moment: str) -> None:
    """Who saves knows the rows, has written them, and dies a moment after another begins to remove them."""
    path, given = tmp_path / "a.db", many("gaussian", 50, 4)
    with SqliteStore.create(path, header_of("gaussian")) as store:
        store.add(given)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SAVE_AND_DIE, str(path), moment, "0.5"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as saving:
        assert saving.stdout is not None
        assert saving.stdout.readline() == "written\n"
        assert len(left_of(tmp_path, given, list(range(10)))) == 2  # the store, and the other
        with SqliteStore(path) as store:
            assert store.remove(given.ids[:10]) == 10
    assert saving.returncode == -signal.SIGKILL
    assert left_of(tmp_path, given, list(range(10))) == []
    assert not list(tmp_path.glob(".*.part"))


def test_an_index_file_that_cannot_be_emptied_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, given = tmp_path / "a.db", many("gaussian", 50, 4)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with SqliteStore.create(path, header_of("gaussian")) as store:
        store.add(given)
        FaissIndex(store).save()
        monkeypatch.setattr("hedged._files._force_to_disk", full)
        store.remove(given.ids[:10])
    assert left_of(tmp_path, given, list(range(10))) == []
    assert not file_of(path).exists()


def test_a_search_does_not_wait_long_to_keep_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedged.search.engines._faiss.KEEP_SECONDS", 0.05)
    path = tmp_path / "a.db"
    with SqliteStore.create(path, header_of("gaussian")) as store, SqliteStore(path) as other:
        store.add(many("gaussian", 50, 4))
        index = FaissIndex(store)
        with other._writing():
            index.keep()
            assert not file_of(path).exists()
            assert store.count() == 50
        index.keep()
    assert file_of(path).exists()


def test_a_store_that_cannot_be_scrubbed_now_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, given = tmp_path / "a.db", many("gaussian", 50, 4)
    monkeypatch.setattr("hedged.search.engines._sqlite_file.SCRUB_SECONDS", 0.05)
    store = SqliteStore.create(path, header_of("gaussian"))
    store.add(given)
    store.remove(given.ids[:10])
    with SqliteStore(path) as other, other._writing():
        store.close()
    assert "may be left in free parts of the file" in caplog.text
    with SqliteStore(path) as again:
        again.add(many("gaussian", 1, 4, seed=5))
    assert left_of(tmp_path, given, list(range(10))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_nothing_was_removed_from_is_not_written_anew(tmp_path: Path, kind: str) -> None:
    with SqliteStore.create(tmp_path / "a.db", header_of(kind)) as store:
        store.add(many(kind, 20, 4))
        store.remove(["nobody"])
        assert not store._all("SELECT 1 FROM sqlite_schema WHERE name = 'traces'")


@pytest.mark.parametrize(
    "password", ["secret", "se#cret", "se/cret", "se@cret", "s:e?c#r/e@t%", "%23secret", "123/secret"]
)
def test_a_password_is_never_shown(password: str) -> None:
    address = ADDRESS.format(password)
    for use in (open_store, refuse_existing, lambda where: reserve(where).__enter__()):
        with pytest.raises(
            StoreError, match=r"the server of postgresql://127\.0\.0\.1/dogs#gallery cannot be"
        ) as error:
            use(address)
        check_secret(error.value, password)
    with pytest.raises(StoreError) as error:
        create_store(address, header_of("gaussian"))
    check_secret(error.value, password)


def check_secret(error: BaseException, password: str) -> None:
    """No part of a password in an error or in what it was caused by, unless nobody is shown that."""
    shown: BaseException | None = error
    while shown is not None:
        for part in {password, "secret", "cret", "s:e"}:
            assert part not in str(shown)
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:secret",
        "postgresql:/me:secret@host/dogs",
        "postgresql:me:secret@host/dogs",
        "host=localhost password=secret",
        "postgresql://me:secret@host:secret/dogs",
        "postgresql://host/dogs?secret",
        "postgresql://me/x:secret@host/dogs",
        "postgresql://[secret/dogs",
        "Postgresql://me:secret@host/dogs",
        "mysql://me:secret@host/dogs",
        "postgresql://host/db?password=sE#secret",
        "postgresql://host/db?sslmode=prefer&sslpassword=s#secret",
        "postgresql://host/db?password=x@secret/dogs",
        "postgresql://host/db#Secret-secret",
        "host=localhost PASSWORD = secret",
        "host=localhost password\t=secret x://host",
        "postgresql//me:secret@host/dogs",
        "Postgres/me:secret@host/dogs",
        "me:secret@host mysql://host/dogs",
        "lance://s3://key:secret@bucket/x",
        "lance://s3://key:sec/secret@bucket/x",
        "lance://s3://secret@bucket/x",
    ],
)
def test_an_address_that_cannot_be_read_is_not_shown(address: str) -> None:
    with pytest.raises(StoreError) as error:
        open_store(address)
    check_secret(error.value, "secret")


def test_paths_that_look_a_little_like_addresses_are_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("postgresql", "lance.db", "me@host.db", "a:b@c.db", "passwords.db"):
        create_store(name, header_of("point")).close()
        open_store(name).close()


def test_a_password_is_understood_whatever_is_in_it() -> None:
    psycopg = pytest.importorskip("psycopg.conninfo")
    from hedged.search.engines._postgres_server import Address

    for typed, meant in (("se#c/r@t", "se#c/r@t"), ("a%40b", "a@b"), ("50%", "50%"), ("", "")):
        address = Address.of(f"postgresql://me:{typed}@host:5432/dogs?sslmode=prefer#gallery")
        parts = psycopg.conninfo_to_dict(address.conninfo)
        assert (parts["user"], parts.get("password", ""), parts["host"]) == ("me", meant, "host")
        assert (parts["port"], parts["dbname"], parts["sslmode"], address.store) == (
            "5432",
            "dogs",
            "prefer",
            "gallery",
        )
        assert repr(address) == str(address) == "postgresql://host/dogs#gallery"
    assert Address.of("postgresql://me:x@host/dogs").without_secrets("bad x y") == "bad *** y"

"""Two that build or write one store, stores deleted under those who use them, logs left by the killed.

Nothing acknowledged is lost, and nothing of one store comes into another.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from multiprocessing.context import ForkServerContext
from pathlib import Path

import numpy as np
import pytest
from races import Outcome, forkserver, race
from search.gallery import MODEL, Make, embeddings, header_of, rows
from search.writing import OF_A_BATCH, batch

from hedged.errors import StoreError
from hedged.search import FaissIndex, PostgresStore, Rows, SqliteStore, Store, create_store, open_store, reserve
from hedged.search.engines._index_file import file_of

BATCHES = 3
MANY = int(os.environ.get("HEDGED_RACES", "20"))  # by hand: 100
FEW_OR_MANY = [5, pytest.param(MANY, marks=pytest.mark.heavy)]
ADD_AND_DIE = """
import os, sys
from search.writing import add_until_killed
class Acknowledge:
    def send(self, number):
        if number == int(sys.argv[2]):
            os.kill(os.getpid(), 9)
add_until_killed(sys.argv[1], int(sys.argv[3]), Acknowledge())
"""


@pytest.fixture(scope="module")
def context() -> ForkServerContext:
    return forkserver()


def build(path: str | Path, first: int) -> list[int]:
    """Build a store as the command line does; the batches that were acknowledged."""
    with reserve(path), create_store(path, header_of("gaussian")) as store:
        return write(store, first)


def create(path: str | Path, first: int) -> list[int]:
    """The same without a reservation, as from Python."""
    with create_store(path, header_of("gaussian")) as store:
        return write(store, first)


def add(path: str | Path, first: int) -> list[int]:
    with open_store(path) as store:
        return write(store, first)


def write(store: Store, first: int) -> list[int]:
    done = []
    for number in range(first, first + BATCHES):
        store.add(batch(number))
        done.append(number)
    return done


def add_and_remove(path: Path, first: int) -> list[int]:
    """Add batches and remove all rows of each but one."""
    with open_store(path) as store:
        for number in range(first, first + BATCHES):
            store.add(batch(number))
            assert store.remove([f"{number}-{i}" for i in range(1, OF_A_BATCH)]) == OF_A_BATCH - 1
        return list(range(first, first + BATCHES))


def killed_while_adding(path: Path, last: int, first: int = 0) -> None:
    """Batches from `first` to `last`, acknowledged by a writer that dies then; what is left is in the log."""
    search_path = os.pathsep.join(sys.path)
    result = subprocess.run(
        [sys.executable, "-c", ADD_AND_DIE, str(path), str(last), str(first)],
        check=False,
        env=os.environ | {"PYTHONPATH": search_path},
    )
    assert result.returncode == -signal.SIGKILL


def ids_of(path: str | Path) -> set[str]:
    with open_store(path) as store:
        store.verify()
        return {row.id for b in store.batches() for row in b.described}


def ids_in(numbers: list[int]) -> set[str]:
    return {f"{number}-{i}" for number in numbers for i in range(OF_A_BATCH)}


@pytest.mark.parametrize("races", FEW_OR_MANY)
@pytest.mark.parametrize("work", [build, create])
def test_of_two_that_build_one_store_one_is_refused(
    context: ForkServerContext, tmp_path: Path, races: int, work: object
) -> None:
    for number in range(races):
        path = tmp_path / f"{number}.db"
        outcomes = race(context, work, (path, 0), (path, 10))  # type: ignore[arg-type]
        ((done,), (refused,)) = ([o for o in outcomes if o.done], [o for o in outcomes if o.refusal])
        other = f"is being built by process {done.process} on host"
        assert other in refused.refusal or "exists already" in refused.refusal
        assert ids_of(path) == ids_in(done.done)
        assert {one.name for one in tmp_path.iterdir()} == {f"{i}.db" for i in range(number + 1)}


@pytest.mark.parametrize("races", FEW_OR_MANY)
def test_two_that_add_both_keep_all_they_acknowledged(context: ForkServerContext, tmp_path: Path, races: int) -> None:
    path = tmp_path / "a.db"
    create_store(path, header_of("gaussian")).close()
    for number in range(races):
        outcomes = race(context, add, (path, 10 * number), (path, 10 * number + 5))
        assert [o.refusal for o in outcomes] == ["", ""]
    numbers = [10 * number + i for number in range(races) for i in (0, 1, 2, 5, 6, 7)]
    assert ids_of(path) == ids_in(numbers)


@pytest.mark.parametrize("races", FEW_OR_MANY)
def test_two_that_remove_what_they_added(context: ForkServerContext, tmp_path: Path, races: int) -> None:
    path = tmp_path / "a.db"
    create_store(path, header_of("gaussian")).close()
    for number in range(races):
        outcomes: list[Outcome] = race(context, add_and_remove, (path, 10 * number), (path, 10 * number + 5))
        assert [o.refusal for o in outcomes] == ["", ""]
    assert ids_of(path) == {f"{10 * number + i}-0" for number in range(races) for i in (0, 1, 2, 5, 6, 7)}


def test_the_log_of_a_deleted_store_is_kept_out_of_the_next(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, aside = tmp_path / "a.db", tmp_path / "moved.db"
    create_store(path, header_of("gaussian")).close()
    killed_while_adding(path, last=6)
    assert (tmp_path / "a.db-wal").stat().st_size > 0
    path.rename(aside)  # without its log, as one who knows nothing of it would
    with caplog.at_level(logging.WARNING), create_store(path, header_of("gaussian")) as store:
        store.add(rows("gaussian", 10))
    assert "was left by another store of this name" in caplog.text
    assert ids_of(path) == {f"row {i}" for i in range(10)}
    (log,) = tmp_path.glob("a.db-wal.*")
    assert str(log) in caplog.text
    log.rename(tmp_path / "moved.db-wal")  # as the warning says: nothing that was acknowledged is lost
    assert ids_of(aside) == ids_in(list(range(7)))


def test_a_store_is_moved_with_its_log_or_once_it_is_closed(tmp_path: Path) -> None:
    path, there = tmp_path / "a.db", tmp_path / "there"
    there.mkdir()
    create_store(path, header_of("gaussian")).close()
    killed_while_adding(path, last=3)
    for name in ("a.db", "a.db-wal"):
        shutil.copy(tmp_path / name, there / name)
    assert ids_of(there / "a.db") == ids_in([0, 1, 2, 3])
    with open_store(path) as store:
        told = store.how_to_move()
        assert "a.db-wal" in told
        assert "hedged index info" in told
    assert not (tmp_path / "a.db-wal").exists()  # opening and closing it took the log in
    path.rename(there / "b.db")
    assert ids_of(there / "b.db") == ids_in([0, 1, 2, 3])


def test_one_who_has_it_open_notices_that_it_was_deleted(tmp_path: Path) -> None:
    path, probes = tmp_path / "a.db", embeddings("gaussian", 2, seed=1)
    with create_store(path, header_of("gaussian")) as old:
        old.add(rows("gaussian", 20))
        index = old.index()
        assert len(index.search(probes, 3)[0]) == 3
        path.unlink()
        for use in (old.count, lambda: index.search(probes), lambda: old.remove(["row 1"])):
            with pytest.raises(StoreError, match="was deleted since it was opened"):
                use()
        with create_store(path, header_of("gaussian")) as new:
            new.add(rows("gaussian", 5, seed=3))
            for again in (old.count, lambda: index.search(probes), lambda: old.add(rows("gaussian", 1, first=90))):
                with pytest.raises(StoreError, match=r"was deleted and built anew, .*Open the store again"):
                    again()
            old.close()  # must not touch what is the new store's
            new.add(rows("gaussian", 5, seed=4, first=5))
            assert (tmp_path / "a.db-wal").exists()
    assert ids_of(path) == {f"row {i}" for i in range(10)}


def test_a_store_that_is_deleted_while_it_is_written_is_not_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with SqliteStore.create(path, header_of("gaussian")) as store:
        writing = store._writing()
        writing.__enter__()
        path.unlink()
        with pytest.raises(StoreError, match="was deleted since it was opened: what was being written is lost"):
            writing.__exit__(None, None, None)


def test_an_index_file_that_outlived_its_store_is_not_used(tmp_path: Path) -> None:
    path, probes = tmp_path / "a.db", embeddings("gaussian", 2, seed=1)
    with SqliteStore.create(path, header_of("gaussian")) as store:
        store.add(rows("gaussian", 50))
        FaissIndex(store).save()
    path.unlink()
    with SqliteStore.create(path, header_of("gaussian")) as store:
        store.add(rows("gaussian", 30, seed=9))
        found = FaissIndex(store).search(probes, 5)
        file_of(path).unlink()
        assert found == FaissIndex(store).search(probes, 5)


def test_a_build_that_was_killed_can_be_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    create_store(path, header_of("gaussian")).close()
    for lock in (tmp_path / ".a.db.lock",):
        lock.write_text("process 1 on host elsewhere")  # as a kill leaves it
    killed_while_adding(path, last=2)
    with (
        pytest.raises(StoreError, match="exists already and holds 75 rows: add to it with `hedged index add`"),
        reserve(path),
    ):
        pass
    assert add(path, 3) == [3, 4, 5]
    assert ids_of(path) == ids_in([0, 1, 2, 3, 4, 5])


@pytest.mark.postgres
def test_of_two_that_build_one_store_on_a_server_one_is_refused(server: str) -> None:
    refusals: list[str] = []

    def ask() -> None:
        with pytest.raises(StoreError) as refused, reserve(f"{server}#race"):
            pass
        refusals.append(str(refused.value))

    with reserve(f"{server}#race"), create_store(f"{server}#race", header_of("gaussian")) as store:
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        store.add(rows("gaussian", 10))
    ask()
    assert f"is being built by process {os.getpid()} on host" in refusals[0]
    assert "exists already" in refusals[1]
    with reserve(f"{server}#other"):
        pass


@pytest.mark.postgres
def test_a_store_on_a_server_that_is_deleted_and_built_anew(make_postgres: Make, server: str) -> None:
    old = make_postgres("gaussian")
    assert isinstance(old, PostgresStore)
    old.add(rows("gaussian", 10))
    index, probes = old.index(), embeddings("gaussian", 2, seed=1)
    name = old.name.partition("#")[2]
    assert name in old.how_to_move()
    old._connection.execute(f"DROP SCHEMA {name} CASCADE")
    with pytest.raises(StoreError, match="was deleted since it was opened"):
        index.search(probes)
    with PostgresStore.create(f"{server}#{name}", header_of("gaussian")) as new:
        new.add(rows("gaussian", 5))
        for use in (lambda: index.search(probes), lambda: old.remove(["row 1"]), old.count):
            with pytest.raises(StoreError, match="was deleted and built anew since it was opened"):
                use()
        assert new.count() == 5


def test_stores_are_files_like_any_other(tmp_path: Path) -> None:
    """A new store is what SQLite itself would have made: it has a log, and passes every check."""
    with SqliteStore.create(tmp_path / "a.db", header_of("point")) as store:
        assert store._all("PRAGMA journal_mode") == [("wal",)]
        store.add(Rows(["x"], embeddings("point", 1), MODEL))
        store.verify()
        assert np.concatenate([b.keys for b in store.batches()]).tolist() == [1]


def test_a_second_connection_of_a_process_does_not_end_the_locks_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with SqliteStore.create(path, header_of("point")) as first:
        first.add(rows("point", 3))
        with SqliteStore(path):
            pass
        code = f"from hedged.search import open_store; open_store({str(path)!r}).close()"
        subprocess.run([sys.executable, "-c", code], check=True)
        assert path.with_name("a.db-wal").exists()  # whoever is last removes it, and the first is still there
        assert first.count() == 3
        first.verify()
    assert not path.with_name("a.db-wal").exists()

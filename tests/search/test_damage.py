"""Damage is seen: flipped bits, values that cannot be, headers and rows; and what is whole is kept."""

from __future__ import annotations

import math
import os
import shutil
import signal
import sqlite3
import struct
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save
from safetensors.torch import save_file
from search.gallery import KINDS, Make, embeddings, header_of, rows
from search.test_old_stores import DUMP
from search.test_races import ids_in, ids_of, killed_while_adding
from search.writing import OF_A_BATCH

from hedged.errors import StoreError
from hedged.search import (
    Described,
    FaissIndex,
    Header,
    Plan,
    PostgresStore,
    Rows,
    SqliteStore,
    Store,
    create_store,
    open_store,
    repair_store,
)
from hedged.search.engines import _index_file, _sqlite_log
from hedged.search.engines._checks import checksum
from hedged.search.engines._index_file import IndexFile, file_of, read_index_file, write_index_file
from hedged.search.engines._sql import SqlStore
from hedged.search.engines._sqlite_log import fault_of_log
from hedged.search.index import Kind

ROWS = 60
# Numbers that PostgreSQL writes in another way than Python: with all their digits, and without the sign of zero.
LARGE = {
    "a": 1e23,
    "b": -1.7976931348623157e308,
    "c": [1e22, -0.0, 2.5e-7],
    "d": {"e": 7e16},
    "f": 2**60 + 1,
    "g": 123456789.0,
}
Content = dict[str, tuple[Described, bytes]]


def content(store: Store) -> Content:
    return {
        row.id: (row, packed.tobytes())
        for batch in store.batches()
        for row, packed in zip(batch.described, batch.packed, strict=True)
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with SqliteStore.create(tmp_path / "a.db", header_of("gaussian")) as store:
        store.add(rows("gaussian", ROWS + 5))
        store.remove([f"row {i}" for i in range(ROWS, ROWS + 5)])
    return tmp_path / "a.db"


def flip(path: Path, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(bit // 8)
        (byte,) = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def damage_of(path: Path) -> str:
    with SqliteStore(path) as store, pytest.raises(StoreError) as error:
        store.verify()
    assert "hedged index repair" in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("flips", [50, pytest.param(4_000, marks=pytest.mark.heavy)])
def test_a_flipped_bit_is_seen_or_changes_nothing(path: Path, tmp_path: Path, flips: int) -> None:
    """Of every part of the file: pages of the table, of its indexes, the first page, free space."""
    with SqliteStore(path) as store:
        before, header = content(store), store.header
    whole, other, seen = path.read_bytes(), tmp_path / "b.db", 0
    places = np.random.default_rng(0).integers(0, 8 * len(whole), flips).tolist()
    for bit in [*places, *range(0, 800, 800 // min(flips, 800))]:
        other.write_bytes(whole)
        flip(other, bit)
        try:
            with SqliteStore(other) as store:
                store.verify()
                found, said = content(store), store.header
        except StoreError:
            seen += 1
            continue
        assert (found, said) == (before, header), f"bit {bit} was not seen"
    assert seen > flips / 5


@pytest.mark.parametrize("flips", [50, pytest.param(4_000, marks=pytest.mark.heavy)])
def test_a_flipped_bit_of_a_log_loses_nothing_unseen(tmp_path: Path, flips: int) -> None:
    """The log of a killed writer: all rows that were acknowledged are there, or an error, and the log is kept."""
    left, path, acknowledged = tmp_path / "left.db", tmp_path / "a.db", ids_in(list(range(7)))
    log = path.with_name("a.db-wal")
    SqliteStore.create(left, header_of("gaussian")).close()
    killed_while_adding(left, last=6)
    whole = left.with_name("left.db-wal").read_bytes()
    places = np.random.default_rng(2).integers(0, 8 * len(whole), flips).tolist()
    refused = 0
    for bit in [*range(0, 256, 256 // min(flips, 256)), *range(256, 448, 4), *places]:
        for one in tmp_path.glob("a.db*"):
            one.unlink()
        shutil.copy(left, path)
        log.write_bytes(whole)
        flip(log, bit)
        damaged_log = log.read_bytes()
        try:
            found, words = ids_of(path), ""
        except StoreError as error:
            found, words = set(), str(error)
        if words:
            refused += 1
            assert "hedged index repair" in words
            assert log.read_bytes() == damaged_log
        else:
            assert found == acknowledged, f"bit {bit} was not seen"
    assert refused > flips


def test_repair_of_a_store_with_a_damaged_log(tmp_path: Path) -> None:
    path, log = tmp_path / "a.db", tmp_path / "a.db-wal"
    SqliteStore.create(path, header_of("gaussian")).close()
    killed_while_adding(path, last=6)
    flip(log, 4 * log.stat().st_size)  # in its middle
    before = log.read_bytes()
    with pytest.raises(StoreError, match=r"its log .*a\.db-wal is damaged, so that frames .* cannot be read"):
        open_store(path)
    done = repair_store(path, tmp_path / "new.db")
    assert 0 < done.kept < 7 * OF_A_BATCH
    assert "a.db-wal is damaged" in done.lost[0]
    assert ids_of(tmp_path / "new.db") < ids_in(list(range(7)))
    assert log.read_bytes() == before


def test_a_log_that_is_whole_is_read_as_sqlite_reads_it(tmp_path: Path) -> None:
    """Logs of pages of all sizes, begun anew over longer ones, and cut off in the middle of a write."""
    for page in (512, 1024, 4096, 65536):
        path, log = tmp_path / f"{page}.db", tmp_path / f"{page}.db-wal"
        with closing(sqlite3.connect(path, isolation_level=None)) as writer:
            writer.execute(f"PRAGMA page_size = {page}")
            writer.execute("PRAGMA journal_mode = WAL")
            writer.execute("CREATE TABLE a (b)")
            for length in (20 * page, 3 * page, 9 * page):
                writer.execute("INSERT INTO a VALUES (zeroblob(?))", (length,))
                (_, frames, _) = writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                read = _sqlite_log._read(log)
                assert (read.whole, read.last) == (frames, frames)
                assert fault_of_log(log) == ""
            whole = log.read_bytes()
        for size in range(0, len(whole), len(whole) // 40):
            log.write_bytes(whole[:size])
            assert fault_of_log(log) == ""


@pytest.mark.parametrize("repairs", [10, pytest.param(1000, marks=pytest.mark.heavy)])
def test_repair_keeps_what_is_whole_and_invents_nothing(path: Path, tmp_path: Path, repairs: int) -> None:
    """Bits are flipped in the pages after the first, which holds the schema."""
    with SqliteStore(path) as store:
        before = content(store)
    whole, generator, shares = path.read_bytes(), np.random.default_rng(1), []
    for number in range(repairs):
        damaged, new = tmp_path / "damaged.db", tmp_path / f"{number}.db"
        damaged.write_bytes(whole)
        for bit in generator.integers(8 * 4096, 8 * len(whole), 3).tolist():
            flip(damaged, bit)
        as_it_was = damaged.read_bytes()
        done = repair_store(damaged, new, header_of("gaussian"))  # which is not needed unless the header is damaged
        assert damaged.read_bytes() == as_it_was
        with SqliteStore(new) as store:
            store.verify()
            kept = content(store)
        assert kept.items() <= before.items()
        assert done.kept == len(kept)
        assert len(kept) == ROWS or done.lost
        shares.append(len(kept) / ROWS)
    assert np.mean(shares) > 0.8  # a bit of a page's own header may cost all rows of the page


def test_rows_that_cannot_be_read_are_told_apart_however_far_their_keys(path: Path) -> None:
    """A damaged key may be any number; to look at all between it and the next one would take forever."""
    bad = "CAST(x'ff' AS TEXT)"
    change(path, f"UPDATE item SET key = {2**60}, label = {bad} WHERE id = 'row 3'", "DROP INDEX item_label")
    change(path, f"UPDATE item SET key = {-(2**60)}, label = {bad} WHERE id = 'row 5'")
    done = repair_store(path, path.with_name("new.db"))
    assert (done.kept, len(done.lost)) == (ROWS - 2, 2)


def test_a_value_that_cannot_be_is_told_where_it_is_read(path: Path) -> None:
    """Even if its checksum is right, as somebody else may write it."""
    with SqliteStore(path) as store:
        (row,) = store._all("SELECT id, label, metadata, embedding FROM item WHERE key = 4")
    embedding = struct.pack("<f", math.nan) + row[3][4:]
    with closing(sqlite3.connect(path)) as connection:
        values = (embedding, checksum(embedding, *row[:3]))
        connection.execute("UPDATE item SET embedding = ?, checksum = ? WHERE key = 4", values)
        connection.commit()
    with SqliteStore(path) as store:
        for use in (lambda: list(store.batches()), lambda: store.index().search(embeddings("gaussian", 1))):
            with pytest.raises(StoreError, match=r"(?s)a\.db is damaged.*row 4: .*NaN"):
                use()


def test_every_broken_row_is_named(path: Path) -> None:
    change(
        path,
        "UPDATE item SET label = 'another' WHERE id = 'row 3'",
        "UPDATE item SET metadata = '{}' WHERE id = 'row 7'",
        "UPDATE item SET embedding = zeroblob(32) WHERE id = 'row 11'",
        "UPDATE item SET checksum = zeroblob(8) WHERE id = 'row 20'",
        "UPDATE item SET checksum = zeroblob(3) WHERE id = 'row 21'",
    )
    words = damage_of(path)
    for name in ("row 3", "row 7", "row 11", "row 20", "row 21"):
        assert f"'{name}'" in words
    assert words.count("\n") == 5
    done = repair_store(path, path.with_name("new.db"))
    assert (done.kept, len(done.lost)) == (ROWS - 5, 5)
    with SqliteStore(path) as store:
        for use in (lambda: list(store.batches()), store.index, lambda: store.describe([4])):
            with pytest.raises(StoreError, match="is damaged"):
                use()


@pytest.mark.parametrize(
    ("number", "words"),
    [(math.nan, "NaN or infinite"), (math.inf, "NaN or infinite"), (-1.0, "not positive"), (0.0, "not positive")],
)
def test_values_that_cannot_be_are_found_without_checksums(tmp_path: Path, number: float, words: str) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(DUMP.read_text(encoding="utf-8"))
        (embedding,) = connection.execute("SELECT embedding FROM item WHERE key = 5").fetchone()
        changed = embedding[:-4] + struct.pack("<f", number)
        connection.execute("UPDATE item SET embedding = ? WHERE key = 5", (changed,))
        connection.commit()
    assert words in damage_of(path)
    done = repair_store(path, tmp_path / "new.db")
    assert (done.kept, len(done.lost)) == (22, 1)
    with SqliteStore(tmp_path / "new.db") as store:
        store.verify()
        assert store._has_checksums


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE store SET header = replace(header, '3.0', '2.0')",
        "UPDATE store SET header = 'nothing'",
        "UPDATE store SET uuid = 'another'",
        "UPDATE store SET checksum = 0",
        "DELETE FROM store",
    ],
)
def test_a_broken_header_is_refused_and_made_good_by_the_model(path: Path, tmp_path: Path, statement: str) -> None:
    with SqliteStore(path) as store:
        before = content(store)
    change(path, statement)
    with pytest.raises(StoreError, match=r"is damaged \(its header .*--model RUN"):
        open_store(path)
    with pytest.raises(StoreError, match="no longer says which model it is of"):
        repair_store(path, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
    assert repair_store(path, tmp_path / "new.db", header_of("gaussian")).kept == ROWS
    with open_store(tmp_path / "new.db") as again:
        assert content(again) == before
        assert again.header == header_of("gaussian")


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_that_denies_its_checksums_is_refused(path: Path, version: int) -> None:
    change(path, f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match="which its tables are not"):
        open_store(path)
    assert repair_store(path, path.with_name("new.db")).kept == ROWS


def test_pages_that_are_lost_take_no_others_with_them(tmp_path: Path) -> None:
    path, many = tmp_path / "a.db", 2000
    with SqliteStore.create(path, header_of("gaussian")) as store:
        store.add(rows("gaussian", many))
        before = content(store)
    whole = bytearray(path.read_bytes())
    for page in range(8, len(whole) // 4096, 10):
        whole[4096 * page : 4096 * (page + 1)] = b"\xaa" * 4096
    path.write_bytes(whole)
    done = repair_store(path, tmp_path / "new.db")
    with SqliteStore(tmp_path / "new.db") as store:
        kept = content(store)
    assert kept.items() <= before.items()
    assert done.kept == len(kept) > many / 2
    assert any("cannot be read" in words for words in done.lost)
    damage_of(path)


@pytest.mark.parametrize("stage", ["exact", "hnsw", "ivf"])
def test_an_index_file_that_disagrees_with_the_store(path: Path, stage: Kind) -> None:
    file, header = file_of(path), header_of("gaussian")

    def altered(**parts: object) -> None:
        kept = read_index_file(file, header)
        assert isinstance(kept, IndexFile)
        write_index_file(file, kept._replace(**parts))  # type: ignore[arg-type]

    with SqliteStore(path) as store:
        FaissIndex(store, Plan(stage)).save()
        store.verify()
        store.add(rows("gaussian", 10, seed=2, first=ROWS))
        store.verify()  # behind the store, but of its past
    whole, packed = file.read_bytes(), embeddings("gaussian", ROWS, seed=8).pack().numpy()
    for parts in ({"packed": packed}, {"alive": np.arange(ROWS) != 7}, {"keys": np.arange(ROWS) + 3}):
        altered(**parts)
        assert "disagrees with the store: delete it" in damage_of(path)
        file.write_bytes(whole)
    with SqliteStore(path) as store:
        store.verify()


def test_a_damaged_index_file_is_seen_and_not_used(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    probes, file = embeddings("gaussian", 3, seed=1), file_of(path)
    with SqliteStore(path) as store:
        index = FaissIndex(store)
        index.save()
        wanted = index.search(probes, 5)
        flip(file, 8 * file.stat().st_size - 500)
        assert FaissIndex(store).search(probes, 5) == wanted
        assert "cannot be used (it is not what was written): the index is made again" in caplog.text
    assert "is damaged: delete it, and it is made again" in damage_of(path)


def test_an_index_file_of_other_vectors_is_not_used(path: Path, tmp_path: Path) -> None:
    """A graph over other vectors would lead to other rows."""
    file, header, probes = file_of(path), header_of("gaussian"), embeddings("gaussian", 3, seed=1)
    with SqliteStore(path) as store, SqliteStore.create(tmp_path / "b.db", header) as other:
        other.add(rows("gaussian", 7))
        for one in (store, other):
            FaissIndex(one, Plan("hnsw")).save()
        mine, theirs = (read_index_file(file_of(one.path), header) for one in (store, other))
        assert mine is not None
        assert theirs is not None
        write_index_file(file, mine._replace(stage=theirs.stage))
        assert read_index_file(file, header) is None
        found = FaissIndex(store).search(probes, 5, candidates=ROWS)
        file.unlink()
        assert found == FaissIndex(store).search(probes, 5, candidates=ROWS)


@pytest.mark.parametrize(
    ("metadata", "parts"),
    [
        ({"plan": "[]"}, {}),
        ({"plan": '{"kind": "none"}'}, {}),
        ({"plan": '{"of": "others"}'}, {}),
        ({"plan": "{"}, {}),
        ({"state": "{}"}, {}),
        ({"state": '["a", "b", "c"]'}, {}),
        ({}, {"keys": None}),
        ({}, {"keys": np.zeros(ROWS, np.int64)}),
        ({}, {"packed": np.zeros((ROWS, 8), np.float16)}),
        ({}, {"stage": np.zeros(9, np.uint8)}),
        ({}, {"stage": np.zeros(9, np.float32)}),
    ],
)
def test_an_index_file_of_others_is_not_used(path: Path, metadata: dict[str, str], parts: dict[str, Any]) -> None:
    """One whose checksum is right; none of it is a bug."""
    file, header = file_of(path), header_of("gaussian")
    with SqliteStore(path) as store:
        FaissIndex(store).save()
    with safe_open(file, framework="numpy") as opened:
        words = opened.metadata() | metadata
        tensors = {name: opened.get_tensor(name) for name in opened.keys()} | parts  # noqa: SIM118 (not a dict)
    tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    del words["checksum"]
    file.write_bytes(save(tensors, {**words, "checksum": str(_index_file._checksum(tensors, words))}))
    assert read_index_file(file, header) is None
    with SqliteStore(path) as store:
        store.remove(["row 3"])
        assert len(FaissIndex(store)) == ROWS - 1


def test_an_index_file_of_numbers_that_numpy_does_not_know_is_not_used(path: Path) -> None:
    for dtype in (torch.bfloat16, torch.float8_e4m3fn):
        save_file({"keys": torch.zeros(3, dtype=dtype)}, file_of(path), {"format": _index_file.FORMAT})
        assert read_index_file(file_of(path), header_of("gaussian")) is None


@pytest.mark.parametrize("kind", KINDS)
def test_repair_copies_all_of_a_whole_store(tmp_path: Path, kind: str) -> None:
    with create_store(tmp_path / "a.db", header_of(kind)) as store:
        store.add(rows(kind, 30))
        before = content(store)
    done = repair_store(tmp_path / "a.db", tmp_path / "b.db")
    assert (done.kept, done.lost) == (30, [])
    with open_store(tmp_path / "b.db") as again:
        assert content(again) == before


def test_keys_that_are_no_text_are_damage(path: Path) -> None:
    change(path, "UPDATE tag SET name = x'00' WHERE item = 3 AND name = 'parity'")
    with SqliteStore(path) as store, pytest.raises(StoreError, match="a key that filters look up is no text"):
        store.metadata_keys()
    assert "its metadata and what filters look up differ" in damage_of(path)


@pytest.mark.parametrize("end", [RuntimeError, None])
def test_a_repair_that_is_cut_short_leaves_no_store_that_looks_whole(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: type[Exception] | None
) -> None:
    """It raises, or the process is killed, between two batches; run again, it keeps all."""
    for module in ("hedged.search.store", "hedged.search.engines._sql", "hedged.search.engines.sqlite"):
        monkeypatch.setattr(f"{module}.ROWS_PER_BATCH", 7)
    monkeypatch.setattr(SqlStore._salvaged, "__defaults__", (7,))
    added = SqliteStore.add

    def add(store: SqliteStore, given: Rows) -> None:
        if store.count() > 30:
            if end is None:
                os.kill(os.getpid(), signal.SIGKILL)
            else:
                raise end("cut short")
        added(store, given)

    new = tmp_path / "new.db"
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "add", add)
        if end is None:
            process = os.fork()
            if process == 0:
                repair_store(path, new)
            assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
        else:
            with pytest.raises(end):
                repair_store(path, new)
    assert not new.exists()
    assert repair_store(path, new).kept == ROWS
    assert [one.name for one in tmp_path.iterdir() if "new.db" in one.name] == ["new.db"]


def test_repair_of_what_cannot_be_repaired(path: Path, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("hello " * 1000)
    for damaged, words in (
        (tmp_path / "text.db", "is damaged, or no store"),
        (tmp_path / "no.db", "there is no store"),
    ):
        with pytest.raises(StoreError, match=words):
            repair_store(damaged, tmp_path / "new.db")
    with pytest.raises(StoreError, match="exists already"):
        repair_store(path, path)
    assert not (tmp_path / "new.db").exists()


def test_a_truncated_store_gives_what_is_left(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    done = repair_store(path, tmp_path / "new.db", header_of("gaussian"))
    assert done.kept + len(done.lost) > 0


@pytest.mark.postgres
def test_damage_on_a_server_is_seen_too(make_postgres: Make, server: str, tmp_path: Path) -> None:
    store = make_postgres("gaussian")
    assert isinstance(store, PostgresStore)
    given = rows("gaussian", 20)
    given = replace(
        given,
        metadata=[{"n": i, "x": 1.0 * i, "y": 1e20, "z": [0.1, {"w": 2.5}], "o": -0.0, **LARGE} for i in range(20)],
    )
    store.add(given)
    store.verify()
    before = content(store)
    store._connection.execute("UPDATE item SET label = 'another' WHERE id = 'row 3'")
    store._connection.execute(
        "UPDATE item SET embedding = overlay(embedding placing '\\x00' from 5) WHERE id = 'row 4'"
    )
    with pytest.raises(StoreError, match="is damaged") as error:
        store.verify()
    assert "'row 3'" in str(error.value)
    assert "'row 4'" in str(error.value)
    with pytest.raises(StoreError, match="row 5: its embedding is not what was written"):
        store.index().search(embeddings("gaussian", 1), k=20)
    done = repair_store(f"{server}#{store.name.partition('#')[2]}", tmp_path / "new.db")
    assert (done.kept, len(done.lost)) == (18, 2)
    with SqliteStore(tmp_path / "new.db") as again:
        assert content(again) == {name: row for name, row in before.items() if name not in ("row 3", "row 4")}


def test_a_copy_is_what_it_was(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "copy.db")
    with open_store(tmp_path / "copy.db") as store:
        store.verify()
        assert isinstance(store.header, Header)

"""Damage that knows a format: the rest of the file stays valid, so that it comes past the first check."""

from __future__ import annotations

import ast
import io
import json
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from fuzz.mutations import COUNTS, NASTY_TEXT, VALUES, damaged_bytes, damaged_text, damaged_value

Damage = Callable[[Random, bytes, bytes], bytes]
BLIND = 0.35  # the share of inputs whose bytes are damaged whatever the format


def damaged(random: Random, name: str, content: bytes, other: bytes = b"") -> bytes:
    """A damaged file, as its format allows.

    Args:
        random: What to follow.
        name: Of the file: its ending tells the format.
        content: Of the file.
        other: Another file of the same kind.
    """
    damage = DAMAGES.get(Path(name).suffix, damaged_bytes)
    return damaged_bytes(random, content, other) if random.random() < BLIND else damage(random, content, other)


def damaged_json(random: Random, content: bytes, other: bytes) -> bytes:
    if random.random() < 0.2:
        return damaged_text(random, content, other)
    value = damaged_value(random, json.loads(content))
    text = json.dumps(value, indent=random.choice((None, 2)), ensure_ascii=random.random() < 0.8)
    if random.random() < 0.1:
        text = text.replace(random.choice(("0", "1", "{", "null")), random.choice(NASTY_TEXT), 1)
    return text.encode(errors="surrogatepass")


def damaged_json_lines(random: Random, content: bytes, other: bytes) -> bytes:
    if random.random() < 0.3:
        return damaged_text(random, content, other)
    lines = content.splitlines(keepends=True)
    place = random.randrange(len(lines))
    lines[place] = damaged_json(random, lines[place], other) + b"\n"
    return b"".join(lines)


def damaged_toml(random: Random, content: bytes, other: bytes) -> bytes:
    if random.random() < 0.4:
        return damaged_text(random, content, other)
    import tomllib

    value = damaged_value(random, tomllib.loads(content.decode()))
    return as_toml(value if isinstance(value, dict) else {"value": value}).encode(errors="surrogatepass")


def as_toml(content: Mapping[str, Any]) -> str:
    """TOML of tables of plain values; null, which it lacks, becomes an empty word."""
    plain = {key: value for key, value in content.items() if not isinstance(value, dict)}
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    lines = [f"{_toml(str(key))} = {_toml(value)}" for key, value in plain.items()]
    for name, table in tables.items():
        lines += [f"[{_toml(str(name))}]", *(f"{_toml(str(key))} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(key))} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps("" if value is None else value, ensure_ascii=True)


def damaged_tensors(random: Random, content: bytes, other: bytes) -> bytes:
    """A safetensors file with another header, or other numbers."""
    (size,) = struct.unpack("<Q", content[:8])
    header, numbers = content[8 : 8 + size], content[8 + size :]
    if random.random() < 0.5:
        header = _without_checksum(header)
    if random.random() < 0.3:
        return struct.pack("<Q", len(header)) + header + damaged_bytes(random, numbers, other)
    if random.random() < 0.3:
        header = damaged_text(random, header, other)
    else:
        header = json.dumps(damaged_value(random, json.loads(header))).encode()
    stated = len(header) if random.random() < 0.9 else random.choice(COUNTS) % 2**64
    return struct.pack("<Q", stated) + header + numbers


def _without_checksum(header: bytes) -> bytes:
    """The header of a file that was written before there were checksums, which is read too."""
    content = json.loads(header)
    words = content.get("__metadata__", {})
    words.pop("checksum", None)
    if "plan" in words:
        words["format"] = "1"  # of an index file
    return json.dumps(content).encode()


def damaged_array(random: Random, content: bytes, other: bytes) -> bytes:
    """An .npy file that says something else of its array."""
    size = int.from_bytes(content[8:10], "little")
    described, numbers = ast.literal_eval(content[10 : 10 + size].decode("latin1")), content[10 + size :]
    way = random.randrange(4)
    if way == 0:
        kinds = (
            "<f8",
            "<f4",
            "<f2",
            "|u1",
            "<i8",
            "<U3",
            "|S4",
            "|O",
            "|b1",
            "<c16",
            "<M8[s]",
            "|V9",
            ">f4",
            "<U999999999",
        )
        described["descr"] = random.choice((*kinds, [("a", "<f4"), ("b", "<i4")], "x" * 100, ""))
    elif way == 1:
        shape = [*described["shape"]] or [1]
        sizes = (0, 1, -1, 10**6, 2**31, 2**62, 2**63, 10**30, None, "3", 1.5)
        shape[random.randrange(len(shape))] = random.choice(sizes)
        described["shape"] = random.choice((tuple(shape), (), (*shape, 1), (0, *shape), tuple(shape[:1]), (1,) * 70))
    elif way == 2:
        described["fortran_order"] = random.choice((True, 1, None, "yes"))
        described |= random.choice(({}, {"extra": 1}))
    text = (
        repr(described)
        if way < 3
        else random.choice(("(" * 5000, "{}", "[]", "__import__('os')", "{'descr': '<f4'", ""))
    )
    header = text.encode("latin1", errors="replace")[:60_000] + b"\n"
    return content[:8] + len(header).to_bytes(2, "little") + header + numbers


def damaged_arrays(random: Random, content: bytes, other: bytes) -> bytes:
    """An .npz file with another member, or a ZIP file that is odd."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    way, name = random.randrange(6), random.choice(sorted(members))
    if way < 3:
        members[name] = damaged_array(random, members[name], other)
    elif way == 3:
        members[random.choice(("labels", "../x.npy", "features", "é.npy", "x" * 300))] = members.pop(name)
    elif way == 4:
        members[name] = damaged_bytes(random, members[name], other)
    how = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", how) as file:
        for each, what in members.items():
            file.writestr(each, what)
    result = bytearray(packed.getvalue())
    if way == 5:  # the fields of a member: encryption, kind of compression, sizes
        for mark in (b"PK\3\4", b"PK\1\2"):
            place = result.find(mark)
            offset = random.randrange(6, 30)
            result[place + offset] = random.choice((0, 1, 8, 99, 255))
    return bytes(result)


def damaged_png(random: Random, content: bytes, other: bytes) -> bytes:
    """A PNG file with a damaged chunk whose checksum is right."""
    chunks, place = [], 8
    while place + 12 <= len(content):
        size = int.from_bytes(content[place : place + 4], "big")
        chunks.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + size]))
        place += 12 + size
    number = random.randrange(len(chunks))
    kind, data = chunks[number]
    if kind == b"IDAT" and random.random() < 0.5:
        with suppress(zlib.error):
            data = zlib.compress(damaged_bytes(random, zlib.decompress(data), other))
    else:
        data = damaged_bytes(random, data, other)
    kinds = (kind, kind, kind, b"IDAT", b"PLTE", b"tRNS", b"eXIf", b"iTXt", b"zTXt", b"acTL", b"fdAT", b"iCCP", b"xxxx")
    chunks[number] = (random.choice(kinds), data)
    if random.random() < 0.2:
        chunks.insert(number, random.choice(chunks))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return content[:8] + body


def damaged_parquet(random: Random, content: bytes, other: bytes) -> bytes:
    """A valid Parquet file with columns of other types, or other columns."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    table = parquet.read_table(io.BytesIO(content))
    rows, name = table.num_rows, random.choice(table.column_names)
    word = random.choice((*NASTY_TEXT[2:10], "é", "", "x" * 5000))
    columns: list[Any] = [
        pa.array([None] * rows),
        pa.array([word] * rows),
        pa.array([b"\xff\xfe"] * rows),
        pa.array([[1.0, None]] * rows),
        pa.array([["a", "b"]] * rows),
        pa.array([[[1.0]]] * rows),
        pa.array([{"a": 1}] * rows),
        pa.array([float("nan")] * rows),
        pa.array(range(rows)),
        pa.array([True] * rows),
        pa.array([0] * rows, pa.timestamp("ns")),
        pa.array([0] * rows, pa.duration("s")),
        pa.array(["a"] * rows).dictionary_encode(),
        pa.array([[float(i)] * (i % 3) for i in range(rows)]),
        pa.array([list(range(12))] * rows, pa.list_(pa.int64())),
        pa.array([[1.0, 2.0]] * rows, pa.list_(pa.float32(), 2)),
        pa.array([[np.float16("inf")] * 12] * rows, pa.list_(pa.float16())),  # of NumPy: pyarrow 17 takes no other
        pa.array([1] * rows, pa.decimal128(30, 2)),
        pa.array([[("k", 1)]] * rows, pa.map_(pa.string(), pa.int64())),
        pa.array([2**40] * rows, pa.date64()),
        pa.array([word] * rows, pa.large_string()),
        pa.array([10**9] * rows, pa.time64("us")),
    ]
    way = random.randrange(5)
    if way == 0:
        table = table.drop_columns([name])
    elif way == 1:
        table = table.append_column(
            random.choice((name, "split", "label", "id", "", name.upper())), random.choice(columns)
        )
    elif way == 2 and rows:
        table = table.slice(0, random.choice((0, 1)))
    else:
        table = table.set_column(table.column_names.index(name), name, random.choice(columns))
    buffer = io.BytesIO()
    parquet.write_table(table, buffer, compression=random.choice(("none", "snappy", "zstd", "gzip")))
    result = buffer.getvalue()
    return damaged_bytes(random, result, other) if random.random() < 0.3 else result


def damaged_database(random: Random, content: bytes, other: bytes) -> bytes:
    """An SQLite file that somebody has written to with other tools; checksums are sometimes put right."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        content = content[:18] + b"\1\1" + content[20:]  # a database in memory has no log
        connection.deserialize(content)
        connection.execute("PRAGMA writable_schema = ON")
        for _ in range(random.choice((1, 1, 2))):
            with suppress(sqlite3.Error, ValueError, TypeError, OverflowError, RecursionError):
                _write_nonsense(random, connection)
        if random.random() < 0.5:
            with suppress(sqlite3.Error, TypeError, AttributeError):
                _right_checksums(connection)
        result = connection.serialize()
    return result[:18] + b"\2\2" + result[20:]


def _write_nonsense(random: Random, connection: sqlite3.Connection) -> None:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    table = random.choice([name for name in tables if not name.startswith("sqlite_")])
    columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info('{table}')")]
    column, way = random.choice(columns), random.randrange(10)
    flat = [value for value in VALUES if not isinstance(value, list | dict)]
    blobs = (b"", b"\0", b"\xff" * 8, random.randbytes(32), b"\0" * 10_000)
    if table == "store" and "header" in columns and way < 5:
        (header,) = connection.execute("SELECT header FROM store").fetchone()
        text = json.dumps(damaged_value(random, json.loads(header)))
        connection.execute(
            "UPDATE store SET header = ?", (random.choice((text, text, text, random.choice(NASTY_TEXT))),)
        )
    elif table == "item" and way < 3:
        given = (
            json.dumps(random.choice(VALUES)),
            random.choice(NASTY_TEXT),
            "[" * 5000,
            '{"a": 1e999}',
            "{}",
            '{"":1}',
        )
        connection.execute("UPDATE item SET metadata = ? WHERE key % 7 = 3", (random.choice(given),))
    elif table == "item" and way < 5:
        (size,) = connection.execute("SELECT length(embedding) FROM item LIMIT 1").fetchone()
        numbers = np.frombuffer(random.randbytes(size), "<f4").copy()
        numbers[random.randrange(len(numbers))] = random.choice((np.nan, np.inf, -1.0, 0.0, 1e38, 1e-45))
        connection.execute("UPDATE item SET embedding = ? WHERE key % 7 = 3", (numbers.tobytes(),))
    elif way == 5:
        connection.execute(f"DROP TABLE {table}")
    elif way == 6:
        connection.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
    elif way == 7:
        connection.execute(f"DELETE FROM {table} WHERE rowid % 2 = 0 OR '{table}' = 'store'")
    elif way == 8:
        pragma, number = (
            random.choice(("application_id", "user_version")),
            random.choice((0, 1, 2, 3, 4, -1, 2**31 - 1)),
        )
        connection.execute(f"PRAGMA {pragma} = {number}")
    else:
        value = random.choice((*flat, *blobs))
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid % 5 = 1", (value,))


def _right_checksums(connection: sqlite3.Connection) -> None:
    from hedged.search.engines._checks import checksum, header_checksum

    for uuid, header in connection.execute("SELECT uuid, header FROM store").fetchall():
        connection.execute("UPDATE store SET checksum = ?", (header_checksum(str(uuid), str(header)),))
    for key, embedding, *words in connection.execute("SELECT key, embedding, id, label, metadata FROM item").fetchall():
        connection.execute("UPDATE item SET checksum = ? WHERE key = ?", (checksum(embedding, *words), key))


DAMAGES: dict[str, Damage] = {
    ".json": damaged_json,
    ".jsonl": damaged_json_lines,
    ".toml": damaged_toml,
    ".csv": damaged_text,
    ".txt": damaged_text,
    ".safetensors": damaged_tensors,
    ".index": damaged_tensors,
    ".npy": damaged_array,
    ".npz": damaged_arrays,
    ".png": damaged_png,
    ".parquet": damaged_parquet,
    ".db": damaged_database,
}

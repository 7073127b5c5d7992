"""Damage to bytes and to values of JSON and TOML: what disks, editors and enemies do to files."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

MARKED = (0, 1, 0x7F, 0x80, 0xFF)  # bytes at which counters turn over
COUNTS = (0, 1, -1, 2**7, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, -(2**63), 10**30)
SEVERAL = 8  # flips or bytes at most
PIECE = 200  # bytes of a piece that is cut out, doubled or taken from another file
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 0.5, -0.0, 1e-320, 1e308, -1e308, float("inf"), float("-inf"), float("nan"),
    2**31, 2**32, 2**53 + 1, 2**63, -(2**63) - 1, 10**40, 10**400, "", " ", "0", "nan", "é", "\x00", "a\nb", "\x1b[31m",
    "../../../x", "\ud800", "curve", "evidence", "mixture", "point", "x" * 5000, [], {}, [[]], [None], {"": None},
    [0] * 1000, [1, 2], [1.0], ["a"], {"kind": "curve"}, {"kind": None}, {"a": {"b": {}}},
)  # fmt: skip
NASTY_TEXT = (
    "[" * 100_000, '{"a":' * 100_000, "1" * 10_000, "-" + "9" * 5_000, "1e999999999", "NaN", "-Infinity", '"\\ud800"',
    "\ufeff", "\x00", "\u2028", '"', "'''", '"""', "[[a]]\n[[a.b]]\n", "a.b.c.d.e = 1\n", "= 1\n", "\r", "\n\n", ",,,,",
    "a." * 50_000 + "b = 1\n", "a = " + "[" * 50_000, "a = " + "{b = " * 20_000, "0x" + "f" * 10_000,
    "1979-05-27T07:32:00Z", "inf", "nan", "1_000_000", "99999-99-99", "é" * 100, "\x1b]0;x\x07",
)  # fmt: skip


def damaged_bytes(random: Random, content: bytes, other: bytes = b"") -> bytes:
    """The same bytes with one or two damages.

    Args:
        random: What to follow.
        content: The bytes.
        other: Another file, a piece of which may come into it.
    """
    for _ in range(1 + (random.random() < 0.3)):
        content = random.choice(BYTE_DAMAGES)(random, content, other)
    return content


def _flip(random: Random, content: bytes, _: bytes) -> bytes:
    result = bytearray(content)
    for _times in range(random.randint(1, SEVERAL)):
        if result:
            result[_place(random, len(result))] ^= 1 << random.randrange(8)
    return bytes(result)


def _overwrite(random: Random, content: bytes, _: bytes) -> bytes:
    result = bytearray(content)
    for _times in range(random.randint(1, SEVERAL)):
        if result:
            result[_place(random, len(result))] = random.choice((*MARKED, random.randrange(256)))
    return bytes(result)


def _count(random: Random, content: bytes, _: bytes) -> bytes:
    """A number of 2, 4 or 8 bytes, such as a length, becomes another."""
    size = random.choice((2, 4, 8))
    number: int = random.choice((*COUNTS, random.getrandbits(8 * size))) % 2 ** (8 * size)
    place = _place(random, len(content))
    packed = number.to_bytes(size, "big")
    return content[:place] + random.choice((packed, packed[::-1])) + content[place + size :]


def _truncate(random: Random, content: bytes, _: bytes) -> bytes:
    return content[: _place(random, len(content) + 1)] if content else content


def _cut(random: Random, content: bytes, _: bytes) -> bytes:
    place = _place(random, len(content))
    return content[:place] + content[place + random.randint(1, PIECE) :]


def _double(random: Random, content: bytes, _: bytes) -> bytes:
    place, size = _place(random, len(content)), random.randint(1, PIECE)
    return content[: place + size] * random.choice((1, 1, 1, 3)) + content[place:]


def _splice(random: Random, content: bytes, other: bytes) -> bytes:
    start, place = _place(random, len(other)), _place(random, len(content))
    return content[:place] + other[start : start + random.randint(1, PIECE)] + content[place:]


def _insert(random: Random, content: bytes, _: bytes) -> bytes:
    place = _place(random, len(content))
    piece = random.choice((b"\0" * PIECE, b"\xff" * 16, random.randbytes(16), b"9" * 30, b"\r\n", b"-", b'"', b"\xef"))
    return content[:place] + piece + content[place:]


def _digits(random: Random, content: bytes, _: bytes) -> bytes:
    """A number that is written out becomes another."""
    places = [i for i, byte in enumerate(content[:4096]) if 48 <= byte <= 57]
    if not places:
        return content
    start = end = random.choice(places)
    while end < len(content) and 48 <= content[end] <= 57:
        end += 1
    return content[:start] + str(random.choice((*COUNTS, random.randrange(1000)))).encode() + content[end:]


def _place(random: Random, size: int) -> int:
    """Often near the beginning, where headers are, or the end, where formats such as ZIP and Parquet have them."""
    if size < 1:
        return 0
    return {0: random.randrange(min(size, 256)), 1: size - 1 - random.randrange(min(size, 256))}.get(
        random.randrange(3), random.randrange(size)
    )


BYTE_DAMAGES: tuple[Callable[[Random, bytes, bytes], bytes], ...] = (
    _flip, _overwrite, _count, _truncate, _cut, _double, _splice, _insert, _digits
)  # fmt: skip


def damaged_text(random: Random, content: bytes, other: bytes = b"") -> bytes:
    """Text with whole words, lines or characters changed, or damaged as bytes are.

    Args:
        random: What to follow.
        content: The text, as UTF-8.
        other: Another file.
    """
    way = random.randrange(4)
    if way == 0:
        return damaged_bytes(random, content, other)
    text = content.decode("utf-8", errors="replace")
    if way == 1:
        place = random.randint(0, len(text))
        return (text[:place] + random.choice(NASTY_TEXT) + text[place:]).encode(errors="surrogatepass")
    lines = text.splitlines(keepends=True) or [""]
    place = random.randrange(len(lines))
    if way == 2:
        lines[place : place + 1] = random.choice(([], [lines[place]] * 2, [lines[place]] * 500, lines[:place]))
    else:
        separator = random.choice((",", "\t", " ", "=", ":"))
        words = lines[place].rstrip("\n").split(separator)
        words[random.randrange(len(words))] = random.choice((*NASTY_TEXT, *map(str, VALUES[:46])))
        lines[place] = separator.join(words) + "\n"
    return "".join(lines).encode(errors="surrogatepass")


def damaged_value(random: Random, value: Any) -> Any:
    """A JSON value with some of its parts changed, removed, added or exchanged.

    Args:
        random: What to follow.
        value: The value, which stays as it is.
    """
    copy = json.loads(json.dumps(value))
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        places = list(_places(copy))
        if not places:
            return _any(random)
        holder, key = random.choice(places)
        way = random.randrange(6)
        if way < 3:
            holder[key] = _another(random, holder[key])
        elif way == 3:
            del holder[key]
        elif way == 4:
            from_holder, from_key = random.choice(places)
            holder[key] = json.loads(json.dumps(from_holder[from_key]))
        elif isinstance(holder, dict):
            holder[random.choice(("", "kind", "x" * 300, "é", "\x00", "format", f"{key}2"))] = _any(random)
        else:
            holder.insert(key, _any(random))
    return copy if random.random() < 0.98 else _any(random)


def _any(random: Random) -> Any:
    """A value of its own: it may be changed later."""
    return json.loads(json.dumps(random.choice(VALUES)))


def _another(random: Random, value: Any) -> Any:
    """Another value, often of the same type."""
    if random.random() < 0.5:
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return random.choice((value + 1, value - 1, -value, 2 * value, value * 10**6, *COUNTS))
        if isinstance(value, float):
            return random.choice(
                (value * 2, -value, value * 1e30, value * 1e-30, int(value) if abs(value) < 1e15 else 0)
            )
        if isinstance(value, str):
            return random.choice((value[1:], value + "x", value.upper(), value * 2, value[::-1], f"\x00{value}"))
        if isinstance(value, list) and value:
            return random.choice((value[:-1], value * 2, [value], value[::-1], [*value, None]))
    return _any(random)


def _places(value: Any) -> Any:
    """Every part of a value, as what holds it and its key there."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])

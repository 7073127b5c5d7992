"""What other processes do to a store in the tests: write to it until they are killed, or read while it is written."""

from __future__ import annotations

from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import torch
from search.gallery import MODEL, embeddings, header_of

from hedged.search import FaissIndex, Rows, SqliteStore, open_store

OF_A_BATCH = 25
STATES = 8  # that a reader sees before it is content
GENERATION = 40  # rows that are replaced together


class Looks(NamedTuple):
    """How often a reader looked, how many different states it saw, and the torn ones among them."""

    number: int
    states: int
    torn: list[str]


def batch(number: int) -> Rows:
    """Rows that tell by themselves whether they are whole: their embeddings follow from the batch's number."""
    names = [f"{number}-{i}" for i in range(OF_A_BATCH)]
    z = embeddings("gaussian", OF_A_BATCH, seed=number)
    return Rows(names, z, MODEL, [f"batch {number}"] * OF_A_BATCH, [{"batch": number}] * OF_A_BATCH)


def add_until_killed(path: str | Path, first: int, acknowledge: Connection) -> None:
    """Add batches, and tell of each when it is stored."""
    torch.set_num_threads(1)
    with open_store(path) as store:
        for number in count(first):
            store.add(batch(number))
            acknowledge.send(number)


def generation(number: int) -> Rows:
    """All rows replaced at once; their number of the generation is in metadata and in the embeddings."""
    names = [f"row {i}" for i in range(GENERATION)]
    z = embeddings("gaussian", GENERATION, seed=number)
    return Rows(names, z, MODEL, metadata=[{"generation": number}] * GENERATION)


def look_on(path: Path, tell: Connection) -> None:
    """Read all rows, and search, until enough different states were seen; tell what was seen."""
    torch.set_num_threads(1)
    seen: set[int] = set()
    torn: list[str] = []
    looks = 0
    with SqliteStore(path) as store:
        index, probes = FaissIndex(store), embeddings("gaussian", 2, seed=5)
        while len(seen) < STATES and len(torn) < STATES:
            looks += 1
            rows = [(row.metadata["generation"], numbers.tobytes()) for b in store.batches(size=9)
                    for row, numbers in zip(b.described, b.packed, strict=True)]  # fmt: skip
            numbers = {number for number, _ in rows}
            found = {hit.metadata["generation"] for hits in index.search(probes, 10) for hit in hits}
            if len(numbers) != 1 or len(found) != 1 or len(rows) != GENERATION:
                torn.append(f"{len(rows)} rows of generations {numbers}, found {found}")
                continue
            (number,) = numbers
            if [content for _, content in rows] != [one.tobytes() for one in generation(number).packed()]:
                torn.append(f"embeddings of another generation than {number}")
            seen.add(number)
    tell.send(Looks(looks, len(seen), torn))


def empty_store(path: Path) -> None:
    SqliteStore.create(path, header_of("gaussian")).close()

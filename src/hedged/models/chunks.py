"""Embedding more inputs than fit in memory, some at a time: the one loop that all callers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hedged.distributions import Distribution, concatenate
from hedged.errors import DataError
from hedged.models.embedder import Embedder

CHUNK = 2_048  # inputs that are read at a time


class Chunk(NamedTuple):
    """Embeddings `z` of the inputs at `places`, int64 (b,), and their novelty, float64 (b,), if known."""

    places: Tensor
    z: Distribution
    novelty: Tensor | None


def embed_chunks(
    embedder: Embedder,
    read: Callable[[Tensor], Any],
    count: int,
    chunk: int = CHUNK,
    batch_size: int | None = None,
    broken: list[str] | None = None,
) -> Iterator[Chunk]:
    """Embed inputs a chunk at a time, in order; each chunk may be kept or used before the next is read.

    Args:
        embedder: the model.
        read: the inputs at some places, int64 (b,), as `Embedder.embed` takes them.
        count: how many inputs there are.
        chunk: how many are read at a time.
        batch_size: how many go through the network at a time; by default as many as it is quick with.
        broken: if given, inputs that cannot be read are left out, and why is appended to it; otherwise the first of
            them raises its `DataError`.
    """
    for places in torch.split(torch.arange(count), chunk):
        try:
            yield Chunk(places, *embedder.embed_with_novelty(read(places), batch_size))
        except DataError:
            if broken is None:
                raise
            sound = [one for place in places if (one := _embed_one(embedder, read, place, broken))]
            if sound:
                known = [one.novelty for one in sound if one.novelty is not None]
                together = torch.cat([one.places for one in sound]), concatenate([one.z for one in sound])
                yield Chunk(*together, torch.cat(known) if known else None)


def _embed_one(embedder: Embedder, read: Callable[[Tensor], Any], place: Tensor, broken: list[str]) -> Chunk | None:
    try:
        return Chunk(place[None], *embedder.embed_with_novelty(read(place[None])))
    except DataError as error:
        broken.append(str(error))
        return None


def embed_all(embedder: Embedder, read: Callable[[Tensor], Any], count: int) -> Distribution:
    """The embeddings of inputs of which only some are in memory at a time.

    Args:
        embedder: the model.
        read: the inputs at some places, int64 (b,): `Dataset.clean`, for example.
        count: how many inputs there are.
    """
    return embed_all_with_novelty(embedder, read, count)[0]


def embed_all_with_novelty(
    embedder: Embedder, read: Callable[[Tensor], Any], count: int
) -> tuple[Distribution, Tensor | None]:
    """What `embed_all` returns, and the novelty of each input, float64 (count,), if it is known; in one pass.

    Args:
        embedder: the model.
        read: As for `embed_all`.
        count: how many inputs there are.
    """
    parts = list(embed_chunks(embedder, read, count))
    known = [part.novelty for part in parts if part.novelty is not None]
    return concatenate([part.z for part in parts]), torch.cat(known) if known else None

"""One shard: the embeddings of one piece of the inputs as a Parquet file, written and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.data.tables import column_values, read_parquet
from hedged.distributions import Distribution, concatenate
from hedged.errors import RunError
from hedged.models.bulk.manifest import Shard, sha256_of
from hedged.models.bulk.pieces import Piece
from hedged.models.chunks import embed_chunks
from hedged.models.columns import column_array, columns_of, write_columns
from hedged.models.embedder import Embedder

MODEL = "model"  # under which the metadata of a shard's schema have the fingerprint of the model


class Embedded(NamedTuple):
    """The rows of a shard.

    Args:
        ids: Of the inputs.
        z: Their embeddings.
        labels: Whose each is, if it is known.
        novelty: Of each; empty if it is not known.
    """

    ids: list[str]
    z: Distribution
    labels: list[str | None]
    novelty: list[float]


def embed_piece(embedder: Embedder, fingerprint: str, piece: Piece, root: Path, out: Path) -> Shard:
    """Embed a piece, and write the shard, whole or not at all.

    Args:
        embedder: The model.
        fingerprint: Of the model.
        piece: The inputs.
        root: Where their relative paths start.
        out: The file.
    """
    broken: list[str] = []
    ids, labels, embedded, novelty = list[str](), list[str | None](), list[Distribution](), list[float]()
    for batch in piece.batches(root):
        broken += batch.broken
        for places, z, told in embed_chunks(embedder, batch.at, len(batch.ids), broken=broken):
            ids += [batch.ids[i] for i in places.tolist()]
            labels += [batch.labels[i] for i in places.tolist()]
            embedded.append(z)
            novelty += [] if told is None else told.tolist()
    if not ids:
        return Shard("", 0, "", broken)
    z = concatenate(embedded)
    columns = columns_of(embedder, z, ids, novelty) | {MODEL: fingerprint}
    if any(label is not None for label in labels):
        columns["labels"] = labels
    packed = z.pack().numpy()
    if not np.array_equal(packed, _means_and_variances(columns["means"], columns["variances"])):
        columns["packed"] = packed
    write_columns(out, columns)
    return Shard(out.name, len(ids), sha256_of(out), broken)


def read_shard(path: Path) -> Embedded:
    """The rows of a shard.

    Args:
        path: The file.
    """
    table = read_parquet(path, instead="an .npz file of `hedged embed`")
    about = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    try:
        means = column_array(table, "means")
        packed = _means_and_variances(means, column_array(table, "variances"))
        if "packed" in table.column_names:
            packed = column_array(table, "packed")
        z = Distribution.named(about["kind"]).unpack(torch.from_numpy(packed), means.shape[-1])
    except (KeyError, ValueError, AttributeError) as error:
        raise RunError(f"{path} is no shard of `hedged embed --ray` ({error}): embed its inputs again") from error
    names = table.column_names
    labels = column_values(table, "labels", path) if "labels" in names else [None] * len(table)
    novelty = column_values(table, "novelty", path) if "novelty" in names else []
    return Embedded(column_values(table, "ids", path), z, labels, novelty)


def _means_and_variances(means: NDArray[Any], variances: NDArray[Any]) -> NDArray[Any]:
    """Both as one row for each embedding, as most kinds of distribution are packed."""
    return np.concatenate([part.reshape(len(part), -1) for part in (means, variances)], axis=1)

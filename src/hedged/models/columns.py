"""Embeddings as columns of a file: .npz for NumPy, .parquet for tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hedged._files import path_text
from hedged.distributions import Distribution
from hedged.models.embedder import Embedder

ROWS = ("ids", "labels", "means", "variances", "covariances", "uncertainty", "novelty", "packed")


def columns_of(
    embedder: Embedder, z: Distribution, names: Sequence[str | Path], novelty: Sequence[float] = ()
) -> dict[str, Any]:
    """The columns of the file, and the match model that turns two rows into a match probability.

    Args:
        embedder: The model.
        z: The embeddings.
        names: An id for each.
        novelty: Of each; empty if it is not known.
    """
    import numpy as np

    is_mixture = z.tensors[0].ndim > len(z.batch_shape) + 1  # several components, each with its own mean
    means, variances = z.parts() if is_mixture else (z.mean, z.variance)
    return {
        "ids": [path_text(name) for name in names],
        "means": means.numpy(),
        "variances": variances.numpy(),
        **({} if z.is_diagonal else {"covariances": z.covariances().squeeze(-3).numpy()}),
        "uncertainty": embedder.uncertainty(z).numpy(),
        **({"novelty": np.asarray(novelty)} if len(novelty) else {}),
        "kind": z.kind,
        "match_model": embedder.match_model.kind,
        **embedder.match_model.settings(),
    }


def write_columns(out: Path, columns: dict[str, Any]) -> None:
    """Write the file, whole or not at all.

    Args:
        out: The file, .npz or .parquet.
        columns: What is in it, as `columns_of` says.
    """
    from hedged._files import write_atomically
    from hedged.data.arrays import write_npz

    write = write_npz if out.suffix == ".npz" else _write_parquet
    write_atomically(out, lambda part: write(part, columns))


def _write_parquet(path: Path, columns: dict[str, Any]) -> None:
    """The rows as columns of lists; the rest is metadata of the schema."""
    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    def column(values: Any) -> Any:
        array = np.asarray(values)
        nested = pa.array(array.reshape(-1))
        for size in reversed(array.shape[1:]):
            nested = pa.FixedSizeListArray.from_arrays(nested, size)
        return nested

    table = pa.table({name: column(columns[name]) for name in ROWS if name in columns})
    about = {name: str(columns[name]) for name in columns if name not in ROWS}
    with path.open("wb") as file:  # opened here: Arrow takes no name but in UTF-8
        parquet.write_table(table.replace_schema_metadata(about), file)


def column_array(table: Any, name: str) -> Any:
    """A column of numbers, lists or lists of lists of a `pyarrow.Table`, as `write_columns` writes them.

    Args:
        table: The table.
        name: Of the column.
    """
    column, shape = table[name].combine_chunks(), [len(table)]
    while hasattr(column.type, "list_size"):
        shape.append(column.type.list_size)
        column = column.flatten()
    return column.to_numpy(zero_copy_only=False).reshape(shape).copy()

"""What `hedged index` stores: inputs that it embeds, or shards that `hedged embed --ray` has embedded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, final

from hedged._files import path_text
from hedged.cli._inputs import Inputs, embedded_sound, inputs_of
from hedged.cli._metadata import Described
from hedged.errors import ConfigError, DataError

if TYPE_CHECKING:
    from hedged.distributions import Distribution
    from hedged.models import Embedder
    from hedged.search import Rows


class Some(NamedTuple):
    """Some embedded inputs: their ids, embeddings, labels and novelty, the last two as far as they are known."""

    ids: list[str]
    z: Distribution
    labels: Sequence[str | None]
    novelty: Sequence[float]


@dataclass(frozen=True)
class Source(ABC):
    """Inputs and their embeddings.

    Args:
        ids: A name for each input.
    """

    ids: list[str]

    @abstractmethod
    def without(self, ids: Collection[str]) -> Self:
        """The same but for some inputs.

        Args:
            ids: Which.
        """

    @abstractmethod
    def embedded(self) -> Iterator[Some]:
        """The embeddings, some at a time."""

    @abstractmethod
    def folders(self, ids: Sequence[str]) -> list[str]:
        """The names of the folders that inputs are in.

        Args:
            ids: Of the inputs.
        """


@final
@dataclass(frozen=True)
class Unembedded(Source):
    """Inputs that are embedded as they are asked for.

    Args:
        embedder: The model.
        inputs: What to embed.
        skip_broken: Whether to leave out files that cannot be decoded.
    """

    embedder: Embedder
    inputs: Inputs
    skip_broken: bool

    def without(self, ids: Collection[str]) -> Unembedded:
        import torch

        kept = [i for i, name in enumerate(self.ids) if name not in ids]
        inputs = self.inputs.subset(torch.tensor(kept, dtype=torch.int64))
        return Unembedded(inputs.ids, self.embedder, inputs, self.skip_broken)

    def embedded(self) -> Iterator[Some]:
        if not self.ids:
            return
        for inputs, z in embedded_sound(self.embedder, self.inputs, self.skip_broken):
            yield Some(inputs.ids, z, inputs.labels or [None] * len(inputs.ids), inputs.novelty)

    def folders(self, ids: Sequence[str]) -> list[str]:
        if self.inputs.vectors is not None:
            raise ConfigError("vectors are in no folders: give their labels in their file, or by a table, --metadata F")
        places = dict(zip(self.ids, self.inputs.paths, strict=True))
        return [path_text(places[name].resolve().parent.name) for name in ids]


@final
@dataclass(frozen=True)
class Shards(Source):
    """Embeddings in the shards of a folder.

    Args:
        files: The shards; of their rows, those of `ids` are wanted.
    """

    files: Sequence[Path]

    @classmethod
    def of(cls, folder: Path, fingerprint: str) -> Shards:
        """All embeddings in a folder; refused if another model made them, or if some are missing or damaged.

        Args:
            folder: The folder.
            fingerprint: Of the model.
        """
        from hedged.data.tables import column_values, read_parquet
        from hedged.models.bulk import Manifest

        manifest = Manifest.read(folder)
        if manifest.model != fingerprint:
            raise DataError(
                f"{folder} was embedded by the model {manifest.model}, not by {fingerprint}: use that model, or embed "
                "its inputs again into another folder"
            )
        files = manifest.files()
        tables = [(read_parquet(path, "images", columns=("ids",)), path) for path in files]
        return cls([name for table, path in tables for name in column_values(table, "ids", path)], files)

    def without(self, ids: Collection[str]) -> Shards:
        return Shards([name for name in self.ids if name not in ids], self.files)

    def embedded(self) -> Iterator[Some]:
        from hedged.models.bulk import read_shard

        wanted = set(self.ids)
        for path in self.files:
            shard = read_shard(path)
            kept = [i for i, name in enumerate(shard.ids) if name in wanted]
            if kept:
                novelty = [shard.novelty[i] for i in kept] if shard.novelty else []
                yield Some([shard.ids[i] for i in kept], shard.z[kept], [shard.labels[i] for i in kept], novelty)

    def folders(self, ids: Sequence[str]) -> list[str]:
        return [Path(name).parent.name for name in ids]


def source_of(embedder: Embedder, fingerprint: str, given: Sequence[Path], skip_broken: bool) -> Source:
    """What the arguments name: a folder of shards, or inputs.

    Args:
        embedder: The model.
        fingerprint: Of the model: it takes long to find, so it is found once.
        given: The arguments.
        skip_broken: Whether to leave out files that cannot be decoded.
    """
    from hedged.models.bulk import is_shard_folder

    folders = [path for path in given if is_shard_folder(path)]
    if not folders:
        inputs = inputs_of(embedder, given)
        return Unembedded(inputs.ids, embedder, inputs, skip_broken)
    if len(given) > 1:
        raise ConfigError(f"{folders[0]} is a folder of shards, which is given alone: add others by `hedged index add`")
    return Shards.of(folders[0], fingerprint)


def rows_of(
    source: Source, fingerprint: str, described: Mapping[str, Described], folder_labels: bool
) -> Iterator[Rows]:
    """The rows of a store, some at a time.

    Args:
        source: What is stored.
        fingerprint: Of the model.
        described: Labels and metadata by id.
        folder_labels: Whether inputs without a label there get the name of their folder.
    """
    from hedged.search import Rows
    from hedged.search.rows import with_novelty

    for ids, z, labels, novelty in source.embedded():
        of_each = [described.get(name, Described(None, {})) for name in ids]
        own = source.folders(ids) if folder_labels else labels
        chosen = [known.label or label for known, label in zip(of_each, own, strict=True)]
        yield Rows(ids, z, fingerprint, chosen, with_novelty([known.metadata for known in of_each], novelty))

"""`Gallery`: images in, matches and identities out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, final

from hedged._files import path_text
from hedged.distributions import Distribution
from hedged.errors import ShapeError
from hedged.models import Embedder
from hedged.search.audit import WRONG_SHARE, Audit, read_audit
from hedged.search.cluster import Clusters, read_clusters
from hedged.search.fusion import Fusion
from hedged.search.identify import Identified, Identifier, Identities, LogOdds
from hedged.search.index import Hit, Index, Plan
from hedged.search.rows import Filter, Header, Rows, as_column, with_novelty
from hedged.search.store import Closing, Store, create_store, open_store, refuse_existing


@final
class Gallery(Closing):
    """Images of one model in a store, to be searched and identified.

    Wherever images are taken, so are embeddings of the same model. A gallery is used by one thread.

    Args:
        store: Where the embeddings are; `Gallery.create` and `Gallery.open` find it by its path or address.
        embedder: The model that made them.
        plan: How candidates are found; None: as it was chosen before, else by looking at all rows.

    >>> import tempfile, torch
    >>> from hedged import Architecture, Embedder, Gallery
    >>> e = Embedder.new(Architecture(dim=2, shape=(1, 28, 56)), seed=0)  # or Embedder.load("runs/demo")
    >>> images = torch.rand(20, 1, 28, 56, generator=torch.Generator().manual_seed(0))
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Gallery.create(f"{folder.name}/dogs.db", e) as g:
    ...     ids = g.add(images, labels=[f"dog {i % 4}" for i in range(20)])
    ...     hits = g.search(images[:2], k=5)
    ...     who = g.identify(images[:2])
    >>> ids[:3], len(hits[0]), 0 < who[0].none_probability < 1
    (['1', '2', '3'], 5, True)
    >>> folder.cleanup()
    """

    def __init__(self, store: Store, embedder: Embedder, plan: Plan | None = None) -> None:
        self._fingerprint = embedder.fingerprint()
        store.header.check_model(self._fingerprint)
        self._store, self._embedder, self._plan = store, embedder, plan
        self._index: Index | None = None

    @classmethod
    def create(cls, location: str | Path, embedder: Embedder, plan: Plan | None = None) -> Self:
        """A new gallery, empty.

        Args:
            location: The path of a file that does not exist, or an address: `postgresql://host/database#name`.
            embedder: The model that will embed its images.
            plan: How candidates are found, such as `Plan("hnsw")`; None: by looking at all rows.
        """
        refuse_existing(location)
        return cls(create_store(location, Header.of(embedder)), embedder, plan)

    @classmethod
    def open(cls, location: str | Path, embedder: Embedder) -> Self:
        """A gallery that exists.

        Args:
            location: Where it is: a path or an address.
            embedder: The model that made its embeddings; another is refused.
        """
        store = open_store(location)
        try:
            return cls(store, embedder)
        except BaseException:
            store.close()
            raise

    @property
    def store(self) -> Store:
        """The rows themselves."""
        return self._store

    @property
    def embedder(self) -> Embedder:
        """The model that makes the embeddings."""
        return self._embedder

    def __len__(self) -> int:
        """How many images there are."""
        return self._store.count()

    def add(
        self,
        images: Any,
        labels: Iterable[str | None] | None = None,
        ids: Iterable[str] | None = None,
        metadata: Iterable[Mapping[str, Any]] | None = None,
        replace: bool = False,
    ) -> list[str]:
        """Embed images and store them, all or none; returns their ids.

        Args:
            images: What `Embedder.embed` takes, or embeddings.
            labels: The identity of each image; None, for all or for some: not known.
            ids: A different id for each image; None: the paths, if paths are given, else numbers that count on.
            metadata: JSON values by key for each image, which filters can ask for. Where the model tells novelty, it is
                kept among them, as `novelty`.
            replace: Whether images whose ids exist are replaced; else they are refused.
        """
        images = list(images) if isinstance(images, Iterator) else images
        given = {"ids": ids, "labels": labels, "metadata": metadata}
        columns = {name: as_column(name, column) for name, column in given.items() if column is not None}
        z, novelty = self._embedded(images)
        for name, column in columns.items():
            if len(column) != len(z):
                raise ShapeError(f"got {len(column)} {name} for {len(z)} images: give one for each")
        names = columns.get("ids") or _paths(images, len(z)) or self._numbers(len(z))
        described = with_novelty(columns.get("metadata", [{}] * len(z)), novelty)
        rows = Rows(names, z, self._fingerprint, columns.get("labels", ()), described)
        (self._store.upsert if replace else self._store.add)(rows)
        return names

    def remove(self, ids: Iterable[str]) -> int:
        """Remove images, and return how many there were.

        Args:
            ids: Their ids.
        """
        return self._store.remove(ids)

    def search(self, images: Any, k: int = 10, where: Filter = (), candidates: int | None = None) -> list[list[Hit]]:
        """The k stored images that match each image best, best first.

        Args:
            images: What `Embedder.embed` takes, or embeddings.
            k: How many matches each image gets.
            where: Only among stored images with these values, such as `[Where("year", "2021")]`.
            candidates: How many the first stage hands on; with as many as there are images the result is exact.
        """
        if self._index is None:
            self._index = self._store.index(self._plan)
        z, novelty = self._embedded(images)
        found = self._index.search(z, k, where, candidates)
        told: Sequence[float | None] = novelty or [None] * len(found)
        return [
            [dataclasses.replace(hit, probe_novelty=one) for hit in hits] for hits, one in zip(found, told, strict=True)
        ]

    def identify(
        self,
        images: Any,
        top: int = 5,
        none_prior: float = 0.1,
        fusion: Fusion | None = None,
        where: Filter = (),
        calibrated: LogOdds | None = None,
        coverage: float | None = None,
    ) -> list[Identified]:
        """Who each image shows, by the labels of the gallery, or that it shows none of them.

        Each call reads the gallery and learns from it when to answer "none of these": pass many images at once, or keep
        an `Identifier`.

        Args:
            images: What `Embedder.embed` takes, or embeddings.
            top: How many of the most probable identities each answer lists.
            none_prior: The share of images that show nobody in the gallery.
            fusion: How the images of an identity are taken together; None: as a product.
            where: Only among stored images with these values.
            calibrated: From the model's log-odds of a match to calibrated ones, such as `decider.calibrator.log_odds`.
            coverage: The share of candidate sets that shall hold the right answer; None: no sets.
        """
        identities = Identities.read(self._store, where)
        identifier = Identifier(identities, fusion, none_prior, calibrated, coverage)
        z, novelty = self._embedded(images)
        found = identifier.identify(z, top)
        told: Sequence[float | None] = novelty or [None] * len(found)
        return [dataclasses.replace(who, novelty=one) for who, one in zip(found, told, strict=True)]

    def cluster(
        self, where: Filter = (), base_rate: float | None = None, calibrated: LogOdds | None = None
    ) -> Clusters:
        """Which images show one identity, whatever their labels, with probabilities.

        Args:
            where: Only among stored images with these values.
            base_rate: The share of pairs that show one identity; None: as the images themselves make likeliest.
            calibrated: From the model's log-odds of a match to calibrated ones, such as `decider.calibrator.log_odds`.
        """
        return read_clusters(self._store, where, base_rate, calibrated)

    def audit(self, where: Filter = (), wrong_share: float = WRONG_SHARE, calibrated: LogOdds | None = None) -> Audit:
        """Images whose label is likely wrong, near-duplicates under two names, labels of two identities, poor images.

        Args:
            where: Only among stored images with these values.
            wrong_share: The share of labels that are wrong, as far as is known before.
            calibrated: From the model's log-odds of a match to calibrated ones, such as `decider.calibrator.log_odds`.
        """
        return read_audit(self._store, where, wrong_share, calibrated)

    def close(self) -> None:
        """Save the index, where it can be saved, and let go of the store."""
        if self._index is not None:
            self._index.keep()
        self._store.close()

    def _embedded(self, images: Any) -> tuple[Distribution, list[float]]:
        """Embeddings, and how novel their images are: nothing, if that is not known."""
        if isinstance(images, Distribution):
            return images, []
        z, novelty = self._embedder.embed_with_novelty(images)
        return z, [] if novelty is None else novelty.tolist()

    def _numbers(self, number: int) -> list[str]:
        """Ids that count on from the key of the last image: keys are never used again."""
        keys = self._store.keys()
        first = int(keys[-1]) + 1 if len(keys) else 1
        return [str(i) for i in range(first, first + number)]


def _paths(images: Any, number: int) -> list[str] | None:
    """The paths of images as text, if each image is given by one."""
    given = [images] if isinstance(images, str | Path) else images
    if not isinstance(given, list | tuple) or len(given) != number:
        return None
    if not all(isinstance(one, str | Path) for one in given):
        return None
    return [path_text(path) for path in given]

"""A gallery in three lines: images in, matches and identities out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from hedged import Architecture, Embedder, Gallery
from hedged.errors import DataError, ShapeError, StoreError
from hedged.search import Header, Identifier, Identities, MixtureFusion, Plan, Rows, SqliteStore, Where


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder.new(Architecture(dim=2, shape=(1, 28, 56)), seed=0)


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    return torch.rand(20, 1, 28, 56, generator=torch.Generator().manual_seed(0))


def labels(count: int) -> list[str]:
    return [f"dog {i % 4}" for i in range(count)]


def test_it_is_a_store_an_index_and_an_identifier(embedder: Embedder, images: torch.Tensor, tmp_path: Path) -> None:
    gallery = Gallery.create(tmp_path / "dogs.db", embedder)
    ids = gallery.add(images, labels=labels(20), metadata=[{"year": 2000 + i} for i in range(20)])
    assert ids == [str(i) for i in range(1, 21)]
    z, probes = embedder.embed(images), embedder.embed(images[:3])
    with SqliteStore.create(tmp_path / "by_hand.db", Header.of(embedder)) as store:
        metadata = [{"year": 2000 + i} for i in range(20)]
        store.add(Rows(ids, z, embedder.fingerprint(), labels(20), metadata))
        assert gallery.search(images[:3], k=5) == store.index().search(probes, 5)
        assert gallery.search(z, k=5) == store.index().search(z, 5)
        where = [Where("year", "2004")]
        assert [hits[0].id for hits in gallery.search(images[:2], where=where)] == ["5", "5"]
        by_hand = Identifier(Identities.read(store), MixtureFusion(), 0.3)
        assert gallery.identify(images[:3], fusion=MixtureFusion(), none_prior=0.3) == by_hand.identify(probes)
    gallery.close()
    assert (tmp_path / "dogs.db.index").exists()


def test_ids_are_paths_or_count_on(embedder: Embedder, images: torch.Tensor, tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.png" for i in range(3)]
    for path, image in zip(paths, images, strict=False):
        Image.fromarray((255 * image[0].numpy()).astype(np.uint8)).save(path)
    with Gallery.create(str(tmp_path / "dogs.db"), embedder) as gallery:
        assert gallery.add(paths) == [str(path) for path in paths]
        assert gallery.add(images[:2]) == ["4", "5"]
        assert gallery.add(str(paths[0]), ids=["again"], labels=[None]) == ["again"]
        assert gallery.add(image for image in images[:1]) == ["7"]
        assert len(gallery) == 7
        with pytest.raises(DataError, match="already"):
            gallery.add(paths[0])
        assert gallery.add(paths[0], labels=["Rex"], replace=True) == [str(paths[0])]
        assert gallery.remove(["again", "nobody"]) == 1
        assert gallery.store.count([Where("label", "Rex")]) == 1


def test_it_opens_again_with_its_own_model_only(embedder: Embedder, images: torch.Tensor, tmp_path: Path) -> None:
    with Gallery.create(tmp_path / "dogs.db", embedder, Plan("hnsw")) as gallery:
        gallery.add(images, labels=labels(20))
        found = gallery.search(images[:2], k=3)
    with Gallery.open(tmp_path / "dogs.db", embedder) as gallery:
        assert gallery.search(images[:2], k=3) == found
        assert gallery.embedder is embedder
    other = Embedder.new(Architecture(dim=2, shape=(1, 28, 56)), seed=1)
    with pytest.raises(DataError, match="two models cannot be compared"):
        Gallery.open(tmp_path / "dogs.db", other)
    with pytest.raises(StoreError, match="exists already"):
        Gallery.create(tmp_path / "dogs.db", embedder)
    with pytest.raises(StoreError, match="there is no store"):
        Gallery.open(tmp_path / "cats.db", embedder)


def test_what_does_not_fit_is_refused(embedder: Embedder, images: torch.Tensor, tmp_path: Path) -> None:
    with Gallery.create(tmp_path / "dogs.db", embedder) as gallery:
        with pytest.raises(ShapeError, match="got 1 labels for 3 images"):
            gallery.add(images[:3], labels=["Rex"])
        with pytest.raises(ShapeError, match="got 2 ids for"):
            gallery.add(images[:3], ids=["a", "b"])
        words: list[Any] = ["rex", b"rex", {"rex"}, {"rex": 1}, 3, np.array("rex")]
        for word in words:
            for name in ("labels", "ids", "metadata"):
                with pytest.raises(DataError, match=f"{name} are a list, .* got .*: for one .*{name}="):
                    gallery.add(images[:3], **{name: word})
        lists: list[Any] = [[["a"], ["b", "c"], "d"], [b"a", b"b", b"c"], [1, 2, 3], torch.arange(3), np.zeros((3, 2))]
        for uneven in lists:
            with pytest.raises(DataError, match="the label of a row must be text"):
                gallery.add(images[:3], labels=uneven)
        with pytest.raises(DataError, match=r"must be values by key, such as .*, got 'a'"):
            gallery.add(images[:3], metadata=list("abc"))  # type: ignore[arg-type]
        with pytest.raises(DataError, match="ids are a list"):
            gallery.remove("rex")
        with pytest.raises(DataError, match="nobody to identify"):
            gallery.identify(images[:1])
        assert len(gallery) == 0
        gallery.add(images[:3], labels=np.array(["r", "e", "x"]), ids=iter("rex"))
        assert gallery.store.count([Where("label", "e"), Where("id", "e")]) == 1

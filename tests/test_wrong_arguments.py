"""What a slip of the hand passes in Python is refused in words, not by an error from deep inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hedged import Gaussian, HedgedLoss, MatchCurve, Point
from hedged.data import read_pairs
from hedged.errors import HedgedError
from hedged.models import Embedder
from hedged.models.config import Architecture
from hedged.retrofit import Retrofit
from hedged.search import Gallery

OBJECTS = np.array([None, "a", 3.0], dtype=object)


@pytest.fixture(scope="module")
def of_vectors() -> Embedder:
    return Embedder.new(Architecture(backbone="vectors", head="gaussian", shape=(3,), dim=2), seed=0).eval()


@pytest.fixture
def gallery(of_vectors: Embedder, tmp_path: Path) -> Gallery:
    gallery = Gallery.create(tmp_path / "a.db", of_vectors)
    gallery.add(np.eye(3, dtype=np.float32), labels=["a", "b", "c"])
    return gallery


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda g, x: g.search(x, k=1.5), "integers, at least 1, got k=1.5"),
        (lambda g, x: g.search(x, candidates=2.5), "candidates=2.5"),
        (lambda g, x: g.search(None), "takes vectors, .* got NoneType"),
        (lambda g, x: g.search(OBJECTS), "takes vectors, .* got ndarray"),
        (lambda g, x: g.search(x + 1j), "got complex ones"),
        (lambda g, x: g.add(b"abc"), "takes vectors"),
        (lambda g, x: g.search(x, where="label=a"), r"a filter is a list, .* got the text 'label=a'"),
        (lambda g, x: g.identify(x, where="label=a"), "a filter is a list"),
    ],
)
def test_a_gallery(gallery: Gallery, use: Callable[[Gallery, Any], object], words: str) -> None:
    with gallery, pytest.raises(HedgedError, match=words):
        use(gallery, np.eye(3, dtype=np.float32))


def test_a_gallery_without_a_name(of_vectors: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (Gallery.create, Gallery.open):
        with pytest.raises(HedgedError, match="named by the path of a file or an address, got None"):
            use(None, of_vectors)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_an_array_of_objects_is_no_image() -> None:
    with pytest.raises(HedgedError, match="pixels are numbers, got an array of object"):
        Embedder.load("hedged:ndigit-2d").embed(np.full((28, 56), None))


def test_a_head() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 4)), np.repeat(np.arange(5), 4)
    with pytest.raises(HedgedError, match=r"an integer from 0 up as seed, got seed=-1"):
        Retrofit(seed=-1).fit(X, y)
    with pytest.raises(HedgedError, match="its numbers are complex"):
        Retrofit().fit(X + 1j, y)
    with pytest.raises(HedgedError, match="from the path of a folder, got None"):
        Retrofit.load(None)  # type: ignore[arg-type]


def test_bfloat16_becomes_what_numpy_has() -> None:
    mean, variance = Gaussian(torch.zeros(3, 2), torch.ones(3, 2)).to(torch.bfloat16).numpy()
    assert [str(numbers.dtype) for numbers in (mean, variance)] == ["float32", "float32"]


def test_an_empty_batch_has_no_loss() -> None:
    with pytest.raises(HedgedError, match="one embedding or more, got none"):
        HedgedLoss(MatchCurve())(Point(torch.zeros(0, 2)), torch.zeros(0, dtype=torch.long))


def test_what_is_no_file_is_no_list_of_pairs() -> None:
    with pytest.raises(HedgedError, match="/dev/null is no file"):
        read_pairs("/dev/null")

"""Another default dtype of torch changes no model: what is loaded, fitted and trained is what it is without."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny import tiny_config

from hedged.models import Embedder
from hedged.retrofit import Retrofit
from hedged.training import train

IMAGES = np.random.default_rng(0).integers(0, 255, (3, 28, 56)).astype(np.uint8)


def vectors() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator, y = np.random.default_rng(0), np.repeat(np.arange(40), 5)
    return generator.normal(size=(40, 16))[y] + 0.5 * generator.normal(size=(200, 16)), y


def fitted() -> Retrofit:
    return Retrofit(steps=5).fit(*vectors())


def trained(folder: Path) -> Embedder:
    return train(tiny_config(train={"steps": 2, "warmup": 1}), None, folder)


@cache
def usual(what: str) -> str:
    """The fingerprint of what is made while the default is single precision."""
    if what == "load":
        return Embedder.load("hedged:ndigit-2d").fingerprint()
    if what == "fit":
        return fitted().embedder_.fingerprint()
    with TemporaryDirectory() as folder:
        return trained(Path(folder)).fingerprint()


@pytest.fixture(params=[torch.float16, torch.bfloat16, torch.float64], ids=str)
def dtype(request: pytest.FixtureRequest) -> Iterator[torch.dtype]:
    for what in ("load", "fit", "train"):
        usual(what)
    torch.set_default_dtype(request.param)
    try:
        yield request.param
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_model_is_loaded_as_it_was_saved(dtype: torch.dtype, tmp_path: Path) -> None:
    embedder = Embedder.load("hedged:ndigit-2d")
    assert embedder.fingerprint() == usual("load")
    assert {weight.dtype for weight in embedder.parameters()} == {torch.float32}
    z = embedder.embed(IMAGES)
    assert embedder.match(z, z).shape == (3,)
    embedder.save(tmp_path)
    assert torch.get_default_dtype() == dtype
    torch.set_default_dtype(torch.float32)
    again = Embedder.load(tmp_path)
    assert again.fingerprint() == usual("load")
    assert torch.equal(again.embed(IMAGES).parts()[0], z.parts()[0])


def test_a_head_is_fitted_as_ever(dtype: torch.dtype, tmp_path: Path) -> None:
    head = fitted()
    assert head.embedder_.fingerprint() == usual("fit")
    X, y = vectors()
    found = answers(head)
    assert head.score(X, y) > 0.8
    head.save(tmp_path)
    assert np.allclose(answers(Retrofit.load(tmp_path)), found, rtol=1e-5)
    assert torch.get_default_dtype() == dtype
    torch.set_default_dtype(torch.float32)
    assert np.allclose(answers(Retrofit.load(tmp_path)), found, rtol=1e-5)


def answers(head: Retrofit) -> NDArray[np.float64]:
    X, _ = vectors()
    found = head.match_proba(X[:2], X[:3]), head.uncertainty(X[:3]), head.novelty(X[:3]), head.transform(X[:3])
    return np.concatenate([one.ravel() for one in found])


def test_a_model_is_trained_as_ever(dtype: torch.dtype, tmp_path: Path) -> None:
    assert trained(tmp_path).fingerprint() == usual("train")
    assert torch.get_default_dtype() == dtype

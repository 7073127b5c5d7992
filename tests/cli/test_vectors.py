"""Vectors on the command line: rows are embedded and matched; and files that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli.commands import Hedged, arrays_of, check_refused, snapshot
from vectors import SIZE, made_up, write_vectors

from hedged.models import Architecture, Embedder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with vectors and, in `run`, a model of such vectors."""
    folder = tmp_path_factory.mktemp("vectors")
    write_vectors(folder)
    Embedder.new(Architecture(backbone="vectors", dim=4, shape=(SIZE,)), seed=0, scale=1.0).save(folder / "run")
    np.save(folder / "bare.npy", made_up()[0])
    return folder


def test_embed_rows(hedged: Hedged, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npz"
    result = hedged("embed", folder / "run", folder / "bare.npy", f"{folder / 'vectors.npz'}:7", "--out", out)
    assert result.code == 0, result.err
    assert "embedded 241 vectors" in result.out
    found, z = arrays_of(out), Embedder.load(folder / "run").embed(made_up()[0])
    np.testing.assert_allclose(found["means"][:240], z.mean.numpy(), atol=1e-6)
    np.testing.assert_allclose(found["means"][240], z.mean.numpy()[7], atol=1e-6)
    assert found["ids"][0] == f"{folder / 'bare.npy'}:0"
    assert found["ids"][-1] == f"{folder / 'vectors.npz'}:7"


def test_embed_keeps_the_ids_of_a_file(hedged: Hedged, folder: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "named.npz", features=made_up()[0][:2], ids=["first", "second"])
    result = hedged("embed", folder / "run", tmp_path / "named.npz", "--out", tmp_path / "out.npz", "--json")
    assert json.loads(result.out)["vectors"] == 2
    assert arrays_of(tmp_path / "out.npz")["ids"].tolist() == ["first", "second"]


def test_match_rows_and_files_of_one(hedged: Hedged, folder: Path, tmp_path: Path) -> None:
    vectors = made_up()[0]
    for i in (0, 1, 100):
        np.save(tmp_path / f"{i}.npy", vectors[i])

    def probability(*names: object) -> float:
        result = hedged("match", folder / "run", *names, "--json")
        assert result.code == 0, result.err
        return float(json.loads(result.out)["match_probability"])

    same = probability(tmp_path / "0.npy", tmp_path / "1.npy")
    assert same == pytest.approx(probability(f"{folder / 'bare.npy'}:0", f"{folder / 'vectors.npz'}:1"))
    assert same > probability(tmp_path / "0.npy", tmp_path / "100.npy")


def test_files_that_cannot_be_used(hedged: Hedged, folder: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "short.npy", np.zeros((2, SIZE - 1)))
    (tmp_path / "photo.jpg").write_bytes(b"")
    (tmp_path / "damaged.npz").write_bytes(b"PK")
    bare = folder / "bare.npy"
    cases: dict[object, list[str]] = {
        tmp_path / "short.npy": ["short.npy", "11 numbers", "takes 12"],
        tmp_path / "photo.jpg": ["photo.jpg", ".npy, .npz or .parquet"],
        tmp_path / "damaged.npz": ["damaged.npz", "cannot be read"],
        tmp_path / "missing.npy": ["there is no file", "missing.npy"],
        f"{bare}:240": ["rows 0 to 239", "no row 240"],
    }
    before = snapshot(tmp_path)
    for given, words in cases.items():
        check_refused(hedged("match", folder / "run", f"{bare}:0", given), *words)
        check_refused(hedged("embed", folder / "run", given, "--out", tmp_path / "out.npz"), *words)
    check_refused(hedged("match", folder / "run", bare, f"{bare}:0"), "240 vectors", f"{bare}:0")
    assert snapshot(tmp_path) == before

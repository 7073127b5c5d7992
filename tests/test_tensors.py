"""Weights and checkpoints: a flipped bit is noticed, wherever it is; files without a checksum are still read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from hedged import Architecture, Embedder
from hedged._tensors import load_tensors, save_tensors
from hedged.errors import RunError
from hedged.training.checkpoint import Checkpoint, read_checkpoint, save_checkpoint

TENSORS = {
    "weight": torch.arange(60, dtype=torch.float32).reshape(12, 5),
    "half": torch.ones(7, dtype=torch.bfloat16),
    "step": torch.tensor(3),
    "none": torch.zeros(0, 4),
    "flags": torch.tensor([True, False]),
}


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    save_tensors(tmp_path / "a", TENSORS, {"format": "1"})
    tensors, metadata = load_tensors(tmp_path / "a")
    assert metadata == {"format": "1"}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.heavy)])
def test_a_flipped_bit_is_noticed(tmp_path: Path, step: int) -> None:
    """Wherever it is in the file, unless the flip changes nothing of what is read."""
    path = tmp_path / "a"
    save_tensors(path, TENSORS, {"format": "1"})
    whole, unnoticed = path.read_bytes(), 0
    for bit in range(0, 8 * len(whole), step):
        path.write_bytes(flipped(whole, bit))
        try:
            tensors, metadata = load_tensors(path)
        except (OSError, ValueError, SafetensorError):
            continue
        unnoticed += 1
        assert tensors.keys() == TENSORS.keys()
        assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)
        assert metadata == {"format": "1"} or "checksum" not in metadata
    assert unnoticed * step < 0.02 * 8 * len(whole)  # the name of the checksum itself, and spaces


def test_files_that_were_written_before_there_were_checksums(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "a", {"format": "1"})
    assert load_tensors(tmp_path / "a").metadata == {"format": "1"}


@pytest.mark.parametrize("seed", range(5))
def test_damaged_weights_are_refused(tmp_path: Path, seed: int) -> None:
    embedder = Embedder.new(Architecture(dim=2, shape=(1, 28, 56)), seed=0)
    embedder.save(tmp_path)
    assert Embedder.load(tmp_path).fingerprint() == embedder.fingerprint()
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, int(np.random.default_rng(seed).integers(4 * len(whole), 8 * len(whole)))))
    with pytest.raises(RunError, match=r"damaged or truncated \(its numbers are not those that were written\)"):
        Embedder.load(tmp_path)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    save_checkpoint(path, Checkpoint(7, "digest", TENSORS))
    whole = path.read_bytes()
    for change in (flipped(whole, 8 * len(whole) - 100), whole.replace(b'"step":"7"', b'"step":"3"')):
        path.write_bytes(change)
        with pytest.raises(RunError, match="damaged or truncated"):
            read_checkpoint(path)


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    words = {f"word {k}": 'with ünusual "letters"\\ \n' for k in range(8)}
    tensors = {"b": torch.arange(3.0), "a": torch.zeros(2, 2, dtype=torch.int64)}
    contents = set()
    for k in range(4):
        save_tensors(tmp_path / f"{k}", tensors, dict(reversed(words.items())) if k % 2 else words)
        contents.add((tmp_path / f"{k}").read_bytes())
    assert len(contents) == 1
    found = load_tensors(tmp_path / "0")
    assert found.metadata == words
    assert all(torch.equal(found.tensors[name], tensors[name]) for name in tensors)

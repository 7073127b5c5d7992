"""Data that is missing, damaged or of another kind."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from cli.commands import Hedged, arrays_of, check_refused, snapshot
from PIL import Image

from hedged.data.ndigit.fetch import SHA256
from hedged.data.ndigit.mnist import default_cache

pytestmark = pytest.mark.usefixtures("within_limits")


def damaged_mnist(folder: Path) -> Path:
    """MNIST with one byte of the training labels changed; made up where there is no MNIST at hand."""
    folder.mkdir(parents=True)
    for name in SHA256:
        real = default_cache() / name
        if real.exists():
            shutil.copy(real, folder / name)
        else:
            (folder / name).write_bytes(bytes(100))
    labels = folder / "train-labels-idx1-ubyte"
    content = bytearray(labels.read_bytes())
    content[50] ^= 1
    labels.write_bytes(content)
    return labels


@pytest.mark.parametrize("verb", ["train", "data"])
def test_mnist_with_one_byte_changed(
    hedged: Hedged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    damaged = damaged_mnist(tmp_path / "cache" / "mnist")
    monkeypatch.setenv("HEDGED_CACHE", str(tmp_path / "cache"))
    before = snapshot(tmp_path / "cache")
    commands: dict[str, list[object]] = {
        "train": ["train", "demo", "--out", tmp_path / "run"],
        "data": ["data", "ndigit"],
    }
    words = [damaged.name] if damaged.stat().st_size > 1000 else []  # made up, all four files are damaged
    check_refused(hedged(*commands[verb]), "is not the MNIST file", "SHA-256", "expected", "Delete it", *words)
    assert snapshot(tmp_path / "cache") == before
    assert not list(tmp_path.glob("run/*"))


@pytest.mark.parametrize("verb", ["match", "embed"])
def test_images_that_cannot_be_used(
    hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path, verb: str
) -> None:
    small, broken, text, folder = (images[0].parent / name for name in ("s.png", "b.png", "t.png", "empty"))
    Image.new("L", (20, 10)).save(small)
    broken.write_bytes(images[0].read_bytes()[:200])
    text.write_text("not an image")
    folder.mkdir()
    cases = {
        small: ["(10, 20)", "28×56", "resize"],
        broken: ["cannot be read as an image", "convert"],
        text: ["cannot be read as an image", "convert"],
        folder / "missing.png": ["there is no image", "check the path"],
    }
    out = ["--out", tmp_path / "embedded.npz"] if verb == "embed" else []
    before = snapshot(tmp_path)
    for image, words in cases.items():
        check_refused(hedged(verb, finished_run, images[0], image, *out), str(image), *words)
    if verb == "embed":
        check_refused(hedged("embed", finished_run, folder, *out), str(folder), "holds no image")
    assert snapshot(tmp_path) == before


def test_embed_never_overwrites_unless_told(
    hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "embedded.npz"
    out.write_text("precious")
    check_refused(hedged("embed", finished_run, *images, "--out", out), str(out), "exists already", "--force")
    assert out.read_text() == "precious"
    assert hedged("embed", finished_run, *images, "--out", out, "--force").code == 0
    assert len(arrays_of(out)["ids"]) == 3


def test_embed_into_a_file_of_no_known_kind(hedged: Hedged, finished_run: Path, images: list[Path]) -> None:
    check_refused(hedged("embed", finished_run, *images, "--out", "embedded.csv"), "embedded.csv", ".npz or .parquet")


def test_parquet_without_pyarrow(
    hedged: Hedged, finished_run: Path, images: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = hedged("embed", finished_run, *images, "--out", tmp_path / "embedded.parquet")
    check_refused(result, "embedded.parquet", "pyarrow", "pip install 'hedged[parquet]'")


def test_index_files_that_are_none(hedged: Hedged, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.npz"
    wrong.write_text("not an archive")
    check_refused(hedged("data", "ndigit", "--offline", "--index", wrong), str(wrong), "is no index file")
    check_refused(hedged("data", "ndigit", "--offline", "--index", tmp_path / "missing.npz"), "missing.npz")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--digits", "0"], "n_digits must be from 1"),
        (["--holdout", "1.5"], "holdout must be a share"),
        (["--seed", "-1"], "seed must be"),
        (["--part", "seen"], "choose --part from train, instance"),
        (["--out", "index.csv"], ".npz"),
        (["--preview", "sheet.jpg"], ".png"),
        (["--out", "index.npz", "--holdout", "0.1"], "without --holdout"),
        (["--split", "number", "--part", "all", "--out", "index.npz"], "--part seen"),
    ],
)
def test_data_sets_that_cannot_be(
    hedged: Hedged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refused(hedged("data", "ndigit", "--offline", *arguments), words)
    assert not snapshot(tmp_path)

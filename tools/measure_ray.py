"""Embedding on Ray: every row once although a worker and a node are killed; and how fast it is beside plain processes.

    python -m tools.measure_ray kills dogfacenet-112.tar
    OMP_NUM_THREADS=1 python -m tools.measure_ray speed dogfacenet-112.tar

Photos of a tar, repeated to `--count` of them, by an untrained MobileNet of width 0.25 at 112 pixels. `kills` starts
three nodes on this machine, with one core each. `speed` compares `--ray local` with as many processes of one thread
that share the same pieces without Ray, and with one process of as many threads; each rate is that between the first
shards and the last ones, so that no start counts. Ray makes its workers yield to other programs (a niceness of 15);
here they do not, as the processes beside them do not, or whatever else runs would be counted as time of Ray's.
"""

from __future__ import annotations

import argparse
import io
import itertools
import multiprocessing
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import torch
from ray.cluster_utils import Cluster

from hedged._parallel import cores
from hedged.data.tables import read_parquet
from hedged.models import Architecture, Embedder
from hedged.models.bulk import Manifest, embed_on_ray
from hedged.models.bulk.pieces import Piece, pieces_of
from hedged.models.bulk.shards import embed_piece

SIDE = 112
SHARD_SIZE = 200
ENDS = 4  # shards at either end that are not counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kills", "speed"))
    parser.add_argument("tar", type=Path)
    parser.add_argument("--count", type=int, default=20_000, help="photos")
    parser.add_argument("--rounds", type=int, default=2, help="of speed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        photos = repeated(given.tar, given.count, Path(folder) / "photos.tar")
        if given.what == "kills":
            kills(photos, Path(folder))
        else:
            speed(photos, Path(folder), given.rounds)


def repeated(tar: Path, count: int, out: Path) -> Path:
    """A tar of as many photos, those of another again and again, each under a name of its own."""
    with tarfile.open(tar) as source, tarfile.open(out, "w") as target:
        photos = [(one.name, source.extractfile(one)) for one in source if one.isreg()]
        contents = [(name, file.read()) for name, file in photos if file]
        for i, (name, content) in enumerate(itertools.islice(itertools.cycle(contents), count)):
            member = tarfile.TarInfo(f"{i // len(contents)}/{name}")
            member.size = len(content)
            target.addfile(member, io.BytesIO(content))
    return out


def embedder() -> Embedder:
    return Embedder.new(Architecture(backbone="mobilenet", dim=20, shape=(3, SIDE, SIDE), resize=SIDE), seed=0).eval()


def kills(photos: Path, folder: Path) -> None:
    embedder().save(folder / "run")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second, third = (cluster.add_node(num_cpus=1) for _ in range(2))
    command = [str(Path(sys.executable).parent / "hedged"), "embed", str(folder / "run"), str(photos)]
    options = ["--ray", cluster.address, "--shard-size", str(SHARD_SIZE), "--out", str(folder / "out")]
    begun = time.monotonic()
    try:
        driver = subprocess.Popen([*command, *options])
        wait_for(folder / "out", 1 / 4)
        [worker] = workers_of(second.all_processes["raylet"][0].process.pid)
        subprocess.run(["kill", "-9", str(worker)], check=True)
        print(f"killed the worker {worker} of the second node", flush=True)
        wait_for(folder / "out", 1 / 2)
        cluster.remove_node(third, allow_graceful=False)
        print("killed the third node", flush=True)
        code = driver.wait()
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]
    if code:
        sys.exit(f"the driver ended with {code}")
    check(photos, folder / "out")
    print(f"in {time.monotonic() - begun:.0f} s")


def wait_for(out: Path, share: float) -> None:
    """Until so much of the work is done."""
    while not (out / "manifest.json").exists() or len((found := Manifest.read(out)).shards) < share * found.pieces:
        time.sleep(0.2)


def workers_of(raylet: int) -> list[int]:
    """The processes of a node that embed."""
    found = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(raylet)], capture_output=True, text=True, check=True
    )
    lines = [line.split(maxsplit=1) for line in found.stdout.splitlines()]
    return [int(pid) for pid, name in lines if name.startswith("ray::embed_piece")]


def check(photos: Path, out: Path) -> None:
    """Every photo is there once, in order."""
    with tarfile.open(photos) as tar:
        wanted = [f"{photos}/{name}" for name in tar.getnames()]
    files = Manifest.read(out).files()
    found = [name for file in files for name in read_parquet(file, "", columns=("ids",))["ids"].to_pylist()]
    print(f"{len(found):,} rows in {len(files)} shards, {len(set(found)):,} different, {len(wanted):,} photos")
    if found != wanted:
        sys.exit("the rows are not the photos")


def speed(photos: Path, folder: Path, rounds: int) -> None:
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  (its name in Ray)
    model, count = embedder(), cores()
    pieces = pieces_of([photos], model.shape, SHARD_SIZE)
    for i in range(rounds):
        embed_on_ray(model, [photos], folder / f"ray-{i}", shard_size=SHARD_SIZE)
        ray = rate(folder / f"ray-{i}")
        apart = rate(plain(model, pieces, folder / f"apart-{i}", processes=count, threads=1))
        alone = rate(plain(model, pieces, folder / f"alone-{i}", processes=1, threads=count))
        print(
            f"images a second: {ray:.1f} on Ray, {apart:.1f} by {count} processes, {alone:.1f} by one of {count} "
            f"threads; on Ray {ray / max(apart, alone):.3f} of the better",
            flush=True,
        )


def plain(model: Embedder, pieces: list[Piece], out: Path, processes: int, threads: int) -> Path:
    """The same shards by processes without Ray."""
    out.mkdir()
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, torch.set_num_threads, (threads,)) as pool:
        given = [(model, "0" * 16, piece, Path.cwd(), out / f"shard-{i:06}.parquet") for i, piece in enumerate(pieces)]
        pool.starmap(embed_piece, given, chunksize=1)
    return out


def rate(out: Path) -> float:
    """Rows a second, by the moments at which shards were written."""
    moments = sorted(file.stat().st_mtime for file in out.glob("*.parquet"))[ENDS:-ENDS]
    return SHARD_SIZE * (len(moments) - 1) / (moments[-1] - moments[0])


if __name__ == "__main__":
    main()

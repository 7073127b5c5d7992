"""`hedged embed --ray`: every row once, whatever is killed; what cannot be done is said before work starts."""

from __future__ import annotations

import io
import json
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import ray
from cli.commands import Hedged, check_refused, snapshot, start
from PIL import Image
from pyarrow import parquet
from ray.cluster_utils import Cluster

from hedged import Embedder
from hedged.models.bulk import embed_on_ray
from hedged.search import open_store

MODEL = "hedged:ndigit-2d"
IMAGES, MANY, PER_SHARD = 12, 6_000, 25


def png(seed: int) -> bytes:
    content = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (28, 56), dtype=np.uint8)
    Image.fromarray(pixels).save(content, "PNG")
    return content.getvalue()


def write_table(path: Path, rows: int) -> Path:
    """A table of images, some of them the same."""
    contents = [png(i) for i in range(10)]
    table = pa.table({"id": [f"row-{i}" for i in range(rows)], "image": [contents[i % 10] for i in range(rows)]})
    parquet.write_table(table, path)
    return path


def ids_of(folder: Path) -> list[str]:
    return [name for file in sorted(folder.glob("*.parquet")) for name in parquet.read_table(file)["ids"].to_pylist()]


def finished(folder: Path) -> int:
    """How many shards the manifest names."""
    path = folder / "manifest.json"
    return len(json.loads(path.read_text())["shards"]) if path.exists() else 0


def wait_until(condition: Callable[[], object], seconds: float = 300.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.02)


def workers_of(node: Any) -> list[int]:
    """The processes of a node that work on shards."""
    raylet = node.all_processes["raylet"][0].process.pid
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "cmdline").read_bytes()
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
        if parent == raylet and name.startswith(b"ray::embed_piece"):
            found.append(int(process.name))
    return found


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster of one node with two cores."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    yield made
    made.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for i in range(IMAGES):
        (folder / f"{i:02}.png").write_bytes(png(i))
    return folder


@pytest.fixture(scope="module")
def shards(cluster: Cluster, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished job, for tests that do not change it."""
    out = tmp_path_factory.mktemp("shards") / "out"
    process = start("embed", MODEL, photos, "--ray", cluster.address, "--shard-size", 5, "--out", out, "--json")
    text, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors
    assert json.loads(text) == {"out": str(out), "images": IMAGES, "shards": 3, "broken": []}
    return out


@pytest.fixture
def many(tmp_path: Path) -> Path:
    return write_table(tmp_path / "many.parquet", MANY)


def test_rows_are_those_of_one_process(hedged: Hedged, shards: Path, photos: Path, tmp_path: Path) -> None:
    assert hedged("embed", MODEL, photos, "--out", tmp_path / "all.parquet").code == 0
    whole = parquet.read_table(tmp_path / "all.parquet")
    parts = pa.concat_tables([parquet.read_table(file) for file in sorted(shards.glob("*.parquet"))])
    assert parts["ids"] == whole["ids"]
    for name in ("means", "variances", "uncertainty"):
        found, wanted = (np.array(table[name].to_pylist()) for table in (parts, whole))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
    assert {path.name for path in shards.iterdir()} == {"manifest.json", *(f"shard-00000{i}.parquet" for i in range(3))}


def test_what_is_finished_is_not_done_again(hedged: Hedged, shards: Path, photos: Path) -> None:
    before = snapshot(shards)
    command = ("embed", MODEL, photos, "--ray", "localhost:1", "--out", shards, "--shard-size")
    assert f"embedded {IMAGES} images into {shards}: 3 shards" in hedged(*command, 5).out
    check_refused(hedged(*command, 6), "in shards of 5, not of 6")
    check_refused(hedged("embed", MODEL, photos / "00.png", *command[3:], 5), "of 12 inputs, not of 1")
    assert snapshot(shards) == before


def test_another_model_is_refused(
    hedged: Hedged, finished_run: Path, shards: Path, photos: Path, tmp_path: Path
) -> None:
    command = (finished_run, photos, "--ray", "localhost:1", "--out", shards, "--shard-size", 5)
    check_refused(hedged("embed", *command), "holds shards by the model")
    check_refused(hedged("index", "build", finished_run, tmp_path / "new.db", shards), "was embedded by the model")
    assert list(tmp_path.glob("new.db*")) == []


@pytest.mark.parametrize("options", [(), ("--folder-labels",)])
@pytest.mark.parametrize("scheme", ["", "lance://"])
def test_a_store_of_shards_is_that_of_their_inputs(
    hedged: Hedged, shards: Path, photos: Path, tmp_path: Path, scheme: str, options: tuple[str, ...]
) -> None:
    of_photos, of_shards = str(tmp_path / "a.db"), f"{scheme}{tmp_path}/b.db"
    for name, given in ((of_photos, photos), (of_shards, shards)):
        assert f"stored {IMAGES} embeddings" in hedged("index", "build", MODEL, name, given, *options).out
    with open_store(of_photos) as a, open_store(of_shards) as b:
        (left,) = a.batches()
        parts = list(b.batches())  # one for each shard, or all at once
        assert [row for part in parts for row in part.described] == left.described
        np.testing.assert_allclose(np.concatenate([p.packed for p in parts]), left.packed, rtol=1e-4, atol=1e-6)
        assert a.header == b.header
    added = hedged("index", "add", MODEL, of_shards, shards, "--skip-existing", "--json")
    assert json.loads(added.out)["existing"] == IMAGES


def test_shards_that_lack_something_make_no_store(hedged: Hedged, shards: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(shards, tmp_path / "broken")
    command = ("index", "build", MODEL, tmp_path / "new.db")
    check_refused(hedged(*command, broken, shards), "is given alone")
    (broken / "shard-000001.parquet").write_bytes(b"damaged")
    check_refused(hedged(*command, broken), "shard-000001.parquet is not what was written")
    content = json.loads((broken / "manifest.json").read_text())
    del content["shards"]["1"]
    (broken / "manifest.json").write_text(json.dumps(content))
    check_refused(hedged(*command, broken), "lacks 1 of its 3 shards")
    assert list(tmp_path.glob("new.db*")) == []


@pytest.mark.heavy
def test_broken_inputs_are_named_and_made_again_when_repaired(
    hedged: Hedged, cluster: Cluster, photos: Path, tmp_path: Path, installed: Hedged
) -> None:
    folder, out = shutil.copytree(photos, tmp_path / "photos"), tmp_path / "out"
    (folder / "03.png").write_bytes(b"no image")
    (folder / "07.png").write_bytes(b"")
    command = ("embed", MODEL, folder, "--ray", cluster.address, "--shard-size", 5, "--out", out)
    check_refused(installed(*command), "2 of 12 files cannot be embedded", "03.png", "07.png", "the others are in")
    assert len(ids_of(out)) == IMAGES - 2
    accepted = hedged(*command, "--skip-broken", "--json")
    assert (accepted.code, json.loads(accepted.out)["images"]) == (0, IMAGES - 2)
    for name in ("03.png", "07.png"):
        shutil.copy(photos / name, folder / name)
    kept = (out / "shard-000002.parquet").stat().st_mtime_ns
    assert installed(*command).code == 0
    assert ids_of(out) == [str(folder / f"{i:02}.png") for i in range(IMAGES)]
    assert (out / "shard-000002.parquet").stat().st_mtime_ns == kept


def test_the_driver_is_killed(cluster: Cluster, installed: Hedged, many: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("embed", MODEL, many, "--ray", cluster.address, "--shard-size", PER_SHARD, "--out", out)
    driver = start(*command)
    wait_until(lambda: finished(out) > 1)
    driver.kill()
    driver.communicate()
    assert 0 < finished(out) < MANY // PER_SHARD
    before = {path: path.stat().st_mtime_ns for path in map(out.joinpath, shard_files(out))}
    assert installed(*command).code == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert ids_of(out) == [f"row-{i}" for i in range(MANY)]
    assert not (out / ".unfinished").exists()


def shard_files(folder: Path) -> list[str]:
    return [shard["file"] for shard in json.loads((folder / "manifest.json").read_text())["shards"].values()]


def test_ctrl_c_keeps_what_is_finished(cluster: Cluster, many: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    driver = start("embed", MODEL, many, "--ray", cluster.address, "--shard-size", PER_SHARD, "--out", out)
    wait_until(lambda: finished(out) > 1)
    driver.send_signal(signal.SIGINT)
    _, errors = driver.communicate(timeout=60)
    assert (driver.returncode, "the same command continues" in errors, "Traceback" in errors) == (2, True, False)
    assert 0 < finished(out) < MANY // PER_SHARD


@pytest.mark.heavy
def test_two_drivers_of_one_folder(cluster: Cluster, hedged: Hedged, many: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("embed", MODEL, many, "--ray", cluster.address, "--shard-size", PER_SHARD, "--out", out)
    driver = start(*command)
    wait_until(lambda: finished(out) > 1)
    check_refused(hedged(*command), f"process {driver.pid} on host", "wait for it")
    driver.kill()
    driver.communicate()


def test_a_worker_is_killed(cluster: Cluster, many: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    driver = start("embed", MODEL, many, "--ray", cluster.address, "--shard-size", PER_SHARD, "--out", out, "--json")
    wait_until(lambda: finished(out) > 1 and workers_of(cluster.head_node))
    for process in workers_of(cluster.head_node):
        subprocess.run(["kill", "-9", str(process)], check=False)
    text, errors = driver.communicate(timeout=400)
    assert driver.returncode == 0, errors
    assert json.loads(text)["images"] == MANY
    assert ids_of(out) == [f"row-{i}" for i in range(MANY)]


@pytest.mark.heavy
def test_a_shard_that_always_ends_its_worker(cluster: Cluster, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    driver = start("embed", MODEL, photos, "--ray", cluster.address, "--out", out)
    until = time.monotonic() + 400
    while driver.poll() is None and time.monotonic() < until:
        for process in workers_of(cluster.head_node):
            subprocess.run(["kill", "-9", str(process)], check=False)
        time.sleep(0.02)
    _, errors = driver.communicate(timeout=60)
    assert driver.returncode == 2
    assert f"hedged: shard 0 (from {photos}/00.png) cannot be made" in errors
    assert "Traceback" not in errors


def test_a_bug_in_a_task_is_shown_with_its_traceback(cluster: Cluster, photos: Path, tmp_path: Path) -> None:
    embedder = Embedder.load(MODEL)
    embedder._embed_batch = 0  # type: ignore[assignment,method-assign]
    with pytest.raises(TypeError, match=r"(?s)shards\.py.*'int' object is not callable"):
        embed_on_ray(embedder, [photos], tmp_path / "out", cluster.address)


def test_a_cluster_that_does_not_answer(hedged: Hedged, photos: Path, tmp_path: Path) -> None:
    command = ("embed", MODEL, photos, "--out", tmp_path / "out", "--ray")
    begun = time.monotonic()
    check_refused(hedged(*command, "127.0.0.1:1"), "cannot be joined", "Connection refused", "--ray local")
    assert time.monotonic() - begun < 10
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
        check_refused(hedged(*command, f"127.0.0.1:{silent.getsockname()[1]}"), "does not answer within 10 seconds")
    for address in ("nowhere", "ray://a:1", "a:b"):
        check_refused(hedged(*command, address), "--ray takes host:port")
    assert not (tmp_path / "out").exists()


def test_a_cluster_of_another_version(
    hedged: Hedged, cluster: Cluster, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told before work starts; the next cluster can be joined."""
    command = ("embed", MODEL, photos, "--ray", cluster.address, "--out", tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(ray, "__version__", "0.0.1")
        words = "Version mismatch: The cluster was started with: Ray: ", "Ray: 0.0.1", "the same versions of Ray"
        check_refused(hedged(*command), *words)
    assert not (tmp_path / "out").exists()
    assert hedged(*command).code == 0


@pytest.mark.heavy
def test_on_this_machine_whatever_cluster_others_use(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("embed", MODEL, photos, "--ray", "local", "--shard-size", 5, "--out", out, "--json")
    process = start(*command, RAY_ADDRESS="127.0.0.1:1")
    text, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors
    assert json.loads(text) == {"out": str(out), "images": IMAGES, "shards": 3, "broken": []}
    assert len(ids_of(out)) == IMAGES


def test_options_that_do_not_go_together(hedged: Hedged, photos: Path, tmp_path: Path) -> None:
    command = ("embed", MODEL, photos, "--out")
    check_refused(hedged(*command, tmp_path / "a.npz", "--ray", "local"), "--out is a folder of shards")
    check_refused(hedged(*command, tmp_path / "a", "--ray", "local", "--force"), "--force is not for --ray")
    check_refused(hedged(*command, tmp_path / "a.npz", "--shard-size", 5), "--shard-size is for --ray")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_without_room(cluster: Cluster, installed: Hedged, many: Path, small_disk: Path) -> None:
    command = ("embed", MODEL, many, "--ray", cluster.address, "--shard-size", PER_SHARD, "--out", small_disk / "out")
    check_refused(installed(*command), "1 of 1 nodes", "MB free", "nothing was done")
    assert list(small_disk.iterdir()) == []


@pytest.mark.heavy
def test_a_disk_that_runs_full(cluster: Cluster, photos: Path, installed: Hedged, small_disk: Path) -> None:
    out = small_disk / "out"
    (small_disk / "other").write_bytes(bytes(175_000))
    command = ("embed", MODEL, photos, "--ray", cluster.address, "--shard-size", 1, "--out", out)
    check_refused(installed(*command), "cannot write", "No space left on device")
    (small_disk / "other").unlink()
    assert installed(*command).code == 0
    assert len(ids_of(out)) == IMAGES


@pytest.mark.heavy
def test_a_worker_and_a_node_of_three_are_killed(tmp_path: Path) -> None:
    rows, out = 20_000, tmp_path / "out"
    table = write_table(tmp_path / "many.parquet", rows)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        second, third = (cluster.add_node(num_cpus=1) for _ in range(2))
        driver = start("embed", MODEL, table, "--ray", cluster.address, "--shard-size", 100, "--out", out)
        wait_until(lambda: finished(out) > 3 and workers_of(second))
        for process in workers_of(second):
            subprocess.run(["kill", "-9", str(process)], check=False)
        done = finished(out)
        wait_until(lambda: finished(out) > done + 3 and workers_of(third))
        cluster.remove_node(third, allow_graceful=False)
        done = finished(out)
        _, errors = driver.communicate(timeout=300)
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call]
    assert done < rows // 100
    assert driver.returncode == 0, errors
    assert ids_of(out) == [f"row-{i}" for i in range(rows)]

"""Large jobs in pieces: the same pieces of the same inputs, each read whole; shards and their manifest."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from pyarrow import parquet
from torch.testing import assert_close

from hedged import Embedder
from hedged.errors import DataError, RunError
from hedged.models import Architecture, ModelConfig
from hedged.models.bulk import Manifest, read_shard
from hedged.models.bulk.cluster import fault_of_node
from hedged.models.bulk.manifest import Shard
from hedged.models.bulk.pieces import Piece, pieces_of
from hedged.models.bulk.shards import embed_piece

SHAPE = (1, 16, 16)
PIXELS = np.random.default_rng(0).integers(0, 256, (7, 16, 16), dtype=np.uint8)


def png(pixels: NDArray[np.uint8]) -> bytes:
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    return content.getvalue()


def write_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Two images, then two in a tar, then three in a table."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    for i in range(2):
        (folder / f"a{i}.png").write_bytes(png(PIXELS[i]))
    members = {"rex/b0.png": png(PIXELS[2]), "rex/b0.json": b"{}", "rex/b1.png": png(PIXELS[3])}
    write_tar(folder / "b.tar", members)
    images = [{"bytes": png(pixels), "path": None} for pixels in PIXELS[4:]]
    table = pa.table({"image": images, "label": ["Rex", None, "Bo"]})
    parquet.write_table(table, folder / "c.parquet", row_group_size=2)
    return folder


def embedder(head: str = "gaussian", shape: tuple[int, ...] = SHAPE) -> Embedder:
    model = ModelConfig.model_validate({"head": head, "dim": 2, "channels": [2, 4], "hidden": 8})
    return Embedder.new(Architecture.model_validate({**model.model_dump(), "shape": shape}), seed=0)


def names(piece: Piece) -> list[str]:
    return [name for batch in piece.batches(Path.cwd()) for name in batch.ids]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_every_input_is_in_one_piece_in_order(inputs: Path, size: int) -> None:
    pieces = pieces_of([inputs], SHAPE, size)
    wanted = ["a0.png", "a1.png", "b.tar/rex/b0.png", "b.tar/rex/b1.png", *(f"c.parquet:{i}" for i in range(3))]
    assert [name for piece in pieces for name in names(piece)] == [f"{inputs}/{name}" for name in wanted]
    assert max(map(len, pieces)) <= size
    assert pieces == pieces_of([inputs], SHAPE, size)


@pytest.mark.parametrize("size", [2, 100])
def test_pieces_have_the_pixels_and_labels(inputs: Path, size: int) -> None:
    model = embedder()
    batches = [batch for piece in pieces_of([inputs], SHAPE, size) for batch in piece.batches(Path.cwd())]
    z = torch.cat([model.embed(batch.at(torch.arange(len(batch.ids)))).pack() for batch in batches])
    assert_close(z, model.embed(PIXELS[:, None]).pack())
    assert [label for batch in batches for label in batch.labels] == [None] * 4 + ["Rex", None, "Bo"]


def test_vectors_of_a_table(tmp_path: Path) -> None:
    vectors = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = vectors.tolist()
    rows[1][2] = float("nan")
    table = pa.table({"id": ["w", "x", "y", "z"], "features": rows})
    parquet.write_table(table, tmp_path / "v.parquet")
    pieces = pieces_of([tmp_path / "v.parquet"], (3,), 3)
    first, second = (list(piece.batches(tmp_path)) for piece in pieces)
    assert first[0].ids == ["w", "y"]
    assert first[0].broken == ["x has numbers that are not finite"]
    np.testing.assert_array_equal(first[0].at(torch.tensor([1])), vectors[[2]])
    assert [batch.ids for batch in second] == [["z"]]


@pytest.mark.parametrize("head", ["point", "gaussian", "mixture", "full"])
def test_a_shard_holds_the_embeddings(inputs: Path, tmp_path: Path, head: str) -> None:
    model = embedder(head)
    [*_, piece] = pieces_of([inputs], SHAPE, 100)
    made = embed_piece(model, model.fingerprint(), piece, Path.cwd(), tmp_path / "s.parquet")
    found = read_shard(tmp_path / made.file)
    assert made.rows == len(found.ids) == 3
    assert_close(found.z.pack(), model.embed(PIXELS[4:, None]).pack())
    assert found.labels == ["Rex", None, "Bo"]


def test_broken_inputs_are_named_and_the_others_embedded(tmp_path: Path) -> None:
    write_tar(tmp_path / "b.tar", {"0.png": b"no image", "1.png": png(PIXELS[1]), "2.png": b""})
    model = embedder()
    [piece] = pieces_of([tmp_path / "b.tar"], SHAPE, 100)
    made = embed_piece(model, model.fingerprint(), piece, Path.cwd(), tmp_path / "s.parquet")
    assert read_shard(tmp_path / made.file).ids == [f"{tmp_path}/b.tar/1.png"]
    assert [why.split(" ")[0] for why in made.broken] == [f"{tmp_path}/b.tar/0.png", f"{tmp_path}/b.tar/2.png"]
    assert made.rows == 1


def test_a_piece_of_which_all_is_broken(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"image": [None, b"x"]}, pa.schema({"image": pa.binary()})), tmp_path / "t.parquet")
    model = embedder()
    [piece] = pieces_of([tmp_path / "t.parquet"], SHAPE, 100)
    made = embed_piece(model, model.fingerprint(), piece, Path.cwd(), tmp_path / "s.parquet")
    assert (made.file, made.rows, len(made.broken)) == ("", 0, 2)
    assert f"{tmp_path}/t.parquet:0 has no image" in made.broken
    assert not (tmp_path / "s.parquet").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.tar", b"no tar", "cannot be read as a tar"),
        ("x.parquet", b"no table", "cannot be read as Parquet"),
        ("none", None, "there is no"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words):
        pieces_of([tmp_path / name], SHAPE, 10)


def test_inputs_of_another_kind_are_refused(inputs: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column `features`"):
        pieces_of([inputs], (3,), 10)
    with pytest.raises(DataError, match="takes vectors"):
        pieces_of([inputs / "b.tar"], (3,), 10)
    empty = write_tar(tmp_path / "empty.tar", {"readme.txt": b"none"})
    with pytest.raises(DataError, match="holds no image"):
        pieces_of([empty], SHAPE, 10)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="holds no file"):
        pieces_of([tmp_path / "none"], SHAPE, 10)


@pytest.fixture
def manifest(inputs: Path, tmp_path: Path) -> Manifest:
    """Of three shards, of which the first is there and the second has only broken inputs."""
    found = Manifest.of(tmp_path, "0123456789abcdef", pieces_of([inputs], SHAPE, 3), 3)
    (tmp_path / "shard-000000.parquet").write_bytes(b"rows")
    digest = "7d5ec4d0d4f8ba1a1ef29a1d0ad5ee5c2eac1dcf54b9bd0bb34c3b1c3c1a6c84"
    found.shards = {0: Shard("shard-000000.parquet", 2, digest), 1: Shard("", 0, "", ["b.tar/0.png is broken"])}
    return found


def test_a_manifest_says_what_is_left(manifest: Manifest) -> None:
    assert manifest.unfinished(retry_broken=False) == [2]
    assert manifest.unfinished(retry_broken=True) == [1, 2]
    assert (manifest.rows, manifest.broken, manifest.count) == (2, ["b.tar/0.png is broken"], 7)
    manifest.write()
    assert Manifest.read(manifest.folder) == manifest
    (manifest.folder / "shard-000000.parquet").unlink()
    assert manifest.continued().unfinished(retry_broken=False) == [0, 2]


def test_another_job_is_refused(manifest: Manifest, inputs: Path) -> None:
    manifest.write()
    folder, pieces = manifest.folder, pieces_of([inputs], SHAPE, 3)
    turned = pieces_of([inputs / name for name in ("b.tar", "a0.png", "a1.png", "c.parquet")], SHAPE, 3)
    with pytest.raises(RunError, match="by the model 0123456789abcdef, not by fedcba9876543210"):
        Manifest.of(folder, "fedcba9876543210", pieces, 3).continued()
    with pytest.raises(RunError, match="shards of 3, not of 2"):
        Manifest.of(folder, manifest.model, pieces_of([inputs], SHAPE, 2), 2).continued()
    with pytest.raises(RunError, match="of 7 inputs, not of 6"):
        Manifest.of(folder, manifest.model, pieces[:2] + pieces[:1], 3).continued()
    with pytest.raises(RunError, match="of other inputs"):
        Manifest.of(folder, manifest.model, turned, 3).continued()


def test_a_folder_of_other_files_is_refused(manifest: Manifest) -> None:
    with pytest.raises(RunError, match="holds other Parquet files"):
        manifest.continued()


def test_shards_that_are_missing_or_damaged_are_refused(manifest: Manifest) -> None:
    with pytest.raises(RunError, match="lacks 1 of its 3 shards"):
        manifest.files()
    manifest.shards[2] = Shard("", 0, "", ["broken"])
    with pytest.raises(RunError, match="is not what was written"):
        manifest.files()


def test_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"version": 7}', '{"version": 1, "shards": {"a": {}}}'):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(RunError, match="cannot be read"):
            Manifest.read(tmp_path)


def test_what_a_node_lacks(tmp_path: Path) -> None:
    from hedged import __version__

    aside = tmp_path / ".unfinished"
    assert "does not see" in fault_of_node(__version__, aside, tmp_path, 0)
    aside.mkdir()
    assert fault_of_node(__version__, aside, tmp_path, 1) == ""
    assert "put the inputs where all nodes see them" in fault_of_node(__version__, aside, tmp_path / "none", 1)
    assert "install the same" in fault_of_node("0.0.1", aside, tmp_path, 1)
    assert "free space" in fault_of_node(__version__, aside, tmp_path, 2**60)

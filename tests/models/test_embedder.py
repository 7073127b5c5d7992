"""An embedder takes whatever holds an image, gives the same answer for each, and is saved and loaded whole."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn

from hedged import Architecture, Embedder
from hedged.errors import DataError, RunError, ShapeError, ValueRangeError

SMALL = {"channels": (2, 4), "hidden": 8}


@pytest.fixture
def embedder() -> Embedder:
    return Embedder.new(Architecture.model_validate(SMALL), seed=1)


@pytest.fixture
def pixels() -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (5, 28, 56), dtype=np.uint8)


def test_every_kind_of_image_gives_the_same_embedding(
    embedder: Embedder, pixels: NDArray[np.uint8], tmp_path: Path
) -> None:
    images = [Image.fromarray(p) for p in pixels]
    paths = [tmp_path / f"{i}.png" for i in range(5)]
    for image, path in zip(images, paths, strict=True):
        image.save(path)
    expected = embedder.embed(pixels).pack()
    kinds: list[Any] = [
        pixels[:, None],
        pixels[..., None],
        pixels / 255,
        torch.from_numpy(pixels),
        torch.from_numpy(pixels).unsqueeze(1).float() / 255,
        list(pixels),
        images,
        [image.convert("RGB") for image in images],
        [str(path) for path in paths],
        (path for path in paths),
    ]
    for kind in kinds:
        torch.testing.assert_close(embedder.embed(kind, batch_size=2).pack(), expected)


def test_one_image_is_a_batch_of_one(embedder: Embedder, pixels: NDArray[np.uint8]) -> None:
    for one in (pixels[0], pixels[:1], Image.fromarray(pixels[0]), [pixels[0]]):
        assert len(embedder.embed(one)) == 1


def test_match_and_uncertainty_take_images_or_embeddings(embedder: Embedder, pixels: NDArray[np.uint8]) -> None:
    z = embedder.embed(pixels)
    torch.testing.assert_close(embedder.match(pixels, pixels[::-1]), embedder.match(z, embedder.embed(pixels[::-1])))
    torch.testing.assert_close(embedder.uncertainty(pixels), 1 - embedder.match(z, z))
    assert not embedder.uncertainty(pixels).requires_grad


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (np.zeros((28, 28), np.uint8), ShapeError, "28×56 pixels"),
        (np.zeros((2, 28, 56), np.int64), ValueRangeError, "uint8"),
        (np.full((28, 56), 3.0), ValueRangeError, "divide by 255"),
        (np.full((28, 56), np.nan), ValueRangeError, r"\[0, 1\]"),
        ([], DataError, "no image"),
        ([object()], DataError, "got object"),
        (3, DataError, "got int"),
        ("missing.png", DataError, "there is no image missing.png"),
    ],
)
def test_bad_images_are_refused_in_words(embedder: Embedder, bad: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        embedder.embed(bad)


def test_an_unreadable_file_is_named(embedder: Embedder, tmp_path: Path) -> None:
    path = tmp_path / "broken.png"
    path.write_bytes(b"not an image")
    with pytest.raises(DataError, match=r"broken\.png cannot be read"):
        embedder.embed([path])


@pytest.mark.parametrize(
    "network", [{}, {"head": "point"}, {"head": "mixture", "components": 2}, {"backbone": "shallow"}]
)
def test_saved_and_loaded_it_is_the_same(network: dict[str, Any], pixels: NDArray[np.uint8], tmp_path: Path) -> None:
    before = Embedder.new(Architecture.model_validate(SMALL | network), seed=3, scale=7.0, bias=2.0)
    before.notes = {"steps": 12}
    before.save(tmp_path / "model")
    after = Embedder.load(tmp_path / "model")
    assert torch.equal(before.embed(pixels).pack(), after.embed(pixels).pack())
    assert after.architecture == before.architecture
    assert after.notes == {"steps": 12}
    assert after.curve.scale.item() == pytest.approx(7.0)


def test_what_does_not_fit_is_not_loaded(embedder: Embedder, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no model"):
        Embedder.load(tmp_path)
    embedder.save(tmp_path)
    description, weights = tmp_path / "model.json", tmp_path / "model.safetensors"
    good, content = weights.read_bytes(), json.loads(description.read_text())

    weights.write_bytes(good[: len(good) // 2])
    with pytest.raises(RunError, match="damaged or truncated"):
        Embedder.load(tmp_path)
    weights.write_bytes(good)
    save_file({**load_file(weights), "extra": torch.zeros(1)}, weights)
    with pytest.raises(RunError, match=r"another model.*extra"):
        Embedder.load(tmp_path)
    Embedder.new(Architecture.model_validate(SMALL | {"dim": 5}), seed=0).save(tmp_path / "other")
    weights.write_bytes((tmp_path / "other" / "model.safetensors").read_bytes())
    with pytest.raises(RunError, match="another model"):
        Embedder.load(tmp_path)
    weights.unlink()
    with pytest.raises(RunError, match="without weights"):
        Embedder.load(tmp_path)
    for change, message in (
        ({"format": 99}, "format 99"),
        ({"architecture": {"backbone": "resnet"}}, "does not have"),
    ):
        description.write_text(json.dumps(content | change))
        with pytest.raises(RunError, match=message):
            Embedder.load(tmp_path)
    description.write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        Embedder.load(tmp_path)


def test_new_weights_come_from_the_seed_and_leave_the_global_generator_alone() -> None:
    state = torch.random.get_rng_state()
    one, two, other = (Embedder.new(Architecture.model_validate(SMALL), seed=s) for s in (4, 4, 5))
    assert torch.equal(state, torch.random.get_rng_state())
    for name, value in one.state_dict().items():
        assert torch.equal(value, two.state_dict()[name])
    assert any(not torch.equal(v, other.state_dict()[n]) for n, v in one.state_dict().items())


def test_depth_transparency_and_rotation_do_not_change_what_is_seen(
    embedder: Embedder, pixels: NDArray[np.uint8], tmp_path: Path
) -> None:
    plain = Image.fromarray(pixels[0])
    deep = Image.fromarray(pixels[0].astype(np.uint16) << 8)
    clear = Image.merge("LA", (Image.new("L", plain.size, 255), plain))  # white, as opaque as it should be bright
    turned = plain.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be shown turned clockwise by a quarter
    turned.save(tmp_path / "turned.png", exif=exif)
    expected = embedder.embed(plain).pack()
    for image in (deep, clear, tmp_path / "turned.png"):
        torch.testing.assert_close(embedder.embed(image).pack(), expected, rtol=1e-2, atol=1e-2)
    with pytest.raises(DataError, match="mode F"):
        embedder.embed(Image.fromarray(pixels[0].astype(np.float32)))


def test_notes_that_are_no_notes_are_refused(embedder: Embedder, tmp_path: Path) -> None:
    embedder.save(tmp_path)
    content = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps(content | {"notes": [1]}))
    with pytest.raises(RunError, match="does not have"):
        Embedder.load(tmp_path)


def test_a_fingerprint_tells_models_apart(embedder: Embedder, tmp_path: Path) -> None:
    mine = embedder.fingerprint()
    embedder.save(tmp_path)
    assert Embedder.load(tmp_path).fingerprint() == mine
    assert len(mine) == 16
    assert Embedder.new(embedder.architecture, seed=2).fingerprint() != mine
    wider = Embedder.new(Architecture.model_validate(SMALL | {"hidden": 9}), seed=1)
    assert wider.fingerprint() != mine
    embedder.notes = {"steps": 5}
    assert embedder.fingerprint() == mine
    with torch.no_grad():
        embedder.curve.bias.add_(1e-6)
    assert embedder.fingerprint() != mine


@pytest.mark.parametrize("name", ["double", "half", "bfloat16"])
def test_another_precision(name: str) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 28, 56), dtype=np.uint8)
    single = Embedder.load("hedged:ndigit-2d")
    z, fingerprint = single.embed(images), single.fingerprint()
    other = getattr(Embedder.load("hedged:ndigit-2d"), name)()
    found = other.embed(images)
    assert found.tensors[0].dtype == (torch.float64 if name == "double" else torch.float32)
    tolerance = {"double": 1e-4, "half": 0.02, "bfloat16": 0.2}[name]
    for found_one, wanted in (
        (other.match(found[:1], found[1:2]), single.match(z[:1], z[1:2])),
        (other.uncertainty(found), single.uncertainty(z)),
        (other.match_matrix(found, found), single.match_matrix(z, z)),
    ):
        torch.testing.assert_close(found_one.float(), wanted, atol=tolerance, rtol=0)
    assert other.fingerprint() == fingerprint
    assert other.float().fingerprint() == fingerprint
    assert copy.deepcopy(other).fingerprint() == fingerprint


def test_rounded_weights_that_change_are_another_model(embedder: Embedder, tmp_path: Path) -> None:
    known = embedder.fingerprint()
    nn.ModuleList([embedder]).half().bfloat16()
    assert embedder.fingerprint() == known
    embedder.save(tmp_path)
    saved = Embedder.load(tmp_path).fingerprint()
    assert saved != known  # what is read from a file is told by its weights alone
    weight = next(embedder.parameters())
    with torch.no_grad():
        weight[0].mul_(2)
        assert embedder.fingerprint() not in (known, saved)
        weight[0].div_(2)
    assert embedder.fingerprint() == known
    embedder.load_state_dict(Embedder.new(embedder.architecture, seed=2).state_dict())
    assert embedder.fingerprint() not in (known, saved)

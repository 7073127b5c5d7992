"""`hedged.runtime.Model`: what it takes and refuses, that it needs no torch, and what it says of damaged files."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from hedged import Embedder
from hedged.decisions import Decider
from hedged.errors import DataError, HedgedError, RunError, ShapeError, ValueRangeError
from hedged.match import match_logit
from hedged.runtime import Embeddings, Model

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 28, 56), dtype=np.uint8)
WITHOUT_TORCH = """
import sys

HEAVY = ("torch", "numba", "scipy", "sklearn", "pydantic", "matplotlib", "typer", "onnx")
for name in HEAVY:
    sys.modules[name] = None  # importing it is an error
import numpy as np
from hedged.runtime import Model

model, pixels = Model.load(sys.argv[1]), np.load(sys.argv[2])
z = model.embed(pixels)
decided = model.decide(pixels[:3], pixels[3:])
np.savez(sys.argv[3], means=z.mean, match=model.match(pixels[:3], z[3:]), matrix=model.match_matrix(z, z),
         verdict=decided.verdict, probability=decided.probability)
assert all(sys.modules[name] is None for name in HEAVY)
"""


@pytest.fixture(scope="module")
def model(digits: Path) -> Model:
    return Model.load(digits)


def test_without_torch_it_embeds_matches_and_decides(digits: Path, decider: Decider, tmp_path: Path) -> None:
    np.save(tmp_path / "pixels.npy", PIXELS)
    given = [digits, tmp_path / "pixels.npy", tmp_path / "out.npz"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *map(str, given)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    embedder = Embedder.load("hedged:ndigit-2d")
    z = embedder.embed(PIXELS)
    with np.load(tmp_path / "out.npz") as found:
        assert np.abs(found["means"] - z.mean.numpy()).max() <= 1e-5
        assert np.abs(found["match"] - embedder.match(z[:3], z[3:]).numpy()).max() <= 1e-4
        assert np.abs(found["matrix"] - embedder.match_matrix(z, z).numpy()).max() <= 1e-4
        scores = match_logit(z[:3], z[3:], embedder.match_model).tolist()
        assert found["verdict"].tolist() == [decider.answer(score).verdict.value for score in scores]
        assert np.abs(found["probability"] - decider.probability(scores)).max() <= 1e-4


def test_it_accepts_rejects_and_abstains_as_the_decider_does(model: Model, decider: Decider) -> None:
    """Embeddings side by side, from where pairs match to where they do not."""
    mean = np.linspace(0, 3, 40, dtype=np.float32)[:, None] * np.ones(2, np.float32)
    z = Embeddings(mean, np.full_like(mean, 0.01), np.zeros(40, np.float32), None)
    first = z[np.zeros(40, np.intp)]
    decided, scores = model.decide(first, z), model.log_odds(first, z)
    assert set(decided.verdict.tolist()) == {"accept", "abstain", "reject"}
    assert decided.verdict.tolist() == [decider.answer(score).verdict.value for score in scores]
    np.testing.assert_allclose(decided.probability, decider.probability(scores), rtol=1e-12)


def png(pixels: NDArray[np.uint8]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "given",
    [
        PIXELS[:, None],
        PIXELS[..., None],
        (PIXELS / 255.0).astype(np.float32),
        list(PIXELS),
        [Image.fromarray(one) for one in PIXELS],
        [png(one) for one in PIXELS],
        (one for one in PIXELS),
    ],
    ids=["channels first", "channels last", "floats", "list", "PIL", "bytes", "generator"],
)
def test_an_image_is_the_same_however_it_is_given(model: Model, given: Any) -> None:
    np.testing.assert_allclose(model.embed(given).mean, model.embed(PIXELS).mean, atol=1e-6)


@pytest.mark.parametrize("size", [1, 4, 100])
def test_any_batch_size_gives_the_same(model: Model, size: int) -> None:
    whole = model.embed(PIXELS)
    found = model.embed(PIXELS, batch_size=size)
    assert len(found) == 6
    np.testing.assert_allclose(found.mean, whole.mean, atol=1e-6)
    np.testing.assert_allclose(found.uncertainty, whole.uncertainty, atol=1e-6)


def embeddings(dim: int) -> Embeddings:
    return Embeddings(np.zeros((2, dim), np.float32), np.ones((2, dim), np.float32), np.zeros(2, np.float32), None)


REFUSED: list[tuple[Callable[[Model], object], type[HedgedError], str]] = [
    (lambda m: m.embed([]), DataError, "no input to embed"),
    (lambda m: m.embed(PIXELS[:, :20]), ShapeError, "takes 28×56 pixels"),
    (lambda m: m.embed(PIXELS.astype(np.int32)), ValueRangeError, "uint8 in 0…255"),
    (lambda m: m.embed(PIXELS / 1.0), ValueRangeError, "divide by 255"),
    (lambda m: m.embed(np.full((1, 28, 56), np.nan)), ValueRangeError, "floats lie in"),
    (lambda m: m.embed("no-such.png"), DataError, "no-such.png"),
    (lambda m: m.embed([b"not an image"]), DataError, "an image given as bytes"),
    (lambda m: m.embed([3.5]), DataError, "got float"),
    (lambda m: m.embed(PIXELS, batch_size=0), ValueRangeError, "batch_size=0"),
    (lambda m: m.match(PIXELS[:2], PIXELS[:3]), ShapeError, "got 2 and 3 inputs"),
    (lambda m: m.match(embeddings(5), embeddings(5)), ShapeError, "those of another model"),
]


@pytest.mark.parametrize(("use", "error", "words"), REFUSED)
def test_what_it_cannot_use_is_refused(
    model: Model, use: Callable[[Model], object], error: type[HedgedError], words: str
) -> None:
    with pytest.raises(error, match=words):
        use(model)


def test_a_file_that_is_not_there_or_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="hedged export RUN --onnx"):
        Model.load(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("text")
    with pytest.raises(RunError, match="no model that hedged exported"):
        Model.load(tmp_path / "text.onnx")


def test_a_damaged_byte_anywhere_is_found(digits: Path, tmp_path: Path) -> None:
    content = digits.read_bytes()
    path = tmp_path / "damaged.onnx"
    for place in np.random.default_rng(0).integers(0, len(content), 30).tolist():
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(RunError, match="export"):
            Model.load(path)
    for length in (0, 1, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(RunError, match="export"):
            Model.load(path)

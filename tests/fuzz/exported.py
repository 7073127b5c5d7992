"""Models as `hedged export` writes them, opened by `hedged.runtime` without torch."""

from __future__ import annotations

import zlib
from pathlib import Path
from random import Random
from typing import Any, final

import numpy as np
import onnx
from fuzz.formats import damaged, damaged_json
from fuzz.seeds import FileTarget

from hedged.decisions import Decider, Isotonic, Policy, Temperature
from hedged.models import Architecture, Embedder
from hedged.models.export import CHECKSUM, KEY, export_onnx
from hedged.runtime import Model

FILE = "model.onnx"
DESCRIBED = 0.7  # the share of inputs whose description is damaged, and the checksum put right
MAX_INPUT = 100_000  # numbers of an input that a model that was loaded is tried on


@final
class Exported(FileTarget):
    """An .onnx file: damaged anywhere, or with another description and a checksum that is right.

    The graph is never damaged with a right checksum: onnxruntime runs it, which is no reader of ours.
    """

    name = "exported"

    def write_seeds(self, folder: Path) -> list[Path]:
        heads: tuple[dict[str, Any], ...] = ({"head": "gaussian"}, {"head": "mixture", "components": 2})
        for number, head in enumerate(heads):
            given = {"backbone": "vectors", "shape": (5,), "dim": 2} | head
            embedder = Embedder.new(Architecture.model_validate(given), seed=number)
            calibrator = (Temperature(2.0, 1.0), Isotonic((-1.0, 0.5, 2.0), (-2.0, 0.0, 3.0)))[number]
            decider = Decider(embedder.fingerprint(), calibrator, 0.3, Policy(-2.0, 3.0))
            (folder / str(number)).mkdir()
            export_onnx(embedder, folder / str(number) / FILE, decider.describe())
        return sorted(folder.iterdir())

    def damage(self, random: Random, folder: Path) -> None:
        content, other = (random.choice(self._seeds)[FILE] for _ in range(2))
        if random.random() < DESCRIBED:
            changed = _described_otherwise(random, content)
        else:
            changed = damaged(random, FILE, content, other)
        (folder / FILE).write_bytes(changed)

    def use(self, folder: Path) -> None:
        model = Model.load(folder / FILE)
        if np.prod(model.shape) <= MAX_INPUT:
            x = np.full((3, *model.shape), 0.5, np.float32)
            z = model.embed(x)
            model.match_matrix(z, z)
            if model.is_calibrated:
                model.decide(x[:2], x[1:])


def _described_otherwise(random: Random, content: bytes) -> bytes:
    model = onnx.load_from_string(content)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    text = damaged_json(random, metadata[KEY].encode(), b"{}")
    model.ClearField("metadata_props")
    model.metadata_props.add(key=KEY, value=text.decode(errors="replace"))
    whole = model.SerializeToString()
    checksum = onnx.ModelProto()
    checksum.metadata_props.add(key=CHECKSUM, value=f"{zlib.crc32(whole):08x}")
    return bytes(whole + checksum.SerializeToString())

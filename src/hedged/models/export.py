"""A model as one ONNX file: network, head, views, η and novelty as a graph; all else in its metadata.

What the metadata says, in JSON under the key `hedged`, is what `hedged.runtime` and the browser example go by: how
inputs are prepared, which outputs there are, the numbers of the match model, and the calibration. The last bytes of the
file are a checksum of all others, as one more entry of the metadata.
"""

from __future__ import annotations

import copy
import json
import logging
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hedged import __version__
from hedged._files import make_folder, write_atomically
from hedged._startup import load_the_rest
from hedged.distributions import Distribution
from hedged.errors import ConfigError, MissingDependencyError, RunError, ShapeError
from hedged.models.embedder import Embedder

FORMAT = 1
OPSET = 18  # of ONNX: what runtimes of the last years know, those of browsers included
LEAST_TORCH = "2.13"  # 2.6 fails on these graphs; none between was tried
KEY, CHECKSUM = "hedged", "hedged.checksum"  # of the metadata
NEEDED = ("onnx", "onnxscript", "onnxruntime")
MAX_BYTES = 2**31 - 2**24  # protobuf's limit, less what is no weight
EXAMPLES = 3  # inputs that the file is tried on
DISAGREEMENT = 1e-4  # between torch and the file, relative to numbers above one: more is another network
ROUNDING = 10  # so many times the difference between torch in single and in double precision may be added to it
CHATTY = ("torch.onnx", "torch.export", "torch.__trace", "onnxscript", "onnx_ir")


@final
@dataclass(frozen=True)
class Exported:
    """A file that was written.

    Args:
        path: The file.
        size: Its bytes.
        description: What its metadata says.
    """

    path: Path
    size: int
    description: dict[str, Any]


def export_onnx(embedder: Embedder, path: str | Path, calibration: Mapping[str, Any] | None = None) -> Exported:
    """Write a model as an ONNX file that gives what `Embedder.embed`, `uncertainty` and `novelty` give.

    The file is tried before it is written: it agrees with torch, for another number of inputs than it was traced with.

    Args:
        embedder: the model; covariances that are not diagonal are refused.
        path: of the file, which is written whole or not at all; one that exists is replaced.
        calibration: what decides about pairs, `Decider.describe()`; None: nothing is decided.
    """
    path = Path(path)
    require_exporter()
    whole = copy.deepcopy(embedder).to("cpu", torch.float32).eval().requires_grad_(False)
    z = whole.embed(_examples(whole).numpy())
    _require_exportable(whole, z)
    graph = _Graph(whole)
    description = _describe(embedder, graph, z, calibration)
    content = _with_metadata(_traced(graph, _examples(whole)[:2]), description)
    _require_agreement(content, graph, _examples(whole))
    make_folder(path.parent)
    write_atomically(path, lambda part: part.write_bytes(content))
    return Exported(path, len(content), description)


@final
class _Graph(nn.Module):
    """inputs ↦ mean, variance, η and, where it is known, novelty: what the file computes."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.embedder, self.match = embedder, embedder.match_model.portable()

    @property
    def outputs(self) -> list[str]:
        return ["means", "variances", "eta", *(["novelty"] if self.embedder.novelty_model else [])]

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        novelty: list[Tensor] = []
        z = self.embedder._embed_batch(inputs, novelty)
        variance = z.variance if z.is_point else z.tensors[1]
        return z.tensors[0], variance, self.match(*z.parts()), *novelty


def require_exporter() -> None:
    """Refuse to go on where a package that exporting needs is missing."""
    load_the_rest()  # exporting traces
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f"exporting to ONNX needs {', '.join(NEEDED)}, of which {', '.join(missing)} is not installed: "
            "pip install 'hedged[onnx]'"
        )
    if torch.__version__ < LEAST_TORCH:  # which compares numbers, not letters
        raise MissingDependencyError(
            f"exporting to ONNX needs torch {LEAST_TORCH} or newer, this is {torch.__version__}: "
            "pip install --upgrade 'hedged[onnx]'"
        )


def _require_exportable(embedder: Embedder, z: Distribution) -> None:
    if not z.is_diagonal:
        raise ConfigError(
            f"a {type(z).__name__} has covariances that are not diagonal, which an exported file does not hold: "
            'export a model with head = "gaussian", "mixture", "point", "posterior" or "evidence"'
        )
    size = sum(weights.numel() * weights.element_size() for weights in embedder.state_dict().values())
    if size > MAX_BYTES:
        raise ConfigError(f"the weights take {size:,} bytes, and an ONNX file has at most {MAX_BYTES:,}: use fewer")


def _examples(embedder: Embedder) -> Tensor:
    """Inputs as the network takes them, drawn at random: pixels in [0, 1], and standard normal numbers."""
    if not embedder.shape:
        raise ShapeError(
            "this network does not say which inputs it takes, so there is nothing to trace it with: give their shape, "
            "Embedder(..., shape=(3, 224, 224))"
        )
    random, shape = torch.Generator().manual_seed(0), (EXAMPLES, *embedder.shape)
    draw = torch.rand if len(embedder.shape) == 3 else torch.randn
    return draw(shape, generator=random)


def _describe(
    embedder: Embedder, graph: _Graph, z: Distribution, calibration: Mapping[str, Any] | None
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": __version__,
        "model": embedder.fingerprint(),
        "input": _input(embedder),
        "views": embedder.views.describe(),
        "outputs": graph.outputs,
        "embedding": {"kind": z.kind, "components": z.n_components, "dim": z.dim},
        "match_model": graph.match.numbers,
        "calibration": None if calibration is None else dict(calibration),
    }


def _input(embedder: Embedder) -> dict[str, Any]:
    """How an input is prepared, in words that a program can go by."""
    shape = list(embedder.shape)
    said: dict[str, Any] = {"name": "input", "dtype": "float32", "shape": shape}
    if len(shape) != 3:
        return {**said, "kind": "vector" if len(shape) == 1 else "array"}
    image = {"kind": "image", "layout": "channels, height, width", "values": [0.0, 1.0]}
    colour = {"colour": "grey" if shape[0] == 1 else "RGB"}
    if embedder.resize is None:
        return {**said, **image, **colour, "resize": None}
    how = {"resize": embedder.resize, "resampling": "bilinear, antialiased", "crop": "middle square, then the middle"}
    return {**said, **image, **colour, **how}


def _traced(graph: _Graph, inputs: Tensor) -> Any:
    """The graph as an onnx.ModelProto, for any number of inputs; nothing of this machine is left in it."""
    from torch.onnx import OnnxExporterError

    names, batch = graph.outputs, torch.export.Dim("batch")
    with _quiet(), torch.no_grad():
        try:
            program = torch.onnx.export(
                graph,
                (inputs,),
                dynamo=True,
                opset_version=OPSET,
                input_names=["input"],
                output_names=names,
                dynamic_shapes=({0: batch},),
                verbose=False,
            )
        except OnnxExporterError as error:
            reason = str(error.__cause__ or error).strip().splitlines()[0]
            raise ConfigError(
                f"torch cannot export this network to ONNX ({reason}): put the parts that look at values, or at how "
                "many inputs there are, into plain operations on tensors, or use a backbone of hedged's"
            ) from error
    assert program is not None  # as always when it is not asked to write a file
    model = program.model_proto
    for node in model.graph.node:  # of each, torch says where in which file it was made
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    for field in ("value_info", "metadata_props", "doc_string"):
        model.graph.ClearField(field)
    for field in ("metadata_props", "doc_string"):
        model.ClearField(field)
    model.graph.name = "hedged"
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter tells of itself: packages it could use, and what will be different one day."""
    loggers = [logging.getLogger(name) for name in CHATTY]
    before = [(logger.level, logger.handlers) for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
            logger.handlers = []  # where there is one, torch writes down every step for it, which doubles the time
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, (level, handlers) in zip(loggers, before, strict=True):
            logger.setLevel(level)
            logger.handlers = handlers


def _with_metadata(model: Any, description: Mapping[str, Any]) -> bytes:
    """The file: the model, its description, and last a checksum of all before it."""
    from onnx import ModelProto, StringStringEntryProto

    text = json.dumps(description, separators=(",", ":"), allow_nan=False)
    model.metadata_props.append(StringStringEntryProto(key=KEY, value=text))
    content = model.SerializeToString(deterministic=True)
    # What follows a message, in the format of protobuf, is added to it: one entry of the metadata more.
    checksum = StringStringEntryProto(key=CHECKSUM, value=f"{zlib.crc32(content):08x}")
    return bytes(content + ModelProto(metadata_props=[checksum]).SerializeToString())


def _require_agreement(content: bytes, graph: _Graph, inputs: Tensor) -> None:
    """Refuse a file that does not do what the model does but for rounding, as where the model draws random numbers."""
    from onnxruntime import InferenceSession  # type: ignore[import-untyped]

    session = InferenceSession(content, providers=["CPUExecutionProvider"])
    found: list[NDArray[Any]] = session.run(graph.outputs, {"input": inputs.numpy()})
    with torch.no_grad():
        expected = [tensor.numpy() for tensor in graph(inputs)]
        exact = [tensor.numpy() for tensor in copy.deepcopy(graph).double()(inputs.double())]
    for name, one, other, precise in zip(graph.outputs, found, expected, exact, strict=True):
        size = np.maximum(np.abs(other), 1.0)
        apart, allowed = np.abs(one - other) / size, DISAGREEMENT + ROUNDING * np.abs(other - precise) / size
        if one.shape != other.shape or not (apart <= allowed).all():
            raise RunError(
                f"the exported network does not agree with the model: {name} is off by {apart.max():.1e}. Nothing was "
                "written; is there anything random in the network?"
            )

"""`Model`: an exported model, ready to embed, match and decide."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Self, final

import numpy as np

from hedged._odds import expit
from hedged.errors import DataError, MissingDependencyError, RunError, ShapeError
from hedged.runtime._description import Description
from hedged.runtime._file import read_file
from hedged.runtime._inputs import Batch, batches
from hedged.runtime.decisions import Decisions
from hedged.runtime.embeddings import Embeddings, Floats, joined

VALUES_PER_BATCH = 2**20  # numbers that are worked on at a time
MOST_AT_ONCE = 256  # inputs
REFUSALS = (  # what onnxruntime raises for a file that it cannot run
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
    "EPFail",
)


@final
class Model:
    """x ↦ p(z|x), with match probabilities, as exported by `hedged export`: an `Embedder` without torch.

    `Model.load` opens a file. Where `Embedder` takes inputs or embeddings, so does this.

    Args:
        session: of onnxruntime.
        description: what the metadata of the file says.
    """

    def __init__(self, session: Any, description: Description) -> None:
        self._session, self._description = session, description

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The model in a file; one that is damaged, or that hedged did not export, is refused.

        Args:
            path: what `hedged export RUN --onnx FILE` wrote.
        """
        path = Path(path)
        content, told = read_file(path)
        try:
            description = Description.of(told)
        except ValueError as error:
            raise RunError(
                f"{path} is no model that this version of hedged reads ({error}): export the model again"
            ) from error
        return cls(_session(path, content, description), description)

    @property
    def fingerprint(self) -> str:
        """That of the model that was exported, `Embedder.fingerprint()`."""
        return self._description.model

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input: (channels, height, width) of an image, (length,) of a vector."""
        return self._description.input.shape

    @property
    def error_bound(self) -> float:
        """How far a match probability may be from the exact integral; 0 where it is exact."""
        return self._description.error_bound

    @property
    def is_calibrated(self) -> bool:
        """Whether it can `decide`."""
        return self._description.calibration is not None

    def embed(self, inputs: Any, batch_size: int | None = None) -> Embeddings:
        """The distributions of any number of inputs, with η and novelty.

        Args:
            inputs: of a model of images, arrays `(n, H, W)`, `(n, C, H, W)` or `(n, H, W, C)` of uint8 or of floats in
                [0, 1], or, where Pillow is there, paths, bytes of files and PIL images, or an iterable of these; of a
                model of vectors, numbers `(n, F)`.
            batch_size: how many are taken at a time; None: as many as a processor is quick with.
        """
        size = self._batch_size if batch_size is None else batch_size
        found = [self._embed(batch) for batch in batches(inputs, self._description.input, size)]
        if not found:
            raise DataError("there is no input to embed: pass at least one")
        return joined(found)

    def log_odds(self, a: Any, b: Any) -> Floats:
        """log p/(1 − p) that two inputs match, `(n,)`, pair by pair.

        Args:
            a: n inputs, or their embeddings.
            b: as many.
        """
        first, second = self._embedded(a), self._embedded(b)
        if len(first) != len(second):
            raise ShapeError(
                f"pairs are compared one by one, got {len(first)} and {len(second)} inputs: use "
                "match_matrix for all pairs"
            )
        return self._description.match.log_odds(first.parts(), second.parts())

    def match(self, a: Any, b: Any) -> Floats:
        """p(m | a_i, b_i), `(n,)`: the probability that two inputs match, pair by pair.

        Args:
            a: n inputs, or their embeddings.
            b: as many.
        """
        return expit(self.log_odds(a, b))

    def match_matrix(self, a: Any, b: Any) -> Floats:
        """p(m | a_i, b_j), `(n, m)`: the probability that two inputs match, for all pairs.

        Args:
            a: n inputs, or their embeddings.
            b: m inputs, or their embeddings.
        """
        return expit(self._description.match.matrix(self._embedded(a).parts(), self._embedded(b).parts()))

    def decide(self, a: Any, b: Any) -> Decisions:
        """Accept, reject or abstain, pair by pair, with calibrated probabilities, `(n,)`.

        Args:
            a: n inputs, or their embeddings.
            b: as many.
        """
        calibration = self._description.calibration
        if calibration is None:
            raise RunError(
                "this model was not calibrated when it was exported: calibrate it with `hedged calibrate RUN`, then "
                "export it again"
            )
        return calibration.decide(self.log_odds(a, b))

    def _embedded(self, x: Any) -> Embeddings:
        if not isinstance(x, Embeddings):
            return self.embed(x)
        found, told = x.parts().mean.shape[1:], self._description
        if found != (told.components, told.dim):
            raise ShapeError(
                f"embeddings of this model have {told.components} component(s) of {told.dim} dimensions, got "
                f"{found[0]} of {found[1]}: those of another model cannot be compared"
            )
        return x

    @property
    def _batch_size(self) -> int:
        told = self._description
        each = max(math.prod(told.input.shape), told.terms * told.components**2 * told.dim)
        return min(max(VALUES_PER_BATCH // each, 1), MOST_AT_ONCE)

    def _embed(self, batch: Batch) -> Embeddings:
        told = self._description
        found = self._session.run(list(told.outputs), {"input": np.ascontiguousarray(batch)})
        mean, variance, eta = found[:3]
        return Embeddings(mean, variance, eta, found[3] if len(found) > 3 else None)


def _session(path: Path, content: bytes, told: Description) -> Any:
    """A session of onnxruntime whose inputs and outputs are those that the file describes."""
    try:
        import onnxruntime  # type: ignore[import-untyped]
        from onnxruntime.capi import onnxruntime_pybind11_state as raised  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingDependencyError(
            f"exported models are run by onnxruntime, which cannot be imported ({error}): pip install 'hedged[runtime]'"
        ) from error
    refusals = tuple(getattr(raised, name) for name in REFUSALS)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what is wrong is said below
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except refusals as error:
        raise RunError(f"{path} cannot be opened by onnxruntime ({error}): export the model again") from error
    parts = (told.components, told.dim) if told.kind == "mixture" else (told.dim,)
    shapes = {"input": told.input.shape, "means": parts, "variances": parts, "eta": (), "novelty": ()}
    found = {one.name: tuple(one.shape[1:]) for one in (*session.get_inputs(), *session.get_outputs())}
    if found != {name: shapes[name] for name in ("input", *told.outputs)}:
        raise RunError(f"{path} has another network than its metadata describes: export the model again")
    return session

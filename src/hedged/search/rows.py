"""What a store holds: a header that all embeddings share, and rows of an id, an embedding, a label and metadata."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray

from hedged.distributions import Distribution, Gaussian, Mixture, Point
from hedged.errors import DataError, ShapeError
from hedged.match import MatchCurve, MatchModel

if TYPE_CHECKING:
    from hedged.models import Embedder

KINDS: Mapping[str, type[Distribution]] = {"point": Point, "gaussian": Gaussian, "mixture": Mixture}
RESERVED = ("id", "label")  # a filter on them means the row's own
ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
LONGEST = 2000  # bytes of an id, a label or a key: what every database can look up
FLOAT = np.dtype("<f4")  # of packed embeddings, whatever the machine

Packed = NDArray[np.float32]
Keys = NDArray[np.int64]


@dataclass(frozen=True)
class Header:
    """The model that made the embeddings of a store, by its fingerprint; what they are; the curve that matches them."""

    fingerprint: str
    kind: str  # point, gaussian or mixture
    dim: int
    components: int
    scale: float
    bias: float

    @classmethod
    def of(cls, embedder: Embedder) -> Header:
        """The header of a store for the embeddings of a model."""
        shape, curve = embedder.architecture, embedder.curve
        return cls(
            embedder.fingerprint(), shape.head, shape.dim, shape.components, curve.scale.item(), curve.bias.item()
        )

    @property
    def match_model(self) -> MatchModel:
        return MatchCurve(self.scale, self.bias).requires_grad_(False)

    @property
    def width(self) -> int:
        """Numbers of a packed embedding."""
        return self.dim if self.kind == "point" else 2 * self.components * self.dim

    def unpack(self, packed: Packed) -> Distribution:
        """Embeddings of packed rows, `(n, width)`."""
        return KINDS[self.kind].unpack(torch.from_numpy(packed), self.dim)

    def check_model(self, fingerprint: str) -> None:
        """Refuse another model than the one that made the embeddings."""
        if fingerprint != self.fingerprint:
            raise DataError(
                f"these embeddings are of the model {fingerprint}, those of this store of {self.fingerprint}: "
                "embeddings of two models cannot be compared. Use the model that the store was built with, or build a "
                "new store"
            )

    def check(self, z: Distribution, fingerprint: str) -> None:
        """Refuse embeddings of another model, kind or dimension."""
        self.check_model(fingerprint)
        components = z.parts()[0].shape[-2]
        if (type(z), z.dim, components) != (KINDS[self.kind], self.dim, self.components) or len(z.batch_shape) != 1:
            raise ShapeError(
                f"this store takes lists of {self.kind} embeddings in {self.dim} dimensions with {self.components} "
                f"component(s), got {z!r} with {components}"
            )


class Described(NamedTuple):
    """What is told of a row beside its embedding."""

    id: str
    label: str | None
    metadata: Mapping[str, Any]


class Batch(NamedTuple):
    """Some rows of a store: their keys `(n,)`, which never change, what is told of them, embeddings `(n, width)`."""

    keys: Keys
    described: list[Described]
    packed: Packed


@dataclass(frozen=True)
class Rows:
    """Rows for a store: n different ids, n embeddings of the model with this fingerprint, labels and metadata if any.

    >>> rows = Rows(["a", "b"], Point(torch.zeros(2, 3)), "0123456789abcdef", labels=["Rex", None])
    >>> rows.described()[0]
    Described(id='a', label='Rex', metadata={})
    """

    ids: Sequence[str]
    z: Distribution
    fingerprint: str
    labels: Sequence[str | None] = ()
    metadata: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        if len(self.z.batch_shape) != 1 or len(self.z) != len(self.ids):
            raise ShapeError(f"{len(self.ids)} ids name as many embeddings, got {self.z!r}")
        for name, column in (("labels", self.labels), ("metadata", self.metadata)):
            if len(column) not in (0, len(self.ids)):
                raise ShapeError(f"{len(self.ids)} rows have as many {name} or none, got {len(column)}")
        if len(set(self.ids)) != len(self.ids):
            twice = Counter(self.ids).most_common(1)[0][0]
            raise DataError(f"the id {twice!r} is given twice: ids are different within a store")
        for row in self.described():
            _check_described(row)

    def __len__(self) -> int:
        return len(self.ids)

    def described(self) -> list[Described]:
        """What is told of each row."""
        labels, metadata = self.labels or [None] * len(self), self.metadata or [{}] * len(self)
        return [Described(*row) for row in zip(self.ids, labels, metadata, strict=True)]

    def packed(self) -> Packed:
        """Packed embeddings, `(n, width)`, in single precision."""
        return pack(self.z)


def pack(z: Distribution) -> Packed:
    """Embeddings as a store keeps them, `(n, width)`, in single precision."""
    packed: Packed = z.detach().to(torch.float32).pack().cpu().numpy().astype(FLOAT, order="C")
    return packed


def as_json(metadata: Mapping[str, Any]) -> str:
    return ENCODER.encode(dict(metadata))


def _check_described(row: Described) -> None:
    for name, text in (("id", row.id), ("label", row.label)):
        if not (_is_text(text) and len(text.encode()) <= LONGEST) and not (name == "label" and text is None):
            raise DataError(f"the {name} of a row is text of 1 to {LONGEST} bytes, got {text!r}: pass another")
    taken = [key for key in row.metadata if key in RESERVED or not isinstance(key, str) or not _is_key(key)]
    if taken:
        raise DataError(
            f"{taken[0]!r} cannot be a key of metadata (of {row.id!r}): keys are words without =, other than "
            f"{' and '.join(RESERVED)}; choose another name"
        )
    try:
        text = as_json(row.metadata)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the metadata of {row.id!r} are not JSON ({error}): pass text, numbers, lists of them"
        ) from error
    if "\\u0000" in text or not _is_text(text):
        raise DataError(f"the metadata of {row.id!r} hold characters that no database keeps: remove them")


def _is_key(text: str) -> bool:
    return "=" not in text and 0 < len(text.encode(errors="replace")) <= LONGEST


def _is_text(value: object) -> TypeGuard[str]:
    """Text that every database keeps: at least one character, none of them zero or half of a pair."""
    try:
        return isinstance(value, str) and value != "" and b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False

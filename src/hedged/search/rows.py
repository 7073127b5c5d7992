"""What a store holds: rows of an id, an embedding, a label and metadata, under a header that names their model.

Nothing in this file or in store.py imports torch before it is needed: `hedged index info` is quick.
"""

from __future__ import annotations

import json
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, final

import numpy as np
from numpy.typing import NDArray

from hedged._reading import MAX_FLOAT, parse_json
from hedged.errors import ConfigError, DataError, ShapeError

if TYPE_CHECKING:
    from hedged.distributions import Distribution
    from hedged.match import MatchModel
    from hedged.match.score import Score
    from hedged.models import Embedder

OWN_KEYS = ("id", "label")  # a filter on them means the row's own, so metadata cannot use them
NOVELTY = "novelty"  # the key of metadata under which a store keeps it
MAX_BYTES = 2000  # of an id, a label or a key of metadata: what every database can look up
MAX_WIDTH = 2**28  # numbers of an embedding: more cannot be
LARGEST_INTEGER = MAX_FLOAT  # of metadata: every number there is one in double precision too
FLOAT = np.dtype("<f4")  # of packed embeddings, whatever the machine
ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)

Packed = NDArray[np.float32]
Keys = NDArray[np.int64]


class Where(NamedTuple):
    """A filter: the rows whose metadata hold `value` under `key`; `label` and `id` are keys too.

    Values are compared as text: `Where("year", "2019")` finds 2019 and "2019".

    Args:
        key: A key of the metadata, or `label` or `id`.
        value: The value to look for.
    """

    key: str
    value: str

    def passes(self, row: Described) -> bool:
        """Whether a row has this value: what every store's filters mean.

        Args:
            row: The row.

        >>> Where("year", "2019").passes(Described("a", None, {"year": 2019}))
        True
        """
        if self.key in OWN_KEYS:
            return bool(getattr(row, self.key) == self.value)
        return self.key in row.metadata and as_text(row.metadata[self.key]) == self.value


Filter = Sequence[Where]


def parse_where(text: str) -> Where:
    """A filter as it is typed on the command line.

    Args:
        text: KEY=VALUE.

    >>> parse_where("breed=great dane")
    Where(key='breed', value='great dane')
    """
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise ConfigError(f"a filter reads key=value, got {text!r}: for example --where breed=beagle")
    if any("\ud800" <= one <= "\udfff" for one in text):
        raise ConfigError(f"a filter is text in UTF-8, got {text!r}: no row can have that")
    return Where(key, value)


def as_text(value: Any) -> str:
    """A value of metadata as filters compare it.

    Args:
        value: Any JSON value.

    >>> as_text("a"), as_text(3.0), as_text(True), as_text([1, None])
    ('a', '3', 'true', '[1, null]')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = _whole(value)
    return json.dumps(_as_handed_back(value), ensure_ascii=False, sort_keys=True)


def _as_handed_back(value: Any) -> Any:
    """A JSON value with its numbers as PostgreSQL hands them back: no exponent in large ones, and one zero."""
    if isinstance(value, Mapping):
        return {key: _as_handed_back(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_handed_back(one) for one in value]
    if not isinstance(value, float):
        return value
    return _whole(value) if "e+" in repr(value) else value + 0.0


def _whole(value: float) -> int:
    """A float as the integer that it reads as: 1e23 as a one with 23 zeros, which is not quite its value."""
    return int(Decimal(repr(value)))


@final
@dataclass(frozen=True)
class Header:
    """What all embeddings of a store have in common: the model that made them, their kind, how they are matched.

    Args:
        fingerprint: Of the model that made the embeddings, `Embedder.fingerprint()`.
        kind: The kind of distribution, such as `gaussian`.
        dim: D, the dimensions of the embedding space.
        components: C, the components of a mixture; 1 for all others.
        width: How many numbers one packed embedding has.
        match: The kind of the match model and its settings, as `MatchModel.restore` takes them.
    """

    fingerprint: str
    kind: str
    dim: int
    components: int
    width: int
    match: Mapping[str, Any]

    @classmethod
    def of(cls, embedder: Embedder) -> Header:
        """The header of a store for the embeddings of a model.

        Args:
            embedder: The model.
        """
        import torch

        like = next(embedder.head.parameters(), torch.zeros(0))
        with torch.no_grad():
            example = embedder.head(like.new_zeros(1, embedder.head.features))
        return cls.for_embeddings(example, embedder.fingerprint(), embedder.match_model)

    @classmethod
    def for_embeddings(cls, z: Distribution, fingerprint: str, match_model: MatchModel) -> Header:
        """The header of a store for embeddings such as these.

        Args:
            z: At least one embedding.
            fingerprint: Of the model that made them.
            match_model: When two of them match.

        >>> import torch
        >>> from hedged import MatchCurve, Point
        >>> header = Header.for_embeddings(Point(torch.zeros(1, 3)), "0123456789abcdef", MatchCurve(bias=2.0))
        >>> header.kind, header.width, header.match["kind"], header.match["bias"]
        ('point', 3, 'curve', 2.0)
        """
        match = match_model.describe()
        return cls(fingerprint, z.kind, z.dim, z.n_components, z.pack().shape[-1], match)

    @classmethod
    def restore(cls, described: Mapping[str, Any]) -> Header:
        """The header that `describe` described, or that the first version of hedged wrote.

        Args:
            described: What a store has kept.
        """
        values = dict(described)
        if "match" not in values:  # the first version knew match curves only, and three kinds of distribution
            values["match"] = {"kind": "curve", "scale": values.pop("scale"), "bias": values.pop("bias")}
            values["width"] = values["dim"] * (1 if values["kind"] == "point" else 2 * values["components"])
        return cls(**values).checked()

    def checked(self) -> Header:
        """The header, if its values can be; a ValueError says which cannot."""
        for name, kind in (("fingerprint", str), ("kind", str), ("match", Mapping)):
            if not isinstance(getattr(self, name), kind):
                raise ValueError(f"its {name} is {getattr(self, name)!r}")
        for name in ("dim", "components", "width"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_WIDTH:
                raise ValueError(f"its {name} is {value!r}")
        if self.components * self.dim > self.width:
            raise ValueError(f"{self.width} numbers cannot hold {self.components} means in {self.dim} dimensions")
        return self

    def describe(self) -> dict[str, Any]:
        """The header as a store keeps it, ready for JSON."""
        return asdict(self)

    @cached_property
    def match_model(self) -> MatchModel:
        """When two embeddings of the store match."""
        from hedged.match import MatchModel

        return MatchModel.restore(self.match).requires_grad_(False)

    @cached_property
    def score(self) -> Score:
        """The log-odds of two embeddings of the store as a formula that other engines compute."""
        return self.match_model.score(self.unpack(np.ones((1, self.width), np.float32)))

    def unpack(self, packed: Packed) -> Distribution:
        """The embeddings of packed rows.

        Args:
            packed: `(n, width)`.
        """
        import torch

        from hedged.distributions import Distribution

        return Distribution.named(self.kind).unpack(torch.from_numpy(packed), self.dim)

    def means(self, packed: Packed) -> Packed:
        """The means of all components of packed rows, one after the other, `(n · C, D)`.

        Args:
            packed: `(n, width)`; the means come first in every packed embedding.
        """
        return packed[:, : self.components * self.dim].reshape(-1, self.dim)

    def check_model(self, fingerprint: str) -> None:
        """Refuse another model than the one that made the embeddings.

        Args:
            fingerprint: Of the model that is to be used.
        """
        if fingerprint != self.fingerprint:
            raise DataError(
                f"this store was built with the model {self.fingerprint}, not with {fingerprint}: embeddings of two "
                "models cannot be compared. Use the model that the store was built with, or build a new store"
            )

    def fits(self, z: Distribution) -> bool:
        """Whether embeddings are a list of this kind and dimension.

        Args:
            z: The embeddings.
        """
        return len(z.batch_shape) == 1 and (z.kind, z.dim) == (self.kind, self.dim)

    def check(self, z: Distribution, fingerprint: str) -> None:
        """Refuse embeddings of another model, kind or dimension.

        Args:
            z: The embeddings.
            fingerprint: Of the model that made them.
        """
        self.check_model(fingerprint)
        if not self.fits(z) or z.n_components != self.components:
            raise ShapeError(
                f"this store takes lists of {self.kind} embeddings in {self.dim} dimensions with {self.components} "
                f"component(s), got {z!r} with {z.n_components}"
            )


def as_column(name: str, given: Any) -> list[Any]:
    """What is given for each of some rows, as a list. One word is refused, which is no list of its letters.

    Args:
        name: What it is, for the message.
        given: A list, an array, or anything else that has an order.

    >>> as_column("labels", ("Rex", None))
    ['Rex', None]
    """
    unordered = isinstance(given, str | bytes | bytearray | Mapping | Set) or not isinstance(given, Iterable)
    column = None if unordered else given.tolist() if hasattr(given, "tolist") else list(given)
    if not isinstance(column, list):
        raise DataError(
            f"{name} are a list, with one for each row, got {reprlib.repr(given)}: for one row alone, write "
            f"{name}=[...] around it"
        )
    return column


class Described(NamedTuple):
    """A row without its embedding.

    Args:
        id: Its id.
        label: Its label, or None.
        metadata: JSON values by key.
    """

    id: str
    label: str | None
    metadata: Mapping[str, Any]


class Batch(NamedTuple):
    """Some rows of a store.

    Args:
        keys: Their numbers in the store, which never change, `(n,)`.
        described: Their ids, labels and metadata.
        packed: Their embeddings, `(n, width)`.
    """

    keys: Keys
    described: list[Described]
    packed: Packed


@final
@dataclass(frozen=True)
class Rows:
    """Rows to be written to a store.

    Args:
        ids: A different id for each row.
        z: As many embeddings.
        fingerprint: Of the model that made them, `Embedder.fingerprint()`.
        labels: A label for each row, or None; empty if no row has one.
        metadata: Metadata of each row, JSON values by key; empty if no row has any.

    >>> import torch
    >>> from hedged import Point
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
        for name in ("ids", "labels", "metadata"):
            object.__setattr__(self, name, as_column(name, getattr(self, name)))
        if len(self.z.batch_shape) != 1 or len(self.z) != len(self.ids):
            raise ShapeError(f"got {len(self.ids)} ids for {self.z!r}: give an id for each embedding")
        for name, column in (("labels", self.labels), ("metadata", self.metadata)):
            if len(column) not in (0, len(self.ids)):
                raise ShapeError(f"got {len(column)} {name} for {len(self.ids)} rows: give one for each, or none")
        for row in self.described():
            _check_described(row)
        if len(set(self.ids)) != len(self.ids):
            twice = Counter(self.ids).most_common(1)[0][0]
            raise DataError(f"the id {twice!r} is given twice: ids must differ within a store")

    def __len__(self) -> int:
        return len(self.ids)

    def described(self) -> list[Described]:
        """The rows without their embeddings."""
        labels, metadata = self.labels or [None] * len(self), self.metadata or [{}] * len(self)
        return [Described(*row) for row in zip(self.ids, labels, metadata, strict=True)]

    def packed(self) -> Packed:
        """The packed embeddings, `(n, width)`, in single precision."""
        return pack(self.z)


def pack(z: Distribution) -> Packed:
    """Embeddings as a store keeps them, `(n, width)`, in single precision.

    Args:
        z: n embeddings.
    """
    import torch

    packed: Packed = z.detach().to(torch.float32).pack().cpu().numpy().astype(FLOAT, order="C")
    return packed


def as_json(metadata: Mapping[str, Any]) -> str:
    """Metadata as text.

    Args:
        metadata: JSON values by key.
    """
    return ENCODER.encode(dict(metadata))


def with_novelty(metadata: Sequence[Mapping[str, Any]], novelty: Sequence[float]) -> list[Mapping[str, Any]]:
    """Metadata of rows with their novelty among them, to four digits; where the key is taken, it stays as it is.

    Args:
        metadata: Of each row.
        novelty: Of each row; empty if it is not known.

    >>> with_novelty([{"year": 2019}, {"novelty": "none"}], [0.12345, 0.5])
    [{'year': 2019, 'novelty': 0.1235}, {'novelty': 'none'}]
    """
    if not len(novelty):
        return list(metadata)
    told = [round(share, 4) for share in novelty]
    return [row if NOVELTY in row else {**row, NOVELTY: share} for row, share in zip(metadata, told, strict=True)]


def stored_novelty(metadata: Mapping[str, Any]) -> float | None:
    """The novelty among the metadata of a row; None if there is no such number.

    Args:
        metadata: Of the row.
    """
    value = metadata.get(NOVELTY)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _check_described(row: Described) -> None:
    for name, text in (("id", row.id), ("label", row.label)):
        if not (_is_text(text) and len(text.encode()) <= MAX_BYTES) and not (name == "label" and text is None):
            raise DataError(f"the {name} of a row must be text of 1 to {MAX_BYTES} bytes, got {reprlib.repr(text)}")
    if not isinstance(row.metadata, Mapping):
        raise DataError(
            f"the metadata of {row.id!r} must be values by key, such as {{'year': 2021}}, got "
            f"{reprlib.repr(row.metadata)}"
        )
    wrong = [key for key in row.metadata if key in OWN_KEYS or not isinstance(key, str) or not _is_key(key)]
    if wrong:
        raise DataError(
            f"{wrong[0]!r} cannot be a key of metadata (of {row.id!r}): keys are words without =, other than "
            f"{' and '.join(OWN_KEYS)}; choose another name"
        )
    if not row.metadata:
        return
    try:
        text = as_json(row.metadata)
        parse_json(text, LARGEST_INTEGER)  # what is written can be read again
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"the metadata of {row.id!r} are not JSON ({error}): pass text, numbers, or lists of them"
        ) from error
    if "\\u0000" in text or not _is_text(text):
        raise DataError(f"the metadata of {row.id!r} contain characters that no database keeps: remove them")


def _is_key(text: str) -> bool:
    return "=" not in text and 0 < len(text.encode(errors="replace")) <= MAX_BYTES


def _is_text(value: object) -> TypeGuard[str]:
    """Text that every database keeps: at least one character, none of them zero or half of a surrogate pair."""
    try:
        return isinstance(value, str) and value != "" and b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False

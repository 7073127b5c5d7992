"""What the metadata of an exported model says, checked: nothing of it is trusted before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from hedged.runtime._match import Curve, Evidence, Match
from hedged.runtime.decisions import Calibration, Calibrator, Isotonic, Temperature
from hedged.runtime.embeddings import Floats

FORMAT = 1
LARGEST = 2**28  # numbers of an input
MOST_TERMS = 1_000  # of an expansion
INPUTS, EMBEDDINGS, COLOURS = ("image", "vector", "array"), ("point", "gaussian", "mixture"), ("grey", "RGB")


@final
@dataclass(frozen=True)
class Input:
    """What the network takes.

    Args:
        kind: "image", "vector" or "array".
        shape: of one input; (channels, height, width) of an image.
        colour: of an image, "grey" or "RGB".
        resize: the shorter edge that an image file is brought to before its middle is taken; None: sizes must fit.
    """

    kind: str
    shape: tuple[int, ...]
    colour: str
    resize: int | None


@final
@dataclass(frozen=True, eq=False)
class Description:
    """All that is known of an exported model beside its graph.

    Args:
        model: the fingerprint of the model that was exported.
        input: what it takes.
        outputs: what the graph gives, by name.
        kind: of the embeddings: "point", "gaussian" or "mixture".
        components: C.
        dim: D.
        match: when two embeddings match.
        error_bound: how far a match probability may be from the exact integral.
        terms: of the expansion of a match curve, 1 where there is none: η takes so many numbers for each of a mean.
        calibration: what decides about pairs; None: nothing does.
    """

    model: str
    input: Input
    outputs: tuple[str, ...]
    kind: str
    components: int
    dim: int
    match: Match
    error_bound: float
    terms: int
    calibration: Calibration | None

    @classmethod
    def of(cls, content: Any) -> Self:
        """What JSON says; a ValueError names what is wrong with it.

        Args:
            content: the JSON values.
        """
        told = _Told(content)
        if told.get("format") != FORMAT:
            raise ValueError(f"it is of format {told.get('format')!r}, this version of hedged reads format {FORMAT}")
        embedding, numbers = told.table("embedding"), told.table("match_model")
        dim, components = embedding.count("dim"), embedding.count("components")
        match, terms = _match(numbers, dim)
        listed = told.get("outputs")
        outputs = tuple(listed) if isinstance(listed, list) else ()
        if outputs not in (("means", "variances", "eta"), ("means", "variances", "eta", "novelty")):
            raise ValueError(f"its outputs are {listed!r}")
        calibration = told.get("calibration")
        return cls(
            model=told.word("model"),
            input=_input(told.table("input")),
            outputs=outputs,
            kind=embedding.word("kind", EMBEDDINGS),
            components=components,
            dim=dim,
            match=match,
            error_bound=numbers.number("error_bound"),
            terms=terms,
            calibration=None if calibration is None else _calibration(_Told(calibration)),
        )


@final
class _Told:
    """A table of JSON, each of whose values is checked when it is asked for."""

    def __init__(self, content: Any) -> None:
        if not isinstance(content, Mapping):
            raise ValueError(f"a table of its description is {type(content).__name__}")
        self._content = content

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def get(self, key: str) -> Any:
        return self._content.get(key)

    def table(self, key: str) -> _Told:
        return _Told(self.get(key))

    def word(self, key: str, known: Sequence[str] = ()) -> str:
        value = self.get(key)
        if not isinstance(value, str) or (known and value not in known):
            raise ValueError(f"{key} in its description is {value!r}")
        return value

    def number(self, key: str, above: float = -math.inf) -> float:
        value = self.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or value <= above:
            raise ValueError(f"{key} in its description is {value!r}")
        return float(value)

    def count(self, key: str) -> int:
        value = self.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
            raise ValueError(f"{key} in its description is {value!r}")
        return value

    def numbers(self, key: str) -> Floats:
        value = self.get(key)
        good = isinstance(value, list) and value and all(isinstance(x, int | float) for x in value)
        found = np.array(value if good else [np.nan], dtype=np.float64)
        if not np.isfinite(found).all():
            raise ValueError(f"{key} in its description are no numbers")
        return found


def _input(told: _Told) -> Input:
    shape = told.get("shape")
    if not isinstance(shape, list) or not shape or not all(type(side) is int and side >= 1 for side in shape):
        raise ValueError(f"the shape of its inputs is {shape!r}")
    if math.prod(shape) > LARGEST:
        raise ValueError(f"its inputs are of shape {shape}, over {LARGEST:,} numbers")
    kind = told.word("kind", INPUTS)
    if {"image": 3, "vector": 1}.get(kind, len(shape)) != len(shape):
        raise ValueError(f"its inputs are {kind}s of shape {shape}")
    is_image = kind == "image"
    resize = told.count("resize") if is_image and told.get("resize") is not None else None
    if resize is not None and (resize < max(shape[1:]) or 3 * resize**2 > LARGEST or shape[0] != 3):
        raise ValueError(f"images are resized to {resize} for a shape of {shape}")
    return Input(kind, tuple(shape), told.word("colour", COLOURS) if is_image else "", resize)


def _match(told: _Told, dim: int) -> tuple[Match, int]:
    """The match model, and how many terms its expansion has."""
    if told.word("kind", ("curve", "evidence")) == "evidence":
        rarity = told.number("rarity", above=0.0) if "rarity" in told else 0.0
        match = Evidence(told.number("log_odds"), told.number("temper", above=0.0), rarity, "clarity" in told)
        if dim <= (rarity > 0) + match.clarity:
            raise ValueError(f"its embeddings have {dim} dimensions, none of which tells identities apart")
        return match, 1
    widths, weights = told.numbers("widths"), told.numbers("weights")
    if len(widths) != len(weights) or len(widths) > MOST_TERMS or not (widths > 0).all():
        raise ValueError(f"the expansion of its match curve has {len(widths)} widths and {len(weights)} weights")
    scale, chord_end = told.number("scale", above=0.0), told.number("chord_end")
    return Curve(scale, told.number("bias"), widths, weights, max(chord_end, 0.0)), len(widths)


def _calibration(told: _Told) -> Calibration:
    base_rate, reject, accept = (told.number(key) for key in ("base_rate", "reject_below", "accept_from"))
    if not 0 < base_rate < 1 or reject > accept:
        raise ValueError(f"pairs are rejected below {reject:g}, accepted from {accept:g}, at a base rate {base_rate:g}")
    return Calibration(_calibrator(told.table("calibrator")), base_rate, reject, accept)


def _calibrator(told: _Told) -> Calibrator:
    if told.word("kind", ("temperature", "isotonic")) == "temperature":
        return Temperature(told.number("temperature", above=0.0), told.number("shift"))
    scores, values = told.numbers("scores"), told.numbers("values")
    if len(scores) != len(values) or (np.diff(scores) <= 0).any() or (np.diff(values) <= 0).any():
        raise ValueError("its calibration is no rising function")
    return Isotonic(scores, values)

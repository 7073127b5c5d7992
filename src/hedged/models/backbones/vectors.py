"""The backbone of vectors that another model made: they are the features, as they are."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, final

from pydantic import model_validator
from torch import Tensor

from hedged.errors import ShapeError, ValueRangeError
from hedged.models.backbones.backbone import Backbone
from hedged.models.config import ModelConfig
from hedged.models.evidence.head import EvidenceHead, EvidenceShape
from hedged.models.heads import Head


@final
class Vectors(Backbone):
    """x ↦ x: vectors `(B, F)` of any model. The head is all there is to learn.

    Args:
        size: F, the length of a vector.

    >>> import torch
    >>> Vectors(size=2)(torch.tensor([[1.0, 30.0]]))
    tensor([[ 1., 30.]])
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueRangeError(f"a vector has at least one feature, got {size}")
        super().__init__((size,), features=size)

    def forward(self, inputs: Tensor) -> Tensor:
        if inputs.ndim != 2 or inputs.shape[1] != self.features:
            raise ShapeError(f"this network takes vectors of shape (B, {self.features}), got {tuple(inputs.shape)}")
        return inputs

    def settings(self) -> dict[str, Any]:
        return {"backbone": "vectors"}


@final
class VectorsConfig(ModelConfig):
    """backbone = "vectors": vectors of a model that is not trained any more, as they are.

    Args:
        evidence: the shape of head = "evidence", which `hedged.retrofit` fits to them; no other head has it.
    """

    takes: ClassVar[Literal["vectors"]] = "vectors"
    backbone: Literal["vectors"] = "vectors"
    evidence: EvidenceShape | None = None

    @model_validator(mode="after")
    def _evidence_fits_head(self) -> Self:
        if self.evidence is None:
            return self
        if self.head != EvidenceHead.kind:
            raise ValueError(f'evidence is the shape of head = "evidence", got head = "{self.head}": leave it out')
        if self.dim != self.evidence.dim:
            raise ValueError(f"the head has {self.evidence.dim} dimensions in all, got dim = {self.dim}")
        return self

    def build(self, shape: tuple[int, ...]) -> Vectors:
        return Vectors(shape[0])

    def build_head(self, features: int) -> Head:
        return super().build_head(features) if self.evidence is None else EvidenceHead.blank(features, self.evidence)

"""The shape of a network in words: what a config says, what a saved model remembers, and how to build it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from torch import nn

from hedged.backbones import MobileNet, Shallow, ShallowHidden
from hedged.heads import GaussianHead, Head, MixtureHead, PointHead

Positive = Annotated[int, Field(ge=1)]
Width = Annotated[int, Field(ge=1, le=2**16)]  # of a layer: more is a slip, and would not fit in memory
LISTED = Field(strict=False)  # TOML and JSON have lists, not tuples

SIZES: Mapping[str, tuple[str, ...]] = {  # the settings that each backbone has, and others have not
    "shallow": ("channels", "hidden"),
    "shallow-hidden": ("channels", "hidden"),
    "mobilenet": ("width",),
}


class Network(BaseModel):
    """Backbone and head by name and size: all that does not depend on the images."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    backbone: Literal["shallow", "shallow-hidden", "mobilenet"] = "shallow-hidden"
    channels: Annotated[tuple[Width, Width], LISTED] = (8, 16)
    hidden: Width = 512  # units of the hidden layer, if the backbone has one
    width: Annotated[float, Field(gt=0)] = 0.25  # of a MobileNet, as a share of the full one
    head: Literal["point", "gaussian", "mixture"] = "gaussian"
    dim: Width = 2
    components: Width = 1

    @model_validator(mode="after")
    def _components_fit_head(self) -> Self:
        if self.components > 1 and self.head != "mixture":
            raise ValueError(f'components = {self.components} needs head = "mixture", got head = "{self.head}"')
        return self

    @model_validator(mode="after")
    def _sizes_are_of_the_backbone(self) -> Self:
        if others := sorted(self._left_out() & self.model_fields_set):
            raise ValueError(f'backbone = "{self.backbone}" has no setting {", ".join(others)}: leave it out')
        return self

    @model_serializer(mode="wrap")
    def _without_sizes_of_others(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A description says nothing of what this backbone does not have, and stays as it is when others are added."""
        content: dict[str, Any] = dump(self)
        return {name: value for name, value in content.items() if name not in self._left_out()}

    def _left_out(self) -> set[str]:
        return {size for sizes in SIZES.values() for size in sizes} - set(SIZES[self.backbone])


class Architecture(Network):
    """A network for images of one shape.

    >>> backbone, head = Architecture(head="mixture", components=2, dim=3).build()
    >>> head.components, head.dim
    (2, 3)
    """

    shape: Annotated[tuple[Width, Width, Width], LISTED] = (1, 28, 56)  # channels, height, width
    resize: Width | None = None  # the shorter edge of an image before its middle is taken; none: its size must fit

    @model_serializer(mode="wrap")
    def _without_what_it_has_not(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As for a network; no word of resizing either, where there is none."""
        content = self._without_sizes_of_others(dump)
        return {name: value for name, value in content.items() if name != "resize" or value is not None}

    def build_backbone(self) -> Shallow | ShallowHidden | MobileNet:
        if self.backbone == "mobilenet":
            return MobileNet(self.shape, self.width)
        if self.backbone == "shallow":
            return Shallow(self.shape, self.channels)
        return ShallowHidden(self.shape, self.channels, self.hidden)

    def build_head(self, features: int) -> Head:
        if self.head == "mixture":
            return MixtureHead(features, self.dim, self.components)
        return {"point": PointHead, "gaussian": GaussianHead}[self.head](features, self.dim)

    def build(self) -> tuple[nn.Module, Head]:
        """A backbone and a head with fresh weights, drawn from torch's default generator."""
        backbone = self.build_backbone()
        return backbone, self.build_head(backbone.features)

"""The shape of a network in words: what a config says, what a saved model remembers, and how to build it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from torch import nn

from hedged.errors import ConfigError
from hedged.models.backbones import Frozen, FrozenHidden, MobileNet, Shallow, ShallowHidden, Wrapped, timm_backbone
from hedged.models.heads import GaussianHead, Head, MixtureHead, PointHead

Positive = Annotated[int, Field(ge=1)]
BackboneName = Literal["shallow", "shallow-hidden", "mobilenet", "frozen", "frozen-hidden", "timm", "module"]
Backbone = Shallow | ShallowHidden | MobileNet | Frozen | FrozenHidden | Wrapped
Width = Annotated[int, Field(ge=1, le=2**16)]  # of a layer: more is a slip, and would not fit in memory
LISTED = Field(strict=False)  # TOML and JSON have lists, not tuples

SIZES: Mapping[str, tuple[str, ...]] = {  # the settings that each backbone has, and others have not
    "shallow": ("channels", "hidden"),
    "shallow-hidden": ("channels", "hidden"),
    "mobilenet": ("width",),
    "frozen": (),
    "frozen-hidden": ("hidden",),
    "timm": ("name", "pretrained"),
    "module": (),
}


class Network(BaseModel):
    """Backbone and head by name and size: all that does not depend on the images."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # "frozen" takes vectors of another model; "module" is a network of the user's own, given from Python.
    backbone: BackboneName = "shallow-hidden"
    channels: Annotated[tuple[Width, Width], LISTED] = (8, 16)
    hidden: Width = 512  # units of the hidden layer, if the backbone has one
    width: Annotated[float, Field(gt=0)] = 0.25  # of a MobileNet, as a share of the full one
    name: str = "resnet18"  # of a network of timm
    pretrained: bool = True  # whether to start from the weights that timm has for it
    head: Literal["point", "gaussian", "mixture"] = "gaussian"
    dim: Width = 2
    components: Width = 1
    mirrored: bool = False  # whether an image is embedded together with its mirror image, if that shows the same

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

    @model_validator(mode="after")
    def _only_images_have_mirror_images(self) -> Self:
        if self.mirrored and self.takes_vectors:
            raise ValueError(f'mirrored = true is for images, and backbone = "{self.backbone}" takes vectors')
        return self

    @model_serializer(mode="wrap")
    def _without_sizes_of_others(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A description says nothing of what this backbone does not have, and stays as it is when others are added."""
        content: dict[str, Any] = dump(self)
        return {name: value for name, value in content.items() if name not in self._left_out()}

    @property
    def takes_vectors(self) -> bool:
        """Whether the backbone is made for vectors, not for images."""
        return self.backbone in ("frozen", "frozen-hidden")

    def _left_out(self) -> set[str]:
        return {size for sizes in SIZES.values() for size in sizes} - set(SIZES[self.backbone])


class Architecture(Network):
    """A network for images of one shape, or for vectors of one length.

    >>> backbone, head = Architecture(head="mixture", components=2, dim=3).build()
    >>> head.components, head.dim
    (2, 3)
    """

    shape: Annotated[tuple[Width, ...], LISTED] = (1, 28, 56)  # channels, height, width; or the length of vectors
    resize: Width | None = None  # the shorter edge of an image before its middle is taken; none: its size must fit

    @model_serializer(mode="wrap")
    def _without_what_it_has_not(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """As for a network; no word of resizing or mirroring either, where there is none."""
        content = self._without_sizes_of_others(dump)
        return {name: value for name, value in content.items() if name not in ("resize", "mirrored") or value}

    @model_validator(mode="after")
    def _shape_is_of_the_backbone(self) -> Self:
        wanted = 1 if self.takes_vectors else (len(self.shape) or 1) if self.backbone == "module" else 3
        if len(self.shape) != wanted:
            kind = "images (channels, height, width)" if wanted == 3 else "vectors (length,)"
            raise ValueError(f'backbone = "{self.backbone}" takes {kind}, got shape = {self.shape}')
        if self.mirrored and len(self.shape) != 3:
            raise ValueError(f"mirrored = true is for images (channels, height, width), got shape = {self.shape}")
        return self

    def build_backbone(self, module: nn.Module | None = None) -> Backbone:
        """The backbone with fresh weights; `module` is the network that backbone = "module" stands for."""
        if (self.backbone == "module") != (module is not None):
            raise ConfigError(
                'a network of your own goes with backbone = "module", and is given from Python each time: '
                "train(config, data, run, backbone=network), Embedder.load(run, backbone=network)"
            )
        if module is not None:
            return Wrapped(module, self.shape)
        if self.backbone == "timm":
            return timm_backbone(self.name, self.shape, self.pretrained)
        return self._build_own()

    def _build_own(self) -> Backbone:
        if self.backbone == "frozen":
            return Frozen(self.shape[0])
        if self.backbone == "frozen-hidden":
            return FrozenHidden(self.shape[0], self.hidden)
        shape = (self.shape[0], self.shape[1], self.shape[2])
        if self.backbone == "mobilenet":
            return MobileNet(shape, self.width)
        if self.backbone == "shallow":
            return Shallow(shape, self.channels)
        return ShallowHidden(shape, self.channels, self.hidden)

    def build_head(self, features: int) -> Head:
        if self.head == "mixture":
            return MixtureHead(features, self.dim, self.components)
        return {"point": PointHead, "gaussian": GaussianHead}[self.head](features, self.dim)

    def build(self, module: nn.Module | None = None) -> tuple[nn.Module, Head]:
        """A backbone and a head with fresh weights, drawn from torch's default generator."""
        backbone = self.build_backbone(module)
        return backbone, self.build_head(backbone.features)

"""The shape of a network in words: the section [model] of a config, and what a saved model remembers of it.

Each backbone has its own section, with its own keys, in its own file below `backbones/`: a subclass of `ModelConfig`
whose key `backbone` has one possible value, its name. Defining the class is enough to make the name known. What every
section shares, the head and the views, is here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, final

from pydantic import (
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)
from torch import nn

from hedged._section import KindSection, Section, Width
from hedged.errors import ConfigError
from hedged.models.heads import Head
from hedged.models.views import Mirrored, OneView, Views

if TYPE_CHECKING:
    from hedged.models.backbones import Backbone  # each of which imports this file, to define its section

LISTED = Field(strict=False)  # TOML and JSON have lists, not tuples
RECIPE_DISAGREEMENT = 0.25  # what mirrored = true stands for; chosen on photos (docs/recipe.md)
OWN_NETWORK = (
    'a network of your own goes with backbone = "module", and is given from Python each time: '
    "train(config, data, run, backbone=network), Embedder.load(run, backbone=network)"
)


class ModelConfig(KindSection):
    """The section [model] of a config: a backbone by name, with its own keys, and the head on top of it.

    `ModelConfig.model_validate` takes the keys of any section and gives the one that `backbone` names.

    Args:
        backbone: the name of the section's backbone.
        head: the kind of distribution that an input becomes: "point", "gaussian", "mixture", "full" or "low-rank".
        dim: D, the dimensions of the embedding space.
        components: C, the Gaussians of a mixture.
        rank: R, the factors of a low-rank covariance: 1 unless given; None for all other heads.
        mirrored: whether an image is embedded together with its mirror image, which then shows the same identity.

    >>> ModelConfig.model_validate({"backbone": "mobilenet", "dim": 20})
    MobileNetConfig(backbone='mobilenet', head='gaussian', dim=20, components=1, rank=None, mirrored=False, width=0.25)
    """

    kind_key: ClassVar[str] = "model.backbone"
    default_kind: ClassVar[str] = "shallow-hidden"
    takes: ClassVar[Literal["images", "vectors", "any"]] = "images"

    backbone: str
    head: str = "gaussian"
    dim: Width = 2
    components: Width = 1
    rank: Width | None = None
    mirrored: bool = False

    @abstractmethod
    def build(self, shape: tuple[int, ...]) -> Backbone:
        """The backbone with fresh weights, drawn from torch's default generator.

        Args:
            shape: of one input: (channels, height, width) of an image, (length,) of a vector.
        """

    def wrap(self, network: nn.Module, shape: tuple[int, ...]) -> Backbone:
        """A network of the user's own as the backbone; only backbone = "module" has one.

        Args:
            network: inputs `(B, *shape)` to features `(B, F)`.
            shape: of one input.
        """
        raise ConfigError(OWN_NETWORK)

    def without_download(self) -> ModelConfig:
        """The same network, to be filled with saved weights: none are fetched to start from."""
        return self

    def build_head(self, features: int) -> Head:
        """The head with fresh weights.

        Args:
            features: F, how many the backbone returns.
        """
        kind = Head.kinds[self.head]
        if self.rank is not None:
            return kind.build_of_rank(features, self.dim, self.rank)
        return kind.build(features, self.dim, self.components)

    @property
    def views(self) -> Views:
        """What `Embedder.embed` looks at: mirrored = true counts a quarter of what two mirror images disagree on.

        Of posteriors, which evidence compares, what the two tell adds up.
        """
        if not self.mirrored:
            return OneView()
        return Mirrored(None if Head.kinds[self.head].is_posterior else RECIPE_DISAGREEMENT)

    @model_validator(mode="before")
    @classmethod
    def _low_rank_is_at_least_one(cls, content: Any) -> Any:
        kind = Head.kinds.get(content.get("head", "")) if isinstance(content, Mapping) else None
        return {"rank": 1, **content} if kind is not None and kind.has_rank else content

    @field_validator("head")
    @classmethod
    def _head_is_known(cls, head: str) -> str:
        if head not in Head.kinds:
            raise ValueError(f"model.head is one of {', '.join(Head.kinds)}, got {head!r}")
        return head

    @model_validator(mode="after")
    def _components_fit_head(self) -> Self:
        if self.components > 1 and not Head.kinds[self.head].has_components:
            raise ValueError(f'components = {self.components} needs head = "mixture", got head = "{self.head}"')
        return self

    @model_validator(mode="after")
    def _covariance_fits_dim(self) -> Self:
        kind = Head.kinds[self.head]
        if kind.most_dims is not None and self.dim > kind.most_dims:
            raise ValueError(
                f'head = "{self.head}" takes up to {kind.most_dims} dimensions, got dim = {self.dim}: '
                'use head = "low-rank"'
            )
        if self.rank is not None and not kind.has_rank:
            raise ValueError(f'rank = {self.rank} needs head = "low-rank", got head = "{self.head}"')
        if self.rank is not None and self.rank >= self.dim:
            raise ValueError(f"a covariance in dim = {self.dim} dimensions has fewer factors, got rank = {self.rank}")
        if self.mirrored and (kind.has_rank or kind.most_dims is not None):
            raise ValueError(f'mirrored = true joins diagonal covariances, and head = "{self.head}" has others')
        return self

    @model_validator(mode="after")
    def _only_images_have_mirror_images(self) -> Self:
        if self.mirrored and self.takes == "vectors":
            raise ValueError(f'mirrored = true is for images, and backbone = "{self.backbone}" takes vectors')
        return self

    @model_serializer(mode="wrap")
    def _own_keys_first(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The name of the backbone, its own keys, then those that all sections share; none that has no value."""
        content: dict[str, Any] = {key: value for key, value in dump(self).items() if value is not None}
        shared = {key: content[key] for key in ModelConfig.model_fields if key != "backbone" and key in content}
        return {key: value for key, value in content.items() if key not in shared} | shared


@final
class Architecture(Section):
    """A network for images of one shape, or for vectors of one length: what a saved model is built from.

    Its keys are those of the section [model], and two more; it is written as one flat table of them.

    Args:
        shape: of one input: (channels, height, width) of an image, (length,) of a vector; () if it is not known, as
            a network of your own may leave it.
        resize: the shorter edge in pixels that an image is brought to before its middle is taken; None: images have to
            be of the right size.
        settings: the keys of [model], such as `backbone`, `head` and `dim`.

    >>> backbone, head = Architecture(head="mixture", components=2, dim=3).build()
    >>> head.components, head.dim
    (2, 3)
    """

    section: SerializeAsAny[ModelConfig]
    shape: Annotated[tuple[Width, ...], LISTED] = (1, 28, 56)
    resize: Width | None = None

    def __init__(self, *, shape: tuple[int, ...] = (1, 28, 56), resize: int | None = None, **settings: Any) -> None:
        content: dict[str, Any] = {"shape": shape, "resize": resize, **settings}
        super().__init__(**content)

    @property
    def backbone(self) -> str:
        """The name of the backbone."""
        return self.section.backbone

    @property
    def head(self) -> str:
        """The kind of the head."""
        return self.section.head

    @property
    def dim(self) -> int:
        """D, the dimensions of the embedding space."""
        return self.section.dim

    @property
    def components(self) -> int:
        """C, the Gaussians of an embedding."""
        return self.section.components

    @model_validator(mode="before")
    @classmethod
    def _gather_section(cls, content: Any) -> Any:
        if not isinstance(content, Mapping) or "section" in content:
            return content
        own = {key: content[key] for key in ("shape", "resize") if key in content}
        return {**own, "section": {key: value for key, value in content.items() if key not in own}}

    @model_serializer(mode="plain")
    def _flat(self) -> dict[str, Any]:
        """The keys of the section and those of its inputs; no word of resizing or mirroring where there is none."""
        content = {**self.section.model_dump(mode="json"), "shape": list(self.shape), "resize": self.resize}
        return {key: value for key, value in content.items() if key not in ("resize", "mirrored") or value}

    @model_validator(mode="after")
    def _shape_is_of_the_backbone(self) -> Self:
        name, section, shape = self.backbone, self.section, self.shape
        sides, kind = {"images": (3, "images (channels, height, width)"), "vectors": (1, "vectors (length,)")}.get(
            section.takes, (len(shape), "any")
        )
        if len(shape) != sides:
            raise ValueError(f'backbone = "{name}" takes {kind}, got shape = {shape}')
        if section.mirrored and len(shape) not in (0, 3):
            raise ValueError(f"mirrored = true is for images (channels, height, width), got shape = {shape}")
        if self.resize and len(shape) != 3:
            raise ValueError(f"resize = {self.resize} is for images (channels, height, width), got shape = {shape}")
        return self

    def build_backbone(self, network: nn.Module | None = None) -> Backbone:
        """The backbone with fresh weights.

        Args:
            network: the one that backbone = "module" stands for; None for all others.
        """
        if network is not None:
            return self.section.wrap(network, self.shape)
        return self.section.build(self.shape)

    def build(self, network: nn.Module | None = None) -> tuple[Backbone, Head]:
        """A backbone and a head with fresh weights, drawn from torch's default generator.

        Args:
            network: the one that backbone = "module" stands for; None for all others.
        """
        backbone = self.build_backbone(network)
        return backbone, self.section.build_head(backbone.features)

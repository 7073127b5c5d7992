"""What a section of a config is: keys with types, checked strictly; and a section of which there are several kinds."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler

Share = Annotated[float, Field(ge=0, lt=1)]  # of a set, never all of it
Chance = Annotated[float, Field(ge=0, le=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[int, Field(ge=1)]
Width = Annotated[int, Field(ge=1, le=2**16)]  # of a layer, an image or a vector: more is a slip


class Section(BaseModel):
    """A section of a config. Unknown keys and values of another type are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class KindSection(Section, ABC):
    """A section of several kinds, each with its own keys: one key holds the name of the kind.

    A section states that key and the kind that it has by default:

        class DataSection(KindSection):
            kind_key: ClassVar[str] = "data.source"
            default_kind: ClassVar[str] = "mnist"
            source: str

    Each subclass whose key is a `Literal` is a kind, known by the names in the literal once it is defined:

        class TonesConfig(DataSection):
            source: Literal["tones"]

    `DataSection.model_validate` then takes the keys of any kind, and gives the one that they name.
    """

    kind_key: ClassVar[str]  # section and key, as in "data.source"
    default_kind: ClassVar[str]
    kinds: ClassVar[dict[str, Any]]  # subclasses by name, filled as they are defined

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Begin a section, or make a kind of one known under its names."""
        super().__pydantic_init_subclass__(**kwargs)
        if "kind_key" in cls.__dict__:
            cls.kinds = {}
        cls.kinds.update(dict.fromkeys(cls._names(), cls))

    @classmethod
    def kind_of(cls, content: Mapping[str, Any]) -> type[Self] | None:
        """The kind that plain data names, if there is one.

        Args:
            content: the keys of the section.
        """
        name = content.get(cls._key(), cls.default_kind)
        kind: type[Self] | None = cls.kinds.get(name) if isinstance(name, str) else None
        return kind

    @classmethod
    def _key(cls) -> str:
        return cls.kind_key.partition(".")[2]

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        """Of the kind; none if the class is only what several kinds share."""
        annotation = cls.model_fields[cls._key()].annotation
        return get_args(annotation) if get_origin(annotation) is Literal else ()

    @model_validator(mode="wrap")
    @classmethod
    def _read_the_kind_that_is_named(cls, content: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if cls._names() or not isinstance(content, Mapping):
            return handler(content)
        kind = cls.kind_of(content)
        if kind is None:
            known = ", ".join(sorted(cls.kinds))
            raise ValueError(f"{cls.kind_key} is one of {known}, got {content[cls._key()]!r}")
        return kind.model_validate(content)

    @model_validator(mode="before")
    @classmethod
    def _refuse_keys_of_other_kinds(cls, content: Any) -> Any:
        if isinstance(content, Mapping) and cls._names():
            known = {key for kind in cls.kinds.values() for key in kind.model_fields}
            others = sorted(known.intersection(content).difference(cls.model_fields))
            if others:
                name = content.get(cls._key(), cls._names()[0])
                raise ValueError(f'{cls.kind_key} = "{name}" has no setting {", ".join(others)}: leave it out')
        return content

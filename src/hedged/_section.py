"""What every section of a config is: keys with types, checked strictly when it is read."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, lt=1)]  # of a set, never all of it
Chance = Annotated[float, Field(ge=0, le=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[int, Field(ge=1)]
Width = Annotated[int, Field(ge=1, le=2**16)]  # of a layer, an image or a vector: more is a slip


class Section(BaseModel):
    """A section of a config. Unknown keys and values of another type are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

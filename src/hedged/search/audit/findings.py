"""What an audit of a gallery finds, each with its probability."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final


class Mislabelled(NamedTuple):
    """An item whose label is likely wrong.

    Args:
        id: The item.
        label: Its label.
        probability: That it shows somebody else.
        likelier: The label of the identity that it matches best of all others.
        likelier_probability: That it shows this one.
    """

    id: str
    label: str
    probability: float
    likelier: str
    likelier_probability: float

    @property
    def words(self) -> str:
        """The finding in words."""
        return f"{self.id} is not {self.label}, more likely {self.likelier} ({self.likelier_probability:.2f})"


class Duplicates(NamedTuple):
    """Two items under two names that are each other's best match and likely show one identity.

    Args:
        first: The one item.
        second: The other.
        first_label: Its label.
        second_label: That of the other.
        probability: That both show one identity.
    """

    first: str
    second: str
    first_label: str
    second_label: str
    probability: float

    @property
    def words(self) -> str:
        """The finding in words."""
        return f"{self.first} ({self.first_label}) is {self.second} ({self.second_label})"


class Divided(NamedTuple):
    """A label that likely stands for two identities.

    Args:
        label: The label.
        probability: That its items show two identities, not one.
        first: Items of the one.
        second: Items of the other, not more than of the first.
    """

    label: str
    probability: float
    first: list[str]
    second: list[str]

    @property
    def words(self) -> str:
        """The finding in words."""
        return (
            f"{self.label} is two, of {len(self.first)} and {len(self.second)} items, such as {self.first[0]} and "
            f"{self.second[0]}"
        )


class Poor(NamedTuple):
    """An item that says so little that it matches everybody.

    Args:
        id: The item.
        label: Its label.
        probability: That it matches an item of somebody else, as the model sees it; the mean over such items.
        uncertainty: Its η.
    """

    id: str
    label: str
    probability: float
    uncertainty: float

    @property
    def words(self) -> str:
        """The finding in words."""
        return f"{self.id} ({self.label}), uncertainty {self.uncertainty:.3f}"


Finding: TypeAlias = Mislabelled | Duplicates | Divided | Poor
"""Anything that an audit finds."""


@final
@dataclass(frozen=True)
class Audit:
    """What was found in a gallery, the likeliest first.

    Args:
        items: How many items with a label were looked at.
        identities: How many labels they have.
        mislabelled: Items whose label is likely wrong.
        duplicates: Pairs of items under two names that likely show one identity.
        divided: Labels that likely stand for two identities.
        poor: Items that match everybody.
    """

    items: int
    identities: int
    mislabelled: list[Mislabelled]
    duplicates: list[Duplicates]
    divided: list[Divided]
    poor: list[Poor]

    @property
    def tells_little(self) -> bool:
        """Whether more than half of the items match everybody: then it is likely the model that is poor."""
        return 2 * len(self.poor) > self.items

    def __len__(self) -> int:
        """How many findings there are."""
        return len(self.mislabelled) + len(self.duplicates) + len(self.divided) + len(self.poor)

    def about(self, ids: Collection[str]) -> Audit:
        """The findings that concern some items; of labels that may be two, those that hold one of them.

        Args:
            ids: The items.
        """
        return Audit(
            self.items,
            self.identities,
            [one for one in self.mislabelled if one.id in ids],
            [one for one in self.duplicates if one.first in ids or one.second in ids],
            [one for one in self.divided if any(each in ids for each in (*one.first, *one.second))],
            [one for one in self.poor if one.id in ids],
        )

    def findings(self) -> list[Finding]:
        """All of them, kind by kind."""
        return [*self.mislabelled, *self.duplicates, *self.divided, *self.poor]

    def content(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        found = {name: [one._asdict() for one in getattr(self, name)] for name in KINDS}
        return {"items": self.items, "identities": self.identities, **found}


KINDS = ("mislabelled", "duplicates", "divided", "poor")

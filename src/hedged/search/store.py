"""The interface of every store: rows are added, replaced, removed, filtered and read in batches.

`open_store` and `create_store` find the kind of store by its address.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

from hedged.errors import ConfigError, StoreError
from hedged.search.rows import OWN_KEYS, Batch, Described, Filter, Header, Keys, Rows

if TYPE_CHECKING:
    from hedged.search.index import Index, Plan

ROWS_PER_BATCH = 4096  # read at a time


@final
@dataclass(frozen=True)
class Salvage:
    """What can be read of a damaged store.

    Args:
        name: Where the store is, for messages.
        header: What its embeddings have in common; None if that is lost.
        batches: The rows that are whole.
        lost: What is wrong with the others; all of it is known once all batches were read.
    """

    name: str
    header: Header | None
    batches: Iterator[Batch]
    lost: list[str]


class Closing(ABC):
    """Something that holds a file or a connection: `with` closes it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file or the connection."""

    @final
    def __enter__(self) -> Self:
        return self

    @final
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Store(Closing):
    """Embeddings of one model with ids, labels and metadata, on a disk or a server.

    When a method that writes returns, what it wrote is on disk, all of it; if it raises, nothing of it is. Rows have
    keys, integers that are never used again. A store is used by one thread; others open it for themselves.

    Subclasses that can be opened say which addresses are theirs: `class ToyStore(Store, scheme="toy")` is found by
    `toy://...`; the empty scheme stands for the path of a file.
    """

    _schemes: ClassVar[dict[str, type[Store]]] = {}
    first_stages: ClassVar[tuple[str, ...]] = ("exact",)
    """The ways to find candidates that it has."""

    def __init_subclass__(cls, scheme: str | Sequence[str] = (), **rest: Any) -> None:
        super().__init_subclass__(**rest)
        for one in (scheme,) if isinstance(scheme, str) else scheme:
            Store._schemes[one] = cls

    @classmethod
    @abstractmethod
    def open(cls, location: str) -> Self:
        """The store at an address.

        Args:
            location: The address, scheme and all.
        """

    @classmethod
    @abstractmethod
    def create(cls, location: str, header: Header) -> Self:
        """A new store, empty; refused if there is one already.

        Args:
            location: The address, scheme and all.
            header: What its embeddings will have in common.
        """

    @classmethod
    def build(cls, location: str, header: Header, parts: Iterable[Rows]) -> int:
        """Make a store of rows, and return how many there are.

        Unless a subclass knows better, it is there before it has all of them.

        Args:
            location: The address, scheme and all.
            header: What its embeddings have in common.
            parts: Its rows, some at a time.
        """
        with cls.create(location, header) as store:
            for rows in parts:
                store.add(rows)
            return store.count()

    @classmethod
    @abstractmethod
    def refuse_existing(cls, location: str) -> None:
        """Raise an error if there is a store, or anything else, at an address.

        Args:
            location: The address, scheme and all.
        """

    @final
    @classmethod
    def check_plan(cls, plan: Plan | None) -> None:
        """Refuse a first stage that such a store does not have.

        Args:
            plan: How candidates are to be found; None: as was chosen before.
        """
        if plan and plan.kind not in cls.first_stages:
            raise ConfigError(
                f"this kind of store has no first stage {plan.kind}: choose {' or '.join(cls.first_stages)}"
            )

    @classmethod
    @contextmanager
    def reserve(cls, location: str) -> Iterator[None]:
        """The right to build a store at an address, while it is being built; refused if another has it.

        Unless a subclass knows better, all that is refused is an address where something is already.

        Args:
            location: The address, scheme and all.
        """
        cls.refuse_existing(location)
        yield

    @classmethod
    @contextmanager
    def salvaging(cls, location: str, header: Header | None = None) -> Iterator[Salvage]:
        """What can be read of a damaged store, which is left as it is.

        Unless a subclass knows better, all rows or an error.

        Args:
            location: The address, scheme and all.
            header: What its embeddings have in common, if its own header is damaged.
        """
        with cls.open(location) as store:
            yield Salvage(store.name, store.header, store.batches(), [])

    @property
    @abstractmethod
    def name(self) -> str:
        """Where the store is, for messages: an address without secrets."""

    def how_to_move(self) -> str:
        """What to do to have the store elsewhere; empty if nothing is known of that."""
        return ""

    @property
    @abstractmethod
    def header(self) -> Header:
        """What all its embeddings have in common."""

    def moment(self) -> Hashable:
        """Something that is another after every write, by whomever: as long as it is equal, nothing has changed.

        Unless a subclass knows better, no two moments are equal.
        """
        return object()

    def index(self, plan: Plan | None = None, ef_search: int | None = None) -> Index:
        """The way to search in this store. By default every row is compared, which is exact and slow.

        Args:
            plan: How candidates are found; None: as it was chosen before, else by looking at all rows.
            ef_search: How far a search in a graph looks around; None: the default of `hedged.search.index.EF_SEARCH`.
        """
        from hedged.search.index import ScanIndex, checked_ef_search

        checked_ef_search(ef_search)  # a scan has no graph, but refuses what every other index refuses
        return ScanIndex(self, plan)

    def check_writable(self) -> None:
        """Raise an error if nothing can be written, before the work on what is to be written is done.

        Unless a subclass knows better, that is found out when it is written.
        """

    def wait_at_most(self, seconds: float) -> None:
        """How long a write waits for another writer before it is refused, instead of half a minute.

        Args:
            seconds: As long.
        """

    @final
    def add(self, rows: Rows) -> None:
        """Add rows whose ids are new.

        Args:
            rows: The rows; if one of their ids is taken, nothing is added.
        """
        self.header.check(rows.z, rows.fingerprint)
        self._write(rows, replace=False)

    @final
    def upsert(self, rows: Rows) -> None:
        """Add rows, and replace those whose ids exist.

        Args:
            rows: The rows.
        """
        self.header.check(rows.z, rows.fingerprint)
        self._write(rows, replace=True)

    @abstractmethod
    def remove(self, ids: Iterable[str]) -> int:
        """Remove rows, and return how many there were.

        Args:
            ids: Their ids; those that no row has are passed over.
        """

    @abstractmethod
    def reading(self) -> AbstractContextManager[None]:
        """A snapshot: all that is read inside is of one moment, whatever is written meanwhile."""

    @final
    def count(self, where: Filter = ()) -> int:
        """How many rows pass a filter.

        Args:
            where: The filter.
        """
        with self.reading():
            self.check(where)
            return self._count(where)

    @final
    def keys(self, where: Filter = ()) -> Keys:
        """The keys of the rows that pass a filter, in increasing order.

        Args:
            where: The filter.
        """
        with self.reading():
            self.check(where)
            return self._keys(where)

    @final
    def batches(self, where: Filter = (), size: int = ROWS_PER_BATCH) -> Iterator[Batch]:
        """The rows that pass a filter, in the order of their keys, all of one moment.

        Args:
            where: The filter.
            size: How many rows a batch has at most.
        """
        with self.reading():
            self.check(where)
            yield from self._batches(where, size)

    @abstractmethod
    def describe(self, keys: Sequence[int]) -> Mapping[int, Described]:
        """Rows by key, without their embeddings.

        Args:
            keys: Which rows; those that were removed are left out.
        """

    @abstractmethod
    def label_count(self) -> int:
        """How many different labels there are."""

    @abstractmethod
    def verify(self) -> None:
        """Read everything, and raise an error if anything is not as it was written."""

    @abstractmethod
    def metadata_keys(self) -> list[str]:
        """The keys that the metadata of any row have, sorted."""

    @final
    def check(self, where: Filter) -> None:
        """Refuse a filter on a key that no row has.

        Args:
            where: The filter.
        """
        if isinstance(where, str):
            raise ConfigError(
                f"a filter is a list, such as [Where('year', '2021')], got the text {where!r}: give [parse_where(text)]"
            )
        for key, _ in where:
            if key not in OWN_KEYS and not self._has_key(key):
                known = ", ".join([*self.metadata_keys(), "label", "id"])
                raise ConfigError(f"no row of {self.name} has the key {key!r}: filter by one of {known}")

    @abstractmethod
    def _write(self, rows: Rows, replace: bool) -> None:
        """Write rows that have been checked, all or none; ids that exist are refused unless they are replaced."""

    @abstractmethod
    def _count(self, where: Filter) -> int: ...

    @abstractmethod
    def _keys(self, where: Filter) -> Keys: ...

    @abstractmethod
    def _batches(self, where: Filter, size: int) -> Iterator[Batch]: ...

    @abstractmethod
    def _has_key(self, key: str) -> bool: ...


def create_store(location: str | Path, header: Header) -> Store:
    """A new store for the embeddings of one model.

    Args:
        location: The path of a file, or an address such as `postgresql://host/database#name`.
        header: What its embeddings will have in common, such as `Header.of(embedder)`.
    """
    return _class_for(location).create(str(location), header)


def build_store(location: str | Path, header: Header, parts: Iterable[Rows]) -> int:
    """Make a store of rows, and return how many there are; a file appears with all of them or not at all.

    Args:
        location: The path of a file, or an address such as `postgresql://host/database#name`.
        header: What its embeddings have in common.
        parts: Its rows, some at a time.
    """
    return _class_for(location).build(str(location), header, parts)


def open_store(location: str | Path) -> Store:
    """The store at a path or an address.

    Args:
        location: The path of a file, or an address such as `postgresql://host/database#name`.
    """
    return _class_for(location).open(str(location))


def refuse_existing(location: str | Path) -> None:
    """Raise an error if a store cannot be created because something is there already, before any work is done.

    Args:
        location: The path of a file, or an address.
    """
    _class_for(location).refuse_existing(str(location))


def check_plan(location: str | Path, plan: Plan) -> None:
    """Refuse a first stage that the store at a path or an address will not have, before any work is done.

    Args:
        location: The path of a file, or an address.
        plan: How candidates are to be found.
    """
    _class_for(location).check_plan(plan)


def reserve(location: str | Path) -> AbstractContextManager[None]:
    """The right to build a store at a path or an address, until the end of `with`.

    It is refused if something is there already, or while another process builds a store there; a crash leaves nothing
    behind that would have to be cleaned up. `create_store` alone makes sure of all that for the moment of its call.

    Args:
        location: The path of a file, or an address.
    """
    return _class_for(location).reserve(str(location))


def salvaging(location: str | Path, header: Header | None = None) -> AbstractContextManager[Salvage]:
    """What can be read of a damaged store, until the end of `with`; the store is left as it is.

    Args:
        location: The path of a file, or an address.
        header: What its embeddings have in common, if its own header is damaged.
    """
    return _class_for(location).salvaging(str(location), header)


def _class_for(location: str | Path) -> type[Store]:
    """The kind of store that an address belongs to, by its scheme."""
    from hedged.search import engines

    if not isinstance(location, str | Path):
        raise StoreError(f"a store is named by the path of a file or an address, got {location!r}")
    for module in iter_modules(engines.__path__):
        if not module.name.startswith("_"):
            import_module(f"{engines.__name__}.{module.name}")
    scheme, separator, _ = str(location).partition("://")
    if _may_be_address(scheme if separator else str(location)) and scheme not in Store._schemes:
        raise StoreError(
            "this is neither the path of a file nor an address (it is not shown, for it may hold a password): an "
            "address reads postgresql://host/database#name"
        )
    found = Store._schemes.get(scheme if separator else "")
    if found is None and not re.fullmatch(r"[\w+.-]{1,20}", scheme):
        raise StoreError("there is no kind of store for such an address: it reads postgresql://host/database#name")
    if found is None:
        known = ", ".join(f"{one}://" for one in sorted(Store._schemes) if one)
        raise StoreError(f"there is no kind of store for {scheme}://: give the path of a file, or one of {known}")
    return found


def _may_be_address(text: str) -> bool:
    """Whether what has no scheme was meant as an address, such as `postgresql:/…` or `host=… password=…`."""
    schemes = {scheme for scheme in Store._schemes if scheme}
    with_login = re.match(rf"({'|'.join(map(re.escape, schemes))})[:/].*@", text, re.IGNORECASE)
    has_password = re.search(r"password\s*=", text, re.IGNORECASE)
    return bool(with_login or has_password) or text.partition(":")[0].lower() in schemes

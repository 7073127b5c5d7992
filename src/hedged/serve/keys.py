"""Keys of the service: who may read, who may write. The file holds hashes; a key is shown once, when it is made.

Keys are 256 random bits, so a plain hash is enough: there is nothing to guess. They are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple, Self, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hedged._files import write_json
from hedged._locks import owning
from hedged._reading import read_json
from hedged.errors import ConfigError, RunError

FORMAT = 1
WAIT = 10.0  # seconds for another process that changes the file
MAX_NAME = 100


class Role(StrEnum):
    """What a key allows; writers may read, too."""

    READ = "read"
    WRITE = "write"


class Caller(NamedTuple):
    """Who asks.

    Args:
        name: Of the key.
        role: What it allows.
    """

    name: str
    role: Role


class _Key(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    role: Role
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)]
    keys: list[_Key]


@final
class Keys:
    """The keys that open a service.

    Args:
        known: The keys, by their hashes.

    >>> key = Keys.new_key()
    >>> keys = Keys.of_one(key)
    >>> keys.caller(key).role, keys.caller("another")
    (<Role.WRITE: 'write'>, None)
    """

    def __init__(self, known: list[tuple[str, Caller]]) -> None:
        self._known = known

    @staticmethod
    def new_key() -> str:
        """A key that nobody can guess."""
        return secrets.token_urlsafe(32)

    @classmethod
    def of_one(cls, key: str) -> Self:
        """One key that allows everything.

        Args:
            key: The key.
        """
        return cls([(_hash(key), Caller("local", Role.WRITE))])

    @classmethod
    def read(cls, path: Path) -> Self:
        """The keys of a file.

        Args:
            path: The file.
        """
        found = cls([(one.sha256, Caller(one.name, one.role)) for one in _read(path).keys])
        if not found._known:
            raise ConfigError(
                f"{path} has no key, so nobody could use the service: add one with `hedged key {path} NAME`"
            )
        return found

    def caller(self, key: str) -> Caller | None:
        """Who has a key; None: nobody.

        Args:
            key: What was sent.
        """
        given, found = _hash(key), None
        for known, caller in self._known:  # all of them, whether or not one was found
            if hmac.compare_digest(known, given):
                found = caller
        return found


def add_key(path: Path, name: str, role: Role) -> str:
    """Make a key, keep its hash in a file, and return it: it cannot be read from there again.

    Args:
        path: The file, which is made if it is not there.
        name: Whose it is; shown in logs.
        role: What it allows.
    """
    if not name.isprintable() or not 0 < len(name) <= MAX_NAME:
        raise ConfigError(f"the name of a key has 1 to {MAX_NAME} printable characters, got {name!r}: choose another")
    key = Keys.new_key()
    with owning(path.with_name(f"{path.name}.lock"), lambda holder: _is_taken(path, holder), WAIT):
        known = _read(path).keys if path.exists() else []
        if any(one.name == name for one in known):
            raise ConfigError(
                f"{path} has a key named {name!r}: choose another name, or remove that one first (--remove)"
            )
        _write(path, [*known, _Key(name=name, role=role, sha256=_hash(key))])
    return key


def remove_key(path: Path, name: str) -> None:
    """Take a key out of a file; a service that runs uses the file as it was when it started.

    Args:
        path: The file.
        name: Whose it is.
    """
    with owning(path.with_name(f"{path.name}.lock"), lambda holder: _is_taken(path, holder), WAIT):
        known = _read(path).keys
        left = [one for one in known if one.name != name]
        if len(left) == len(known):
            names = ", ".join(repr(one.name) for one in known) or "none"
            raise ConfigError(f"{path} has no key named {name!r}: it has {names}")
        _write(path, left)


def list_keys(path: Path) -> list[Caller]:
    """Names and roles of the keys of a file.

    Args:
        path: The file.
    """
    return [Caller(one.name, one.role) for one in _read(path).keys]


def _read(path: Path) -> _File:
    try:
        return _File.model_validate(read_json(path))
    except FileNotFoundError:
        raise RunError(f"there is no file of keys {path}: make one with `hedged key {path} NAME`") from None
    except (OSError, ValidationError, ValueError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise RunError(
            f"{path} is no file of keys ({reason}): restore it, or make another with `hedged key`"
        ) from error


def _write(path: Path, keys: list[_Key]) -> None:
    write_json(path, _File(format=FORMAT, keys=keys).model_dump(mode="json"))
    os.chmod(path, 0o600)


def _is_taken(path: Path, holder: str) -> RunError:
    return RunError(f"{path} is being changed by {holder}: try again when it is done")


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()

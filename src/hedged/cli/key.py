"""`hedged key`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hedged.cli._output import examples, print_table, printable, say
from hedged.errors import ConfigError

EXAMPLES = examples(
    "hedged key keys.json front-end --role read",
    "hedged key keys.json enrolment --role write",
    "hedged key keys.json front-end --remove",
    "hedged key keys.json",
)


class KeyRole(StrEnum):
    """What a key allows."""

    READ = "read"
    WRITE = "write"


def key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of keys; it is made if it is not there.")],
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Whose key; without it, the names are listed.")
    ] = None,
    role: Annotated[
        KeyRole,
        typer.Option("--role", help="read: embed, match, search, identify, look; write: change the store, too."),
    ] = KeyRole.READ,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the key of that name.")] = False,
) -> None:
    """Make a key for `hedged serve --keys FILE`.

    The key is printed once; the file keeps a hash, from which it cannot be found. A service that runs reads the file at
    its start.
    """
    from hedged.serve.keys import Role, add_key, list_keys, remove_key

    if name is None:
        if remove:
            raise ConfigError("--remove needs the name of the key: `hedged key FILE NAME --remove`")
        print_table(str(file), ("name", "role"), [(printable(one.name), one.role.value) for one in list_keys(file)])
    elif remove:
        remove_key(file, name)
        say(f"removed {printable(name)}; restart the service")
    else:
        say(add_key(file, name, Role(role.value)))

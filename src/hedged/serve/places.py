"""Where the model and the store are: clients are not told, the log is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import final

from hedged.errors import HedgedError, StoreError

ELSEWHERE = "…"  # for a folder that is not named


@final
class Places:
    """Names for the model and the store in place of their paths and addresses.

    Args:
        run: The folder of the model.
        location: The path or address of the store, as it was given.
        called: What the store calls itself in messages.
    """

    def __init__(self, run: Path, location: str, called: str) -> None:
        self.store = short_name(called)
        self._is_address = "://" in location
        names = {location: self.store, called: self.store}
        for path in [run] if self._is_address else [run, Path(location)]:
            for form in (str(path), os.path.abspath(path), os.path.realpath(path)):
                parent = os.path.dirname(form)
                names[form] = os.path.basename(form)
                if os.path.isabs(form) and parent != os.path.sep:
                    names |= {parent + os.path.sep: "", parent: ELSEWHERE}
        self._names = sorted(names.items(), key=lambda one: -len(one[0]))

    def told(self, error: HedgedError) -> str:
        """What a client is told of an error. What a server says, with its own names and those of users, is left out.

        Args:
            error: The error.
        """
        if self._is_address and isinstance(error, StoreError):
            return f"the store {self.store} cannot be used now: the log of the service says why; try again later"
        text = str(error)
        for place, name in self._names:
            text = text.replace(place, name)
        return text


def short_name(location: str) -> str:
    """What a store is called: the last part of its path, or the name at the end of its address.

    Args:
        location: The path or the address.

    >>> short_name("galleries/dogs.db"), short_name("postgresql://host/animals#dogs"), short_name("lance://s3://a/dogs")
    ('dogs.db', 'dogs', 'dogs')
    """
    if "://" not in location:
        return Path(location).name
    return location.rpartition("#")[2].partition("?")[0].rstrip("/").rpartition("/")[2]

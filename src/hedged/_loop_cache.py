"""Compiled loops on disk: what is damaged there is compiled again, and where nothing can be written nothing is kept.

numba takes what it finds for whole: a cut file ends in an EOFError, a flipped bit in machine code that does anything.
Here every file ends with a hash of the rest, which numba does not look at.
"""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from numba.core.caching import IndexDataCacheFile

DIGEST = hashlib.sha256().digest_size
HINT = "set NUMBA_CACHE_DIR to a folder with room, or they are compiled again each time, which takes seconds"

logger = logging.getLogger("hedged")


@final
class CheckedCacheFile(IndexDataCacheFile):
    """The index and the data files of one loop, each with a hash at its end.

    Args:
        cache_path: The folder.
        filename_base: How the names of its files begin.
        source_stamp: What tells one version of its source from another.
    """

    has_warned = False  # once for all loops

    def save(self, key: Any, data: Any) -> None:
        """Keep a compiled loop, or warn that it cannot be kept.

        Args:
            key: Its signature and processor.
            data: The machine code.
        """
        try:
            super().save(key, data)  # type: ignore[no-untyped-call]
        except OSError as error:
            if not CheckedCacheFile.has_warned:
                CheckedCacheFile.has_warned = True
                logger.warning("compiled loops cannot be kept in %s (%s): %s", self._cache_path, error.strerror, HINT)

    def _load_index(self) -> dict[Any, str]:
        found: dict[Any, str] = super()._load_index() if self._is_whole(self._index_path) else {}  # type: ignore[no-untyped-call]
        return found

    def _load_data(self, name: str) -> Any:
        if not self._is_whole(self._data_path(name)):  # type: ignore[no-untyped-call]
            raise OSError("it is damaged, or of another version")  # numba then compiles the loop again
        return super()._load_data(name)  # type: ignore[no-untyped-call]

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        with super()._open_for_write(filepath) as file:
            content = io.BytesIO()
            yield content
            file.write(content.getvalue() + self._hash(content.getvalue()))

    def _is_whole(self, path: str) -> bool:
        """Whether a file is there, as it was written, by this version of numba."""
        try:
            content = Path(path).read_bytes()
        except OSError:
            return False
        return content[-DIGEST:] == self._hash(content[:-DIGEST])

    def _hash(self, content: bytes) -> bytes:
        return hashlib.sha256(self._version.encode() + content).digest()


def keep_checked(loop: Any) -> None:
    """Let a loop that numba keeps on disk be kept with hashes.

    Args:
        loop: As `numba.njit(cache=True)` made it.
    """
    kept = loop._cache
    stamp = kept._impl.locator.get_source_stamp()
    kept._cache_file = CheckedCacheFile(  # type: ignore[no-untyped-call]
        kept._cache_path, kept._impl.filename_base, stamp
    )

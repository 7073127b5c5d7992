"""What items look like: pictures from one folder, and nothing outside it."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import final

from PIL import Image

from hedged._decode import PILLOW_ERRORS, file_bytes, opened, upright
from hedged._files import make_folder, write_atomically
from hedged.errors import DataError

SIDE = 224  # pixels of the longer edge
KEPT = ".hedged"  # the folder, in that of the pictures, with those of enrolled images


@final
class Pictures:
    """Small pictures of items, whose ids are paths in a folder or whose images were enrolled by upload.

    Args:
        folder: The folder; None: there are no pictures.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else Path(os.path.realpath(folder))
        if self._folder is not None:
            make_folder(self._folder / KEPT)

    def __bool__(self) -> bool:
        return self._folder is not None

    def of(self, name: str) -> bytes | None:
        """The picture of an item as JPEG; None if there is none.

        Args:
            name: The id of an item that the store has.
        """
        if self._folder is None:
            return None
        kept = self._kept(name)
        path = kept if kept.is_file() else self._inside(name)
        if path is None:
            return None
        try:
            return path.read_bytes() if path == kept else _small(file_bytes(path))
        except (DataError, OSError):
            return None

    def keep(self, name: str, content: bytes) -> None:
        """Keep a small picture of an item.

        Args:
            name: The id of the item.
            content: The image file that was uploaded.
        """
        if self._folder is not None:
            small = _small(content)
            write_atomically(self._kept(name), lambda part: part.write_bytes(small))

    def forget(self, name: str) -> None:
        """Remove the picture that was kept of an item; image files of others in the folder stay.

        Args:
            name: The id of the item.
        """
        if self._folder is not None:
            self._kept(name).unlink(missing_ok=True)

    def _kept(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / KEPT / f"{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()}.jpg"

    def _inside(self, name: str) -> Path | None:
        """The file that an id names, if it lies in the folder, links followed."""
        assert self._folder is not None
        if "\0" in name:
            return None
        for start in (Path(), self._folder):  # ids may be paths from where the store was built, or from the folder
            path = Path(os.path.realpath(start / name))
            if path.is_relative_to(self._folder) and path.is_file():
                return path
        return None


def _small(content: bytes) -> bytes:
    with opened(Path("the picture"), content, SIDE) as image:
        small = upright(image, "RGB")
        small.thumbnail((SIDE, SIDE), Image.Resampling.BILINEAR)
        out = io.BytesIO()
        try:
            small.save(out, "JPEG", quality=85)
        except PILLOW_ERRORS as error:
            raise DataError(f"the picture cannot be made smaller ({error})") from error
        return out.getvalue()

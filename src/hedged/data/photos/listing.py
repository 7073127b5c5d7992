"""Which photos there are and whom they show: from a folder, a CSV file or a Parquet file."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final

from hedged._decode import image_suffixes
from hedged._files import path_text
from hedged.data.splits import compile_pattern
from hedged.data.tables import read_columns
from hedged.errors import DataError

LOGGER = logging.getLogger("hedged")
FOLDER = "folder"  # the rule that a photo shows whom its folder is named after


@final
@dataclass(frozen=True)
class Listing:
    """Which photos there are.

    Args:
        paths: the file of each photo.
        identities: whom or what each shows.
        parts: the part of the data that each belongs to, if a table says.
    """

    paths: Sequence[Path]
    identities: Sequence[str]
    parts: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.paths)


def list_photos(path: str | Path, identity: str = FOLDER) -> Listing:
    """The photos of a folder and all below it, or those that a .csv or .parquet file lists (path, label[, split]).

    Args:
        path: the folder, or the table; relative paths in a table start at its own folder.
        identity: in a folder, the identity of a photo: "folder" for the name of the folder it lies in, or a regular
            expression with one group, searched in its path below `path` with / between folders.
    """
    path = Path(path)
    if path.suffix.lower() in (".csv", ".parquet") and not path.is_dir():
        listing = _from_table(path)
    elif path.is_dir():
        listing = _from_folder(path, identity)
    elif path.exists():
        raise DataError(f"{path} is neither a folder of images nor a .csv or .parquet file that lists them")
    else:
        raise DataError(f"there is no {path}: data.path is a folder of images, or a .csv or .parquet file of them")
    if not len(listing):
        raise DataError(f"{path} holds no image: expected files such as .jpg or .png, in a folder for each identity")
    warn_of_one_file_twice(listing.paths)
    return listing


def image_files(folder: Path) -> list[Path]:
    """The images in a folder and in all below it, in order of their paths.

    Args:
        folder: where to look.
    """
    return files_ending_in(image_suffixes(), folder)


def files_ending_in(endings: Collection[str], folder: Path) -> list[Path]:
    """The files in a folder and in all below it whose names end so, in order of their paths.

    Links to folders are followed, but for those that lead back to where they are; of folders that cannot be read, a
    warning says that they were left out.

    Args:
        endings: of names, in small letters.
        folder: where to look.
    """
    unreadable = list[OSError]()
    found = [file for file in _files(folder, (), unreadable) if file.suffix.lower() in endings and file.is_file()]
    if unreadable:
        first = unreadable[0]
        LOGGER.warning(
            "%s cannot be read (%s): what is in there is left out%s",
            path_text(first.filename),
            first.strerror,
            f", and in {len(unreadable) - 1:,} other folders" if len(unreadable) > 1 else "",
        )
    return sorted(found)


def _files(folder: Path, above: tuple[tuple[int, int], ...], unreadable: list[OSError]) -> Iterator[Path]:
    """All files below a folder; `above` are the folders on the way to it, as the disk knows them."""
    try:
        here = _place(folder)
        entries = [(Path(entry.path), entry.is_dir()) for entry in os.scandir(folder)]
    except OSError as error:
        unreadable.append(error)
        return
    if here in above:
        return
    for path, is_folder in entries:
        if is_folder:
            yield from _files(path, (*above, here), unreadable)
        else:
            yield path


def _place(path: Path) -> tuple[int, int]:
    """Where on which disk a file or folder is, whatever the path to it."""
    status = path.stat()
    return status.st_dev, status.st_ino


def warn_of_one_file_twice(paths: Sequence[Path]) -> None:
    """Warn if two paths lead to one file, by links or by other spellings: its copies match each other too well.

    Args:
        paths: of files; those that are not there, or cannot be, are passed over.
    """
    seen: dict[tuple[int, int], Path] = {}
    again: list[tuple[Path, Path]] = []
    for path in paths:
        with suppress(OSError, ValueError):  # a ValueError of a name with a zero in it
            first = seen.setdefault(_place(path), path)
            if first != path:
                again.append((first, path))
    if again:
        LOGGER.warning(
            "%s and %s are the same file%s: it is taken as two",
            *map(path_text, again[0]),
            f", and so are {len(again) - 1:,} other pairs" if len(again) > 1 else "",
        )


def _from_folder(root: Path, rule: str) -> Listing:
    paths = image_files(root)
    names = [file.relative_to(root) for file in paths]
    if rule == FOLDER:
        return Listing(paths, [path_text(name.parent.as_posix()) for name in names])
    pattern = compile_pattern("data.identity", rule, groups=1)
    found = [pattern.search(name.as_posix()) for name in names]
    missed = [name for name, match in zip(names, found, strict=True) if match is None or match[1] is None]
    if missed:
        raise DataError(
            f"data.identity = {rule!r} is found in {len(names) - len(missed):,} of {len(names):,} file names, not in "
            f"{missed[0].as_posix()}: correct the regular expression, or move such files away"
        )
    return Listing(paths, [path_text(match[1]) for match in found if match is not None])


def _from_table(path: Path) -> Listing:
    columns = read_columns(path)
    missing = [name for name in ("path", "label") if name not in columns]
    if missing:
        raise DataError(f"{path} has no column {' and no column '.join(missing)}; it has {', '.join(columns)}")
    for name in ("path", "label", "split"):
        empty = [i for i, value in enumerate(columns.get(name, ())) if not value]
        if empty:
            raise DataError(f"{path} has no {name} in row {empty[0] + 1} and {len(empty) - 1:,} others: fill them in")
    paths = [path.parent / name for name in columns["path"]]
    return Listing(paths, columns["label"], columns.get("split"))

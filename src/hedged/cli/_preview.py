"""`hedged data ndigit --preview`: an N-digit set as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from hedged._files import make_folder, write_atomically
from hedged.errors import DataError

if TYPE_CHECKING:
    from hedged.data import NDigit

COLUMNS, PAIRS, GAP, ZOOM = 10, 8, 4, 2  # of the contact sheet: images of a row, rows of pairs, pixels


def write_preview(path: Path, images: NDigit, seed: int) -> None:
    """Draw a contact sheet: images spread over the whole set, each above its corrupt twin."""
    from PIL import Image

    if path.suffix.lower() != ".png":
        raise DataError(f"a preview is a PNG picture, got {path}: give it the ending .png")
    count = min(len(images), COLUMNS * PAIRS)
    index = torch.linspace(0, len(images) - 1, count).long()
    twins = torch.stack([images.clean(index), images.corrupt(seed, index)], dim=1)  # (count, 2, 28, 28N)
    sheet = Image.fromarray(_tile(twins.numpy()))
    sheet = sheet.resize((sheet.width * ZOOM, sheet.height * ZOOM), Image.Resampling.NEAREST)
    make_folder(path.parent)
    write_atomically(path, lambda part: sheet.save(part, format="png"))


def _tile(twins: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """(n, 2, h, w) as rows of pairs on grey."""
    _, _, height, width = twins.shape
    rows = -(-len(twins) // COLUMNS)
    sheet = np.full((rows * (2 * height + 2 * GAP), COLUMNS * (width + GAP)), 96, np.uint8)
    for i, (clean, corrupt) in enumerate(twins):
        row, column = divmod(i, COLUMNS)
        top, left = row * (2 * height + 2 * GAP), column * (width + GAP)
        sheet[top : top + height, left : left + width] = clean
        sheet[top + height + 1 : top + 2 * height + 1, left : left + width] = corrupt
    return sheet

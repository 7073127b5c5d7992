"""Arrays in .npz files, whole or a failure that leaves nothing open."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from hedged.data.arrays import write_npz

ARRAYS = {"x": np.arange(200_000.0).reshape(2, -1), "names": ["ann", "bob"], "one": 1.5, "none": np.zeros((0, 3))}


@pytest.mark.parametrize("compress", [False, True])
def test_it_is_the_file_that_numpy_writes(tmp_path: Path, compress: bool) -> None:
    write_npz(tmp_path / "ours.npz", ARRAYS, compress)
    (np.savez_compressed if compress else np.savez)(tmp_path / "numpys.npz", **ARRAYS)  # type: ignore[arg-type]
    with np.load(tmp_path / "ours.npz") as ours, np.load(tmp_path / "numpys.npz") as theirs:
        assert ours.files == theirs.files
        for name in ours.files:
            np.testing.assert_array_equal(ours[name], theirs[name], strict=True)
    assert (tmp_path / "ours.npz").stat().st_size == (tmp_path / "numpys.npz").stat().st_size


def test_objects_are_not_pickled(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_npz(tmp_path / "a.npz", {"x": np.array([{}], dtype=object)})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_leaves_nothing_open() -> None:
    with pytest.raises(OSError, match="No space left"):
        write_npz(Path("/dev/full"), ARRAYS)
    gc.collect()  # what complains when it is collected is an error here

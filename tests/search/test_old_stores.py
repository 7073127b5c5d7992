"""A store that the first version of hedged wrote still opens, is searched and grows.

`version_1.sql` is the dump of a store of 23 Gaussians that hedged 0.1.0 made before headers held any match model; the
numbers below are what it found in it then.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from hedged import Gaussian
from hedged.search import Header, Identifier, Identities, Rows, Where, open_store

DUMP = Path(__file__).with_name("version_1.sql")
FOUND = [["row 6", "row 18", "row 0"], ["row 1", "row 13", "row 19"]]
PROBABLE = [[0.3334889041159412, 0.30319734773427526, 0.28226900575623287],
            [0.7108093768762981, 0.6925326033803344, 0.6517889045523136]]  # fmt: skip
UNCERTAIN = [[0.32423772519757454, 0.4586692330472222, 0.7177309942437671],
             [0.2891906231237019, 0.2548020621011263, 0.29704541214550007]]  # fmt: skip
IDENTIFIED = [0.9935416160908586, 0.9967640156357713]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript(DUMP.read_text(encoding="utf-8"))
    return tmp_path / "old.db"


def test_it_opens_and_finds_what_it_found(path: Path) -> None:
    with open_store(path) as store:
        store.verify()
        match = {"kind": "curve", "scale": 5.0, "bias": 1.5}
        assert store.header == Header("0123456789abcdef", "gaussian", 3, 1, 6, match)
        (batch,) = store.batches()
        probes = store.header.unpack(batch.packed[:2])
        found = store.index().search(probes, k=3)
        assert [[hit.id for hit in hits] for hits in found] == FOUND
        np.testing.assert_allclose([[hit.match_probability for hit in hits] for hits in found], PROBABLE, rtol=1e-9)
        np.testing.assert_allclose([[hit.uncertainty for hit in hits] for hits in found], UNCERTAIN, rtol=1e-9)
        who = Identifier(Identities.read(store)).identify(probes)
        assert [one.label for one in who] == ["dog 0", "dog 1"]
        np.testing.assert_allclose([one.probability for one in who], IDENTIFIED, rtol=1e-4)


def test_it_grows(path: Path) -> None:
    with open_store(path) as store:
        (batch,) = store.batches()
        z = store.header.unpack(batch.packed[:2])
        assert isinstance(z, Gaussian)
        store.add(Rows(["new", "newer"], z, "0123456789abcdef", metadata=[{"year": 2026}] * 2))
        assert store.remove(["row 1"]) == 1
        found = store.index().search(z, k=1, where=[Where("year", "2026")])
        assert [hit.id for (hit,) in found] == ["new", "newer"]
    with open_store(path) as again:
        assert again.count() == 24
        assert max(again.keys()) == 26  # the key of the row that was removed before is not used again
        again.verify()

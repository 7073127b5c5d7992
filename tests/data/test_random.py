"""Keyed generators: the same for the same key, unrelated for any other."""

from __future__ import annotations

import itertools

import pytest

from hedged.data.random import Purpose, keyed
from hedged.errors import ValueRangeError


def test_same_key_same_draws() -> None:
    assert keyed(3, Purpose.BATCH, 4).integers(2**63) == keyed(3, Purpose.BATCH, 4).integers(2**63)


def test_neighbouring_keys_never_coincide() -> None:
    keys = itertools.product(range(20), Purpose, range(20))
    draws = [int(keyed(seed, purpose, step).integers(2**63)) for seed, purpose, step in keys]
    assert len(set(draws)) == len(draws)


def test_neighbouring_steps_are_not_correlated() -> None:
    first = [float(keyed(0, Purpose.BATCH, step).random()) for step in range(4_000)]
    assert abs(sum(first) / len(first) - 0.5) < 4 * (1 / 12 / len(first)) ** 0.5
    covariance = sum((a - 0.5) * (b - 0.5) for a, b in itertools.pairwise(first)) / len(first)
    assert abs(covariance) < 4 / 12 / len(first) ** 0.5


@pytest.mark.parametrize(("seed", "step"), [(-1, 0), (0, -1), (2**63, 0)])
def test_keys_out_of_range_are_refused(seed: int, step: int) -> None:
    with pytest.raises(ValueRangeError, match="from 0 to"):
        keyed(seed, Purpose.BATCH, step)

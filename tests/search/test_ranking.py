"""Candidates ranked by match probability: the same as an explicit loop over them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from search.gallery import KINDS, embeddings, header_of

from hedged import MatchCurve
from hedged.distributions import Distribution
from hedged.match import match_logit, self_mismatch
from hedged.search import Header
from hedged.search.index import Candidates, rank, uncertainties
from hedged.search.rows import pack


def by_loop(probes: Distribution, header: Header, found: Candidates, k: int) -> list[list[tuple[int, float]]]:
    """Places and log-odds of the best, one pair after the other."""
    z, rows = probes.to(torch.float64), header.unpack(found.packed).to(torch.float64)
    best = []
    for n, chosen in enumerate(found.chosen.tolist()):
        places = sorted({place for place in chosen if place >= 0})
        scores = [(place, match_logit(z[n], rows[place], header.match_model).item()) for place in places]
        best.append(sorted(scores, key=lambda one: (-one[1], found.keys[one[0]]))[:k])
    return best


@settings(max_examples=25)
@given(
    kind=st.sampled_from(KINDS),
    bias=st.floats(-4, 8),
    scale=st.sampled_from([0.1, 3.0, 10.0, 1e4]),
    count=st.sampled_from([1, 7, 600]),
    seed=st.integers(0, 2**31),
)
def test_they_are_those_of_a_loop(kind: str, bias: float, scale: float, count: int, seed: int) -> None:
    header = Header.for_embeddings(embeddings(kind, 1), "m", MatchCurve(scale, bias))
    generator = np.random.default_rng(seed)
    packed = embeddings(kind, 50, seed).pack().numpy()
    keys = generator.permutation(50).astype(np.int64)
    chosen = np.stack([generator.permutation(np.arange(-20, 50).clip(-1))[: min(count, 70)] for _ in range(3)])
    if kind == "mixture":
        chosen[:, -1:] = chosen[:, :1]  # found by both of its components
    probes, found = embeddings(kind, 3, seed + 1), Candidates(keys, packed, chosen)
    places, logits = rank(probes, header, found, 5)
    for n, wanted in enumerate(by_loop(probes, header, found, 5)):
        mine = [int(place) for place in places[n] if place >= 0]
        assert len(mine) == len(wanted)
        np.testing.assert_allclose(logits[n][: len(mine)], [logit for _, logit in wanted], rtol=1e-6, atol=1e-6)
        apart = np.diff([logit for _, logit in wanted]) < -1e-5
        if apart.all():
            assert mine == [place for place, _ in wanted]


def test_more_candidates_than_are_held_at_a_time() -> None:
    header = header_of("gaussian")
    z, probes = embeddings("gaussian", 1500), embeddings("gaussian", 2, seed=1)
    everything = np.broadcast_to(np.arange(1500), (2, 1500))
    found = rank(probes, header, Candidates(np.arange(1500), z.pack().numpy(), everything), 1500)
    for n in range(2):
        assert sorted(found.places[n].tolist()) == list(range(1500))
        expected = match_logit(
            probes[n].to(torch.float64), z[torch.from_numpy(found.places[n])].to(torch.float64), header.match_model
        )
        np.testing.assert_allclose(found.logits[n], expected, rtol=1e-6, atol=1e-6)
        assert (np.diff(found.logits[n]) <= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_rank(kind: str) -> None:
    header = header_of(kind)
    nothing = Candidates(np.empty(0, np.int64), np.empty((0, header.width), np.float32), np.empty((3, 0), np.int64))
    assert rank(embeddings(kind, 3), header, nothing, 5).places.shape == (3, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_uncertainties_are_those_of_the_library(kind: str) -> None:
    header = header_of(kind)
    z = embeddings(kind, 30)
    np.testing.assert_allclose(
        uncertainties(header, pack(z)), self_mismatch(z.to(torch.float64), header.match_model), rtol=1e-6, atol=1e-6
    )

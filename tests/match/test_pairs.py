"""The plain ways to all pairs: the best of each row against a stable sort, blocks that cover everything once."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from hedged.match._pairs import best, blocks


@st.composite
def score_matrices(draw: st.DrawFn) -> Tensor:
    """With many ties and some −∞, where a match probability underflows."""
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(3, 9))
    values = st.sampled_from([-torch.inf, -2.0, -1.0, 0.0, 0.5])
    listed = st.lists(st.lists(values, min_size=columns, max_size=columns), min_size=rows, max_size=rows)
    return torch.tensor(draw(listed))


@given(scores=score_matrices(), k=st.integers(1, 3))
def test_the_best_are_the_head_of_a_stable_sort(scores: Tensor, k: int) -> None:
    scores = scores.clamp(min=-1e30)  # −∞ marks what was taken
    found = best(scores.clone(), k)
    for row, logits, items in zip(scores.tolist(), *(part.tolist() for part in found), strict=True):
        assert items == sorted(range(len(row)), key=lambda j: (-row[j], j))[:k]
        assert logits == [row[j] for j in items]


@given(height=st.integers(0, 20), width=st.integers(0, 20), pairs=st.integers(0, 50))
def test_blocks_cover_every_pair_once(height: int, width: int, pairs: int) -> None:
    seen = torch.zeros(height, width)
    for rows, columns in blocks(height, width, pairs):
        assert seen[rows, columns].numel() <= max(pairs, 1)
        seen[rows, columns] += 1
    assert (seen == 1).all()

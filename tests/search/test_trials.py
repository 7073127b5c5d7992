"""Images of a gallery tried as probes: the quick way against the obvious loop, and promises on later probes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from laws import seeded

from hedged import Evidence, Gaussian, MatchCurve
from hedged.errors import DataError
from hedged.match import MatchModel
from hedged.search import (
    BorderFusion,
    Fusion,
    Identifier,
    Identities,
    MixtureFusion,
    NeighbourFusion,
    ProductFusion,
    best_scores,
    best_scores_within,
    hold_out,
    one_each,
)

DIM = 8


def people(identities: int, of_each: int, seed: int, least_noise: float = 0.1) -> tuple[Gaussian, torch.Tensor]:
    """Posteriors of identities drawn from N(0, I), seen with noise that differs from image to image."""
    generator = seeded(seed)
    centres = torch.randn(identities, DIM, generator=generator).repeat_interleave(of_each, 0)
    noise = least_noise * (1 + 4 * torch.rand(len(centres), 1, generator=generator))
    seen = centres + noise.sqrt() * torch.randn(len(centres), DIM, generator=generator)
    posterior = Gaussian(seen / (1 + noise), (noise / (1 + noise)).expand(-1, DIM))
    return posterior, torch.arange(identities).repeat_interleave(of_each)


@pytest.mark.parametrize("model", [Evidence(), MatchCurve().requires_grad_(False)], ids=["evidence", "curve"])
def test_holding_out_at_once_is_holding_out_one_by_one(model: MatchModel) -> None:
    z, _ = people(5, 4, seed=0)
    owner = torch.tensor([0, 0, 0, 1, 2, 2, 3, 3, 3, 3, 4, 0, 2, 2, 0, 3, 3, 0, 2, 0])  # 1 and 4 have one image each
    tried = torch.tensor([3, 0, 7, 12])
    with torch.no_grad():
        quick, slow = (
            way(ProductFusion(), z, owner, tried, model) for way in (ProductFusion.held_out, Fusion.held_out)
        )
    for a, b in zip(quick, slow, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    assert quick[0][0, 1] == -torch.inf
    assert torch.isinf(quick[1]).sum(1).tolist() == [1] * 4


@pytest.mark.parametrize("fusion", [ProductFusion(), MixtureFusion(), NeighbourFusion(3), BorderFusion()])
def test_one_image_of_each_identity_is_tried(fusion: Fusion) -> None:
    z, owner = people(8, 3, seed=1)
    found = hold_out(z, owner, fusion, Evidence())
    assert sorted(found.owner.tolist()) == list(range(8))
    assert found.known.shape == found.strangers.shape == (8, 8)
    assert found.has_others.all() or isinstance(fusion, NeighbourFusion)
    assert np.isneginf(found.strangers[np.arange(8), found.owner]).all()
    assert len(one_each(np.arange(5000) // 2)) == 2000


def test_candidate_sets_and_thresholds_hold_on_later_probes() -> None:
    """12 galleries of 40 identities: the mean over galleries of what was promised, for the known and for strangers."""
    held, held_nobody, passed, sizes = [], [], [], []
    for seed in range(12):
        z, owner = people(80, 4, seed)
        enrolled = (owner < 40) & (torch.arange(320) % 4 < 3)
        gallery = Identities([str(i) for i in range(40)], z[enrolled], owner[enrolled], Evidence())
        identifier = Identifier(gallery, coverage=0.9)
        later = z[3::4]  # the fourth image of each: of 40 known ones, then of 40 strangers
        answers = identifier.identify(later, top=1)
        sets = [one.candidates for one in answers if one.candidates]
        held += [str(i) in sets[i].labels for i in range(40)]
        held_nobody += [one.nobody for one in sets[40:]]
        sizes += [len(one.labels) + one.nobody for one in sets]
        within = best_scores_within(gallery.images, gallery.owner, Evidence())
        threshold = np.sort(within)[-4]  # k = 4 of n = 40: at most 0.1
        passed.append(np.mean(best_scores(later[40:], gallery.images, gallery.owner, Evidence()) > threshold))
    assert 0.86 <= np.mean(held) <= 0.96
    assert 0.86 <= np.mean(held_nobody) <= 0.96
    assert 0.07 <= np.mean(passed) <= 0.13
    assert np.mean(sizes) < 3


def test_too_few_identities_are_refused_with_the_number_it_takes() -> None:
    z, owner = people(30, 2, seed=0)
    gallery = Identities([str(i) for i in range(30)], z, owner, Evidence())
    with pytest.raises(DataError, match=r"0\.01 cannot be promised from 30 .* takes at least 99"):
        Identifier(gallery, coverage=0.99)
    single = Identities([str(i) for i in range(30)], z[::2], owner[::2], Evidence())
    with pytest.raises(DataError, match="from 0 calibration identities"):
        Identifier(single, coverage=0.9)
    with pytest.raises(DataError, match="nobody to be compared with"):
        best_scores_within(z[:2], owner[:2], Evidence())

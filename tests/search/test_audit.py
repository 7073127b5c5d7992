"""Audits of galleries whose faults are known: probabilities against formulas written out, faults that were put in."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from laws import seeded
from search.test_trials import people

from hedged import Evidence, Gaussian
from hedged.distributions import concatenate
from hedged.errors import ShapeError, ValueRangeError
from hedged.search import Audit, Identities, audit_gallery
from hedged.search.audit.labels import doubt_labels

MODEL = Evidence().requires_grad_(False)


def gallery(z: Gaussian, owner: torch.Tensor) -> Identities:
    return Identities([f"p{i}" for i in range(int(owner.max()) + 1)], z, owner, MODEL)


def audited(z: Gaussian, owner: torch.Tensor) -> Audit:
    return audit_gallery(gallery(z, owner), [str(i) for i in range(len(owner))])


def test_the_probability_of_a_wrong_label_is_the_formula_written_out() -> None:
    z, owner = people(6, 3, seed=0)
    with torch.no_grad():
        found = doubt_labels(gallery(z, owner), 0.05, lambda logits: logits)
    assert (found.wrong < 0.5).all()  # so the second round is as the first
    for i in (0, 7, 17):
        odds = []
        for j in range(6):
            rest = [k for k in range(18) if owner[k] == j and k != i]
            template = MODEL.fuse(z[torch.tensor(rest)], torch.zeros(len(rest), dtype=torch.int64))
            odds.append(math.exp(float(MODEL.logit(z[i : i + 1], template))))
        own = odds.pop(int(owner[i]))
        other = 0.05 * (1 + sum(odds) / 6)
        assert found.wrong[i] == pytest.approx(other / (other + 0.95 * own), rel=1e-3)
        best = max(odds)
        assert found.likelier_probability[i] == pytest.approx(0.05 * best / 6 / (other + 0.95 * own), rel=1e-3)


def test_a_sound_gallery_has_next_to_no_findings_and_swapped_labels_are_found() -> None:
    z, owner = people(60, 5, seed=1)
    sound = audited(z, owner)
    assert len(sound.mislabelled) <= 3
    assert not sound.divided
    assert not sound.duplicates
    rng = np.random.default_rng(0)
    chosen = rng.choice(300, 15, replace=False)
    swapped = owner.clone()
    swapped[chosen] = (owner[chosen] + torch.from_numpy(rng.integers(1, 60, 15))) % 60
    found = {int(one.id): one for one in audited(z, swapped).mislabelled}
    right = [i for i in chosen.tolist() if i in found]
    assert len(right) >= 12
    assert len(found) <= len(right) + 3
    assert np.mean([found[i].likelier == f"p{owner[i]}" for i in right]) >= 0.8


def test_two_identities_under_one_label_are_told_apart() -> None:
    z, owner = people(40, 5, seed=2)
    merged = torch.where(owner == 39, 0, owner)
    found = audited(z, merged)
    (one,) = found.divided
    assert one.label == "p0"
    assert {frozenset(one.first), frozenset(one.second)} == {
        frozenset(str(i) for i in range(200) if owner[i] == k) for k in (0, 39)
    }
    assert not {str(i) for i in range(200) if merged[i] == 0} & {item.id for item in found.mislabelled}


def test_the_same_photo_under_two_names_is_found() -> None:
    z, owner = people(40, 5, seed=3, least_noise=0.02)
    again = Gaussian(z.mean[:1] + 1e-3 * torch.randn(1, z.dim, generator=seeded(0)), z.variance[:1])
    found = audited(concatenate([z, again]), torch.cat([owner, torch.tensor([20])]))
    assert [(one.first, one.second, one.first_label, one.second_label) for one in found.duplicates] == [
        ("0", "200", "p0", "p20")
    ]
    assert found.duplicates[0].probability > 0.5
    about = found.about({"200"})
    assert len(about.duplicates) == 1
    assert len(found.about({"nobody"})) == 0


def test_an_item_that_says_nothing_matches_everybody() -> None:
    z, owner = people(40, 5, seed=4)
    blank = Gaussian(torch.zeros(1, z.dim), torch.full((1, z.dim), 0.98))
    found = audited(concatenate([z, blank]), torch.cat([owner, torch.tensor([0])]))
    assert [one.id for one in found.poor] == ["200"]
    assert found.poor[0].probability == pytest.approx(0.5, abs=0.15)
    assert found.poor[0].uncertainty > 0.3


@pytest.mark.parametrize("counts", [[1, 1], [1, 4], [3]])
def test_small_galleries(counts: list[int]) -> None:
    owner = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    z, _ = people(int(sum(counts)), 1, seed=0)
    found = audited(z, owner)
    assert found.items == sum(counts)


def test_bad_input_is_named() -> None:
    z, owner = people(3, 2, seed=0)
    with pytest.raises(ShapeError, match="got 1 ids for 6 items"):
        audit_gallery(gallery(z, owner), ["a"])
    with pytest.raises(ValueRangeError, match="between 0 and 1, got 0"):
        audit_gallery(gallery(z, owner), list("abcdef"), wrong_share=0)


def test_content_is_plain() -> None:
    z, owner = people(3, 2, seed=0)
    assert set(audited(z, owner).content()) == {
        "items", "identities", "mislabelled", "duplicates", "divided", "poor",
    }  # fmt: skip

"""The benchmarks: what they compare is the same thing, and a line holds or does not."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch
from laws import seeded
from torch import Tensor

from hedged import Gaussian, HedgedLoss, MatchCurve, match_matrix
from hedged.bench import growth, images, matching, references, search
from hedged.bench.embeddings import clustered
from hedged.bench.memory import growth as memory_growth
from hedged.bench.plot import plot
from hedged.bench.run import lines, write
from hedged.bench.timing import Line, side_by_side
from hedged.distributions import Distribution
from hedged.errors import ConfigError, RunError


@pytest.mark.parametrize("way", list(references.PLAIN.values()))
@torch.no_grad()
def test_the_references_estimate_what_the_closed_form_computes(way: growth.Way) -> None:
    z1, z2 = clustered(30, 3), clustered(40, 3, seed=1)
    sampled = way(z1, z2, MatchCurve())
    assert sampled.shape == (30, 40)
    assert (sampled - match_matrix(z1, z2, MatchCurve())).abs().mean() < 0.02


@torch.no_grad()
def test_the_references_agree_whatever_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    z, curve = clustered(20, 2), MatchCurve()
    whole = references.eager(z, z, curve)
    for chunk in (1, 3_000, 10**9):
        monkeypatch.setattr(references, "CHUNK", chunk)
        for way in references.PLAIN.values():
            torch.testing.assert_close(way(z, z, curve), whole, rtol=1e-3, atol=1e-3)


def test_the_eager_loss_is_the_loss() -> None:
    near = 0.2 * torch.randn(24, 2, generator=seeded(1))  # far apart, the eager one has no tail
    z, labels, curve = Gaussian(near, torch.full((24, 2), 0.01)), torch.arange(24) % 5, MatchCurve()
    ours = HedgedLoss(curve, beta=0.0, positive_weight=0.3)(z, labels)
    torch.testing.assert_close(references.eager_costs(z, labels, curve, 0.3), ours, rtol=2e-2, atol=1e-3)


def test_enough_pairs_match() -> None:
    for dim in (2, 20):
        matching._check(clustered(1000, dim), MatchCurve(), matching.MANY_FAR)
        matching._check(clustered(1000, dim, clusters=1), MatchCurve(bias=6.0), matching.NONE_FAR)
    far = Gaussian(10 * torch.randn(500, 2, generator=seeded()), torch.full((500, 2), 1e-3))
    with pytest.raises(RunError, match=r"a share of 0.2 of the pairs"):
        matching._check(far, MatchCurve(), matching.MANY_FAR)


@torch.no_grad()
def test_the_fastest_reference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(z1: Distribution, z2: Distribution, curve: MatchCurve, chunk: int) -> Tensor:
        time.sleep(0.05)
        return references.cdist(z1, z2, curve, chunk=chunk)

    monkeypatch.setattr(references, "PLAIN", {"a slow one": slow, "a quick one": references.cdist})
    name, way = references.fastest(clustered(20, 2), MatchCurve())
    assert name == "a quick one"
    assert way(clustered(5, 2), clustered(6, 2), MatchCurve()).shape == (5, 6)


def test_one_variance_an_item() -> None:
    z = clustered(9, 4, one_variance=True)
    assert (z.variance == z.variance[:, :1]).all()
    assert len(set(z.variance[:, 0].tolist())) == 9


def test_groups_that_are_not_measured_stay_as_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(growth, "AXES", {"embeddings": (8,)})
    monkeypatch.setattr(growth, "BATCHES", (8,))
    write({"matching": [Line("a", 2.0, 1.5)], "recipe": [Line("b", 2.0, 1.5, at_most=True)]}, tmp_path)
    write({"matching": [Line("c", 3.0, 1.5)]}, tmp_path)
    content = json.loads((tmp_path / "benchmarks.json").read_bytes())
    assert [(line["name"], line["group"], line["holds"]) for line in content] == [
        ("c", "matching", True), ("b", "recipe", False),
    ]  # fmt: skip
    assert f"| c | 3 | ≥ 1.5 | yes | {content[0]['measured']} |" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_a_line_holds_or_not() -> None:
    assert Line("a", 2.0, 1.5).holds
    assert not Line("a", 2.0, 1.5, at_most=True).holds
    assert Line("a", 1 / 3, 1.5).content() == {"name": "a", "ratio": 0.3333, "asked": 1.5, "holds": False}


def test_ways_are_timed_in_turns() -> None:
    calls: list[str] = []
    side_by_side(lambda: calls.append("a"), lambda: calls.append("b"), repeats=3)
    assert "".join(calls) == "ab" * 4


def test_an_unknown_group_is_refused() -> None:
    with pytest.raises(ConfigError, match="no group of benchmarks 'speed': choose one of matching"):
        lines("speed", quick=True)


def test_memory_is_seen_to_grow() -> None:
    assert memory_growth(lambda: torch.ones(30_000_000).sum()) > 60
    assert memory_growth(lambda: None) < 60


def test_growth_is_measured_and_plotted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(growth, "AXES", {"embeddings": (8, 16), "samples": (2,), "components": (2,)})
    monkeypatch.setattr(growth, "BATCHES", (8,))
    found = list(growth.costs())
    assert {(cost.axis, cost.at) for cost in found} == {
        ("embeddings", 8), ("embeddings", 16), ("samples", 2), ("components", 2), ("batch", 8),
    }  # fmt: skip
    assert all(cost.microseconds > 0 for cost in found)
    plot(found, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 10_000


def test_photos_are_decoded_and_embedded_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "QUICK", 6)
    found = list(images.lines(quick=True))
    assert [line.asked for line in found] == [0.8, 0.8, 0.9]
    assert all(line.ratio > 0 for line in found)


def test_made_up_photos_weigh_what_photos_do(tmp_path: Path) -> None:
    paths = images.write_photos(tmp_path / "photos", 3, (640, 480))
    assert all(20_000 < path.stat().st_size < 200_000 for path in paths)
    photos = images.cached_photos(paths, tmp_path / "cache")
    assert photos.clean().shape == (3, 3, images.SEEN, images.SEEN)
    assert photos.clean().float().std() > 10


def test_search_is_measured_against_the_exhaustive_ranking() -> None:
    assert list(search.lines(quick=True)) == []
    recall, latency, together = search.lines(quick=False, items=3000)
    assert recall.holds
    assert recall.ratio <= 1
    assert latency.at_most
    assert latency.ratio > 0
    assert together.ratio > 0
    z = search.embeddings(100, 100, seed=0, widths=1)
    assert (z.variance == z.variance[:, :1]).all()

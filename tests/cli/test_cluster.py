"""`hedged cluster`, as a user types it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from cli.commands import Hedged, check_refused, snapshot

from hedged import Evidence, Gaussian
from hedged.decisions import Decider, Policy, Temperature
from hedged.search import Header, Rows, SqliteStore, Where, find_clusters

MODEL = "0123456789abcdef"


def people() -> Gaussian:
    """Four identities of five each, far apart."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(4, 1, 8, generator=generator)
    mean = centres + 0.05 * torch.randn(4, 5, 8, generator=generator)
    return Gaussian(mean.flatten(0, 1), torch.full((20, 8), 0.01))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path, z = tmp_path / "people.db", people()
    with SqliteStore.create(path, Header.for_embeddings(z, MODEL, Evidence())) as made:
        ids = [f"{'folder/' * 12}{i}.jpg" for i in range(20)]
        made.add(Rows(ids, z, MODEL, [None] * 20, [{"year": 2019 + i % 2} for i in range(20)]))
    return path


def test_identities_are_found(hedged: Hedged, store: Path) -> None:
    told = json.loads(hedged("cluster", store, "--json").out)
    assert (told["items"], told["clusters"], told["sizes"]) == (20, 4, [5, 5, 5, 5])
    of_each = {row["id"]: row["cluster"] for row in told["rows"]}
    assert [of_each[f"{'folder/' * 12}{i}.jpg"] for i in range(20)] == np.repeat(np.arange(4), 5).tolist()
    assert all(0.5 < row["probability"] <= 1 for row in told["rows"])
    direct = find_clusters(people(), Evidence().requires_grad_(False))
    assert told["base_rate"] == pytest.approx(direct.base_rate)


def test_a_table_fits_a_line_and_says_what_it_leaves_out(hedged: Hedged, store: Path) -> None:
    result = hedged("cluster", store, "--top", 6)
    assert result.code == 0, result.err
    title, *lines = result.out.splitlines()
    assert "20 items of" in title
    assert "4 clusters of several, 0 items alone" in title
    assert max(map(len, lines)) <= 80
    assert "and 14 more" in result.out
    assert "largest cluster: 5 items" in result.out


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_all_rows_go_to_a_file(hedged: Hedged, store: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"found.{ending}"
    assert "wrote 20 rows" in hedged("cluster", store, "--out", out).out
    told = json.loads(hedged("cluster", store, "--json").out)
    if ending == "json":
        assert json.loads(out.read_text(encoding="utf-8")) == told
    else:
        with out.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [(row["id"], int(row["cluster"])) for row in rows] == [(r["id"], r["cluster"]) for r in told["rows"]]
        assert [float(row["probability"]) for row in rows] == [r["probability"] for r in told["rows"]]
    before = snapshot(tmp_path)
    check_refused(hedged("cluster", store, "--out", out), "exists already", "--force")
    assert snapshot(tmp_path) == before
    assert hedged("cluster", store, "--out", out, "--force").code == 0


def test_filters_base_rates_and_calibrations_count(hedged: Hedged, store: Path, tmp_path: Path) -> None:
    told = json.loads(hedged("cluster", store, "--where", "year=2019", "--json").out)
    with SqliteStore.open(str(store)) as opened:
        assert told["items"] == opened.count([Where("year", "2019")]) == 10
    told = json.loads(hedged("cluster", store, "--base-rate", "1e-300", "--json").out)
    assert (told["clusters"], told["base_rate"]) == (20, 1e-300)
    Decider(MODEL, Temperature(1e6, -9.0), 0.5, Policy(0.0, 0.0)).save(tmp_path)
    told = json.loads(hedged("cluster", store, "--calibration", tmp_path, "--base-rate", 0.1, "--json").out)
    assert told["clusters"] == 20


def test_what_cannot_be_clustered_is_refused(hedged: Hedged, store: Path, tmp_path: Path) -> None:
    check_refused(hedged("cluster", tmp_path / "nowhere.db"), "there is no store")
    check_refused(hedged("cluster", store, "--base-rate", 2), "between 0 and 1, got 2")
    check_refused(hedged("cluster", store, "--where", "year=1900"), "nothing to cluster")
    check_refused(hedged("cluster", store, "--where", "breed=beagle"), "has the key 'breed'")
    check_refused(hedged("cluster", store, "--out", tmp_path / "found.txt"), ".csv or .json")
    check_refused(hedged("cluster", store, "--calibration", tmp_path / "run"), "hedged calibrate")

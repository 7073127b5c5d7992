"""`hedged index audit` as a user types it, its page, and what is said of rows that were just added."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from cli.commands import Hedged, check_refused, snapshot
from PIL import Image
from search.test_trials import people
from vectors import made_up, write_vectors

from hedged import Evidence
from hedged.cli._audit import warn_of_enrolments
from hedged.search import Header, Rows, create_store, open_store

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Thirty identities of five; the label of one item is wrong, and its id is the path of a picture."""
    z, owner = people(30, 5, seed=0, least_noise=0.02)
    picture = tmp_path / "a & b.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)).save(picture)
    labels = [f"p{i}" for i in owner.tolist()]
    labels[0] = HOSTILE
    labels[5:10] = [HOSTILE] * 5
    ids = [str(picture), *(f"row {i}" for i in range(1, 150))]
    with create_store(tmp_path / "a.db", Header.for_embeddings(z, "0" * 16, Evidence())) as store:
        store.add(Rows(ids, z, "0" * 16, labels))
    return tmp_path / "a.db"


def test_findings_are_told_in_words_json_and_on_a_page(hedged: Hedged, store: Path, tmp_path: Path) -> None:
    before = snapshot(store.parent)
    told = json.loads(hedged("index", "audit", store, "--json").out)
    assert (told["items"], told["identities"]) == (150, 30)
    first = told["mislabelled"][0]
    assert Path(first["id"]).name == "a & b.png"
    assert (first["label"], first["likelier"]) == (HOSTILE, "p0")
    assert first["probability"] > 0.9
    assert snapshot(store.parent) == before
    page = tmp_path / "new" / "audit.html"
    text = hedged("index", "audit", store, "--page", page)
    assert text.code == 0, text.err
    assert "Labels that are likely wrong: 1" in text.out
    assert "more likely p0" in text.out
    html = page.read_text(encoding="utf-8")
    assert HOSTILE not in html
    assert "&lt;script&gt;" in html
    assert "a &amp; b.png" in html
    assert html.count("data:image/") == 1  # the others have no pictures
    check_refused(hedged("index", "audit", store, "--page", page), "exists already", "--force")
    assert hedged("index", "audit", store, "--page", page, "--force", "--where", "label=p3").code == 0


def test_a_model_that_cannot_tell_anybody_apart_is_named_before_its_items(hedged: Hedged, tmp_path: Path) -> None:
    z, owner = people(6, 3, seed=0, least_noise=20.0)
    with create_store(tmp_path / "a.db", Header.for_embeddings(z, "0" * 16, Evidence())) as store:
        store.add(Rows([f"row {i}" for i in range(18)], z, "0" * 16, [f"p{i}" for i in owner.tolist()]))
    told = hedged("index", "audit", tmp_path / "a.db")
    assert "of 18 items match everybody: it is likely the model" in told.err
    assert "\nNear-duplicates under two names: none\n\n" in told.out


def test_additions_that_look_wrong_are_named(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_store(store) as opened:
        warn_of_enrolments(opened, ["row 40", "row 41"])
        assert not caplog.messages
        warn_of_enrolments(opened, [str(store.parent / "a & b.png")])
    (message,) = caplog.messages
    assert "more likely p0" in message
    assert "probability" in message


def test_index_add_warns_of_what_it_added(hedged: Hedged, tmp_path: Path) -> None:
    vectors, run, store = write_vectors(tmp_path), tmp_path / "run", tmp_path / "a.db"
    assert hedged("retrofit", vectors, "--out", run, "--test-share", 0, "--validation-share", 0).code == 0
    built = hedged("index", "build", run, store, vectors)
    assert built.code == 0, built.err
    x, labels = made_up(seed=2)
    np.savez(tmp_path / "right.npz", features=x[:1], labels=labels[:1])
    np.savez(tmp_path / "wrong.npz", features=x[1:2], labels=["id07"])
    right, wrong = (hedged("index", "add", run, store, tmp_path / f"{name}.npz") for name in ("right", "wrong"))
    assert (right.code, wrong.code) == (0, 0)
    assert "check the label" not in right.err
    assert "check the label" in wrong.err
    assert "wrong.npz:0" in wrong.err.replace("\n", "")


def test_wrong_options(hedged: Hedged, store: Path, tmp_path: Path) -> None:
    check_refused(hedged("index", "audit", store, "--wrong-share", "1"), "--wrong-share", "got 1")
    check_refused(hedged("index", "audit", store, "--calibration", tmp_path), "hedged calibrate")
    check_refused(hedged("index", "audit", store, "--where", "label=nobody"), "has a label")
    check_refused(hedged("index", "audit", tmp_path / "nowhere.db"), "nowhere.db")
    z, _ = people(1, 2, seed=0)
    with create_store(tmp_path / "b.db", Header.for_embeddings(z, "0" * 16, Evidence())) as bare:
        bare.add(Rows(["a", "b"], z, "0" * 16))
        warn_of_enrolments(bare, ["a"])
    check_refused(hedged("index", "audit", tmp_path / "b.db"), "has a label")
    assert torch.is_grad_enabled()

"""The committed measurements of promises: they were kept, and the page quotes them as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FOLDER, PAGE = ROOT / "results" / "guarantees", ROOT / "docs" / "open-world.md"
SETS = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem not in ("audit", "drift"))


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("name", SETS)
def test_promised_rates_are_kept_and_quoted(name: str) -> None:
    content, page = read(name), PAGE.read_text(encoding="utf-8")
    assert content["splits"] == 100
    assert content["command"] in page
    for rate, told in content["rates"].items():
        for kind in ("fpir", "known_missed", "strangers_missed"):
            assert told[kind] <= float(rate) + 2 * told[f"{kind}_se"]
        assert min(told[f"{kind}_inside"] for kind in ("fpir", "known", "strangers")) >= 90
        cells = [told["fpir"], told["dir"], told["known_missed"], told["strangers_missed"]]
        inside = "/".join(str(told[f"{kind}_inside"]) for kind in ("fpir", "known", "strangers"))
        numbers = " | ".join(f"{value:.3f}" for value in cells)
        row = f"| {name} | {rate} | {numbers} | {inside} | {told['set_size']:.1f} / {content['gallery']} |"
        assert row in page


def test_the_audit_is_quoted() -> None:
    content, page = read("audit"), PAGE.read_text(encoding="utf-8")
    assert content["command"] in page
    assert min(content["precision"][1], content["recall"][1]) >= 0.8
    assert f"precision {content['precision'][0]:.2f}, recall {content['recall'][0]:.2f}" in page
    for probes, rates in content["false_match_growth"].items():
        for rate, ways in rates.items():
            assert f"| {probes} | {rate} | {' | '.join(f'{value:.2f}' for value in ways.values())} |" in page

"""The committed measurements of promises: they were kept, and the page quotes them as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
FOLDER, PAGE = ROOT / "results" / "guarantees", ROOT / "docs" / "open-world.md"
SETS = ("digits", "dogs", "text")
SHIPPED = sorted(path.stem for path in FOLDER.glob("*-shipped.json"))


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


def test_all_sets_are_there_and_no_other() -> None:
    others = {"audit", "drift", "intervals", *SHIPPED}
    assert {path.stem for path in FOLDER.glob("*.json")} == {*SETS, *others}
    assert "digits-shipped" in SHIPPED
    assert {name.removesuffix("-shipped") for name in SHIPPED} <= set(SETS)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_coverage_of_the_rule_that_ships_is_kept_and_quoted(name: str) -> None:
    content, page = read(name), PAGE.read_text(encoding="utf-8")
    assert content["splits"] == 100
    assert content["command"] in page
    assert set(content["rates"]) == {"0.01", "0.05", "0.1"}
    for rate, told in content["rates"].items():
        for kind in ("known", "strangers"):
            assert told[f"{kind}_missed"] <= float(rate) + 2 * told[f"{kind}_missed_se"]
            assert told[f"{kind}_inside"] >= 90
        missed = f"{told['known_missed']:.3f} | {told['strangers_missed']:.3f}"
        inside = f"{told['known_inside']}/{told['strangers_inside']}"
        words = name.removesuffix("-shipped")
        assert f"| {words} | {rate} | {missed} | {inside} | {told['set_size']:.1f} / {content['gallery']} |" in page


def test_intervals_hold_and_are_quoted() -> None:
    content, page = read("intervals"), (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    inside = list(content["inside"].values())
    assert min(inside) >= 93
    assert content["trials"] == 100
    assert content["command"] in page
    assert f"{', '.join(map(str, inside[:-1]))} and {inside[-1]} of 100 trials" in page


def test_drift_is_quoted() -> None:
    content, page = read("drift"), " ".join(PAGE.read_text(encoding="utf-8").split())
    assert content["command"] in page
    still, half, all_of_them = (content[f"degraded {share}"] for share in ("0", "0.5", "1"))
    assert still["alarms"] / content["halves"] <= content["false_alarm_rate"]
    later = f"Measured on {still['inputs']} test dogs against {still['reference']} others"
    assert f"{later}, one photo each, {content['halves']} random halves" in page
    assert f"a false alarm rate of {content['false_alarm_rate']}" in page
    alarms = f"{'one alarm' if still['alarms'] == 1 else still['alarms']} in {content['halves']} while nothing changes"
    assert alarms in page
    assert f"{half['alarms']} with half of the photos degraded, and {all_of_them['alarms']} with all" in page
    assert f"after {all_of_them['median_inputs_before_alarm']:.0f} photos (median)" in page


def test_the_audit_is_quoted() -> None:
    content, page = read("audit"), PAGE.read_text(encoding="utf-8")
    assert content["command"] in page
    assert min(content["precision"][1], content["recall"][1]) >= 0.8
    assert f"precision {content['precision'][0]:.2f}, recall {content['recall'][0]:.2f}" in page
    for probes, rates in content["false_match_growth"].items():
        for rate, ways in rates.items():
            assert f"| {probes} | {rate} | {' | '.join(f'{value:.2f}' for value in ways.values())} |" in page

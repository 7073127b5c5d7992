"""Committed results: the demo's bars are met, and the README shows the numbers that were measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hedged.bench.decisions_page import RUNS
from hedged.training import load_config, shipped_config

ROOT = Path(__file__).parents[1]
DEMO = json.loads((ROOT / "results" / "demo.json").read_text(encoding="utf-8"))


def test_the_demo_is_the_one_that_ships() -> None:
    assert DEMO["metrics"]["settings"]["fingerprint"] == load_config(shipped_config("demo")).fingerprint()


def test_the_demo_reaches_its_bars() -> None:
    metrics = DEMO["metrics"]
    assert metrics["verification_ap"]["clean"] >= 0.985
    assert metrics["verification_ap"]["corrupt"] >= 0.89
    assert metrics["knn_accuracy"]["clean"] >= 0.86
    assert metrics["knn_accuracy"]["corrupt"] >= 0.80
    assert metrics["uncertainty"]["corrupt"] >= 3 * metrics["uncertainty"]["clean"]
    assert sum(metrics["seconds"].values()) <= 5 * 60


def test_the_readme_shows_what_was_measured() -> None:
    metrics = DEMO["metrics"]
    both = ("clean", "corrupt")
    rows: dict[str, list[str]] = {
        "Verification, average precision, clean": [f"{metrics['verification_ap']['clean']:.3f}"],
        "Verification, average precision, corrupt": [f"{metrics['verification_ap']['corrupt']:.3f}"],
        "5-nearest-neighbour accuracy (majority), clean gallery": [f"{metrics['knn_accuracy']['clean']:.3f}"],
        "5-nearest-neighbour accuracy (majority), corrupt gallery": [f"{metrics['knn_accuracy']['corrupt']:.3f}"],
        "5-nearest-neighbour accuracy (plurality), corrupt probe": [
            f"{metrics['knn_plurality']['gallery clean, probe corrupt']:.3f}"
        ],
        "Kendall's τ of η and average precision": [f"{metrics['ap_correlation'][c]:.2f}" for c in both],
        "Kendall's τ of η and neighbour accuracy": [f"{metrics['knn_correlation'][c]:.2f}" for c in both],
        "Mean uncertainty η": [f"{metrics['uncertainty'][c]:.2f}" for c in both],
    }
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    for words, expected in rows.items():
        (line,) = (line for line in readme if line.startswith(f"| {words}"))
        assert [number.strip().strip("*") for number in line.split("|")[2].split("/")] == expected


def test_the_readme_tells_what_the_page_of_results_counts() -> None:
    readme, page = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "results/README.md"))
    words = " ".join(readme.split())
    for kind in ("accuracies", "correlations"):
        (counted,) = re.findall(rf"\d+ of \d+ {kind}", page)
        assert counted in words


def test_the_guide_shows_what_was_measured_of_the_retrofit() -> None:
    found = json.loads((ROOT / "results" / "retrofit.json").read_text(encoding="utf-8"))
    means, runs = found["mean_ap"], found["runs"]
    small = "reduced to 28 pixels"
    assert means["mog-1"][small] > means["point"][small] > means["raw"][small]
    assert sorted((run["model"], run["seed"]) for run in runs) == [(m, s) for m in ("mog-1", "point") for s in range(3)]
    assert all(run["cpu_seconds"] < 30 for run in runs)
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8").splitlines()
    for words, head in (("a hedged head", "mog-1"), ("a point head", "point"), ("the vectors themselves", "raw")):
        (line,) = (line for line in guide if line.startswith(f"| {words}"))
        shown = [cell.strip().strip("*") for cell in line.split("|")[2:4]]
        assert shown == [f"{means[head][name]:.3f}" for name in ("as they are", small)]


def test_the_readme_shows_what_was_measured_of_pets() -> None:
    folder, readme = ROOT / "results" / "paper", " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    cells = [cell for name in ("pets", "pets-variants") for cell in json.loads((folder / f"{name}.json").read_bytes())]
    point, hedged, kendall, _, kept, *_ = (cell["measured"] for cell in cells)
    cut = 1 - (1 - kept) / (1 - hedged)
    assert f"(balanced accuracy {hedged:.3f} and {point:.3f}, three seeds)" in readme
    assert f"τ {kendall:.2f} over 20 bins, and {kept:.3f}, the error cut by {cut:.0%}".replace("%", " %") in readme
    assert hedged > point
    assert cut > 0.2


def test_the_model_of_decided_dogs_is_made_by_the_command_beside_it() -> None:
    found = json.loads((ROOT / "results" / "decisions" / "dogs.json").read_text(encoding="utf-8"))
    overrides = re.findall(r"--set ([^ `]+)", RUNS["dogs"])
    assert found["model"].endswith(load_config(shipped_config("pets"), overrides).fingerprint())


def test_every_benchmark_holds_what_was_asked() -> None:
    lines = json.loads((ROOT / "results" / "benchmarks" / "benchmarks.json").read_text(encoding="utf-8"))
    assert [line["name"] for line in lines if not line["holds"]] == []

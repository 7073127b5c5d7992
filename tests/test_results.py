"""Committed results: the demo's bars are met, and the README shows the numbers that were measured."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

from hedged import Gaussian, MatchCurve
from hedged.bench.decisions_page import RUNS
from hedged.bench.run import page
from hedged.bench.uncertainty.page import PAGE, page_of, read_results
from hedged.paper.page import is_met
from hedged.search import Header, Rows, SqliteStore
from hedged.search.engines._codes import Codes
from hedged.search.engines._index_file import file_of
from hedged.training import load_config, shipped_config

QUALITIES = ("clean", "degraded")
ROOT = Path(__file__).parents[1]
DEMO = json.loads((ROOT / "results" / "demo.json").read_text(encoding="utf-8"))


def test_the_demo_is_the_one_that_ships() -> None:
    settings = DEMO["metrics"]["settings"]
    assert settings.get("digest", settings.get("fingerprint")) == load_config(shipped_config("demo")).digest()


def test_the_demo_reaches_its_bars() -> None:
    metrics = DEMO["metrics"]
    assert metrics["verification_ap"]["clean"] >= 0.985
    assert metrics["verification_ap"]["corrupt"] >= 0.89
    assert metrics["knn_accuracy"]["clean"] >= 0.86
    assert metrics["knn_accuracy"]["corrupt"] >= 0.80
    assert metrics["uncertainty"]["corrupt"] >= 3 * metrics["uncertainty"]["clean"]
    assert sum(metrics["seconds"].values()) <= 5 * 60


def test_the_mean_of_the_demo_is_that_of_its_seeds() -> None:
    assert list(DEMO["seeds"]) == ["0", "1", "2"]
    for metric, mean in DEMO["mean"].items():
        runs = [run[metric] for run in DEMO["seeds"].values()]
        assert DEMO["metrics"][metric] == runs[0]
        if isinstance(mean, dict):
            assert all(mean[key] == pytest.approx(sum(run[key] for run in runs) / 3) for key in mean)
        else:
            assert mean == pytest.approx(sum(runs) / 3)


def test_the_readme_shows_what_was_measured() -> None:
    metrics = DEMO["mean"]
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


@pytest.mark.parametrize("name", ["README.md", "results/README.md"])
def test_the_front_pages_tell_what_the_page_of_the_paper_counts(name: str) -> None:
    front, page = ((ROOT / path).read_text(encoding="utf-8") for path in (name, "results/paper/README.md"))
    words = " ".join(front.replace("*", "").split())
    for kind in ("accuracies", "correlations"):
        (counted,) = re.findall(rf"\d+ of \d+ {kind}", page)
        assert counted in words


def committed(name: str) -> Any:
    return json.loads((ROOT / "results" / name).read_text(encoding="utf-8"))


def find(cells: list[dict[str, Any]], **keys: object) -> dict[str, Any]:
    (cell,) = (cell for cell in cells if all(cell.get(key) == value for key, value in keys.items()))
    return cell


def front_page_rows() -> dict[str, list[str]]:
    """The rows of the tables of results/README.md, as the files have them."""
    cells = [cell for name in ("main-task", "uncertainty-correlation") for cell in committed(f"paper/{name}.json")]
    rows = {}
    for words, metric, gallery, digits in (
        ("Verification, average precision, clean", "verification_ap", "clean", 3),
        ("Verification, average precision, corrupt", "verification_ap", "corrupt", 3),
        ("Identification, 5 neighbours, clean gallery", "knn_accuracy", "clean", 3),
        ("Identification, 5 neighbours, corrupt gallery", "knn_accuracy", "corrupt", 3),
        ("τ of η and average precision, clean", "ap_correlation", "clean", 2),
        ("τ of η and average precision, corrupt", "ap_correlation", "corrupt", 2),
    ):
        gaussian = [cell for cell in cells if cell["model"] == "mog-1" and cell["split"] == "seen"]
        both = [find(gaussian, metric=metric, gallery=gallery, digits=n, dim=n) for n in (2, 3)]
        rows[words] = [f"{cell['measured']:.{digits}f} ({cell['paper']:.{digits}f})" for cell in both]
    for words, metric in (
        ("corrupt average precision, 2 digits, 2-D", "verification_ap"),
        ("identification in a corrupt gallery, 2 digits, 2-D", "knn_accuracy"),
    ):
        plane = [cell for cell in cells if (cell["digits"], cell["dim"], cell["split"]) == (2, 2, "seen")]
        models = [find(plane, metric=metric, gallery="corrupt", model=model) for model in ("mog-1", "point")]
        rows[words] = [f"{cell['measured']:.3f}" for cell in models]
    pets = [find(committed("paper/pets.json"), metric="balanced_accuracy", model=model) for model in ("mog-1", "point")]
    rows["photos of 279 unseen dogs, balanced accuracy"] = [f"{cell['measured']:.3f}" for cell in pets]
    dogs = committed("decisions/dogs.json")
    rows["calibration error on unseen dogs"] = [f"{dogs[key]:.3f}" for key in ("ece", "ece_before")]
    left = dogs["error_after_abstaining"]
    rows["error left when 20 % of pairs are not decided, unseen dogs"] = [
        f"{left[key]:.3f}" for key in ("expected error", "random")
    ]
    rows["the same"] = [f"{left[key]:.3f}" for key in ("expected error", "distance from the threshold")]
    ratios = {line["name"]: line["ratio"] for line in committed("benchmarks/benchmarks.json")}
    (latency,) = (
        ratio for name, ratio in ratios.items() if name.endswith("latency / that of FAISS, exact, on the means")
    )
    rows["time of one search in a million, top 10"] = [f"{latency:.2f}", "1"]
    return rows


def test_the_front_page_of_results_shows_what_was_measured() -> None:
    page = (ROOT / "results" / "README.md").read_text(encoding="utf-8").splitlines()
    for words, expected in front_page_rows().items():
        (line,) = (line for line in page if f"| {words} |" in line)
        shown = [number.strip(" *|") for number in line.split(f"| {words} |")[1].strip(" |").split("|")]
        assert shown == expected, words


def test_the_front_page_of_results_counts_what_falls_short() -> None:
    words = " ".join((ROOT / "results" / "README.md").read_text(encoding="utf-8").replace("*", "").split())
    claims = committed("paper/claims.json")
    assert f"{sum(not claim['holds'] for claim in claims)} of {len(claims)} claims" in words
    main = [[cell for cell in committed("paper/main-task.json") if cell["split"] == s] for s in ("unseen", "seen")]
    unseen, seen = (f"{sum(map(is_met, cells))} of {len(cells)}" for cells in main)
    assert f"{unseen} accuracies of the main table reach the paper's on `unseen` numbers, {seen} on `seen`" in words
    pets = committed("paper/pets.json")
    pearson = find(pets, metric="bin_correlation", correlation="pearson")
    assert f"accuracy is {pearson['measured']:.3f}, the paper reports {pearson['paper']:.3f}" in words
    whole, kept = (
        find(pets + committed("paper/pets-variants.json"), metric="balanced_accuracy", model="mog-1", rejected=r)
        for r in (None, 0.2)
    )
    assert f"from {whole['measured']:.3f} to {kept['measured']:.3f}" in words
    probes = DEMO["mean"]["knn_plurality"]["gallery clean, probe corrupt"]
    assert f"corrupt probes are found with {probes:.3f} (the paper: 0.499)" in words
    first, second, third = (f"{run['ap_correlation']['clean']:.2f}" for run in DEMO["seeds"].values())
    assert f"τ of clean images is {first}, {second} and {third}" in words


def test_the_readme_shows_what_was_measured_of_pets() -> None:
    folder, readme = ROOT / "results" / "paper", " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    cells = [cell for name in ("pets", "pets-variants") for cell in json.loads((folder / f"{name}.json").read_bytes())]
    point, hedged, kendall, _, kept, *_ = (cell["measured"] for cell in cells)
    cut = 1 - (1 - kept) / (1 - hedged)
    assert f"(balanced accuracy {hedged:.3f} and {point:.3f}, three seeds)" in readme
    assert f"τ {kendall:.2f} over 20 bins, and {kept:.3f}, the error cut by {cut:.0%}".replace("%", " %") in readme
    assert hedged > point
    assert cut > 0.2


def test_the_readme_shows_how_fast_it_was() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    ratios = {line["name"]: line["ratio"] for line in committed("benchmarks/benchmarks.json")}
    step = ratios["training step, shallow-hidden, D = 2, batch 128, all pairs: hedged / point, C = 1"]
    assert f"a training step costs {step:.2f} times that of a point embedding" in readme.lower()


def test_the_model_of_decided_dogs_is_made_by_the_command_beside_it() -> None:
    found = json.loads((ROOT / "results" / "decisions" / "dogs.json").read_text(encoding="utf-8"))
    overrides = re.findall(r"--set ([^ `]+)", RUNS["dogs"])
    assert found["model"].endswith(load_config(shipped_config("pets"), overrides).digest())


def test_the_page_of_benchmarks_shows_what_was_measured() -> None:
    shown = (ROOT / "results" / "benchmarks" / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [row for row in page(committed("benchmarks/benchmarks.json")).splitlines() if row.startswith("|")]
    assert [row for row in shown if row.startswith("|")] == rows


def test_no_ratio_is_of_the_slowest_way_to_write_it() -> None:
    for line in committed("benchmarks/benchmarks.json"):
        assert "eager Monte Carlo" not in line["name"]
    for path in ("README.md", "results/README.md"):
        assert "182" not in (ROOT / path).read_text(encoding="utf-8")


def test_every_benchmark_holds_what_was_asked() -> None:
    lines = json.loads((ROOT / "results" / "benchmarks" / "benchmarks.json").read_text(encoding="utf-8"))
    assert [line["name"] for line in lines if not line["holds"]] == []


def test_the_tables_of_real_embeddings_are_what_was_measured() -> None:
    """README and the front page of results quote the cells of results/real."""
    cells = [
        cell
        for name in ("dogs-efficientnet", "clinc-minilm")
        for cell in json.loads((ROOT / "results" / "real" / f"{name}.json").read_text(encoding="utf-8"))
    ]

    def quoted(method: str) -> list[str]:
        found = {
            (cell["set"], cell["quality"]): f"{cell['measured']:.3f}"
            for cell in cells
            if cell["method"] == method and cell["metric"] == "balanced_accuracy"
        }
        return [found[name, quality] for name in ("dogs-efficientnet", "clinc-minilm") for quality in QUALITIES]

    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("*", "")
    front = (ROOT / "results" / "README.md").read_text(encoding="utf-8").replace("*", "")
    rows = {
        "cosine": "cosine of the raw vectors",
        "plda-unit": "PLDA on vectors of unit length",
        "evidence": "`Retrofit`",
    }
    for method, row in {**rows, "lda-100": "LDA, 100 dimensions, cosine"}.items():
        assert f"| {row} | {' | '.join(quoted(method))} |" in readme
    for method in rows:
        dogs, text = " / ".join(quoted(method)[:2]), " / ".join(quoted(method)[2:])
        assert dogs in front
        assert text in front


def test_the_recipe_shows_what_evidence_reached_on_digits() -> None:
    cells = committed("evidence/ndigit.json")
    page = (ROOT / "docs" / "recipe.md").read_text(encoding="utf-8")
    rows: dict[str, dict[str, Any]] = {
        "Average precision, clean": {"metric": "verification_ap", "probe": "clean"},
        "Average precision, corrupt": {"metric": "verification_ap", "probe": "corrupt"},
        "5 neighbours (majority), clean gallery": _neighbours("clean", "clean", "majority"),
        "5 neighbours (majority), corrupt gallery": _neighbours("corrupt", "clean", "majority"),
        "5 neighbours (plurality), corrupt probe": _neighbours("clean", "corrupt", "plurality"),
        "τ of η and average precision, clean": {"metric": "ap_correlation", "probe": "clean"},
        "τ of η and average precision, corrupt": {"metric": "ap_correlation", "probe": "corrupt"},
    }
    for name, wanted in rows.items():
        line = next(line for line in page.splitlines() if line.startswith(f"| {name} |") and line.count("|") == 6)
        shown = [cell.strip(" *") for cell in line.split("|")[4:6]]
        digits = 2 if name.startswith("τ") else 3
        found = [find(cells, warm_start=start, **wanted)["measured"] for start in ("gaussians", "points")]
        assert shown == [f"{value:.{digits}f}" for value in found], name


def _neighbours(gallery: str, probe: str, vote: str) -> dict[str, Any]:
    return {"metric": "knn_accuracy", "gallery": gallery, "probe": probe, "vote": vote}


def test_the_guide_to_the_service_shows_what_a_load_measured() -> None:
    found = committed("serve/load.json")
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    for load in found["loads"]:
        shown = (
            load["load"],
            f"{load['per_second']:,.0f}",
            f"{load['library_per_second']:,.0f}",
            f"{load['share_of_library']:.2f}",
            f"{load['p50_ms']:,.0f}",
            f"{load['p99_ms']:,.0f}",
            f"{load['memory_after_first_minute_mb']:,} → {load['memory_last_mb']:,}",
        )
        assert f"| {' | '.join(shown)} |" in page
        assert load["failed"] == 0
        assert load["p99_over_p50"] < 10
    identify = next(load for load in found["loads"] if load["load"] == "identify images")
    assert identify["share_of_library"] >= 0.6
    assert identify["memory_last_mb"] <= 1.05 * identify["memory_after_first_minute_mb"]


def test_the_page_of_the_fair_fight_is_that_of_its_numbers() -> None:
    folder = ROOT / "results" / "uncertainty"
    found = read_results(folder)
    assert found
    for results in found.values():
        assert {result["seed"] for result in results} == {0, 1, 2}
    assert (folder / PAGE).read_text(encoding="utf-8") == page_of(found)


@pytest.mark.parametrize("dim", [2, 16, 32])
def test_the_page_of_novelty_shows_what_was_measured_on_clothes(dim: int) -> None:
    page = (ROOT / "results" / "novelty" / "README.md").read_text(encoding="utf-8").splitlines()
    cells = [cell for cell in committed("novelty/clothes.json") if cell["dim"] == dim]
    assert {cell["seeds"] for cell in cells} == {3}
    for number in ("1-NN", "novelty", "eta"):
        measured = [cell["measured"] for cell in cells if cell["number"] == number]
        (line,) = (line for line in page if line.startswith(f"| {dim} | {number.replace('eta', 'η')} |"))
        assert line.split("|")[3 : 3 + len(measured)] == [f" {value:.3f} " for value in measured]


@pytest.mark.parametrize(
    ("row", "number", "metric"),
    [
        ("novelty", "novelty", "out of scope"),
        ("P(nobody), PLDA", "nobody", "out of scope"),
        ("P(nobody), borders", "nobody, borders", "out of scope"),
        ("in-scope accuracy, borders", "borders", "accuracy in scope"),
        ("in-scope accuracy, logistic regression", "logistic regression", "accuracy in scope"),
    ],
)
def test_the_page_of_novelty_shows_what_was_measured_on_texts(row: str, number: str, metric: str) -> None:
    page = (ROOT / "results" / "novelty" / "README.md").read_text(encoding="utf-8").replace("**", "").splitlines()
    found = [c for c in committed("novelty/texts.json") if (c["number"], c["metric"]) == (number, metric)]
    some, everything = sorted(found, key=lambda cell: cell["gallery"])
    shown = f"| {row} | {some['measured']:.3f} ± {some['std']:.3f} | {everything['measured']:.3f} |"
    assert shown in page


def test_the_page_of_growth_has_the_tables_of_its_numbers() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "growth_page.py"))
    page = (ROOT / "docs" / "growth.md").read_text(encoding="utf-8")
    assert tool["rendered"](page) == page
    for assumed in ("DOLLARS_MEMORY", "DOLLARS_DISK", "DOLLARS_OBJECTS"):
        assert f" {tool[assumed]:.2g}" in page.partition("Assumed,")[2]


def test_the_tables_of_growth_show_what_is_measured_and_dashes_for_the_rest() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "growth_page.py"))
    built = {"build_cpu_s": 1800.0, "index_cpu_s": 360.0}
    cells = [{"items": 3_000_000, "built": built, "hedged": {"query_ms": 12.34}, "faiss": {"query_ms": 24.68}}]
    lines = list(tool["growth"](cells))
    assert "| **hedged**, build: processor seconds for rows / index file | – / – | 1,800 / 360 | – / – |" in lines
    assert "| one query / a hundred at once, ms | – / – | 12.3 / – | – / – |" in lines
    assert "| one query of hedged / of FAISS | – | 0.50 | – |" in lines
    assert "| processor hours to build | 200 | – |" in tool["billion"](cells)
    cell = {"items": 20_000, "store": "LanceStore", "first stage": "ivf", "looks at": "4 lists", "recall": 0.98}
    assert list(tool["approximate"]([cell]))[2] == "| 20,000 | LanceStore | ivf | 4 lists | – | 0.980 | – |"


def test_a_row_takes_what_the_page_of_growth_reckons_with(tmp_path: Path) -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "growth_page.py"))
    z = Gaussian(torch.randn(20_000, 20), torch.rand(20_000, 20) + 0.01)
    header = Header.for_embeddings(z[:1], "0123456789abcdef", MatchCurve())
    mean, variance = (part.numpy() for part in (z.mean, z.variance))
    with SqliteStore.create(tmp_path / "a.db", header) as store:
        store.add(Rows([f"{i:010}" for i in range(len(z))], z, "0123456789abcdef"))
        store.index().keep()
    assert z.pack().numpy().nbytes / len(z) == tool["PACKED"]
    assert Codes(mean, variance).nbytes / len(z) == pytest.approx(tool["CODED"], rel=0.02)
    assert file_of(store.path).stat().st_size / len(z) == pytest.approx(tool["IN_INDEX_FILE"], rel=0.02)
    assert store.path.stat().st_size / len(z) == pytest.approx(tool["IN_SQLITE"], rel=0.1)


@pytest.mark.parametrize(
    ("variances", "name"), [("one a coordinate", "one per coordinate"), ("one an item", "one per item")]
)
def test_the_page_of_search_shows_what_first_stages_find(variances: str, name: str) -> None:
    page = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")
    cells = [cell for cell in committed("search/first-stage.json") if cell["variances"] == variances]
    for weight in (None, 0.0, 0.3, 1.0):
        shares = [f"{cell['recall']:.3f}" for cell in cells if cell.get("weight") == weight]
        first = f"| {name} | " if weight is None else f"| {name} | {weight:g} | "
        assert f"{first}{' | '.join(shares)} |" in page


def test_the_page_of_novelty_shows_what_was_measured_on_numbers() -> None:
    page = (ROOT / "results" / "novelty" / "README.md").read_text(encoding="utf-8")
    cells = committed("novelty/numbers.json")
    models = {(cell["dim"], cell["model"]) for cell in cells}
    assert models == {(2, "seed 0"), (2, "hedged:ndigit-2d"), (2, "mean"), (3, "seed 0")}
    troubles = {
        "occluded": ("occluded", "eta"),
        "a number never trained on": ("numbers never seen", "nobody"),
        **{words: (words.split(" ")[0], "novelty") for words in ("strokes of no script", "noise", "inverted")},
    }
    shown = {"eta": "η", "novelty": "novelty", "nobody": "P(nobody)"}
    rows = 0
    for dim, model in models:
        by = {(c["number"], c["metric"]): c["measured"] for c in cells if (c["dim"], c["model"]) == (dim, model)}
        for words, (trouble, right) in troubles.items():
            told = {number: by[number, trouble] for number in shown}
            other = max((number for number in shown if number != right), key=lambda number: told[number])
            bold = [f"**{x:.3f}**" if x == max(told.values()) else f"{x:.3f}" for x in told.values()]
            ahead = f"{told[right] - told[other]:+.4f}"
            errors = [by.get((f"error of {a} - {b}", trouble)) for a, b in ((right, other), (other, right))]
            ahead += "".join(f" ± {error:.4f}" for error in errors if error is not None)
            name = "shipped" if model.startswith("hedged:") else model
            assert f"| {dim} | {name} | {words} | {' | '.join(bold)} | {shown[right]} | {ahead} |\n" in page
            rows += 1
    assert sum(line.startswith(("| 2 | s", "| 2 | mean", "| 3 | seed")) for line in page.splitlines()) == rows
    above = [cell["measured"] for cell in cells if cell["number"].startswith("novelty above")]
    assert "{:.3f} are above 0.9 and {:.3f}\nabove 0.95".format(*above) in page

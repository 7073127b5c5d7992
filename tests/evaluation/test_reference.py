"""The paper's numbers: complete, and the same as in its LaTeX source where that is at hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hedged.evaluation.reference import TABLES, Measure, TableName, find_cell

SOURCE = Path(__file__).parents[3] / "shared" / "paper" / "hedged-instance-embedding.tex"
LABELS: dict[TableName, str] = {
    "main-task": "tab:maintask",
    "uncertainty-correlation": "tab:uncertaintymeasuresmog",
    "knn-plurality": "tab:knn_plurality",
    "knn-plurality-correlation": "tab:knn_plurality_corr",
}
SIZES: dict[TableName, int] = {
    "main-task": 4 * 12,
    "uncertainty-correlation": 4 * 8,
    "knn-plurality": 3 * 8,
    "knn-plurality-correlation": 3 * 4,
    "four-d": 4 * 3 + 4 * 2,
    "kl": 8 * 4,
}
TWO_PARTS: dict[TableName, tuple[str, str]] = {
    "four-d": ("tab:N2D4embeddingaccuracy", "tab:N2D4uncertaintymeasuresmog"),
    "kl": ("tab:kl_divergence_accuracy", "tab:kl_divergence_uncertainty"),
}


def printed(label: str) -> list[float]:
    """The numbers of the tabular just before a label of the paper's source, row after row."""
    text = SOURCE.read_text(encoding="utf-8")
    before = text[: text.index(rf"\label{{{label}}}")]
    rows = before[before.rindex(r"\midrule") : before.rindex(r"\bottomrule")]
    return [float(number) for number in re.findall(r"-?\b\d\.\d+", rows.replace("3mm", ""))]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_complete_and_names_each_measurement_once(name: TableName) -> None:
    cells = TABLES[name]
    assert len(cells) == SIZES[name]
    for cell in cells:  # each is found by its name, so no other has it
        assert find_cell(cell.digits, cell.dim, cell.model, cell.measure, cell.beta) is cell


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_the_paper_prints(name: TableName) -> None:
    if not SOURCE.exists():
        pytest.skip(f"needs the paper's source in {SOURCE}")
    labels = TWO_PARTS.get(name) or (LABELS[name],)
    assert [cell.paper for cell in TABLES[name]] == [number for label in labels for number in printed(label)]


def test_there_are_100_accuracies_and_68_correlations() -> None:
    metrics = [cell.metric for cells in TABLES.values() for cell in cells]
    assert sum(metric in ("verification_ap", "knn_accuracy") for metric in metrics) == 100
    assert sum(metric in ("ap_correlation", "knn_correlation") for metric in metrics) == 68


def test_numbers_that_the_text_of_the_paper_repeats() -> None:
    """Section 4: point 0.880, MoG-1 0.907 and MoG-2 0.912 AP on corrupt images; 0.583, 0.760 and 0.757 KNN."""
    models = ("point", "mog-1", "mog-2")
    ap = [find_cell(2, 2, model, Measure("verification_ap", "corrupt", "corrupt")) for model in models]
    knn = [find_cell(2, 2, model, Measure("knn_accuracy", "corrupt", "clean", "majority")) for model in models]
    assert [cell and cell.paper for cell in ap] == [0.880, 0.907, 0.912]
    assert [cell and cell.paper for cell in knn] == [0.583, 0.760, 0.757]


def test_what_does_not_apply_is_left_out_of_the_keys() -> None:
    for cell in (cell for cells in TABLES.values() for cell in cells):
        names = set(cell.as_json())
        assert names - {"vote", "beta"} == {"digits", "dim", "model", "metric", "gallery", "probe", "paper"}
        assert ("vote" in names) == cell.metric.startswith("knn")

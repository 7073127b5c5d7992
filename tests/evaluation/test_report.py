"""The page is whole, self-contained and safe, whatever the embedding and however small the test set."""

from __future__ import annotations

import base64
import logging
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from hedged.cli._scores import print_scores
from hedged.errors import RunError
from hedged.evaluation import Evaluation, HeadlineRow, Results, headline_rows, write_report
from hedged.evaluation.headline import TOLD

from .conftest import Evaluate

VOID = {"meta", "img", "br"}
PREFIX = "data:image/png;base64,"


class Page(HTMLParser):
    """What a browser would see: images, addresses, anchors and text; elements must nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.images: list[str] = []
        self.alts: list[str] = []
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.sections: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.attributes |= values.keys()
        if tag == "img":
            assert values["alt"]
            self.alts.append(values["alt"])
            self.images.append(values["src"])
        self.addresses += [values[name] for name in ("src", "href", "srcset", "action", "poster") if name in values]
        if tag == "section":
            self.sections.append(values["id"])
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.text += data


def page_of(evaluation: Evaluation, folder: Path, settings: dict[str, str] | None = None) -> Page:
    path = folder / "report.html"
    write_report(evaluation, path, settings or {})
    return Page(path.read_text(encoding="utf-8"))


KINDS = [
    {"head": "gaussian", "dim": 1},
    {"head": "gaussian", "dim": 4},
    {"head": "mixture", "components": 3},
    {"head": "mixture", "components": 2, "dim": 1},
    {"head": "point"},
    {"head": "point", "dim": 1},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_page_needs_no_other_file_and_every_image_decodes(
    kind: dict[str, object], evaluate: Evaluate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        page = page_of(evaluate(**kind, numbers=[3, 30, 33], each=5), tmp_path)
    assert not caplog.records  # matplotlib complains there
    assert page.addresses == page.images
    assert len(page.images) >= 2 + 6
    for source in page.images:
        assert source.startswith(PREFIX)
        image = Image.open(BytesIO(base64.b64decode(source.removeprefix(PREFIX), validate=True)))
        image.load()
        assert 10 < min(image.size) <= max(image.size) < 2000
    assert "nan" not in page.text.lower().split()
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_a_gaussian_page_has_every_section_and_names_the_stand_in(evaluate: Evaluate, tmp_path: Path) -> None:
    page = page_of(evaluate(), tmp_path)
    assert page.sections == ["numbers", "space", "extremes", "pairs", "curves", "spread"]
    assert "offline stand-in, not MNIST" in page.text
    assert "0.989" in page.text  # the paper's verification AP
    assert "Difference" not in page.text  # other digits: there is nothing to compare


def test_a_point_page_leaves_uncertainty_out_and_says_why(evaluate: Evaluate, tmp_path: Path) -> None:
    page = page_of(evaluate(head="point"), tmp_path)
    assert page.sections == ["numbers", "space", "pairs", "uncertainty"]
    assert "η is the same for every input" in page.text
    assert "Kendall" not in page.text


@pytest.mark.parametrize("head", ["gaussian", "point"])
def test_a_model_that_tells_novelty_shows_it(head: str, evaluate: Evaluate, tmp_path: Path) -> None:
    page = page_of(evaluate(head=head, novelty=True), tmp_path)
    assert page.sections[-1] == "novelty"
    assert "Corrupt, most novel" in page.text
    assert "corrupt from clean, by novelty" in page.text
    assert "strangers from the enrolled, by P(nobody)" in page.text
    assert any(alt.startswith("Histograms of novelty, with a mean of 0.") for alt in page.alts)


@pytest.mark.parametrize("novelty", [True, False])
def test_printed_scores_have_all_three_numbers_or_say_how_to_know(
    novelty: bool, evaluate: Evaluate, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluation = evaluate(novelty=novelty)
    print_scores(Results(evaluation, {}, headline_rows(evaluation)))
    shown = " ".join(capsys.readouterr().out.split())
    assert f"strangers from the enrolled, by P(nobody) {evaluation.strangers_told:.3f}" in shown
    assert f"Mean uncertainty η clean images {evaluation.uncertainty['clean'].mean():.3f}" in shown
    if evaluation.novelty:
        assert f"Mean novelty clean images {evaluation.novelty['clean'].mean():.3f}" in shown
        assert "corrupt from clean, by novelty" in shown
    else:
        assert "Mean novelty: unknown, fit it with `hedged novelty RUN`" in shown


def test_a_set_too_small_for_the_curves_says_so(evaluate: Evaluate, tmp_path: Path) -> None:
    page = page_of(evaluate(numbers=[3, 30], each=9), tmp_path)
    assert "too small for the KNN curve" in page.text
    assert "Verification: average precision of random pairs" in page.text  # pairs there are enough


def test_bins_without_matches_leave_the_ap_curve_out(evaluate: Evaluate, tmp_path: Path) -> None:
    page = page_of(evaluate(numbers=[*range(99), 0], each=1), tmp_path)
    assert "too small for the AP curve" in page.text
    assert "Identification: by the majority" in page.text


def test_settings_are_shown_after_the_facts_and_escaped(evaluate: Evaluate, tmp_path: Path) -> None:
    page = page_of(evaluate(), tmp_path, {"<b>β": '1e-4 & "x" $style', "Backbone": "<script>alert(1)</script>"})
    assert "<b>β" in page.text
    assert '1e-4 & "x" $style' in page.text
    assert "<script>alert(1)</script>" in page.text  # as text: Page would have met an element otherwise
    assert "shallow-hidden" not in page.text  # a fact of the same name gives way


def test_names_of_classes_come_from_outside_and_are_escaped(
    evaluate: Evaluate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = evaluate()
    name = """<script>alert("1")</script>' onerror='x"""
    monkeypatch.setattr(type(evaluation.data), "name", lambda data, label: f"{name}{label}")
    monkeypatch.setattr(type(evaluation.data), "subject", property(lambda data: "<i>thing"))
    page = page_of(evaluation, tmp_path)
    assert "<script" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"reads {name}" in page.text
    assert f" = {name}" in page.text  # of a pair
    assert "the same <i>thing" in page.text
    assert any(alt.startswith(f"clean image of {name}") for alt in page.alts)
    assert "onerror" not in page.attributes


def test_a_headline_given_is_the_one_shown(evaluate: Evaluate, tmp_path: Path) -> None:
    rows = [HeadlineRow("Mine <1>", "over 3 seeds", measured=0.12345, paper=None)]
    write_report(evaluate(), tmp_path / "r.html", {}, rows)
    page = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "Mine <1>" in page.text
    assert "0.123" in page.text
    assert "The paper has no numbers" in page.text


def test_rows_are_measured_by_the_evaluation(evaluate: Evaluate) -> None:
    evaluation = evaluate()
    rows = {(row.group, row.name): row for row in headline_rows(evaluation)}
    measured = {row.measured for row in rows.values()}
    assert {evaluation.verification_ap("clean"), evaluation.knn_accuracy("corrupt")} <= measured
    assert {
        evaluation.knn_accuracy("clean", "corrupt", "plurality"),
        evaluation.knn_curve("corrupt").kendall,
    } <= measured
    assert [row.paper for row in rows.values() if row.group != TOLD] == [
        0.989, 0.907, 0.879, 0.760, 0.879, 0.499, 0.816, 0.74, 0.81, 0.71, 0.47,
    ]  # fmt: skip


def test_the_same_evaluation_makes_the_same_page(evaluate: Evaluate, tmp_path: Path) -> None:
    pages = []
    for name in ("a.html", "b.html"):
        write_report(evaluate(numbers=[3, 30], each=6), tmp_path / name, {})
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


def test_a_folder_that_is_not_there_is_a_clear_error(evaluate: Evaluate, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot write"):
        write_report(evaluate(numbers=[3, 30, 33], each=4), tmp_path / "nowhere" / "report.html", {})

"""The jobs of the page, done in a real Chromium as a person does them, on real models and stores."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from serve.browsing import Page
from serve.flawed import FITTED, clearest, made_up

from hedged import Embedder

pytestmark = pytest.mark.heavy
ENTER, LEFT, ESCAPE, HOME = "\ue007", "\ue012", "\ue00c", "\ue011"


def percents(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"([\d.]+)%", text)]


def typed(page: Page, name: str, vector: np.ndarray) -> None:
    """Type a vector and use it."""
    field = page.find(name)
    field.clear()
    field.send_keys(", ".join(f"{x:.4f}" for x in vector))
    page.find(f"{name}-button").click()


def reasons(page: Page) -> list[tuple[str, float]]:
    """The rows of the table that says why."""
    rows = page.css(".why tbody tr, .why tfoot tr")
    cells = [[cell.text for cell in row.find_elements("css selector", "th, .value")] for row in rows]
    return [(name, float(value.replace("−", "-"))) for name, value in cells]


def test_a_dropped_photo_is_named_beside_what_it_matches(page: Page) -> None:
    photo = page.service.place.pictures / "24-1.png"
    page.drop("#who-input .drop", photo)
    page.wait_for("who-answer", "24")
    with page.service.client() as client:
        (said,) = client.identify([photo], top=5)
    assert "accept the best label" in page.text("who-decision")
    assert percents(page.text("who-decision")) == [pytest.approx(100 * said["probability"], abs=0.06)]
    rows = page.text("who-bars").splitlines()
    assert [one["label"] for one in said["best"]] == [row.split(" ")[0] for row in rows if "item" in row]
    assert percents(page.text("who-nobody")) == [pytest.approx(100 * said["none_probability"], abs=0.06)]
    assert f"{said['uncertainty']:.3f}" in page.text("eta")
    assert said["novelty"] is not None
    assert percents(page.text("novelty")) == [pytest.approx(100 * said["novelty"], abs=0.51)]
    page.wait(lambda: len(page.css(".beside figure img")) == 4)
    assert [one.text for one in page.css(".beside figcaption")] == ["Yours", "24", "24", "24"]
    page.wait(
        lambda: page.say("return [...document.querySelectorAll('.beside img')].every((i) => i.naturalWidth === 56)")
    )


def test_nobody_is_an_answer(page: Page, tmp_path: Path) -> None:
    (image,) = clearest(Embedder.load(page.service.place.run), 40, 1)
    Image.fromarray(image).save(tmp_path / "40.png")
    page.choose("who-file", tmp_path / "40.png")
    page.wait_for("who-answer", "Nobody in this gallery")
    with page.service.client() as client:
        (said,) = client.identify([tmp_path / "40.png"], top=5)
    assert said["label"] is None
    assert percents(page.text("who-nobody")) == [pytest.approx(100 * said["none_probability"], abs=0.51)]
    page.css(".options summary")[0].click()
    page.say("document.getElementById('who-none').value = ''")
    page.css("#who-none")[0].send_keys("0.001", ENTER)
    with page.service.client() as client:
        (less,) = client.identify([tmp_path / "40.png"], top=5, none=0.001)
    assert less["none_probability"] < said["none_probability"]
    page.wait(lambda: percents(page.text("who-nobody")) == [pytest.approx(100 * less["none_probability"], abs=0.51)])


def test_an_answer_that_is_likelier_wrong_than_right_is_not_clear(page: Page, tmp_path: Path) -> None:
    """A number whose second digit is hidden may be several."""
    said = {}
    for photo in sorted(page.service.place.pictures.glob("*-0.png")):
        hidden = np.array(Image.open(photo))
        hidden[:, 28:] = 0
        Image.fromarray(hidden).save(tmp_path / photo.name)
        with page.service.client() as client:
            (said[tmp_path / photo.name],) = client.identify([tmp_path / photo.name])
    photo, answer = min(said.items(), key=lambda one: one[1]["probability"])
    assert answer["probability"] < 0.5
    assert answer["decision"] != "accept"
    page.choose("who-file", photo)
    page.wait_for("who-answer", "Not clear")
    assert f"The likeliest is “{answer['label'] or 'Nobody in this gallery'}”" in page.text("who-decision")


def test_a_photo_is_enrolled_found_and_removed_again(page: Page, tmp_path: Path) -> None:
    photo = tmp_path / "new.png"
    photo.write_bytes((page.service.place.pictures / "53-0.png").read_bytes())
    page.choose("who-file", photo)
    page.wait_for("who-answer", "53")
    page.find("enrol-label").send_keys("Rex")
    page.find("enrol-id").send_keys("rex-1")
    page.find("enrol-button").click()
    page.wait_for("status", "Enrolled rex-1 as “Rex”")
    page.wait_for("summary", "30 items · 7 labels")
    with page.service.client() as client:
        assert {"rex-1"} == {one["id"] for one in client.items(limit=100)["items"] if one["label"] == "Rex"}
    page.find("enrol-id").send_keys("rex-1")
    page.find("enrol-button").click()
    page.wait_for("status", "choose another id")
    page.show("uncertain")
    row = page.wait(lambda: page.css('[data-id="rex-1"] button'))[0]
    row.click()
    page.wait(lambda: page.find("confirm-no").is_displayed())
    page.press(ESCAPE)
    page.wait(lambda: not page.find("confirm-no").is_displayed())
    assert page.css('[data-id="rex-1"]')
    row.click()
    page.wait(lambda: page.find("confirm-yes").is_displayed())
    page.find("confirm-yes").click()
    page.wait_for("status", "Removed rex-1")
    page.wait_for("summary", "29 items · 6 labels")
    with page.service.client() as client:
        assert "rex-1" not in [one["id"] for one in client.items(limit=100)["items"]]
    assert [one for one in page.complaints() if "409" not in one] == []  # which the browser logs of itself


def test_a_question_that_is_asked_again_at_once_is_answered_once(page: Page) -> None:
    with page.service.client() as client:
        client.enrol([(page.service.place.pictures / "53-0.png").read_bytes()], ["Rex"], ["rex-2"])
    page.show("uncertain")
    page.wait(lambda: page.css('[data-id="rex-2"] button'))
    page.driver.execute_script(
        """
        const ask = document.querySelector('[data-id="rex-2"] button'), dialog = document.getElementById("confirm");
        ask.click();
        dialog.close("no");
        ask.click();  // before anybody was told that it was closed
        setTimeout(() => document.getElementById("confirm-yes").click(), 200);
        """
    )
    page.wait_for("status", "Removed rex-2")
    page.wait_for("summary", "29 items · 6 labels")


def test_two_photos_match_or_not(page: Page) -> None:
    page.show("pair")
    photos = [page.service.place.pictures / name for name in ("24-1.png", "24-2.png", "53-0.png")]
    page.drop("#pair-input-a .drop", photos[0])
    page.drop("#pair-input-b .drop", photos[1])
    page.wait_for("pair-answer", "Match: ")
    with page.service.client() as client:
        said, other = client.match(*photos[:2]), client.match(photos[0], photos[2])
    assert said["calibrated"]
    assert percents(page.text("pair-answer")) == [pytest.approx(100 * said["calibrated"]["probability"], abs=0.06)]
    assert f"{said['distance']:.3f}" in page.text("distance")
    spreads = {str(one["dimension"]): one["difference"] / one["spread"] for one in said["dimensions"]}
    assert dict(reasons(page)) == pytest.approx(spreads, abs=0.006)
    page.choose("pair-file-b", photos[2])
    page.wait_for("pair-answer", "No match: ")
    assert f"{other['distance']:.3f}" in page.text("distance")


def test_vectors_match_by_the_evidence_of_their_dimensions(vectors_page: Page) -> None:
    page = vectors_page
    page.show("pair")
    first, second = (made_up(np.array([FITTED + 2]), seed)[0].round(4) for seed in (8, 9))
    typed(page, "pair-vector-a", first)
    typed(page, "pair-vector-b", second)
    page.wait_for("pair-answer", "Match: ")
    with page.service.client() as client:
        said = client.match(first, second)
    rows = reasons(page)
    assert len(rows) == 12 + 3
    assert sum(value for _, value in rows[:-1]) == pytest.approx(rows[-1][1], abs=0.1)
    assert rows[-1][1] == pytest.approx(said["log_odds"], abs=0.006)
    shares = {str(one["dimension"]): one["log_odds"] or 0.0 for one in said["dimensions"]}
    strongest = sorted(shares, key=lambda name: -abs(shares[name]))[:12]
    assert dict(rows[:12]) == pytest.approx({name: shares[name] for name in strongest}, abs=0.006)
    assert [name for name, _ in rows[-3:]] == [
        f"{len(shares) - 12} other dimensions together",
        "What belongs to no dimension",
        "Log-odds of a match",
    ]
    page.find("pair-vector-b").clear()
    page.find("pair-vector-b").send_keys("1, 2, three")
    page.find("pair-vector-b-button").click()
    page.wait_for("status", "“three” is not a number")
    typed(page, "pair-vector-b", second[:5])
    page.wait_for("status", "48 numbers, got 5")


def test_a_vector_is_named_and_its_novelty_told(vectors_page: Page) -> None:
    vector = made_up(np.array([FITTED + 2]), 8)[0].round(4)
    typed(vectors_page, "who-vector", vector)
    vectors_page.wait_for("who-answer", "p02")
    with vectors_page.service.client() as client:
        (said,) = client.identify([vector], top=5)
    assert said["novelty"] is not None
    assert percents(vectors_page.text("novelty")) == [pytest.approx(100 * said["novelty"], abs=0.51)]


def test_the_most_uncertain_come_first(page: Page) -> None:
    page.show("uncertain")
    page.wait_for("uncertain-range", "1 to 24 of 29")
    with page.service.client() as client:
        items = client.items("uncertainty", limit=100)["items"]
    assert [one.get_attribute("data-id") for one in page.css("#uncertain-grid li")] == [one["id"] for one in items[:24]]
    first = page.css("#uncertain-grid li")[0].text
    assert "22-blank.png" in first
    assert f"η {items[0]['uncertainty']:.3f}" in first
    page.find("uncertain-next").click()
    page.wait_for("uncertain-range", "25 to 29 of 29")
    assert [one.get_attribute("data-id") for one in page.css("#uncertain-grid li")] == [one["id"] for one in items[24:]]
    assert not page.find("uncertain-next").is_enabled()


def button(page: Page, kind: str, number: int, verb: str) -> None:
    """Accept or dismiss a finding."""
    row = page.css(f'[data-testid="audit-{kind}"] .finding')[number]
    row.find_element("css selector", f'[data-testid="audit-{verb}"]').click()


def test_findings_are_accepted_and_dismissed_and_the_store_knows(vectors_page: Page) -> None:
    page = vectors_page
    page.show("audit")
    page.wait_for("audit-note", "4 findings")
    kinds = ("mislabelled", "duplicates", "divided", "poor")
    counts = {kind: len(page.css(f'[data-testid="audit-{kind}"] .finding')) for kind in kinds}
    assert counts == {"mislabelled": 2, "duplicates": 1, "divided": 1, "poor": 0}
    assert "wrong is labelled “p05”" in page.text("audit-mislabelled")
    button(page, "mislabelled", 0, "accept")
    page.wait_for("status", "wrong is p00 now")
    button(page, "mislabelled", 0, "dismiss")
    page.wait_for("status", "not be shown again")
    button(page, "divided", 0, "accept")
    page.wait_for("status", "4 items of p09 are p09 (2) now")
    page.wait_for("summary", "15 labels")
    place = [one.text for one in page.css('[data-testid="audit-duplicates"] .finding')]
    button(page, "duplicates", next(i for i, text in enumerate(place) if "twin-1" in text), "accept")
    page.wait_for("status", "twin-2 was removed")
    page.wait_for("summary", "79 items · 14 labels")
    with page.service.client() as client:
        labels = {one["id"]: one["label"] for one in client.items(limit=100)["items"]}
        found = client.audit()
    assert labels["wrong"] == "p00"
    assert labels["blank"] == "p07"
    assert {f"p09-{i}" for i in range(6, 10)} == {name for name, label in labels.items() if label == "p09 (2)"}
    assert "twin-2" not in labels
    assert found["dismissed"] == 1
    assert not found["mislabelled"]
    page.css("#audit-again")[0].click()
    page.wait_for("audit-note", "79 items")
    assert not page.css('[data-testid="audit-mislabelled"] .finding')


def test_a_poor_photo_is_taken_out_of_the_gallery(page: Page) -> None:
    kept = (page.service.place.pictures / "22-blank.png").read_bytes()
    page.show("audit")
    page.wait_for("audit-note", "2 findings")
    page.wait(lambda: len(page.css('[data-testid="audit-divided"] img')) == 8)
    button(page, "poor", 0, "accept")
    page.wait_for("status", "22-blank.png was removed")
    page.wait_for("summary", "28 items")
    page.show("uncertain")
    page.wait_for("uncertain-range", "of 28")
    with page.service.client() as client:
        client.enrol([kept], ["22"], ["22-blank.png"])  # as other tests have it


def test_a_threshold_is_tried_on_the_calibration_pairs(page: Page) -> None:
    page.show("threshold")
    page.wait_for("threshold-rule", "Match from")
    with page.service.client() as client:
        said = client.calibration()
    assert said
    match, other = (np.asarray(said["calibrated"][name]) for name in ("match", "non_match"))

    def check() -> tuple[int, int]:
        """What is shown is what the pairs say of the sliders; the numbers of false matches and misses."""
        middle, width = page.say(
            "return ['slider', 'band'].map((n) => Number(document.getElementById('threshold-' + n).value))"
        )
        reject, accept = max(0, middle - width / 2), min(1, middle + width / 2)
        assert page.text("threshold-rule").startswith(f"Match from {accept:.3f}, no match below {reject:.3f}")
        false, missed = int((other >= accept).sum()), int((match < reject).sum())
        assert f"{false:,} of {len(other):,}" in page.text("false-match-rate")
        assert f"{missed:,} of {len(match):,}" in page.text("miss-rate")
        unsure = [((some >= reject) & (some < accept)).mean() for some in (match, other)]
        abstained = said["base_rate"] * unsure[0] + (1 - said["base_rate"]) * unsure[1]
        assert percents(page.text("abstentions"))[0] == pytest.approx(100 * abstained, abs=0.51)
        return false, missed

    first = check()
    assert f"Match from {said['accept_from_probability']:.2f}" in page.text("threshold-rule")
    line = page.say("return document.querySelector('.chart .line').getAttribute('x1')")
    page.css("#threshold-slider")[0].send_keys(*[LEFT] * 200)
    lower = check()
    assert lower[0] > first[0]
    assert lower[1] < first[1]
    assert page.say("return document.querySelector('.chart .line').getAttribute('x1')") != line
    page.css("#threshold-band")[0].send_keys(HOME)
    assert "abstains" not in page.text("threshold-rule")
    assert page.text("abstentions").splitlines()[1] == "0%"
    check()
    page.css("#threshold-reset")[0].click()
    assert check() == first

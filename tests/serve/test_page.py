"""The page as a whole: keys and roles, trouble, the keyboard, offline, and what keeps people from using it."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from browsers import axe_core
from serve.browsing import VIEWS, Page
from serve.running import Place, Running, running

pytestmark = pytest.mark.heavy
ENTER, RIGHT, LEFT, END, HOME, TAB, ESCAPE = "\ue007", "\ue014", "\ue012", "\ue010", "\ue011", "\ue004", "\ue00c"


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return axe_core(tmp_path_factory.mktemp("axe"))


@pytest.fixture
def own(digits: Running, tmp_path: Path, driver: Any) -> Iterator[Page]:
    """The page of a service that a test may stop or change."""
    place = Place(*(tmp_path / Path(path).name for path in digits.place))
    shutil.copytree(digits.place.run, place.run)
    shutil.copytree(digits.place.pictures, place.pictures)
    shutil.copy(digits.place.store, place.store)
    with running(place, tmp_path / "here") as service:
        page = Page(driver, service)
        page.resize(1280, 800)
        page.open()
        yield page
        assert page.complaints(refused=True) == []


def fill(page: Page) -> None:
    """Put into every view what a person would, so that there is something to look at."""
    photos = page.service.place.pictures
    page.choose("who-file", photos / "24-1.png")
    page.wait_for("who-answer", "24")
    page.show("pair")
    page.choose("pair-file-a", photos / "24-1.png")
    page.choose("pair-file-b", photos / "53-1.png")
    page.wait_for("pair-answer", "No match")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_keeps_people_from_using_it(page: Page, axe: str, scheme: str, width: int) -> None:
    page.prefer(prefers_color_scheme=scheme)
    page.resize(width, 800)
    fill(page)
    for view in VIEWS:
        page.show(view)
        assert page.violations(axe) == [], view
        assert page.say("return document.documentElement.scrollWidth <= innerWidth"), view
    page.show("uncertain")
    page.find("uncertain-remove").click()
    assert page.violations(axe) == [], "dialog"
    page.press(ESCAPE)
    page.css("#change-key")[0].click()
    assert page.violations(axe) == [], "key"
    ground = page.say("return getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", ground))) < 60) == (scheme == "dark")


def test_axe_finds_what_is_wrong(page: Page, axe: str) -> None:
    page.say("document.querySelector('#view-who h2').style.color = '#ddd'")
    page.say("document.getElementById('who-none').labels[0].remove()")
    page.css(".options summary")[0].click()
    found = " ".join(page.violations(axe))
    assert "color-contrast" in found
    assert "label" in found


def test_no_file_names_another_address() -> None:
    for file in files("hedged.serve").joinpath("page").iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")  # a name, not an address
        assert not re.search(r"(https?:)?//[\w.]+\.\w|@import|@font-face|\bimport\(", text), file.name
        assert not [word for word in re.findall(r'from "([^"]+)"', text) if not word.startswith("./")], file.name


def test_only_the_service_is_asked(page: Page) -> None:
    fill(page)
    for view in VIEWS:
        page.show(view)
    asked = page.say("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert len(asked) > 10
    assert [one for one in asked if not one.startswith((page.service.address, "blob:" + page.service.address))] == []


def test_a_wrong_key_is_told_and_another_can_be_given(page: Page) -> None:
    page.driver.get("about:blank")
    page.driver.get(f"{page.service.address}/#key=wrong")
    page.wait_for("status", "this key is unknown")
    assert page.find("key-input").is_displayed()
    assert not page.css("#views")[0].is_displayed()
    assert "key" not in page.driver.current_url
    page.find("key-input").send_keys("wrong, too")
    page.find("key-button").click()
    page.wait_for("status", "this key is unknown")
    page.find("key-input").send_keys(page.service.write, ENTER)
    page.wait_for("summary", "29 items")
    assert not page.find("status").text
    assert all("401" in one for one in page.complaints())
    page.driver.refresh()
    page.wait_for("summary", "29 items")


def test_a_key_to_read_is_offered_nothing_to_write(page: Page) -> None:
    page.open("audit", page.service.read)
    page.wait_for("audit-note", "2 findings")
    assert len(page.css(".finding")) == 2
    assert not page.css('[data-testid="audit-accept"], [data-testid="audit-dismiss"]')
    page.show("uncertain")
    assert page.css("#uncertain-grid li")
    assert not page.css('[data-testid="uncertain-remove"]')
    page.show("who")
    page.choose("who-file", page.service.place.pictures / "24-1.png")
    page.wait_for("who-answer", "24")
    assert not page.css("#enrol")[0].is_displayed()


def test_a_key_that_lost_its_role_is_refused_and_that_is_said(page: Page) -> None:
    page.show("audit")
    page.wait_for("audit-note", "2 findings")
    page.driver.execute_script("sessionStorage.setItem('hedged-key', arguments[0])", page.service.read)
    page.say("return import('/static/api.js').then((api) => api.setKey(sessionStorage.getItem('hedged-key')))")
    page.find("audit-accept").click()
    page.wait_for("status", "may read, not write")
    assert len(page.css(".finding")) == 2
    with page.service.client() as client:
        assert client.audit()["dismissed"] == 0
        assert client.model()["items"] == 29
    assert all("403" in one for one in page.complaints())


def test_files_that_are_no_photo_are_told(page: Page, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "broken.png").write_bytes((page.service.place.pictures / "24-1.png").read_bytes()[:60])
    page.drop("#who-input .drop", tmp_path / "notes.txt")
    page.wait_for("status", "notes.txt is no picture")
    page.choose("who-file", page.service.place.pictures / "24-1.png")
    page.wait_for("who-answer", "24")
    page.choose("who-file", tmp_path / "broken.png")
    page.wait_for("status", "cannot be read as an image")
    assert not page.find("who-answer").text
    assert not page.css("#enrol")[0].is_displayed()
    page.choose("who-file", page.service.place.pictures / "24-1.png")
    page.wait_for("who-answer", "24")
    assert not page.text("status")
    address = page.driver.current_url
    page.drop("header", page.service.place.pictures / "24-1.png")
    assert page.driver.current_url == address
    assert all("422" in one for one in page.complaints())


def test_a_service_that_is_stopped_is_told_and_the_page_goes_on(own: Page) -> None:
    own.show("uncertain")
    own.wait_for("uncertain-range", "1 to 24 of 29")
    own.service.process.send_signal(signal.SIGTERM)
    own.service.process.wait(30)
    own.find("uncertain-next").click()
    own.wait_for("status", "does not answer")
    own.show("audit")
    own.wait_for("audit-note", "did not finish")
    own.show("who")
    own.choose("who-file", own.service.place.pictures / "24-1.png")
    own.wait_for("status", "does not answer")
    with own.service.log.open("a") as log:
        again = subprocess.Popen(own.service.process.args, stdout=log, stderr=subprocess.STDOUT, text=True)
    try:
        own.wait(lambda: own.say("return fetch('/health').then((one) => one.ok, () => false)"))
        own.choose("who-file", own.service.place.pictures / "24-1.png")
        own.wait_for("who-answer", "24")
        own.show("audit")
        own.wait_for("audit-note", "2 findings")
    finally:
        again.terminate()
        again.wait(30)


def test_an_empty_gallery_is_told_and_can_be_filled(own: Page) -> None:
    with own.service.client() as client:
        client.remove([one["id"] for one in client.items(limit=100)["items"]])
    own.open("map")
    own.wait(lambda: "The gallery is empty" in own.css("#map-message")[0].text)
    own.show("uncertain")
    own.wait_for("uncertain-range", "The gallery is empty")
    own.show("audit")
    own.wait_for("audit-note", "nothing found")
    own.show("who")
    own.choose("who-file", own.service.place.pictures / "24-1.png")
    own.wait(lambda: own.css("#enrol")[0].is_displayed())
    own.find("enrol-label").send_keys("24", ENTER)
    own.wait_for("status", "Enrolled")
    own.choose("who-file", own.service.place.pictures / "24-2.png")
    own.wait_for("who-answer", "24")


def test_every_job_is_done_by_keyboard(own: Page) -> None:
    own.tab_to("tab-who")
    own.press(RIGHT)
    assert own.focused() == "tab-pair"
    own.press(END)
    assert own.focused() == "tab-threshold"
    before = own.text("threshold-rule")
    own.tab_to("threshold-slider")
    own.press(LEFT, LEFT)
    assert own.text("threshold-rule") != before
    own.say("document.activeElement.blur(); scrollTo(0, 0)")
    own.open()
    own.tab_to("who-file")
    assert own.say("return getComputedStyle(document.querySelector('.drop')).outlineStyle") == "solid"
    own.choose("who-file", own.service.place.pictures / "24-1.png")
    own.wait_for("who-answer", "24")
    own.tab_to("enrol-label")
    own.press("Rex", ENTER)
    own.wait_for("status", "Enrolled")
    own.open()
    own.tab_to("tab-who")
    own.press(RIGHT, RIGHT)
    own.wait(lambda: own.say("return window.hedgedMap.whole"))
    own.tab_to("map-canvas")
    own.press("+", "+", RIGHT, ENTER)
    assert "η" in own.text("map-picked")
    own.press(ESCAPE)
    assert "η" not in own.text("map-picked")
    own.tab_to("map-label")
    own.open()
    own.tab_to("tab-who")
    own.press(RIGHT, RIGHT, RIGHT)
    own.wait_for("uncertain-range", "1 to 24 of 30")
    own.tab_to("uncertain-remove")
    own.press(ENTER)
    own.wait(lambda: own.find("confirm-yes").is_displayed())
    own.tab_to("confirm-yes")
    own.press(ENTER)
    own.wait_for("status", "Removed 22-blank.png")
    own.wait(lambda: own.focused() == "view-uncertain")
    own.tab_to("uncertain-next")
    own.open()
    own.tab_to("tab-who")
    own.press(LEFT, LEFT)
    own.wait_for("audit-note", " finding")
    left = len(own.css(".finding"))
    own.tab_to("audit-accept")
    own.press(TAB)
    assert own.focused() == "audit-dismiss"
    own.press(ENTER)
    own.wait_for("status", "not be shown again")
    assert len(own.css(".finding")) == left - 1
    assert own.focused() == ("audit-accept" if left > 1 else "view-audit")


def test_nothing_moves_where_that_is_not_wanted(page: Page) -> None:
    page.prefer(prefers_reduced_motion="reduce")
    page.say("document.getElementById('view-who').setAttribute('aria-busy', 'true')")
    moving = (
        "return [...document.querySelectorAll('*')].filter((e) => getComputedStyle(e).transitionDuration !== '0s' "
        "|| getComputedStyle(e).animationName !== 'none').length"
    )
    assert page.say(moving) == 0
    page.prefer()
    assert page.say(moving) > 0

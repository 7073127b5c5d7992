"""The map of the page: what it draws, and how it is moved, on a few items and on 20,000."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from serve.browsing import Page
from serve.running import Place, Running, call, make_place, numbers, running

from hedged import Embedder, Gaussian
from hedged.search import Gallery, open_store
from hedged.search.rows import Rows

pytestmark = pytest.mark.heavy
ENTER, RIGHT = "\ue007", "\ue014"
MANY = 20_000


def shown(page: Page, folder: Path) -> np.ndarray:
    """The pixels of the map, once it is drawn as a whole."""
    page.wait(lambda: page.say("return window.hedgedMap.whole"))
    page.find("map-canvas").screenshot(str(folder / "map.png"))
    with Image.open(folder / "map.png") as image:
        return np.asarray(image.convert("RGB")).astype(int)


def places(page: Page) -> dict[str, Any]:
    """What the service says of the map."""
    found: dict[str, Any] = call(page.service, "GET", "/v1/map?limit=20000", page.service.write).content
    return found


def move(page: Page, kind: str, x: float, y: float, **more: Any) -> None:
    """What a mouse does."""
    page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})


def middle(page: Page) -> tuple[float, float]:
    box = page.say("return document.getElementById('map-canvas').getBoundingClientRect().toJSON()")
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def marked(page: Page) -> tuple[float, float, float]:
    """Where the ellipse of the picked item is, and its longer axis."""
    found = page.say(
        "const e = document.querySelector('#map-mark ellipse'), box = e.getBoundingClientRect(); "
        "return [box.x + box.width / 2, box.y + box.height / 2, Number(e.getAttribute('rx'))]"
    )
    return found[0], found[1], found[2]


@pytest.fixture
def map_page(page: Page) -> Page:
    page.show("map")
    page.wait(lambda: page.say("return window.hedgedMap.whole"))
    return page


def test_items_lie_where_the_service_says(map_page: Page, tmp_path: Path) -> None:
    page, said = map_page, places(map_page)
    assert page.say("return window.hedgedMap.items") == len(said["ids"]) == 29
    assert "29 items" in page.text("map-note")
    assert page.text("map-legend").split() == ["22", "24", "25", "42", "53", "55"]
    pixels = shown(page, tmp_path)
    ground = pixels[-1, pixels.shape[1] // 2]
    assert (np.abs(pixels - ground).sum(2) > 60).sum() > 500
    page.find("map-label").send_keys("53")
    alone = shown(page, tmp_path)
    coloured = (np.abs(alone - ground).sum(2) > 60) & (np.ptp(alone, axis=2) > 60)
    paint = alone[coloured].mean(0)
    assert paint[0] > paint[1] > paint[2]  # vermilion, the fifth colour
    page.find("map-canvas").send_keys(ENTER)
    page.wait_for("map-picked", "53-")


def test_it_is_zoomed_moved_and_picked_by_mouse(map_page: Page) -> None:
    page = map_page
    x, y = middle(page)
    page.find("map-canvas").send_keys(ENTER)
    page.wait_for("map-picked", "η")
    at = marked(page)
    move(page, "mouseWheel", x, y, deltaX=0, deltaY=-200)
    page.wait(lambda: marked(page)[2] > 1.5 * at[2])
    zoomed = marked(page)
    factor = zoomed[2] / at[2]
    assert zoomed[0] - x == pytest.approx(factor * (at[0] - x), abs=2)
    assert zoomed[1] - y == pytest.approx(factor * (at[1] - y), abs=2)
    move(page, "mousePressed", x, y, button="left", buttons=1, clickCount=1)
    for step in range(1, 6):
        move(page, "mouseMoved", x + 10 * step, y - 6 * step, button="left", buttons=1)
    move(page, "mouseReleased", x + 50, y - 30, button="left", clickCount=1)
    page.wait(lambda: marked(page)[0] != zoomed[0])
    page.wait(lambda: marked(page)[:2] == pytest.approx((zoomed[0] + 50, zoomed[1] - 30), abs=2))
    name = page.css("#map-picked .item-id")[0].text
    page.css("#map-all")[0].click()
    page.wait(lambda: marked(page)[2] == pytest.approx(at[2], rel=1e-3))
    page.find("map-canvas").send_keys("\ue00c")
    assert name not in page.text("map-picked")
    move(page, "mousePressed", at[0], at[1], button="left", buttons=1, clickCount=1)
    move(page, "mouseReleased", at[0], at[1], button="left", clickCount=1)
    page.wait_for("map-picked", name)
    page.wait(lambda: page.css("#map-picked img"))


def test_it_is_zoomed_and_moved_by_keyboard(map_page: Page) -> None:
    page, canvas = map_page, map_page.find("map-canvas")
    canvas.send_keys(ENTER)
    at = marked(page)
    canvas.send_keys("+")
    page.wait(lambda: marked(page)[2] == pytest.approx(1.4 * at[2], rel=0.01))
    zoomed = marked(page)
    canvas.send_keys(RIGHT)
    page.wait(lambda: marked(page)[0] == pytest.approx(zoomed[0] - 60, abs=2))
    canvas.send_keys("0")
    page.wait(lambda: marked(page) == pytest.approx(at, abs=1))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service on 20,000 items: embeddings of digits, and others near to them."""
    folder = tmp_path_factory.mktemp("many")
    place = make_place(folder)
    fill_with_many(place)
    with running(place, folder / "here") as found:
        yield found


def fill_with_many(place: Place) -> None:
    """Another store, of 20,000 items."""
    Path(place.store).unlink()
    embedder = Embedder.load(place.run)
    images, labels = numbers(range(100))
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randint(len(labels), (MANY,), generator=generator)
    with torch.no_grad():
        z = embedder.embed(images)
    mean = z.mean[chosen] + 0.15 * torch.randn(MANY, 2, generator=generator)
    variance = z.variance[chosen] * torch.exp(0.3 * torch.randn(MANY, 2, generator=generator))
    names = [f"{labels[i]:02d}" for i in chosen]
    with Gallery.create(place.store, embedder):
        pass
    with open_store(str(place.store)) as store:
        store.add(Rows([f"item-{i}" for i in range(MANY)], Gaussian(mean, variance), embedder.fingerprint(), names))


def test_it_holds_20_000_items(driver: Any, many: Running, tmp_path: Path) -> None:
    page = Page(driver, many)
    page.prefer()
    page.resize(1280, 800)
    page.open("map")
    page.wait(lambda: page.say("return window.hedgedMap.frames > 0"))
    assert page.say("return window.hedgedMap.items") == MANY
    assert "20,000 items" in page.text("map-note")
    x, y = middle(page)
    shown(page, tmp_path)
    for _ in range(5):
        move(page, "mouseWheel", x, y, deltaX=0, deltaY=-150)
    page.find("map-canvas").send_keys(ENTER)
    page.wait_for("map-picked", "item-")
    found = places(page)
    at = marked(page)
    picked = found["ids"].index(page.css("#map-picked .item-id")[0].text)
    assert len(found["ids"]) == MANY
    assert f"η {found['uncertainty'][picked]:.3f}" in page.text("map-picked")
    box = page.find("map-canvas").rect
    centre = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert np.hypot(at[0] - centre[0], at[1] - centre[1]) < 60  # among so many, one is near
    pixels = shown(page, tmp_path)  # drawn to the last ellipse, however many frames that took
    ground = np.array(page.say("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"))
    assert (np.abs(pixels - ground).sum(2) > 10).mean() > 0.5
    assert page.complaints() == []

"""Pictures of the page that a service serves: each view, in light and in dark, and one on a narrow screen.

The model is one that ships, calibrated; the gallery holds images of two digits that it was not trained on, some of them
flawed. Who is it, and do they match, are asked about images that are not in the gallery. Look at each picture.

PYTHONPATH=src:tests python tools/picture_page.py FOLDER
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from browsers import chromium
from PIL import Image
from serve.browsing import VIEWS, Page
from serve.flawed import clearest, make_digits
from serve.running import running

from hedged import Embedder

WIDE, NARROW, HEIGHT = 1000, 390, 900
ASIDE = 12  # a number's images are taken by how clear they are: four of the first are in the gallery, this one is not


def fill(page: Page, probes: Path) -> None:
    """Do in each view what a person would."""
    page.open()
    page.choose("who-file", probes / "24.png")
    page.wait_for("who-answer", "24")
    page.show("pair")
    page.choose("pair-file-a", probes / "24.png")
    page.choose("pair-file-b", probes / "25.png")
    page.wait(lambda: page.text("pair-answer"))
    page.show("threshold")
    page.wait(lambda: page.css(".chart .line"))
    page.show("map")
    page.wait(lambda: page.say("return window.hedgedMap.whole"))
    page.show("audit")
    page.wait_for("audit-note", " findings")


def fits(page: Page, width: int) -> bool:
    """Whether all of the page is in the window, which is made as long as the page is."""
    shown, end = page.say("return [innerHeight, document.documentElement.scrollHeight]")
    page.resize(width, int(end))
    return bool(end <= shown)


def take(page: Page, view: str, width: int, path: Path) -> None:
    """Save a picture of all of a view, in a window that is as long as it. The map is as large as its window allows."""
    page.resize(width, HEIGHT)
    page.wait(lambda: view == "map" or fits(page, width))
    page.say("document.activeElement.blur()")
    page.wait(lambda: page.say("return [...document.images].every((one) => one.complete)"))
    page.wait(lambda: page.say("return !window.hedgedMap || window.hedgedMap.whole"))
    page.css(f"#view-{view}")[0].screenshot(str(path))
    print(f"{path}: {path.stat().st_size // 1024} kB", flush=True)


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "probes").mkdir()
        place = make_digits(folder)
        embedder = Embedder.load(place.run)
        for number in (24, 25):
            image = clearest(embedder, number, ASIDE)[-1]
            Image.fromarray(image).save(folder / "probes" / f"{number}.png")
        with running(place, folder / "here") as service, chromium(folder / "profile") as driver:
            page = Page(driver, service)
            driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
            for scheme, ending in (("light", ""), ("dark", "-dark")):
                page.prefer(prefers_color_scheme=scheme)
                page.resize(WIDE, HEIGHT)
                fill(page, folder / "probes")
                for view in VIEWS:
                    page.show(view)
                    take(page, view, WIDE, out / f"page-{view}{ending}.png")
            page.prefer(prefers_color_scheme="light")
            page.show("who")
            take(page, "who", NARROW, out / "page-who-narrow.png")


if __name__ == "__main__":
    main()

"""Frames a second of the page's map with 20,000 items, in a headless Chromium that draws on the processor.

PYTHONPATH=src:tests python tools/measure_map.py results/serve/map.json
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from browsers import chromium
from serve.browsing import Page
from serve.running import make_place, running
from serve.test_page_map import MANY, fill_with_many, middle, move

STEPS, PAUSE = 120, 0.016  # events of each kind, as far apart as those of a mouse
WATCH = """
window.times = []; let before = window.hedgedMap.frames;
const look = (now) => {
  if (window.hedgedMap.frames > before) { before = window.hedgedMap.frames; window.times.push(now); }
  window.watching = requestAnimationFrame(look);
};
look(0); window.times = [];
"""


def wheel(page: Page, delta: float) -> Callable[[int], None]:
    x, y = middle(page)
    return lambda step: move(page, "mouseWheel", x, y, deltaX=0, deltaY=delta)


def drag(page: Page) -> Callable[[int], None]:
    x, y = middle(page)

    def act(step: int) -> None:
        if step == 0:
            move(page, "mousePressed", x, y, button="left", buttons=1, clickCount=1)
        angle = 2 * math.pi * step / STEPS
        move(page, "mouseMoved", x + 120 * math.sin(angle), y + 60 * math.sin(2 * angle), button="left", buttons=1)
        if step == STEPS - 1:
            move(page, "mouseReleased", x, y, button="left", clickCount=1)

    return act


def frames(page: Page, act: Callable[[int], None]) -> dict[str, Any]:
    """Do something in many steps, and tell how often the map was drawn meanwhile."""
    page.say(WATCH)
    for step in range(STEPS):
        began = time.monotonic()
        act(step)
        time.sleep(max(0.0, PAUSE - (time.monotonic() - began)))
    page.say("cancelAnimationFrame(window.watching)")
    gaps = np.diff(page.say("return window.times"))
    return {
        "frames": len(gaps),
        "seconds": round(float(gaps.sum()) / 1000, 2),
        "mean_fps": round(1000 / float(gaps.mean()), 1),
        "median_fps": round(1000 / float(np.median(gaps)), 1),
        "slowest_of_20_fps": round(1000 / float(np.quantile(gaps, 0.95)), 1),
        "worst_frame_ms": round(float(gaps.max())),
    }


def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = make_place(folder)
        fill_with_many(place)
        with running(place, folder / "here") as service, chromium(folder / "profile") as driver:
            page = Page(driver, service)
            page.resize(1280, 800)
            page.open("map")
            page.wait(lambda: page.say("return window.hedgedMap.whole"))
            jobs: dict[str, Callable[[], Callable[[int], None]]] = {
                "zoom in": partial(wheel, page, -12),
                "drag, zoomed in": partial(drag, page),
                "zoom out": partial(wheel, page, 12),
                "drag, all in view": partial(drag, page),
            }
            found = {}
            for title, job in jobs.items():
                found[title] = frames(page, job())
                page.wait(lambda: page.say("return window.hedgedMap.whole"))
            browser = driver.capabilities["browserVersion"]
    return {"items": MANY, "viewport": [1280, 800], "chromium": browser, "jobs": found}


def main() -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    content = {
        "command": f"PYTHONPATH=src:tests python tools/measure_map.py {sys.argv[1]}",
        "commit": commit.stdout.strip(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, WebGL by SwiftShader",
        **measure(),
        "load": [round(one, 1) for one in os.getloadavg()],  # a machine that is shared draws less often
    }
    Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
    Path(sys.argv[1]).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()

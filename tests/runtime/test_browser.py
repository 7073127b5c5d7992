"""The browser example, built by npm and used in a real Chromium, says what torch says."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
from browsers import chromium, missing, need
from PIL import Image

from hedged import Embedder
from hedged.decisions import Decider
from hedged.match import match_logit

pytestmark = pytest.mark.heavy
EXAMPLE = Path(__file__).parents[2] / "examples" / "browser"


@final
class Quiet(SimpleHTTPRequestHandler):
    """Files of a folder, without a word on standard error."""

    def guess_type(self, path: Any) -> str:
        return {".mjs": "text/javascript", ".wasm": "application/wasm"}.get(Path(path).suffix, super().guess_type(path))

    def log_message(self, *words: Any) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def site(digits: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The example, built as its README says and served; its address."""
    folder = tmp_path_factory.mktemp("example") / "browser"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules", "site"))
    need("npm", "chromium", "chromedriver")
    for words in (["npm", "install", "--no-audit", "--no-fund"], ["npm", "run", "build", "--", str(digits)]):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode and words[1] == "install":
            missing(f"npm cannot fetch onnxruntime-web: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder / "site")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    with chromium(tmp_path / "profile") as driver:
        yield driver


def wait_for(browser: Any, words: str) -> None:
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, 60).until(lambda b: words in b.find_element("id", "state").text)


def test_two_photos_are_compared_on_the_page(site: str, browser: Any, decider: Decider, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 28, 56), dtype=np.uint8)
    for name, image in zip(("first", "second"), pixels, strict=True):
        Image.fromarray(image).save(tmp_path / f"{name}.png")
    browser.get(site)
    wait_for(browser, "Choose two photos")
    for name in ("first", "second"):
        browser.find_element("id", name).send_keys(str(tmp_path / f"{name}.png"))
    wait_for(browser, "Compared")
    shown = [e.text for e in browser.find_elements("css selector", "#answer dt, #answer dd")]
    said = dict(zip(shown[::2], shown[1::2], strict=True))
    embedder = Embedder.load("hedged:ndigit-2d")
    z = embedder.embed(pixels)
    answer = decider.answer(match_logit(z[:1], z[1:], embedder.match_model).item())
    assert float(said["Match probability"]) == pytest.approx(embedder.match(z[:1], z[1:]).item(), abs=2e-4)
    assert float(said["Calibrated"]) == pytest.approx(answer.probability, abs=2e-4)
    assert said["Decision"] == answer.verdict.value
    assert [float(x) for x in said["Uncertainty η"].split(", ")] == pytest.approx(
        embedder.uncertainty(z).tolist(), abs=2e-4
    )
    Image.fromarray(pixels[0, :20]).save(tmp_path / "small.png")
    browser.find_element("id", "second").send_keys(str(tmp_path / "small.png"))
    wait_for(browser, "small.png cannot be used: it has 56×20 pixels")
    assert not browser.find_element("id", "answer").is_displayed()
    assert browser.get_log("browser") == []

"""A real Chromium for tests, and axe-core, which npm fetches: neither is part of the project."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

AXE = "axe-core@4.14.0"
FLAGS = (
    "--headless=new --no-sandbox --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader"
)


def need(*programs: str) -> None:
    """Skip the test where a program is missing; HEDGED_REQUIRE_BROWSER=1 makes that a failure."""
    for program in programs:
        if shutil.which(program) is None:
            missing(f"needs {program}")


def missing(words: str) -> NoReturn:
    """Skip the test with a reason, or fail where a browser is required."""
    if os.environ.get("HEDGED_REQUIRE_BROWSER") == "1":
        pytest.fail(words)
    pytest.skip(words)


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A Chromium without a window, which draws WebGL on the processor; closed in the end.

    Args:
        profile: A folder for what it keeps.
    """
    need("chromium", "chromedriver")
    try:
        from selenium import webdriver
    except ImportError:
        missing("needs selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def axe_core(folder: Path) -> str:
    """The script of axe-core, which finds what keeps people from using a page.

    Args:
        folder: An empty one to fetch it into.
    """
    need("npm")
    words = ["npm", "pack", "--silent", AXE]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        missing(f"npm cannot fetch {AXE}: {(done.stderr.strip() or 'no word why').splitlines()[-1]}")
    with tarfile.open(folder / done.stdout.split()[-1]) as package:
        script = package.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()

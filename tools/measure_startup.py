"""How long commands and imports take that are over in a moment: medians on the clock, and of processor time.

python tools/measure_startup.py               # warm, on an idle machine
python tools/measure_startup.py --cold        # nothing compiled is kept, and no file is in memory (needs root)
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

PROGRAM = Path(sys.executable).parent / "hedged"
MODEL = "hedged:ndigit-2d"
COMMANDS = {
    "index info": ("index", "info", "a.db"),
    "match": ("match", MODEL, "images/0.png", "images/1.png"),
    "search": ("search", MODEL, "a.db", "images/0.png", "-k", "3"),
}
IMPORTS = {
    "import torch": "import torch",
    "hedged.runtime": "import sys; sys.modules['torch'] = None; import hedged.runtime",  # as if torch were not there
}
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=7, metavar="N", help="of which the median is taken")
    parser.add_argument("--cold", action="store_true", help="the first use after all was installed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "images").mkdir()
        for number in range(20):
            Image.linear_gradient("L").resize((56, 28)).rotate(18 * number).save(folder / "images" / f"{number}.png")
        hedged(folder, "index", "build", MODEL, "a.db", "images")
        for words in COMMANDS.values():
            hedged(folder, *words)  # once, so that all is compiled and in memory
        for name, program in IMPORTS.items():
            found = measured(given.times, folder, given.cold, [sys.executable, "-c", program])
            print(line(name, found), flush=True)
        for verb, words in COMMANDS.items():
            print(line(verb, measured(given.times, folder, given.cold, [str(PROGRAM), *words])), flush=True)


def measured(times: int, folder: Path, cold: bool, program: list[str]) -> list[tuple[float, float]]:
    """Seconds on the clock and of the processor, of each time.

    Args:
        times: How often.
        folder: Where to.
        cold: Whether nothing is kept of the times before.
        program: What is run.
    """
    found = []
    for number in range(times):
        settings = {}
        if cold:
            settings = {"NUMBA_CACHE_DIR": str(folder / f"numba {number}"), "HEDGED_CACHE": str(folder / f"{number}")}
            os.sync()
            DROP_CACHES.write_text("3", encoding="ascii")
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(program, cwd=folder, env=os.environ | settings, check=True, capture_output=True)
        seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append((seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return found


def hedged(folder: Path, *words: str) -> None:
    subprocess.run([str(PROGRAM), *words], cwd=folder, check=True, capture_output=True)


def line(name: str, found: list[tuple[float, float]]) -> str:
    clock, processor = (statistics.median(each) for each in zip(*found, strict=True))
    return f"{name:<16}{clock:8.2f} s{processor:8.2f} s of the processor"


if __name__ == "__main__":
    main()

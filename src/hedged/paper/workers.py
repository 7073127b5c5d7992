"""Filling a shelf with several processes at once, one thread each: small networks keep one core busy, not two.

A worker is `python -m hedged.paper.workers NEED.json`. All it does is on disk, model by model and test set by test set,
so that whatever is interrupted is gone on with, and nothing is done twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from hedged._files import make_folder, remove_parts, write_json
from hedged._progress import progress
from hedged.errors import HedgedError, RunError
from hedged.paper.shelf import Need, Shelf
from hedged.training import Config, Run
from hedged.training.journal import last_step

NEED, WORDS = "need.json", "worker.log"
STEPS_A_TEST = 1_000  # what measuring on a test set counts for beside training, in steps
POLL, PATIENCE = 0.5, 15.0  # seconds
# Of the GNU C library: memory that is freed is kept. Else a step of a MobileNet asks the system for all of it anew, and
# takes almost half as long again. Others do not know these names.
MEMORY = {f"MALLOC_{name}_": str(2**32) for name in ("MMAP_THRESHOLD", "TRIM_THRESHOLD")}
FAILURE = "the reason: "  # before the message of a worker that fails


def fill(shelf: Shelf, needs: Iterable[Need], jobs: int) -> None:
    """Train and measure all that is not there yet, `jobs` models at a time, and show progress.

    A model that fails does not stop the others; which did, and why, is raised at the end.
    """
    needed = together(needs)
    for place in (shelf.place(need.config) for need in needed):
        if place.is_dir():
            remove_parts(place)
    models = [need for need in needed if not shelf.has(need)]
    if not models:
        return
    make_folder(shelf.folder)
    for data in {need.config.data.source: need.config.data for need in models}.values():
        data.fetch()  # once, here, and not by each worker
    try:
        failures = _make(shelf, models, jobs)
    except KeyboardInterrupt:
        raise RunError("interrupted; what was done is kept: give the same command again to go on") from None
    if failures:
        reasons = "\n".join(failures)
        raise RunError(
            f"{len(failures)} of {len(models)} models failed, the others are done:\n{reasons}\n"
            "What was done is kept: give the same command again to go on"
        )


def _make(shelf: Shelf, models: Sequence[Need], jobs: int) -> list[str]:
    """Have a worker for each model; what is to be said of those that fail."""
    waiting, failures = list(models), []
    running: dict[subprocess.Popen[bytes], Need] = {}
    total, begun_with = sum(map(_work, models)), sum(_done(shelf, need) for need in models)
    try:
        with progress(f"{len(models)} models, steps", total, begun_with) as update:
            while waiting or running:
                while waiting and len(running) < jobs:
                    need = waiting.pop(0)
                    running[_start(shelf, need)] = need
                time.sleep(POLL)
                for worker in [worker for worker in running if worker.poll() is not None]:
                    need = running.pop(worker)
                    if worker.returncode != 0:
                        failures.append(_failure(shelf, need, worker.returncode))
                words = f"{sum(map(shelf.has, models))} models done" + (f", {len(failures)} failed" if failures else "")
                update(sum(_done(shelf, need) for need in models), words)
    finally:
        _stop(running)
    return failures


def _stop(running: Iterable[subprocess.Popen[bytes]]) -> None:
    """As Ctrl-C does: let each worker finish its step and save it; then make sure."""
    for worker in running:
        worker.send_signal(signal.SIGINT)
    for worker in running:
        try:
            worker.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()


def together(needs: Iterable[Need]) -> list[Need]:
    """Each model once, with all its test sets, in the order in which they are first asked for."""
    tests: dict[Config, dict[str, None]] = {}
    for need in needs:
        tests.setdefault(need.config, {}).update(dict.fromkeys(need.tests))
    return [Need(config, tuple(names)) for config, names in tests.items()]  # type: ignore[arg-type]


def _work(need: Need) -> int:
    return need.config.train.steps + STEPS_A_TEST * len(need.tests)


def _done(shelf: Shelf, need: Need) -> int:
    if shelf.has(Need(need.config)):
        measured = sum(shelf.has(Need(need.config, (test,))) for test in need.tests)
        return need.config.train.steps + STEPS_A_TEST * measured
    return min(last_step(Run(shelf.place(need.config)).log_file), need.config.train.steps)


def _start(shelf: Shelf, need: Need) -> subprocess.Popen[bytes]:
    place = shelf.place(need.config)
    make_folder(place)
    content = {"config": need.config.model_dump(mode="json"), "tests": need.tests, "shelf": str(shelf.folder)}
    write_json(place / NEED, content)
    with (place / WORDS).open("wb") as words:
        return subprocess.Popen(
            [sys.executable, "-m", "hedged.paper.workers", str(place / NEED), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            env={**MEMORY, **os.environ, "OMP_NUM_THREADS": "1"},
        )


def _failure(shelf: Shelf, need: Need, code: int) -> str:
    """Which model failed, and what it said."""
    model, log = need.config.model, shelf.place(need.config) / WORDS
    words = log.read_text(encoding="utf-8", errors="replace").strip()
    _, marker, reason = words.rpartition(FAILURE)
    if not marker:  # not by hedged: the last line of a traceback, or whatever there is
        reason = f"its process ended with code {code}, after: {words.splitlines()[-1] if words else 'nothing'}"
    name = f"{need.config.data.summary}, {model.head} in {model.dim} dimensions, seed {need.config.train.seed}"
    return f"  {name}: {reason} (its log is {log})"


def _leave_with(parent: int) -> None:
    """End this process when its parent has ended: an orphan would write where the next attempt does."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _main(path: Path, parent: int) -> None:
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    content = json.loads(path.read_text(encoding="utf-8"))
    need = Need(Config.model_validate_json(json.dumps(content["config"])), tuple(content["tests"]))
    try:
        Shelf(Path(content["shelf"])).fill(need)
    except HedgedError as error:
        sys.exit(f"{FAILURE}{error}")


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))

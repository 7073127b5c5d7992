"""A training run of a second, on the offline digits; as a script it kills such runs and resumes them."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

from hedged.data import NDigit
from hedged.training import Config, parse_config, train

TINY: dict[str, Any] = {
    "data": {"source": "offline", "train_images": 2000, "test_images": 200, "per_class": 2},
    "model": {"channels": [2, 4], "hidden": 16},
    "train": {
        "steps": 60,
        "warmup": 5,
        "batch_size": 32,
        "classes_per_batch": 4,
        "images_per_class": 4,
        "log_every": 5,
        "checkpoint_every": 7,
    },
}


def tiny_config(**sections: dict[str, Any]) -> Config:
    """The tiny run with some keys changed."""
    return parse_config({name: TINY.get(name, {}) | sections.get(name, {}) for name in TINY.keys() | sections.keys()})


def tiny_data(config: Config) -> NDigit:
    return config.ndigit.open().train


def in_a_child(steps: int, run: Path) -> int:
    """Train in a forked process, from the last checkpoint if there is one; its process id."""
    process = os.fork()
    if process == 0:
        config = tiny_config(train={"steps": steps}, loss={"estimator": "monte-carlo"})
        train(config, tiny_data(config), run, resume=(run / "checkpoint.safetensors").exists())
        os._exit(0)
    return process


def kill_and_resume(folder: Path, steps: int, kills: int) -> None:
    """One unbroken run in `folder`/whole; then runs in `folder`/0, 1, … until one has taken so many kills in all."""
    begun = time.monotonic()
    os.waitpid(in_a_child(steps, folder / "whole"), 0)
    length = time.monotonic() - begun
    moments, done, runs = random.Random(0), 0, 0
    while done < kills:
        process = in_a_child(steps, folder / str(runs))
        time.sleep(length * moments.uniform(0.05, 0.2))
        os.kill(process, signal.SIGKILL)  # a process that has ended, but was not waited for, can still be killed
        if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL:
            done += 1
        else:
            runs += 1
    os.waitpid(in_a_child(steps, folder / str(runs)), 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    kill_and_resume(Path(sys.argv[1]), steps=int(sys.argv[2]), kills=int(sys.argv[3]))

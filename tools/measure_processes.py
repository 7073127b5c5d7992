"""How fast several processes train, beside one: images a second over a fixed number of steps, one thread each.

    OMP_NUM_THREADS=1 python -m tools.measure_processes
    OMP_NUM_THREADS=1 torchrun --standalone --nproc-per-node 2 -m tools.measure_processes
    OMP_NUM_THREADS=1 python -m tools.measure_processes --photos dogs
    OMP_NUM_THREADS=1 torchrun --standalone --nproc-per-node 2 -m tools.measure_processes --photos dogs

Digits by the network of `hedged train demo`, in batches of 128 and of 512; with `--photos`, photos of a folder by the
MobileNet of `hedged train pets`, in its batches of 64 and in batches of 256; with `--large`, in four times its width
at 96 pixels, where all but a little of the work is in the network. The first steps, in which loops are compiled, do not
count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from hedged.training import Config, build_data, load_config, parse_config, shipped_config
from hedged.training.build import build_parts
from hedged.training.loop import Trainer
from hedged.training.processes import Processes

WARM, STEPS = 10, {128: 200, 512: 60}
PHOTO_STEPS, LARGE_STEPS, IMAGES_EACH = {64: 40, 256: 12}, {64: 10}, 4
LARGE = ("model.width=1.0", "data.size=96", "data.cached_size=112")  # of --large


def configs(photos: Path | None, is_large: bool) -> Iterator[tuple[int, int, Config]]:
    """Batches of how many images, how many steps that count, and all settings."""
    steps_of = STEPS if photos is None else LARGE_STEPS if is_large else PHOTO_STEPS
    for batch_size, steps in steps_of.items():
        train = {"batch_size": batch_size, "steps": WARM + steps, "warmup": 1}
        if photos is None:
            yield batch_size, steps, parse_config({"data": {"source": "offline"}, "train": train})
        else:
            train["classes_per_batch"] = batch_size // IMAGES_EACH
            changed = [f'data.path="{photos}"', *(f"train.{key}={value}" for key, value in train.items())]
            changed += LARGE if is_large else ()
            yield batch_size, steps, load_config(shipped_config("pets"), changed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, help="a folder of photos, one folder an identity")
    parser.add_argument("--large", action="store_true", help="the MobileNet in full width, at 96 pixels")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with Processes.joined() as processes:
        for batch_size, steps, config in configs(given.photos, given.large):
            trainer = Trainer(config, build_parts(config, build_data(config).train), processes)
            for _ in range(WARM):
                trainer.take_step()
            begun = time.perf_counter()
            for _ in range(steps):
                trainer.take_step()
            rate = steps * batch_size / (time.perf_counter() - begun)
            if processes.is_first:
                print(f"{processes.count} processes, batches of {batch_size}: {rate:,.0f} images a second", flush=True)


if __name__ == "__main__":
    main()

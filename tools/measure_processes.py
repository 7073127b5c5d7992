"""How fast several processes train, beside one: images a second over a fixed number of steps, one thread each.

    OMP_NUM_THREADS=1 python tools/measure_processes.py
    OMP_NUM_THREADS=1 torchrun --standalone --nproc-per-node 2 tools/measure_processes.py

Digits by the network of `hedged train demo`, in batches of 128 and of 512. The first steps, in which loops are
compiled, do not count.
"""

from __future__ import annotations

import time

import torch

from hedged.training import build_data, parse_config
from hedged.training.build import build_parts
from hedged.training.loop import Trainer
from hedged.training.processes import Processes

WARM, STEPS = 10, {128: 200, 512: 60}


def main() -> None:
    torch.set_num_threads(1)
    with Processes.joined() as processes:
        for batch_size, steps in STEPS.items():
            train = {"batch_size": batch_size, "steps": WARM + steps, "warmup": 1}
            settings = {"data": {"source": "offline"}, "train": train}
            config = parse_config(settings)
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

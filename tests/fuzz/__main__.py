"""Fuzz the readers of hedged: `python -m fuzz --seed 1 --budget 600`, from the folder `tests`.

Prints a line for each target; exit code 1 if anything but a refusal in words, a hang or growth of memory was found.
`--target NAME --first N --inputs 1 --keep DIR` makes one input again and leaves it in DIR.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from fuzz import exported, inputs, requests, runs, stores
from fuzz.harness import Report, Target, fuzz, one

TARGETS: dict[str, type[Target]] = {
    kind.name: kind
    for kind in (
        runs.Models,
        runs.Heads,
        exported.Exported,
        runs.Calibrations,
        runs.Checkpoints,
        runs.Configs,
        stores.Stores,
        stores.IndexFiles,
        stores.MetadataTables,
        inputs.FeatureFiles,
        inputs.Images,
        inputs.Pairs,
        inputs.DigitFiles,
        inputs.PhotoCaches,
        inputs.ResultTables,
        requests.Requests,
    )
}
LINE = "{:<14}{:>9}{:>9}{:>10}{:>12}{:>12}{:>10}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz the readers of hedged.")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS), help="all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds for each target")
    parser.add_argument("--inputs", type=int, default=None, help="inputs of each target; without --budget 100")
    parser.add_argument("--first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--keep", type=Path, help="make the first input alone, use it here, and leave it in a folder")
    given = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("hedged").setLevel(logging.ERROR)
    number = given.inputs or (100 if math.isinf(given.budget) else sys.maxsize)
    total = Report("all")
    print(LINE.format("target", "inputs", "refused", "findings", "inputs/s", "slowest/s", "grown/MB"), flush=True)
    for name in given.target or TARGETS:
        target = TARGETS[name]()
        target.prepare()
        if given.keep:
            given.keep.mkdir(parents=True)
            one(target, given.seed, given.first, given.keep)
            continue
        report = fuzz(target, given.seed, number, given.budget, given.first)
        _print(report)
        total.inputs, total.refused = total.inputs + report.inputs, total.refused + report.refused
        total.seconds += report.seconds
        total.slowest, total.grown = max(total.slowest, report.slowest), max(total.grown, report.grown)
        total.findings |= {len(total.findings) + i: words for i, words in enumerate(report.findings.values())}
        for found, words in report.findings.items():
            print(f"--- {name}, --seed {given.seed} --first {found} --inputs 1:\n{words}", file=sys.stderr)
    _print(total)
    return 1 if total.findings else 0


def _print(report: Report) -> None:
    speed, grown = report.inputs / max(report.seconds, 1e-9), report.grown / 2**20
    numbers = f"{report.inputs:,}", f"{report.refused:,}", f"{len(report.findings):,}", f"{speed:,.0f}"
    print(LINE.format(report.target, *numbers, f"{report.slowest:.2f}", f"{grown:.1f}"), flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Let the disk fail, the memory end or the process be killed in every verb that writes: `python -m faults`.

Run from the folder `tests`; `--every 1` tries every call to the disk. Prints a line for each verb; exit code 1 if
anything was lost, or not told in words, or cannot be done again.
"""

from __future__ import annotations

import argparse
import errno
import logging
import sys
import tempfile
from pathlib import Path
from random import Random

from faults.disk import Disk, Fault, Way, load_into_this_process

WAYS = ((Way.ONCE, errno.EIO), (Way.FULL, errno.ENOSPC), (Way.KILL, errno.EIO))
LEAST, MOST = 2**20, 2**28  # bytes of memory that a verb is left with, beyond those that it begins with
LINE = "{:<16}{:>7}{:>8}{:>9}{:>10}{:>8}{:>10}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults", description="Let what can fail fail.")
    parser.add_argument("--verb", action="append", help="all by default")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every N-th call to the disk fails")
    parser.add_argument("--kills", type=int, default=10, metavar="N", help="kills at random of each verb")
    parser.add_argument("--limits", type=int, default=9, metavar="N", help="limits of memory, from 1 to 256 MB")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    load_into_this_process("faults")

    import torch
    from faults.trials import Bench
    from faults.verbs import VERBS

    torch.set_num_threads(1)
    failures = 0
    print(LINE.format("verb", "calls", "trials", "refused", "unharmed", "killed", "failures"), flush=True)
    for name in given.verb or VERBS:
        random, disk = Random(f"{given.seed} {name}"), Disk()
        with tempfile.TemporaryDirectory(prefix="hedged-faults-") as folder:
            bench = Bench(VERBS[name](), Path(folder).resolve(), disk)
            logging.getLogger("hedged").handlers.clear()
            for way, error in WAYS:
                for number in range(1 + random.randrange(given.every), bench.tally.calls + 1, given.every):
                    bench.fail(Fault(number, way, error))
            for _ in range(given.kills):
                bench.kill(random.uniform(0, bench.seconds))
            for number in range(given.limits):
                bench.limit(round(LEAST * (MOST / LEAST) ** (number / max(given.limits - 1, 1))))
        tally = bench.tally
        numbers = tally.calls, tally.trials, tally.refused, tally.unharmed, tally.killed, len(tally.failures)
        print(LINE.format(name, *map(str, numbers)), flush=True)
        for words in tally.failures:
            print(f"--- {words}", flush=True)
        failures += len(tally.failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

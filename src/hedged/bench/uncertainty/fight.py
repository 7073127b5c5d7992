"""All ways on all sets: each tuned on a part of the training set, then measured; what is done is not done again."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from hedged._files import make_folder, write_json
from hedged._parallel import cores
from hedged._progress import progress
from hedged._reading import read_json
from hedged.bench.uncertainty.gaussians import ByEvidence, MutualScore, PaperEta, Trace
from hedged.bench.uncertainty.measures import best_matches, measured
from hedged.bench.uncertainty.points import Distance, Dropout, Ensemble, Laplace, LossPrediction, Norm, Ratio
from hedged.bench.uncertainty.sets import TrialSet
from hedged.bench.uncertainty.way import Way

Result = dict[str, Any]
WAYS: tuple[Way, ...] = (
    Distance(), Ratio(), Norm(), Trace(), Dropout(), Ensemble(), LossPrediction(), MutualScore(), Laplace(),
    PaperEta(), ByEvidence(),
)  # fmt: skip
SEEDS = 3
LOGGER = logging.getLogger("hedged")


def fight(
    sets: Sequence[TrialSet], folder: Path, seeds: int = SEEDS, ways: tuple[Way, ...] = WAYS, processes: int = 1
) -> list[Path]:
    """Measure every way on every set, and write the results of a set to <set>.json after each step.

    Args:
        sets: what to measure on.
        folder: where results go; those that are there already are kept, unless a way no longer has their setting.
        seeds: how often each way is trained anew.
        ways: what to measure.
        processes: how many sets are measured at a time.
    """
    make_folder(folder)
    given = sets, repeat(folder), repeat(seeds), repeat(ways)
    if processes == 1:
        return [fight_on(*one) for one in zip(*given, strict=False)]
    threads = max(cores() // processes, 1)
    with ProcessPoolExecutor(processes, get_context("spawn"), torch.set_num_threads, (threads,)) as pool:
        return list(pool.map(fight_on, *given))


def fight_on(trial: TrialSet, folder: Path, seeds: int, ways: tuple[Way, ...]) -> Path:
    """Measure every way on one set; the file of its results.

    Args:
        trial: the set.
        folder: As for `fight`.
        seeds: As for `fight`.
        ways: As for `fight`.
    """
    path = folder / f"{trial.name}.json"
    results = still_right(read_json(path), trial, ways) if path.exists() else []
    done = {(result["way"], result["seed"]) for result in results}
    left = [(way, seed) for way in ways for seed in range(seeds) if (way.name, seed) not in done]
    with progress(trial.name, max(len(left), 1)) as update:
        for k, result in enumerate(measure_each(trial, left, results)):
            results.append(result)
            write_json(path, results)
            update(k + 1, f"{result['way']}, seed {result['seed']}")
    return path


def still_right(results: list[Result], trial: TrialSet, ways: tuple[Way, ...]) -> list[Result]:
    """Results but those of a setting that their way no longer has; a warning says of which ways.

    Args:
        results: that are there.
        trial: the set.
        ways: what is measured; results of other ways stay.
    """
    settings = {way.name: way.settings_for(trial.train) for way in ways}
    kept = [result for result in results if result["setting"] in settings.get(result["way"], (result["setting"],))]
    dropped = {result["way"] for result in results} - {result["way"] for result in kept}
    if len(kept) < len(results):
        LOGGER.warning(
            "%s: %s results are measured again, of settings that are no longer tried: %s",
            *(trial.name, len(results) - len(kept), ", ".join(sorted(dropped)) or "of some seeds"),
        )
    return kept


def measure_each(trial: TrialSet, left: list[tuple[Way, int]], before: list[Result]) -> Iterator[Result]:
    """What is left to be measured, one by one.

    Args:
        trial: the set.
        left: ways and seeds.
        before: results that are there, whose settings are taken again.
    """
    chosen: dict[str, Result] = {result["way"]: result["setting"] for result in before}
    for way, seed in left:
        spent: dict[str, float] = {}
        if way.name not in chosen:
            began = time.monotonic()
            chosen[way.name] = tuned(way, trial)
            spent["tuning_seconds"] = round(time.monotonic() - began, 1)
        began = time.monotonic()
        fitted = way.fit(trial.train, seed, **chosen[way.name])
        between = time.monotonic()
        found = measured(fitted, trial, seed)
        spent |= {"seconds": round(between - began, 1), "measuring_seconds": round(time.monotonic() - between, 1)}
        yield {"set": trial.name, "way": way.name, "seed": seed, "setting": chosen[way.name], **found, **spent}


def tuned(way: Way, trial: TrialSet) -> dict[str, Any]:
    """The setting with the least area under the risk–coverage curve on the part of the training set that is held out.

    Args:
        way: with its settings.
        trial: the set.
    """
    settings = way.settings_for(trial.train)
    if len(settings) == 1:
        return settings[0]
    held = trial.for_tuning
    x, y = held.test.mixed(0), held.test.y
    return min(settings, key=lambda setting: best_matches(way.fit(held.train, 0, **setting), x, y)["aurc"])

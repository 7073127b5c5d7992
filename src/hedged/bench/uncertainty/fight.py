"""All ways on all sets: each tuned on a part of the training set, then measured; what is done is not done again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hedged._files import make_folder, write_json
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


def fight(sets: Iterable[TrialSet], folder: Path, seeds: int = SEEDS, ways: tuple[Way, ...] = WAYS) -> list[Path]:
    """Measure every way on every set, and write the results of a set to <set>.json after each step.

    Args:
        sets: what to measure on.
        folder: where results go; those that are there already are kept.
        seeds: how often each way is trained anew.
        ways: what to measure.
    """
    make_folder(folder)
    written = []
    for trial in sets:
        path = folder / f"{trial.name}.json"
        results: list[Result] = read_json(path) if path.exists() else []
        done = {(result["way"], result["seed"]) for result in results}
        left = [(way, seed) for way in ways for seed in range(seeds) if (way.name, seed) not in done]
        with progress(trial.name, max(len(left), 1)) as update:
            for k, result in enumerate(measure_each(trial, left, results)):
                results.append(result)
                write_json(path, results)
                update(k + 1, f"{result['way']}, seed {result['seed']}")
        written.append(path)
    return written


def measure_each(trial: TrialSet, left: list[tuple[Way, int]], before: list[Result]) -> Iterator[Result]:
    """What is left to be measured, one by one.

    Args:
        trial: the set.
        left: ways and seeds.
        before: results that are there, whose settings are taken again.
    """
    chosen: dict[str, Result] = {result["way"]: result["setting"] for result in before}
    for way, seed in left:
        if way.name not in chosen:
            chosen[way.name] = tuned(way, trial)
        began = time.monotonic()
        fitted = way.fit(trial.train, seed, **chosen[way.name])
        seconds = time.monotonic() - began
        found = measured(fitted, trial, seed)
        yield {"set": trial.name, "way": way.name, "seed": seed, "setting": chosen[way.name], **found,
               "seconds": round(seconds, 1)}  # fmt: skip


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

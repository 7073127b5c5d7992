"""`hedged drift`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedged._reading import open_file
from hedged.cli._inputs import SkipBroken, embedded_sound, inputs_of
from hedged.cli._output import Json, examples, print_json, print_table, printable, say
from hedged.cli._runs import Model, load_embedder
from hedged.cli._stores import Wheres, check_model, filters
from hedged.errors import ConfigError, RunError

if TYPE_CHECKING:
    from hedged.decisions import Decider, Drift
    from hedged.distributions import Distribution
    from hedged.models import Embedder
    from hedged.search import Where

EXAMPLES = examples(
    "hedged drift runs/dogs dogs.db",
    "hedged drift runs/dogs this-month/ --folder-labels --false-alarms 0.001",
    "hedged drift runs/vectors new.npz --json",
)
SQLITE = b"SQLite format 3\x00"


def drift(
    run: Model,
    given: Annotated[
        list[str],
        typer.Argument(metavar="STORE|INPUTS", help="A store; or images, folders or files of vectors, in their order."),
    ],
    false_alarms: Annotated[
        float, typer.Option("--false-alarms", metavar="RATE", help="Probability of an alarm while nothing changes.")
    ] = 0.01,
    folder_labels: Annotated[
        bool, typer.Option("--folder-labels", help="The images of a folder show one identity: take the first.")
    ] = False,
    where: Wheres = [],  # noqa: B006 - typer reads it, nobody writes it
    skip_broken: SkipBroken = False,
    json: Json = False,
) -> None:
    """Tell whether inputs have changed since `hedged calibrate`.

    No labels are needed. Uncertainty and length of each new embedding are held against those calibrated on, in the
    order of the inputs. An alarm is given at the first input where the evidence reaches 1/RATE; while nothing changes,
    that ever happens with a probability of at most RATE. Each identity counts once: of rows or vectors with one label,
    the first is taken.
    """
    if not 0 < false_alarms < 1:
        raise ConfigError(f"--false-alarms is a probability, between 0 and 1, got {false_alarms:g}")
    embedder = load_embedder(run)
    from hedged.decisions import detect_drift, load_decider
    from hedged.evaluation.calibration_pairs import statistics

    reference = _reference(load_decider(run, embedder.fingerprint()), run)
    ids, z = (
        _of_store(embedder, given[0], filters(where))
        if len(given) == 1 and _is_store(given[0])
        else _of_inputs(embedder, [Path(one) for one in given], folder_labels, skip_broken)
    )
    import numpy as np

    before = {name: np.array(values) for name, values in reference.items()}
    found = detect_drift(before, statistics(z, embedder.match_model), false_alarms)
    alarm = None if found.alarm is None else ids[found.alarm]
    if json:
        print_json(asdict(found) | {"alarm_id": alarm})
        return
    _print(found, alarm)


def _reference(decider: Decider | None, run: Path) -> dict[str, tuple[float, ...]]:
    if decider is None or decider.reference is None:
        raise RunError(
            f"{run} does not say what its inputs were like: calibrate it on its own data with `hedged calibrate {run}`"
        )
    return decider.reference


def _is_store(name: str) -> bool:
    """Whether an argument names a store, not an input."""
    if "://" in name:
        return True
    try:
        with open_file(Path(name)) as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def _of_store(embedder: Embedder, location: str, where: Sequence[Where]) -> tuple[list[str], Distribution]:
    """The first row of each label, and all rows without one, in the order they were added."""
    import numpy as np
    import torch

    from hedged.search import open_store

    with open_store(location) as store:
        check_model(store, embedder)
        batches = list(store.batches(where))
        if not batches:
            raise RunError(f"no row of {store.name} passes: there is nothing to look at")
        rows = [row for batch in batches for row in batch.described]
        z = store.header.unpack(np.concatenate([batch.packed for batch in batches]))
    places = _first_of_each([row.label for row in rows])
    return [rows[i].id for i in places], z.take(torch.tensor(places))


def _of_inputs(
    embedder: Embedder, given: Sequence[Path], folder_labels: bool, skip_broken: bool
) -> tuple[list[str], Distribution]:
    """The inputs, embedded; of those that are known to show one identity, the first."""
    import torch

    from hedged.distributions import concatenate

    inputs = inputs_of(embedder, given)
    labels: Sequence[str | None] = inputs.labels or [None] * len(inputs.ids)
    if folder_labels:
        if inputs.vectors is not None:
            raise ConfigError("vectors are in no folders: leave out --folder-labels")
        labels = [str(path.resolve().parent) for path in inputs.paths]
    places = torch.tensor(_first_of_each(labels))
    ids, parts = [], []
    for some, z in embedded_sound(embedder, inputs.subset(places), skip_broken):
        ids += some.ids
        parts.append(z)
    return ids, concatenate(parts)


def _first_of_each(labels: Sequence[str | None]) -> list[int]:
    """Places of the first of each label, and of all without one."""
    seen: set[str] = set()
    places = []
    for i, label in enumerate(labels):
        if label is None or label not in seen:
            places.append(i)
        if label is not None:
            seen.add(label)
    return places


def _print(found: Drift, alarm: str | None) -> None:
    rows = [(f"  by {name}", f"{value:.3g}") for name, value in found.by_statistic.items()]
    title = f"{found.inputs:,} inputs, held against {found.reference:,} calibrated on, one an identity"
    rows = [("evidence of a change, at its highest", f"{found.evidence:.3g}"), *rows]
    print_table(title, ("", "value"), [*rows, ("alarm from", f"{1 / found.false_alarm_rate:.3g}")])
    if alarm is None:
        say("\nno change seen")
    else:
        say(f"\nthe inputs have changed: first seen at {printable(alarm)}; calibrate again on inputs like these")

"""`hedged calibrate`."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hedged._files import make_folder
from hedged.cli._decisions import print_calibration
from hedged.cli._output import Json, examples, print_json, say
from hedged.cli._pairs import PairsFile, PairsImages
from hedged.cli._promises import check_rates, gallery_thresholds, print_promises, reference_of
from hedged.cli._runs import RunFolder
from hedged.errors import ConfigError, RunError

if TYPE_CHECKING:
    from hedged.decisions import Abstention, Aims, Calibration, Quality
    from hedged.evaluation.calibration_pairs import Source
    from hedged.plots.reliability import Diagram
    from hedged.training import Run

EXAMPLES = examples(
    "hedged calibrate runs/first",
    "hedged calibrate runs/first --false-match-rate 0.001 --abstain-rate 0.2",
    "hedged calibrate runs/first --pairs pairs.csv --costs 100,1,0.5",
    "hedged calibrate runs/dogs --fpir 0.01 --fpir 0.1 --store dogs.db",
)
FALSE_MATCH_RATE, ABSTAIN_RATE = 0.01, 0.1  # the defaults
DPI = 160  # of the picture


def calibrate(
    run: RunFolder,
    pairs: PairsFile = None,
    images: PairsImages = None,
    corrupt: Annotated[bool, typer.Option("--corrupt", help="Use the corrupt twins of the run's own data.")] = False,
    false_match_rate: Annotated[
        float | None,
        typer.Option("--false-match-rate", help="Accept at most this share of non-matches. [0.01]"),
    ] = None,
    abstain_rate: Annotated[
        float | None, typer.Option("--abstain-rate", help=f"Share of pairs to leave undecided. [{ABSTAIN_RATE:g}]")
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            "--costs",
            metavar="A,B,C",
            help="Instead of rates: what a false match, a false non-match and abstaining cost.",
        ),
    ] = None,
    base_rate: Annotated[
        float, typer.Option("--base-rate", help="Expected share of pairs that match, where the model will be used.")
    ] = 0.5,
    fpir: Annotated[
        list[float],
        typer.Option(
            "--fpir",
            metavar="RATE",
            help="Promise that `identify` takes at most this share of strangers for somebody; may be repeated.",
        ),
    ] = [],  # noqa: B006 - typer reads it, nobody writes it
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="STORE", help="For --fpir: the gallery. [the run's validation identities]"),
    ] = None,
    json: Json = False,
) -> None:
    """Calibrate match probabilities and choose decision thresholds.

    Fits a calibrator to labelled pairs (temperature or isotonic, whichever does better in cross-validation over
    identities), finds the threshold for a false-match rate, and decides when to abstain. The pairs are those of FILE,
    or else of the run's validation data. Writes RUN/calibration.json, which `evaluate`, `match`, `search` and
    `identify` then use, and RUN/reliability.png.

    With --fpir, validation identities are tried as strangers to a gallery, one input each, and the threshold is found
    that a stranger passes with no more than that probability. Too few identities for a rate are refused.
    """
    from dataclasses import replace

    from hedged.decisions import calibrate as find
    from hedged.training import Run

    if pairs and corrupt:
        raise ConfigError("--corrupt is for the run's own data and --pairs for others: give one of them")
    check_rates(fpir, store is not None, pairs is not None)
    aims = _aims(false_match_rate, abstain_rate, costs, base_rate)
    opened = Run(run)
    if opened.folder.is_dir():
        make_folder(opened.folder)  # one that cannot be written is refused before the work
    source = _source(opened, pairs, images, corrupt)
    gallery = gallery_thresholds(opened.embedder, source, fpir, store) if fpir else None
    found = find(source.pairs, opened.embedder.fingerprint(), aims)
    reference = reference_of(opened.embedder, source)
    found = replace(found, decider=replace(found.decider, gallery=gallery, reference=reference))
    path = _save(found, opened, source.words)
    if json:
        print_json(loads(path.read_text(encoding="utf-8")))
        return
    print_calibration(found, source.words)
    if gallery is not None:
        say()
        print_promises(gallery)
    say(f"\ncalibration: {path}\npicture: {opened.reliability_file}")


def _aims(false_match_rate: float | None, abstain_rate: float | None, costs: str | None, base_rate: float) -> Aims:
    """What was asked for, before any work is done."""
    from hedged.decisions import AbstainByRate, Aims

    if costs is not None and abstain_rate is not None:
        raise ConfigError("--abstain-rate and --costs both say when to abstain: give one of them")
    abstention: Abstention = AbstainByRate(ABSTAIN_RATE if abstain_rate is None else abstain_rate)
    if costs is not None:
        abstention = _costs(costs)
    elif false_match_rate is None:
        false_match_rate = FALSE_MATCH_RATE
    return Aims(false_match_rate, abstention, base_rate)


def _costs(text: str) -> Abstention:
    from hedged.decisions import AbstainByCosts

    try:
        false_match, false_non_match, abstention = map(float, text.split(","))
    except ValueError as error:
        raise ConfigError(
            f"--costs takes three numbers with commas between them, such as 100,1,0.5, got {text!r}"
        ) from error
    return AbstainByCosts(false_match, false_non_match, abstention)


def _source(run: Run, pairs: Path | None, images: Path | None, corrupt: bool) -> Source:
    """Pairs scored by the model of the run."""
    from hedged.data import read_pairs
    from hedged.evaluation.calibration_pairs import pairs_of_list, pairs_of_run
    from hedged.models.saved import MODEL_PREFIX

    if str(run.folder).startswith(MODEL_PREFIX):
        raise RunError(f"{run.folder} ships with hedged, and its folder is not written to: calibrate a copy of it")
    if pairs:
        return pairs_of_list(read_pairs(pairs, images), run.embedder, str(pairs))
    return pairs_of_run(*run.trained(), "corrupt" if corrupt else "clean")


def _save(found: Calibration, run: Run, words: str) -> Path:
    """Write calibration.json, and the picture before it: what is there is of one calibration."""
    from hedged._files import write_atomically
    from hedged.plots.reliability import reliability_figure

    choice = found.choice
    figure = reliability_figure(_diagram("before", choice.before), _diagram(f"after: {found.kind}", choice.after))
    write_atomically(run.reliability_file, lambda part: figure.savefig(part, dpi=DPI, format="png"))
    return found.decider.save(run.folder, {"source": words, **found.report()})


def _diagram(title: str, quality: Quality) -> Diagram:
    from hedged.plots.reliability import Diagram

    return Diagram(title, quality.reliability, {"ECE": quality.ece, "Brier": quality.brier, "NLL": quality.nll})

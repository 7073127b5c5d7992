"""`hedged identify`."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedged.cli._inputs import Images, SkipBroken, embedded_sound, inputs_of
from hedged.cli._novelty import how_to_know, of_each, shown
from hedged.cli._output import Json, examples, print_json, print_table, printable, say
from hedged.cli._runs import Model, load_embedder
from hedged.cli._stores import StoreName, Wheres, check_model, filters
from hedged.errors import ConfigError, RunError

if TYPE_CHECKING:
    from hedged.decisions import Decider
    from hedged.search import Fusion, Identified

EXAMPLES = examples(
    "hedged identify runs/dogs dogs.db unknown.jpg",
    "hedged identify runs/dogs dogs.db unknown/ --fusion mixture --none 0.5",
    "hedged identify runs/dogs dogs.db unknown/ --coverage 0.95 --fpir 0.01",
)
NOBODY = "none of these"


class How(StrEnum):
    """How the images of an identity are combined."""

    PRODUCT = "product"
    MIXTURE = "mixture"
    NEIGHBOURS = "neighbours"
    BORDERS = "borders"


def identify(
    run: Model,
    location: StoreName,
    images: Images,
    fusion: Annotated[
        How,
        typer.Option("--fusion", help="How to combine the rows of an identity."),
    ] = How.PRODUCT,
    neighbours: Annotated[
        int, typer.Option("--neighbours", min=1, metavar="N", help="Number of nearest rows, for --fusion neighbours.")
    ] = 5,
    none: Annotated[
        float, typer.Option("--none", metavar="SHARE", help="Expected share of inputs that show nobody in the store.")
    ] = 0.1,
    top: Annotated[int, typer.Option("--top", min=1, metavar="N", help="Identities to show per input.")] = 3,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage", metavar="SHARE", help="Also list candidates that hold the right answer this often, as 0.95."
        ),
    ] = None,
    fpir: Annotated[
        float | None,
        typer.Option(
            "--fpir", metavar="RATE", help="Take at most this share of strangers for somebody; see `hedged calibrate`."
        ),
    ] = None,
    where: Wheres = [],  # noqa: B006 - typer reads it, nobody writes it
    skip_broken: SkipBroken = False,
    json: Json = False,
) -> None:
    """Identify who each image or vector shows, if anybody stored.

    The labels in the store are the identities, each with any number of rows. Each identity gets a probability, and so
    does "none of these". Three numbers, three questions: uncertainty, could this input be several things? novelty,
    is it unlike what the model was trained on? the probability of "none of these", is it nobody in this store? If
    the model was calibrated (`hedged calibrate`), the probabilities are calibrated, and the decision on the best
    identity is shown: accept, reject or abstain. It is accepted only where it is more likely than
    all others and "none of these" together.

    --coverage and --fpir are promises for identities like those in the store, not estimates. Candidates are calibrated
    on the store itself, one row of each identity left out in turn; the threshold of --fpir by `hedged calibrate`.
    """
    _check(none, coverage, fpir, fusion)  # before the work
    embedder = load_embedder(run)
    from hedged.decisions import load_decider  # after it: loading a model decides how torch is imported
    from hedged.search import Identifier, Identities, open_store

    decider = None if fusion is How.BORDERS else load_decider(run, embedder.fingerprint())  # its scores are no log-odds
    inputs = inputs_of(embedder, images)
    with open_store(location) as store:
        check_model(store, embedder)
        identities = Identities.read(store, filters(where))
    calibrated = decider.calibrator.log_odds if decider else None
    accept_from = None if fpir is None else _accept_from(decider, run, fpir, len(identities.labels))
    identifier = Identifier(identities, _fusion(fusion, neighbours), none, calibrated, coverage)
    found: list[tuple[str, Identified]] = []
    for some, z in embedded_sound(embedder, inputs, skip_broken):
        told = of_each(some.novelty, len(some.ids))
        who = [replace(one, novelty=new) for one, new in zip(identifier.identify(z, top), told, strict=True)]
        found += zip(some.ids, who, strict=True)
    if json:
        print_json([_content(image, one, decider, accept_from) for image, one in found])
        return
    for image, one in found:
        _print(image, one, decider, accept_from)
    if embedder.novelty_model is None:
        say(f"novelty: {how_to_know(run)}")


def _check(none: float, coverage: float | None, fpir: float | None, fusion: How) -> None:
    if not 0 < none < 1:
        raise ConfigError(f"--none is the share of inputs that show nobody in the store, in (0, 1), got {none:g}")
    if coverage is not None and not 0 < coverage < 1:
        raise ConfigError(f"--coverage is the share of sets that hold the right answer, in (0, 1), got {coverage:g}")
    if fpir is not None and not 0 < fpir < 1:
        raise ConfigError(f"--fpir is a share of strangers, between 0 and 1, got {fpir:g}")
    if fpir is not None and fusion is not How.PRODUCT:
        raise ConfigError(
            f"--fpir is promised for --fusion {How.PRODUCT}, got --fusion {fusion}: leave one of them out"
        )


def _accept_from(decider: Decider | None, run: Path, fpir: float, identities: int) -> float:
    if decider is None or decider.gallery is None:
        raise RunError(
            f"{run} has no threshold for strangers: find one with `hedged calibrate {run} --fpir {fpir:g} --store "
            "STORE`"
        )
    return decider.gallery.at(fpir, identities)


def _fusion(how: How, neighbours: int) -> Fusion:
    from hedged.search import BorderFusion, MixtureFusion, NeighbourFusion, ProductFusion

    ways: dict[How, Fusion] = {
        How.PRODUCT: ProductFusion(),
        How.MIXTURE: MixtureFusion(),
        How.NEIGHBOURS: NeighbourFusion(neighbours),
        How.BORDERS: BorderFusion(),
    }
    return ways[how]


def _content(image: str, one: Identified, decider: Decider | None, accept_from: float | None) -> dict[str, Any]:
    best = [each._asdict() for each in one.best]
    content: dict[str, Any] = {
        "image": image,
        "label": one.label,
        "probability": one.probability,
        "none_probability": one.none_probability,
        "uncertainty": one.uncertainty,
        "novelty": one.novelty,
        "best": best,
    }
    if one.candidates is not None:
        content["candidates"] = one.candidates._asdict()
    if accept_from is not None:
        content["at_fpir"] = _at(one, accept_from)
    return content | ({"decision": one.verdict(decider).value} if decider else {})


def _at(one: Identified, accept_from: float) -> str | None:
    """The best identity if its score passes; None: nobody."""
    likeliest = max(one.best, key=lambda each: each.logit)
    return likeliest.label if likeliest.logit >= accept_from else None


def _print(image: str, one: Identified, decider: Decider | None, accept_from: float | None) -> None:
    rows = [(each.label, f"{each.probability:.4f}", str(each.images)) for each in one.best]
    rows.append((NOBODY, f"{one.none_probability:.4f}", ""))
    rows.sort(key=lambda row: -float(row[1]))
    decided = f", {one.verdict(decider).value}" if decider else ""
    title = f"{image}: {one.label or NOBODY} (uncertainty {one.uncertainty:.4f}, novelty {shown(one.novelty)}{decided})"
    print_table(title, ("identity", "probability", "images"), rows)
    if one.candidates is not None:
        names = [*one.candidates.labels, *([NOBODY] if one.candidates.nobody else [])]
        held = ", ".join(map(printable, names)) or "nobody fits, and nor does a stranger: unlike what the store holds"
        say(f"candidates (right in {one.candidates.coverage:g} of such sets): {held}")
    if accept_from is not None:
        say(f"at the promised FPIR: {printable(_at(one, accept_from) or NOBODY)}")

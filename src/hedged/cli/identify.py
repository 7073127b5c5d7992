"""`hedged identify`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedged.cli._inputs import Images, SkipBroken, embedded_sound, inputs_of
from hedged.cli._output import Json, examples, print_json, print_table
from hedged.cli._runs import Model, load_embedder
from hedged.cli._stores import StoreName, Wheres, check_model, filters
from hedged.errors import ConfigError

if TYPE_CHECKING:
    from hedged.decisions import Decider
    from hedged.search import Fusion, Identified

EXAMPLES = examples(
    "hedged identify runs/dogs dogs.db unknown.jpg",
    "hedged identify runs/dogs dogs.db unknown/ --fusion mixture --none 0.5 --json",
)


class How(StrEnum):
    """How the images of an identity are combined."""

    PRODUCT = "product"
    MIXTURE = "mixture"
    NEIGHBOURS = "neighbours"


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
    where: Wheres = [],  # noqa: B006 - typer reads it, nobody writes it
    skip_broken: SkipBroken = False,
    json: Json = False,
) -> None:
    """Identify who each image or vector shows, or report that no stored identity matches.

    The labels in the store are the identities, each with any number of rows. Each identity gets a probability, and so
    does "none of these". If the model was calibrated (`hedged calibrate`), the probabilities are calibrated, and the
    decision on the best identity is shown: accept, reject or abstain. It is never accepted where "none of these" is
    more likely.
    """
    if not 0 < none < 1:  # before the work
        raise ConfigError(f"--none is the share of inputs that show nobody in the store, in (0, 1), got {none:g}")
    embedder = load_embedder(run)
    from hedged.decisions import load_decider  # after it: loading a model decides how torch is imported
    from hedged.search import Identifier, Identities, open_store

    decider = load_decider(run, embedder.fingerprint())
    inputs = inputs_of(embedder, images)
    with open_store(location) as store:
        check_model(store, embedder)
        identities = Identities.read(store, filters(where))
    calibrated = decider.calibrator.log_odds if decider else None
    identifier = Identifier(identities, _fusion(fusion, neighbours), none, calibrated)
    found: list[tuple[str, Identified]] = []
    for some, z in embedded_sound(embedder, inputs, skip_broken):
        found += zip(some.ids, identifier.identify(z, top), strict=True)
    if json:
        print_json([_content(image, one, decider) for image, one in found])
        return
    for image, one in found:
        _print(image, one, decider)


def _fusion(how: How, neighbours: int) -> Fusion:
    from hedged.search import MixtureFusion, NeighbourFusion, ProductFusion

    return {How.PRODUCT: ProductFusion(), How.MIXTURE: MixtureFusion(), How.NEIGHBOURS: NeighbourFusion(neighbours)}[
        how
    ]


def _content(image: str, one: Identified, decider: Decider | None) -> dict[str, Any]:
    best = [each._asdict() for each in one.best]
    content = {
        "image": image,
        "label": one.label,
        "probability": one.probability,
        "none_probability": one.none_probability,
        "uncertainty": one.uncertainty,
        "best": best,
    }
    return content | ({"decision": _decision(one, decider)} if decider else {})


def _decision(one: Identified, decider: Decider) -> str:
    """What to do about the best identity; where "none of these" is more likely, it is never accepted."""
    from hedged.decisions import Verdict

    verdict = decider.answer(one.best[0].logit).verdict
    return (Verdict.ABSTAIN if one.label is None and verdict is Verdict.ACCEPT else verdict).value


def _print(image: str, one: Identified, decider: Decider | None) -> None:
    rows = [(each.label, f"{each.probability:.4f}", str(each.images)) for each in one.best]
    rows.append(("none of these", f"{one.none_probability:.4f}", ""))
    rows.sort(key=lambda row: -float(row[1]))
    decided = f", {_decision(one, decider)}" if decider else ""
    title = f"{image}: {one.label or 'none of these'} (uncertainty {one.uncertainty:.4f}{decided})"
    print_table(title, ("identity", "probability", "images"), rows)

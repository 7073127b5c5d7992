"""`hedged search`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedged.cli._decisions import answer_as_json
from hedged.cli._inputs import Images, SkipBroken, embedded_sound, inputs_of
from hedged.cli._novelty import how_to_know, of_each, shown
from hedged.cli._output import Json, examples, print_json, print_table, printable, say
from hedged.cli._runs import Model, load_embedder
from hedged.cli._stores import (
    CandidateCount,
    EfSearch,
    StoreName,
    Wheres,
    check_model,
    filters,
)

if TYPE_CHECKING:
    from hedged.decisions import Decider
    from hedged.search import Hit

EXAMPLES = examples(
    "hedged search runs/dogs dogs.db unknown.jpg",
    "hedged search runs/dogs dogs.db unknown.jpg -k 5 --where breed=beagle --json",
)


def search(
    run: Model,
    location: StoreName,
    images: Images,
    k: Annotated[int, typer.Option("-k", min=1, metavar="K", help="Matches to show per input.")] = 10,
    where: Wheres = [],  # noqa: B006 - typer reads it, nobody writes it
    candidates: CandidateCount = None,
    ef_search: EfSearch = None,
    skip_broken: SkipBroken = False,
    json: Json = False,
) -> None:
    """Find the best matches of images or vectors in a store.

    Rows are ranked by match probability, not by distance, so the uncertainty of both sides counts. The first stage
    finds candidates by means and variances, or by means alone; the second ranks them by match probability. If the
    model was calibrated (`hedged calibrate`), also shows the calibrated probability and the decision: accept, reject or
    abstain.
    """
    embedder = load_embedder(run)
    from hedged.decisions import load_decider  # after it: loading a model decides how torch is imported
    from hedged.search import open_store

    decider = load_decider(run, embedder.fingerprint())
    inputs = inputs_of(embedder, images)
    found: list[tuple[str, float | None, list[Hit]]] = []
    with open_store(location) as store:
        check_model(store, embedder)
        index = store.index(ef_search=ef_search)
        for some, z in embedded_sound(embedder, inputs, skip_broken):
            novelty = of_each(some.novelty, len(some.ids))
            found += zip(some.ids, novelty, index.search(z, k, filters(where), candidates), strict=True)
        index.keep()
    if json:
        print_json([_content(image, novelty, hits, decider) for image, novelty, hits in found])
        return
    for image, one, hits in found:
        _print(image, one, hits, decider)
    if embedder.novelty_model is None:
        say(f"novelty: {how_to_know(run)}")


def _content(image: str, novelty: float | None, hits: list[Hit], decider: Decider | None) -> dict[str, Any]:
    names = ("rank", "id", "label", "match_probability", "uncertainty", "novelty", "metadata")
    rows = [
        {name: getattr(hit, name) for name in names}
        | (answer_as_json(decider.answer(hit.logit), decider) if decider else {})
        for hit in hits
    ]
    eta = hits[0].probe_uncertainty if hits else None
    return {"image": image, "uncertainty": eta, "novelty": novelty, "hits": rows}


def _print(image: str, novelty: float | None, hits: list[Hit], decider: Decider | None) -> None:
    if not hits:
        say(printable(f"{image}: no row passes the filter"))
        return
    header = ["id", "label", "match probability", "uncertainty", "rank"]
    rows = [
        [hit.id, hit.label or "", f"{hit.match_probability:.4f}", f"{hit.uncertainty:.4f}", str(hit.rank)]
        for hit in hits
    ]
    if decider:
        header += ["calibrated", "decision"]
        for row, hit in zip(rows, hits, strict=True):
            answer = decider.answer(hit.logit)
            row += [f"{answer.probability:.4f}", answer.verdict.value]
    title = f"{image} (uncertainty {hits[0].probe_uncertainty:.4f}, novelty {shown(novelty)})"
    print_table(title, header, rows)

"""`hedged match`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hedged.cli._decisions import answer_as_json, answer_as_rows
from hedged.cli._inputs import read_row, takes_vectors
from hedged.cli._novelty import how_to_know, of_each, shown
from hedged.cli._output import Json, examples, print_json, print_table, say
from hedged.cli._runs import Model, load_embedder

EXAMPLES = examples(
    "hedged match runs/demo a.png b.png",
    "hedged match runs/demo a.png b.png --json",
    "hedged match runs/head features.npy:0 features.npy:17",
)


def match(
    run: Model,
    a: Annotated[
        Path,
        typer.Argument(
            metavar="A",
            help="An image; for a model of digits, of the size it was trained on. For a model of vectors, a file with "
            "one vector, or FILE:ROW.",
        ),
    ],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other image or vector.")],
    json: Json = False,
) -> None:
    """Compute the match probability of two images or vectors.

    Prints the probability that they show the same thing, and how far it may be off; the uncertainty η of each, the
    probability that two samples of its embedding do not match; and the novelty of each, the share of held-out training
    inputs that are more like the rest of them. If the model was calibrated (`hedged calibrate`), also
    prints the calibrated probability and the decision: accept, reject or abstain. Else it says same, different or
    unsure, and by what rule.
    """
    embedder = load_embedder(run)
    from hedged.decisions import guess, load_decider  # after it: loading a model decides how torch is imported
    from hedged.match import match_logit
    from hedged.training import Run

    decider = load_decider(run, embedder.fingerprint())
    if takes_vectors(embedder):
        size = embedder.architecture.shape[0]
        both = [read_row(given, size).vectors for given in (a, b)]
        z, told = embedder.embed_with_novelty([vectors for vectors in both if vectors is not None])
    else:
        z, told = embedder.embed_with_novelty([a, b])
    novelty = of_each([] if told is None else told.tolist(), 2)
    probability = embedder.match(z[:1], z[1:]).item()
    log_odds = match_logit(z[:1], z[1:], embedder.match_model).item()
    answer = decider.answer(log_odds) if decider else None
    eta_a, eta_b = embedder.uncertainty(z).tolist()
    guessed = guess(log_odds, (eta_a, eta_b), Run(run).evaluated_threshold)
    if json:
        images = [
            {"path": str(path), "uncertainty": eta, "novelty": new}
            for path, eta, new in zip((a, b), (eta_a, eta_b), novelty, strict=True)
        ]
        content = {
            "match_probability": probability,
            "error_bound": embedder.match_model.error_bound(),
            "images": images,
        }
        content |= answer_as_json(answer, decider) if answer and decider else guessed._asdict()
        print_json(content)
        return
    rows = [
        ("match probability", f"{probability:.4f}"),
        ("  its error", embedder.match_model.describe_error()),
        *(answer_as_rows(answer, decider) if answer and decider else ()),
        (f"uncertainty of {a}", f"{eta_a:.4f}"),
        (f"uncertainty of {b}", f"{eta_b:.4f}"),
        *(
            [("novelty", how_to_know(run))]
            if None in novelty
            else [(f"novelty of {path}", shown(new)) for path, new in zip((a, b), novelty, strict=True)]
        ),
    ]
    print_table(f"by the model in {run}", ("", "value"), rows)
    if not answer:
        say(f"{guessed.answer}: {guessed.rule}")

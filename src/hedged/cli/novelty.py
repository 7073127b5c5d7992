"""`hedged novelty`."""

from __future__ import annotations

from hedged.cli._output import Json, examples, print_json, say
from hedged.cli._runs import RunFolder, load_embedder

EXAMPLES = examples("hedged novelty runs/old", "hedged novelty runs/old --json")


def novelty(run: RunFolder, json: Json = False) -> None:
    """Fit the novelty of a trained model to its training inputs.

    Novelty tells how unlike its training inputs the model finds an input: the share of held-out ones that are less
    novel. `hedged train` and `hedged retrofit` fit it when they are done; a model that was made before there was such a
    thing gets it here. Its weights, calibration and stores stay as they are. Writes RUN/novelty.safetensors.
    """
    load_embedder(run)  # first: loading a model decides how torch is imported
    from hedged.novelty.novelty import FILE
    from hedged.training import Run, build_data, fit_novelty

    opened = Run(run)
    config, embedder = opened.trained()
    with opened.owned():  # first: a folder that cannot be written is refused before the work
        train = build_data(config).train
        found = fit_novelty(embedder, config.seen(train))
        found.save(run, embedder.fingerprint())
    if json:
        print_json({"out": str(run / FILE), "held_out": found.held_out, "identities": len(found.gaussians.means)})
        return
    say(f"fitted to {train.inputs} of {train.n_classes:,} classes, a share of held-out {found.held_out}: {run / FILE}")

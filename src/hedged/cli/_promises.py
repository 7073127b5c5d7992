"""What `hedged calibrate` keeps for later: promises about strangers, and what inputs were like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hedged.cli._output import LOGGER, print_table
from hedged.errors import ConfigError, DataError

if TYPE_CHECKING:
    from hedged.decisions import GalleryThresholds
    from hedged.evaluation.calibration_pairs import Inputs, Source
    from hedged.models import Embedder


def check_rates(rates: Sequence[float], has_store: bool, has_pairs: bool) -> None:
    """Refuse, before any work is done, what cannot be promised."""
    if has_store and not rates:
        raise ConfigError("--store is the gallery that --fpir is promised for: give both, such as --fpir 0.01")
    if rates and has_pairs:
        raise ConfigError("--fpir tries the run's own validation identities as strangers: leave out --pairs")
    for rate in rates:
        if not 0 < rate < 1:
            raise ConfigError(f"--fpir is a share of strangers, between 0 and 1, got {rate:g}")


def gallery_thresholds(
    embedder: Embedder, source: Source, rates: Sequence[float], store: str | None
) -> GalleryThresholds:
    """Thresholds that strangers pass with no more than the given probabilities.

    Args:
        embedder: The model.
        source: What is calibrated on.
        rates: The false positive identification rates.
        store: The gallery; None: each of the identities calibrated on is a stranger to all others.
    """
    from hedged.decisions import GalleryThresholds
    from hedged.search import best_scores_within

    if source.inputs is None:
        raise ConfigError("--fpir needs inputs of known identities, not a list of pairs")
    z, owner = source.inputs.z, source.inputs.owner
    if store is None:
        best = best_scores_within(z, owner, embedder.match_model)
        return GalleryThresholds.find(best, len(source.inputs.names) - 1, rates)
    return _against_store(embedder, source.inputs, rates, store)


def _against_store(embedder: Embedder, inputs: Inputs, rates: Sequence[float], location: str) -> GalleryThresholds:
    import torch

    from hedged.decisions import GalleryThresholds
    from hedged.search import Identities, best_scores, one_each, open_store

    with open_store(location) as store:
        store.header.check_model(embedder.fingerprint())
        gallery = Identities.read(store)
        name = store.name
    tried = one_each(inputs.owner.numpy())
    enrolled = set(gallery.labels)
    strangers = [i for i in tried.tolist() if inputs.names[int(inputs.owner[i])] not in enrolled]
    if not strangers:
        raise DataError(f"all identities calibrated on have a label in {name}, so nobody is a stranger to it")
    if len(strangers) < len(tried):
        LOGGER.warning(
            "%s of %s identities have a label in %s: they are no strangers and are left out",
            *(f"{len(tried) - len(strangers):,}", f"{len(tried):,}", name),
        )
    probes = inputs.z.take(torch.tensor(strangers))
    best = best_scores(probes, gallery.images, gallery.owner, embedder.match_model)
    return GalleryThresholds.find(best, len(gallery.labels), rates)


def reference_of(embedder: Embedder, source: Source) -> dict[str, tuple[float, ...]] | None:
    """What inputs calibrated on are like, one an identity, for `hedged drift`; None of a list of pairs.

    Args:
        embedder: The model.
        source: What is calibrated on.
    """
    import torch

    from hedged.evaluation.calibration_pairs import statistics
    from hedged.search import one_each

    if source.inputs is None:
        return None
    one_of_each = torch.from_numpy(one_each(source.inputs.owner.numpy()))
    found = statistics(source.inputs.z.take(one_of_each), embedder.match_model)
    return {name: tuple(values.tolist()) for name, values in found.items()}


def print_promises(gallery: GalleryThresholds) -> None:
    """What is promised, and where the rates will lie when they are measured."""
    from hedged.decisions import promised_rates

    rows = []
    for one in gallery.thresholds:
        low, high, _ = promised_rates(gallery.strangers, one.rate, gallery.strangers)
        rows.append((f"  at most {one.rate:g}", f"{one.score:.3f}", f"{low:.4f} to {high:.4f}"))
    title = f"strangers taken for one of up to {gallery.identities:,} identities, from {gallery.strangers:,} tried"
    print_table(title, ("share of strangers", "accept from log-odds of", "95 %, on as many others"), rows)

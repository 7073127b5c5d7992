"""`audit_gallery`: everything that may be wrong with a gallery, with probabilities."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from hedged.errors import ShapeError, ValueRangeError
from hedged.match import self_mismatch
from hedged.search.audit.findings import Audit, Divided, Duplicates, Finding, Mislabelled, Poor
from hedged.search.audit.items import find_duplicates, match_with_strangers
from hedged.search.audit.labels import Halves, divide_identities, doubt_labels
from hedged.search.identify import Identities, LogOdds
from hedged.search.rows import Filter
from hedged.search.store import Store

WRONG_SHARE = 0.01  # of labels, expected before anything is seen
MOST_CHECKED = 20_000  # rows of a store that is looked at after an addition: more would take long
LIKELY = 0.5  # what is reported has at least this probability
MATCHES_EVERYBODY = 0.25  # of matching somebody else: a sharp item has less than half of it (docs/open-world.md)


@torch.no_grad()
def audit_gallery(
    gallery: Identities,
    ids: Sequence[str],
    wrong_share: float = WRONG_SHARE,
    calibrated: LogOdds | None = None,
) -> Audit:
    """Items, pairs of items and labels that are likely wrong or of no use, each with its probability, likeliest first.

    Args:
        gallery: Items with labels, such as `Identities.read(store)`.
        ids: A name for each item.
        wrong_share: The share of labels that are wrong, as far as is known before.
        calibrated: From the model's log-odds of a match to calibrated ones, such as `decider.calibrator.log_odds`.

    >>> from hedged import Evidence, Gaussian
    >>> side = torch.tensor([1.0, 1, 1, -1, -1, -1, 1])
    >>> z = Gaussian(side[:, None].expand(7, 8), torch.full((7, 8), 0.1))
    >>> owner = torch.tensor([0, 0, 0, 1, 1, 1, 1])
    >>> found = audit_gallery(Identities(["ann", "bob"], z, owner, Evidence()), list("abcdefg"))
    >>> [(one.id, one.label, one.likelier) for one in found.mislabelled]
    [('g', 'bob', 'ann')]
    """
    if len(ids) != len(gallery.owner):
        raise ShapeError(f"got {len(ids)} ids for {len(gallery.owner)} items: give one for each")
    if not 0 < wrong_share < 1:
        raise ValueRangeError(f"the share of wrong labels lies between 0 and 1, got {wrong_share:g}")
    odds = calibrated or (lambda logits: logits)
    labels, owner = gallery.labels, gallery.owner.tolist()
    names = [labels[i] for i in owner]
    halves = [one for one in divide_identities(gallery, wrong_share, odds) if one.probability >= LIKELY]
    apart = _divided(gallery, halves)
    doubts = doubt_labels(apart, wrong_share, odds)
    mislabelled = [
        Mislabelled(
            ids[i],
            names[i],
            float(doubts.wrong[i]),
            apart.labels[doubts.likelier[i]],
            float(doubts.likelier_probability[i]),
        )
        for i in range(len(ids))
        if doubts.wrong[i] >= LIKELY
    ]
    duplicates = [
        Duplicates(ids[one.first], ids[one.second], names[one.first], names[one.second], one.probability)
        for one in find_duplicates(gallery, wrong_share, odds)
        if one.probability >= LIKELY
    ]
    divided = [
        Divided(labels[one.identity], one.probability, [ids[i] for i in one.first], [ids[i] for i in one.second])
        for one in halves
    ]
    strangers, eta = match_with_strangers(gallery, odds), self_mismatch(gallery.images, gallery.match_model)
    poor = [Poor(ids[i], names[i], float(p), float(eta[i])) for i, p in enumerate(strangers) if p >= MATCHES_EVERYBODY]
    return Audit(
        len(ids),
        len(labels),
        sorted(mislabelled, key=lambda one: -one.probability),
        sorted(duplicates, key=lambda one: -one.probability),
        sorted(divided, key=lambda one: -one.probability),
        sorted(poor, key=lambda one: -one.probability),
    )


def _divided(gallery: Identities, halves: Sequence[Halves]) -> Identities:
    """The same items, with identities that are likely two as two: their items are rightly apart."""
    labels, owner = list(gallery.labels), gallery.owner.clone()
    for one in halves:
        owner[torch.from_numpy(one.second)] = len(labels)
        labels.append(labels[one.identity])
    return Identities(labels, gallery.images, owner, gallery.match_model)


def read_audit(
    store: Store, where: Filter = (), wrong_share: float = WRONG_SHARE, calibrated: LogOdds | None = None
) -> Audit:
    """What is wrong with the rows of a store that have a label.

    Args:
        store: The store.
        where: The filter that rows pass.
        wrong_share: The share of labels that are wrong, as far as is known before.
        calibrated: From the model's log-odds of a match to calibrated ones.
    """
    gallery = Identities.read(store, where)
    ids = [row.id for batch in store.batches(where) for row in batch.described if row.label is not None]
    return audit_gallery(gallery, ids, wrong_share, calibrated)


def audit_of_added(store: Store, added: Collection[str]) -> list[Finding]:
    """What looks wrong about rows that were just added; a store that is large or has one label is not looked at.

    Args:
        store: The store.
        added: The ids that were added.
    """
    if not added or store.count() > MOST_CHECKED or store.label_count() < 2:
        return []
    return read_audit(store).about(set(added)).findings()

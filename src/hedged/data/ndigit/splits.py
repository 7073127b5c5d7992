"""The splits of N-digit MNIST: by instance (all numbers, new digits) and by number (new numbers too)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import torch

from hedged.data.dataset import Splits
from hedged.data.ndigit.dataset import MAX_DIGITS, NDigit, build_ndigit
from hedged.data.ndigit.mnist import Digits
from hedged.data.random import Purpose, keyed
from hedged.errors import DataError, ValueRangeError

Split = Literal["instance", "number"]
TestSet = Literal["instance", "seen", "unseen", "all"]


@final
@dataclass(frozen=True)
class SplitSizes:
    """Images in each part, and how many a class must have; the defaults are the paper's.

    Every class of a part gets the same number of images, rounded down. When the classes are too many to get
    `per_class` each, a part has fewer classes (as the test parts of the paper's 3-digit set).

    Args:
        train: images to train on.
        validation: images of the validation part, if there is one.
        test: images of each test set.
        per_class: images that a class must have.
    """

    train: int = 100_000
    validation: int = 10_000
    test: int = 10_000
    per_class: int = 100

    def __post_init__(self) -> None:
        """Refuse sizes of which no pair of a class could be made."""
        if self.per_class < 2 or min(self.train, self.validation, self.test) < self.per_class:
            raise ValueRangeError(f"each part needs at least per_class images, per_class at least 2, got {self}")


PAPER_SIZES = SplitSizes()


def ndigit_splits(
    train: Digits,
    test: Digits,
    n_digits: int = 2,
    split: Split = "instance",
    seed: int = 0,
    holdout: float = 0.0,
    sizes: SplitSizes = PAPER_SIZES,
) -> Splits[NDigit]:
    """Compose the training, validation and test parts of N-digit MNIST.

    "instance" has the same numbers in all parts, of different digits. "number" trains on 70 % of the numbers
    and tests on those (seen) and on the others (unseen). With a `holdout`, that share of the training digits
    is set apart first: validation is composed of them alone and has numbers of the training part.
    The test sets are "instance", or "seen", "unseen" and "all" (both together).

    Args:
        train: the digits to compose training and validation images of.
        test: the digits to compose test images of.
        n_digits: N, the digits of an image.
        split: "instance" or "number".
        seed: draws numbers and digits.
        holdout: share of the training digits set apart for validation.
        sizes: images of each part.

    >>> from hedged.data import offline_digits
    >>> small = SplitSizes(train=1_400, test=900, per_class=9)
    >>> parts = ndigit_splits(offline_digits("train"), offline_digits("test"), split="number", sizes=small)
    >>> {name: (images.n_classes, len(images)) for name, images in parts.test.items()}
    {'seen': (70, 840), 'unseen': (30, 900), 'all': (100, 1740)}
    """
    if split not in ("instance", "number"):
        raise ValueRangeError(f'split must be "instance" or "number", got {split!r}')
    trained, unseen = _choose_numbers(n_digits, split, seed, sizes)
    # By instance all classes are tested, however few images each has; two still make a pair.
    least = 2 if split == "instance" else sizes.per_class
    tested, validated = trained[: sizes.test // least], trained[: sizes.validation // least]
    rest, held_out = _hold_out(train, holdout, seed)

    def compose(digits: Digits, numbers: Sequence[int], images: int, purpose: Purpose) -> NDigit:
        samples = min(images // len(numbers), _distinct(digits, n_digits))
        return build_ndigit(digits, n_digits, numbers, samples, keyed(seed, purpose))

    seen = compose(test, tested, sizes.test, Purpose.SEEN)
    return Splits(
        train=compose(rest, trained, sizes.train, Purpose.TRAIN),
        validation=compose(held_out, validated, sizes.validation, Purpose.VALIDATION) if holdout else None,
        test=_both(seen, compose(test, unseen, sizes.test, Purpose.UNSEEN)) if unseen else {"instance": seen},
    )


def _both(seen: NDigit, unseen: NDigit) -> dict[str, NDigit]:
    union = NDigit(seen.digits, torch.cat([seen.image_ids, unseen.image_ids]))
    return {"seen": seen, "unseen": unseen, "all": union}


def _choose_numbers(n_digits: int, split: Split, seed: int, sizes: SplitSizes) -> tuple[list[int], list[int]]:
    """Numbers to train on and numbers never to train on, in random order."""
    if not 1 <= n_digits <= MAX_DIGITS:
        raise ValueRangeError(f"n_digits must be from 1 to {MAX_DIGITS}, got {n_digits}")
    total = 10**n_digits
    share = total if split == "instance" else total * 7 // 10
    trained = min(share, sizes.train // sizes.per_class)
    unseen = min(total - share, sizes.test // sizes.per_class)
    numbers = keyed(seed, Purpose.CLASSES).choice(total, trained + unseen, replace=False).tolist()
    return numbers[:trained], numbers[trained:]


def _hold_out(digits: Digits, share: float, seed: int) -> tuple[Digits, Digits]:
    """Set apart the same share of each label: the rest, and what was held out."""
    if not 0 <= share < 1:
        raise ValueRangeError(f"holdout must be a share of the training digits in [0, 1), got {share}")
    generator, labels = keyed(seed, Purpose.HOLDOUT), digits.labels.numpy()
    held = torch.zeros(len(labels), dtype=torch.bool)
    for label in range(10):
        ids = generator.permutation(np.flatnonzero(labels == label))
        held[torch.from_numpy(ids[: round(share * len(ids))])] = True
    return digits.subset(~held), digits.subset(held)


def _distinct(digits: Digits, n_digits: int) -> int:
    """How many different images every class can have: with one digit, no more than the rarest digit has."""
    rarest = int(digits.labels.bincount(minlength=10).min())
    if not rarest:
        raise DataError(f"these {len(digits)} digits ({digits.source}) lack one of the labels 0 to 9")
    return int(rarest**n_digits)  # for mypy, an int to the power of an int may be a float

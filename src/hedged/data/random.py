"""Random streams named by what they are for, so that nothing has to remember a generator's state."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from hedged.errors import ValueRangeError


class Purpose(IntEnum):
    """What a stream is for: one seed serves all of these, and their draws never overlap."""

    CLASSES = 0  # which numbers an N-digit set has
    HOLDOUT = 1  # which digits are kept for validation
    TRAIN = 2
    VALIDATION = 3
    SEEN = 4
    UNSEEN = 5
    TWIN = 6  # the patches of a corrupt twin
    PASS = 7  # the order of the classes in one pass of the second stream
    BATCH = 8


def keyed(seed: int, purpose: Purpose, step: int = 0) -> np.random.Generator:
    """The generator of (seed, purpose, step), the same whenever it is asked for.

    Args:
        seed: of the run or of the data, from 0 to 2**63 − 1.
        purpose: what is drawn; draws for different purposes never overlap.
        step: of training, where each step draws anew.

    Philox is counter-based: seed and step are its key and the purpose is the top word of its counter, so two
    different triples give different streams by construction. (A `torch.Generator` on the CPU keeps only 32
    bits of its seed: among 100,000 steps some would be twins.)

    >>> int(keyed(0, Purpose.BATCH, 7).integers(1000)) == int(keyed(0, Purpose.BATCH, 7).integers(1000))
    True
    """
    for name, value in (("seed", seed), ("step", step)):
        if not 0 <= value < 2**63:
            raise ValueRangeError(f"{name} must be an integer from 0 to 2**63 − 1, got {value}")
    return np.random.Generator(np.random.Philox(key=[seed, step], counter=[0, 0, 0, int(purpose)]))

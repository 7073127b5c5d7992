"""The closed form for all pairs of two lists, in one compiled pass on a CPU: what `match_matrix` is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from hedged._parallel import share
from hedged.distributions import Distribution
from hedged.match._closed_form.expansion import arithmetic_dtype, expand
from hedged.match._closed_form.leaves import in_leaves
from hedged.match._closed_form.units import in_units_of, midst, plain
from hedged.match._numbers import within

if TYPE_CHECKING:
    from hedged.match.curve import MatchCurve

ROWS_EACH = 16  # rows that are worth a thread of their own
BLOCK = 2**18  # numbers of a list that are in the curve's units at a time


@torch.no_grad()
def closed_form_matrix(z1: Distribution, z2: Distribution, curve: MatchCurve) -> Tensor:
    """p(m | x_i, x_j), `(N, M)`, as `ClosedForm` has it, but for pairs whose true p is certainly below 10⁻⁵.

    These get Jensen's bound, which is between 0 and the truth.

    >>> from hedged import Gaussian, MatchCurve
    >>> z = Gaussian(torch.tensor([[0.0], [0.1], [9.0]]), torch.full((3, 1), 1e-4))
    >>> closed_form_matrix(z, z, MatchCurve())[:2, :2] > 0.8
    tensor([[True, True],
            [True, True]])
    """
    from hedged.match._closed_form.loops.gaussians import STRIP  # late: numba is slow to import
    from hedged.match._closed_form.loops.matrix import probabilities

    dtype, terms = torch.promote_types(z1.dtype, z2.dtype), expand(curve.bias)
    wide = arithmetic_dtype(terms, z1.dim, dtype)
    centre, numbers = midst(z2), plain(curve, wide)
    weighty = torch.stack(terms)[:, terms.weights != 0].to(wide)
    ends = weighty.new_tensor(within(dtype))
    # Memory of numpy's is in huge pages where the system has them, and ready five times sooner.
    out = torch.from_numpy(np.empty((len(z1), len(z2)), ends.numpy().dtype))
    for across in blocks(z2):
        listed = in_units_of(curve, z2[across], centre, wide)
        order = torch.from_numpy(in_leaves(listed[0].flatten(1).numpy(), STRIP))
        columns = [x[order].movedim(0, -1).contiguous() for x in listed]  # (C, D, M)
        places = order + across.start
        for down in blocks(z1):
            rows = [x.contiguous() for x in in_units_of(curve, z1[down], centre, wide)]  # (N, C, D)
            share(probabilities, len(rows[0]), ROWS_EACH, *rows, *columns, places, weighty, numbers, ends, out[down])
    return out.to(dtype)


def blocks(z: Distribution) -> Iterator[slice]:
    """A long list in parts, so that what is made of it needs little memory however long it is."""
    each = max(BLOCK // z.parts()[0].shape[1:].numel(), 1)
    for start in range(0, len(z), each):
        yield slice(start, start + each)

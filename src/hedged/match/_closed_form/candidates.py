"""The closed form of probes and the candidates each has chosen, in double precision: the second stage of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hedged._parallel import share
from hedged.distributions import Distribution
from hedged.match._closed_form.nearest import formula
from hedged.match._closed_form.units import unit
from hedged.match._numbers import log_odds

if TYPE_CHECKING:
    from hedged.match.curve import MatchCurve

STRIPS_EACH = 2  # strips of candidates that are worth a thread of their own


@torch.no_grad()
def candidate_logits(z: Distribution, items: Distribution, chosen: Tensor, curve: MatchCurve) -> Tensor:
    """The log-odds of each probe and the items chosen for it, float64 `(N, n)`: `MatchModel.chosen_logits`."""
    from hedged.match._closed_form.loops.candidates import CANDIDATES_PER_STRIP, log_matches  # late: numba is slow

    out = torch.empty(chosen.shape, dtype=torch.float64)
    strips = len(z) * -(-chosen.shape[1] // CANDIDATES_PER_STRIP)
    scale = unit(curve, torch.float64).reshape(1)
    given = (*z.parts(), *items.parts(), chosen.contiguous(), scale, formula(curve), out)
    share(log_matches, strips, STRIPS_EACH, *given)
    return log_odds(out)

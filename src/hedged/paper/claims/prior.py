"""Claims about the KL term, which draws embeddings to the prior with weight β."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

from hedged.paper import kl, kl_ellipsoids
from hedged.paper.claims.claim import Claim
from hedged.paper.shelf import Shelf


def beta_widens(shelf: Shelf) -> Claim:
    cells = kl_ellipsoids.EXHIBIT.numbers(shelf)
    widths = [c["measured"] for c in cells if c["metric"] == "standard_deviation" and c["probe"] == "corrupt"]
    return Claim(
        "A higher β widens the embeddings",
        all(narrow < wide for narrow, wide in pairwise(widths)) and len(widths) == len(kl_ellipsoids.BETAS),
        f"mean σ of corrupt images from β = 1e-6 to 1e-2: {', '.join(f'{w:.3g}' for w in widths)}",
    )


def kl_helps(shelf: Shelf) -> Claim:
    """Over all cells of the table of the KL term."""
    cells = [cell for cell in kl.EXHIBIT.measured(shelf, {}, variant=False) if cell["split"] == "seen"]

    def mean(kind: str, beta: float) -> float:
        return fmean(c["measured"] for c in cells if c["metric"].endswith(kind) and c["beta"] == beta)

    accuracy, tau = (
        [fmean([mean(k, b) for k in kinds]) for b in (0.0, 1e-4)] for kinds in (("_ap", "_accuracy"), ("_correlation",))
    )
    return Claim(
        "The KL term helps accuracy mildly and the uncertainty more",
        accuracy[1] > accuracy[0] and tau[1] - tau[0] > accuracy[1] - accuracy[0],
        f"β = 0 and 1e-4: mean accuracy {accuracy[0]:.3f} and {accuracy[1]:.3f}, mean τ {tau[0]:.2f} and {tau[1]:.2f}",
    )

"""Performance in bins of uncertainty: the curves of the paper's figure 5, and why one is missing if it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self, final

import numpy as np
from numpy.typing import NDArray

from hedged.errors import DataError
from hedged.evaluation.conditions import CONDITIONS, Condition
from hedged.metrics import UncertaintyCurve, is_constant

if TYPE_CHECKING:
    from hedged.evaluation.evaluation import Evaluation

CONSTANT_ETA = "η is the same for every input, as it is for a point embedding."


@final
@dataclass(frozen=True, eq=False)
class Curves:
    """Performance in 20 bins of η. Where there can be no such bins the curve is missing, and the reason is given.

    Args:
        ap: Average precision, by the condition of the inputs.
        knn: Share of clean probes identified, by the condition of the gallery.
        corrupt_probes: Share of corrupt probes identified in a clean gallery.
        why_no_ap: Why curves are missing from `ap`, in words; empty if none is.
        why_no_knn: Why curves are missing from `knn`, in words; empty if none is.
    """

    ap: Mapping[Condition, UncertaintyCurve]
    knn: Mapping[Condition, UncertaintyCurve]
    corrupt_probes: UncertaintyCurve | None
    why_no_ap: str = ""
    why_no_knn: str = ""

    @classmethod
    def measure(cls, evaluation: Evaluation) -> Self:
        """The curves of an evaluation.

        Args:
            evaluation: The measurements, which keep what they have measured.
        """
        ap, knn, no_ap, no_knn = {}, {}, [], []
        for c in CONDITIONS:
            curve, why = _curve(evaluation.uncertainty[c], partial(evaluation.ap_curve, c), "AP")
            if curve:
                ap[c] = curve
            no_ap.append(why)
        for gallery in CONDITIONS:
            curve, why = _curve(evaluation.uncertainty["clean"], partial(evaluation.knn_curve, gallery), "KNN")
            if curve:
                knn[gallery] = curve
            no_knn.append(why)
        probes, _ = _curve(evaluation.uncertainty["corrupt"], partial(evaluation.knn_curve, "clean", "corrupt"), "KNN")
        return cls(ap, knn, probes, _joined(no_ap), _joined(no_knn))

    def ap_kendall(self, condition: Condition) -> float | None:
        """Kendall's τ of a curve of `ap`, None where there is none.

        Args:
            condition: That of the inputs.
        """
        return self.ap[condition].kendall if condition in self.ap else None

    def knn_kendall(self, gallery: Condition) -> float | None:
        """Kendall's τ of a curve of `knn`, None where there is none.

        Args:
            gallery: The condition of the gallery.
        """
        return self.knn[gallery].kendall if gallery in self.knn else None


def _curve(
    uncertainty: NDArray[np.float64], measure: Callable[[], UncertaintyCurve], name: str
) -> tuple[UncertaintyCurve | None, str]:
    """A curve, or why there is none: η is constant, or the test set is too small for bins of it."""
    if is_constant(uncertainty):
        return None, CONSTANT_ETA
    try:
        return measure(), ""
    except DataError as error:
        return None, f"The test set is too small for the {name} curve: {error.reason}."


def _joined(reasons: list[str]) -> str:
    return " ".join(dict.fromkeys(reason for reason in reasons if reason))

"""Performance in bins of uncertainty: the curves of the paper's figure 5, and why one is missing if it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, final

from hedged.distributions import Point
from hedged.errors import DataError
from hedged.evaluation.evaluation import CONDITIONS, Condition, Evaluation
from hedged.metrics import UncertaintyCurve

ONE_ETA = "A point embedding has the same η for every image."


@final
@dataclass(frozen=True, eq=False)
class Curves:
    """Performance in 20 bins of η; an empty mapping comes with the reason.

    Args:
        ap: Average precision, by the condition of the images.
        knn: Share of clean probes identified, by the condition of the gallery.
        corrupt_probes: Share of corrupt probes identified in a clean gallery.
        why_no_ap: Why `ap` is empty, in words.
        why_no_knn: Why `knn` is empty, in words.
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
        if isinstance(evaluation.embeddings["clean"], Point):
            return cls({}, {}, None, ONE_ETA, ONE_ETA)
        ap, knn, probes, why_no_ap, why_no_knn = {}, {}, None, "", ""
        try:
            knn = {c: evaluation.knn_curve(c) for c in CONDITIONS}
            probes = evaluation.knn_curve("clean", "corrupt")
        except DataError as error:
            why_no_knn = _too_small("KNN", error)
        try:
            ap = {c: evaluation.ap_curve(c) for c in CONDITIONS}
        except DataError as error:
            why_no_ap = _too_small("AP", error)
        return cls(ap, knn, probes, why_no_ap, why_no_knn)

    def ap_kendall(self, condition: Condition) -> float | None:
        """Kendall's τ of a curve of `ap`, None where there is none.

        Args:
            condition: That of the images.
        """
        return self.ap[condition].kendall if self.ap else None

    def knn_kendall(self, gallery: Condition) -> float | None:
        """Kendall's τ of a curve of `knn`, None where there is none.

        Args:
            gallery: The condition of the gallery.
        """
        return self.knn[gallery].kendall if self.knn else None


def _too_small(curve: str, error: DataError) -> str:
    """The fact of the error without its advice, which is for programmers."""
    return f"The test set is too small for the {curve} curve: {str(error).split(';')[0]}."

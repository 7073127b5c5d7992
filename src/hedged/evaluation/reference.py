"""The numbers that "Modeling Uncertainty with Hedged Instance Embedding" reports, cell by cell.

"Clean" and "corrupt" of the paper's KNN rows name the gallery: the probes are clean unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from types import MappingProxyType
from typing import Literal, final

from hedged.evaluation.evaluation import Condition
from hedged.metrics import Vote

Model = str  # "point", or "mog-C" for C Gaussians; the paper has "point", "mog-1" and "mog-2"
Metric = Literal["verification_ap", "knn_accuracy", "ap_correlation", "knn_correlation"]
TableName = Literal[
    "main-task", "uncertainty-correlation", "four-d", "kl", "knn-plurality", "knn-plurality-correlation"
]


@final
@dataclass(frozen=True)
class Measure:
    """What one number of a table measures.

    Args:
        metric: What is measured.
        gallery: The condition of the images that are searched, or of the first of each pair.
        probe: The condition of those that are searched for, or of the second.
        vote: How neighbours vote; None where they do not.
    """

    metric: Metric
    gallery: Condition
    probe: Condition
    vote: Vote | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, (self.metric, self.gallery, self.probe, self.vote)))


@final
@dataclass(frozen=True)
class PaperCell:
    """One number of a table, `paper`, and what it measures.

    Args:
        digits: N, the digits of an image.
        dim: D, the dimensions of the embedding.
        model: "point", "mog-1" or "mog-2".
        metric: As for `Measure`.
        gallery: As for `Measure`.
        probe: As for `Measure`.
        paper: The number.
        vote: As for `Measure`.
        beta: β, where the table varies it; None elsewhere, where it is 10⁻⁴.

    >>> PaperCell(2, 2, "mog-1", "verification_ap", "clean", "clean", 0.989).as_json()
    {'digits': 2, 'dim': 2, 'model': 'mog-1', 'metric': 'verification_ap',
     'gallery': 'clean', 'probe': 'clean', 'paper': 0.989}
    """

    digits: int
    dim: int
    model: Model
    metric: Metric
    gallery: Condition
    probe: Condition
    paper: float
    vote: Vote | None = None
    beta: float | None = None

    @property
    def measure(self) -> Measure:
        """What the number measures."""
        return Measure(self.metric, self.gallery, self.probe, self.vote)

    def as_json(self) -> dict[str, int | float | str]:
        """The cell as `results/paper/<name>.json` spells it: what does not apply is left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@final
@dataclass(frozen=True)
class _Row:
    """A row of a table as printed: one number a model of each block, blocks from left to right."""

    metric: Metric
    gallery: Condition
    probe: Condition
    vote: Vote | None
    numbers: Sequence[float]


BLOCKS = ((2, 2), (2, 3), (3, 2), (3, 3))  # (N, D): digits of an image, dimensions of the embedding
BETAS = (0.0, 1e-4)
STEPS = 500_000


def _cells(
    models: Sequence[Model],
    rows: Sequence[_Row],
    blocks: Sequence[tuple[int, int]] = BLOCKS,
    betas: Sequence[float | None] = (None,),
) -> Iterator[PaperCell]:
    for row in rows:
        columns = product(blocks, models, betas)
        for ((digits, dim), model, beta), number in zip(columns, row.numbers, strict=True):
            yield PaperCell(digits, dim, model, row.metric, row.gallery, row.probe, number, row.vote, beta)


# fmt: off
_MAIN_TASK = (
    _Row("verification_ap", "clean", "clean", None,
         (0.987, 0.989, 0.990,  0.996, 0.996, 0.996,  0.978, 0.981, 0.976,  0.987, 0.989, 0.991)),
    _Row("verification_ap", "corrupt", "corrupt", None,
         (0.880, 0.907, 0.912,  0.913, 0.926, 0.932,  0.886, 0.899, 0.904,  0.901, 0.922, 0.925)),
    _Row("knn_accuracy", "clean", "clean", "majority",
         (0.871, 0.879, 0.888,  0.942, 0.953, 0.939,  0.554, 0.591, 0.540,  0.795, 0.770, 0.766)),
    _Row("knn_accuracy", "corrupt", "clean", "majority",
         (0.583, 0.760, 0.757,  0.874, 0.909, 0.885,  0.274, 0.350, 0.351,  0.522, 0.555, 0.598)),
)
_UNCERTAINTY_CORRELATION = (
    _Row("ap_correlation", "clean", "clean", None, (0.74, 0.43,  0.68, 0.48,  0.63, 0.28,  0.51, 0.39)),
    _Row("ap_correlation", "corrupt", "corrupt", None, (0.81, 0.79,  0.86, 0.87,  0.82, 0.76,  0.85, 0.79)),
    _Row("knn_correlation", "clean", "clean", "majority", (0.71, 0.57,  0.72, 0.47,  0.76, 0.29,  0.74, 0.54)),
    _Row("knn_correlation", "corrupt", "clean", "majority", (0.47, 0.43,  0.55, 0.52,  0.49, 0.50,  0.67, 0.34)),
)
_KNN_PLURALITY = (
    _Row("knn_accuracy", "clean", "clean", "plurality",
         (0.882, 0.879,  0.950, 0.952,  0.658, 0.650,  0.873, 0.873)),
    _Row("knn_accuracy", "clean", "corrupt", "plurality",
         (0.435, 0.499,  0.516, 0.578,  0.293, 0.318,  0.447, 0.499)),
    _Row("knn_accuracy", "corrupt", "clean", "plurality",
         (0.762, 0.816,  0.922, 0.943,  0.495, 0.540,  0.776, 0.812)),
)
_KNN_PLURALITY_CORRELATION = (
    _Row("knn_correlation", "clean", "clean", "plurality", (0.71, 0.61, 0.72, 0.60)),
    _Row("knn_correlation", "clean", "corrupt", "plurality", (0.94, 0.89, 0.86, 0.90)),
    _Row("knn_correlation", "corrupt", "clean", "plurality", (0.46, 0.52, 0.29, 0.45)),
)
_FOUR_D_TASK = (
    _Row("verification_ap", "clean", "clean", None, (0.996, 0.996, 0.995)),
    _Row("verification_ap", "corrupt", "corrupt", None, (0.942, 0.944, 0.948)),
    _Row("knn_accuracy", "clean", "clean", "majority", (0.914, 0.917, 0.922)),
    _Row("knn_accuracy", "corrupt", "clean", "majority", (0.803, 0.816, 0.809)),
)
_FOUR_D_CORRELATION = (
    _Row("ap_correlation", "clean", "clean", None, (0.35, 0.33)),
    _Row("ap_correlation", "corrupt", "corrupt", None, (0.79, 0.68)),
    _Row("knn_correlation", "clean", "clean", "majority", (0.31, 0.32)),
    _Row("knn_correlation", "corrupt", "clean", "majority", (0.42, 0.35)),
)
_KL = (  # each block without and with the KL term
    _Row("verification_ap", "clean", "clean", None, (0.986, 0.988,  0.993, 0.992)),
    _Row("verification_ap", "corrupt", "corrupt", None, (0.900, 0.906,  0.932, 0.932)),
    _Row("knn_accuracy", "clean", "clean", "majority", (0.867, 0.891,  0.858, 0.861)),
    _Row("knn_accuracy", "corrupt", "clean", "majority", (0.729, 0.781,  0.685, 0.730)),
    _Row("ap_correlation", "clean", "clean", None, (0.680, 0.766,  0.425, 0.630)),
    _Row("ap_correlation", "corrupt", "corrupt", None, (0.864, 0.836,  0.677, 0.764)),
    _Row("knn_correlation", "clean", "clean", "majority", (0.748, 0.800,  -0.080, 0.685)),
    _Row("knn_correlation", "corrupt", "clean", "majority", (0.636, 0.609,  0.183, 0.549)),
)
# fmt: on
_FOUR_D = ((3, 4),)

TABLES: Mapping[TableName, tuple[PaperCell, ...]] = MappingProxyType(
    {
        "main-task": tuple(_cells(("point", "mog-1", "mog-2"), _MAIN_TASK)),
        "uncertainty-correlation": tuple(_cells(("mog-1", "mog-2"), _UNCERTAINTY_CORRELATION)),
        "four-d": (
            *_cells(("point", "mog-1", "mog-2"), _FOUR_D_TASK, _FOUR_D),
            *_cells(("mog-1", "mog-2"), _FOUR_D_CORRELATION, _FOUR_D),
        ),
        "kl": tuple(_cells(("mog-1",), _KL, ((2, 2), (3, 3)), BETAS)),
        "knn-plurality": tuple(_cells(("point", "mog-1"), _KNN_PLURALITY)),
        "knn-plurality-correlation": tuple(_cells(("mog-1",), _KNN_PLURALITY_CORRELATION)),
    }
)


def find_cell(digits: int, dim: int, model: Model, measure: Measure, beta: float | None = None) -> PaperCell | None:
    """The paper's cell of this measurement, or None if it reports none.

    Args:
        digits: As for `PaperCell`.
        dim: As for `PaperCell`.
        model: As for `PaperCell`.
        measure: What is measured.
        beta: As for `PaperCell`.

    >>> find_cell(2, 2, "mog-1", Measure("knn_accuracy", gallery="corrupt", probe="clean", vote="majority")).paper
    0.76
    >>> find_cell(2, 1, "mog-1", Measure("verification_ap", gallery="clean", probe="clean")) is None
    True
    """
    wanted = (digits, dim, model, measure, beta)
    every = (cell for cells in TABLES.values() for cell in cells)
    return next((c for c in every if (c.digits, c.dim, c.model, c.measure, c.beta) == wanted), None)

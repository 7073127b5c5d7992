"""Table 1: verification and identification, point against hedged, 2 and 3 digits in 2 and 3 dimensions."""

from hedged.evaluation.reference import TABLES
from hedged.paper.tables import Series, Table

SEEDS = 3
ONE = ((2, 2),)

EXHIBIT = Table(
    name="main-task",
    title="Accuracy of verification and of identification, for points, one Gaussian and two",
    cells=TABLES["main-task"],
    series=(
        Series(seeds=SEEDS),
        Series(
            tests=("instance",),
            blocks=((2, 2), (3, 3)),
            settings=(("data__split", "instance"),),
        ),
        Series(
            blocks=ONE,
            models=("mog-1",),
            settings=(("loss__likelihood", "expected-log"),),
            marks=(("objective", "expected-log"),),
            variant=True,
        ),
        Series(blocks=ONE, models=("mog-1",), settings=(("model__backbone", "shallow"),), variant=True),
    ),
)

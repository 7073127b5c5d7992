"""The tables of the paper that are made of trained models: what each varies beside the paper's own numbers."""

from __future__ import annotations

from hedged.evaluation import reference
from hedged.paper.shelf import SAMPLED
from hedged.paper.table import Series, Table

SEEDS = 3
LONGER = (("train__steps", 10_000),)  # 2 % of the paper's, chosen on held-out training digits (docs/recipe.md)
MAIN_SERIES = (
    Series(seeds=SEEDS),
    Series(tests=("instance",), blocks=((2, 2), (3, 3)), settings=(("data__split", "instance"),)),
    Series(
        blocks=((2, 2),),
        models=("mog-1",),
        settings=(("loss__likelihood", "expected-log"),),
        marks=(("objective", "expected-log"),),
        variant=True,
    ),
    Series(blocks=((2, 2),), models=("mog-1",), settings=(("model__backbone", "shallow"),), variant=True),
    Series(
        tests=("seen",),
        seeds=SEEDS,
        blocks=((2, 2),),
        models=("mog-1",),
        settings=(("loss__means", "points"),),  # for corrupt probes (docs/recipe.md)
        marks=(("objective", "means-as-points"),),
        variant=True,
    ),
)

MAIN_TASK = Table(  # Table 1: point against hedged, 2 and 3 digits in 2 and 3 dimensions
    name="main-task",
    title="Accuracy of verification and of identification, for points, one Gaussian and two",
    cells=reference.TABLES["main-task"],
    series=MAIN_SERIES,
)
UNCERTAINTY_CORRELATION = Table(  # Table 2: in closed form, and with the paper's samples ten times over
    name="uncertainty-correlation",
    title="Kendall’s τ between the uncertainty η(x) and performance",
    cells=reference.TABLES["uncertainty-correlation"],
    series=(*MAIN_SERIES, Series(tests=(SAMPLED,), seeds=SEEDS, variant=True)),
)
FOUR_D = Table(  # where accuracy begins to saturate
    name="four-d",
    title="3 digits in 4 dimensions: accuracy, and Kendall’s τ between η(x) and performance",
    cells=reference.TABLES["four-d"],
    series=(Series(settings=LONGER), Series(variant=True)),
)
KL = Table(  # β = 0 against β = 10⁻⁴
    name="kl",
    title="One Gaussian without the KL term and with it",
    cells=reference.TABLES["kl"],
    series=(Series(),),
)
KNN_PLURALITY = Table(  # clean and corrupt galleries, clean and corrupt probes
    name="knn-plurality",
    title="Identification by the plurality of 5 neighbours",
    cells=reference.TABLES["knn-plurality"],
    series=MAIN_SERIES,
)
KNN_PLURALITY_CORRELATION = Table(  # highest for corrupt probes
    name="knn-plurality-correlation",
    title="Kendall’s τ between η(x) and identification by plurality",
    cells=reference.TABLES["knn-plurality-correlation"],
    series=MAIN_SERIES,
)
TABLES = {
    table.name: table
    for table in (MAIN_TASK, UNCERTAINTY_CORRELATION, FOUR_D, KL, KNN_PLURALITY, KNN_PLURALITY_CORRELATION)
}

"""Table 2: does performance fall where η(x) is high? In closed form, and with the paper's samples ten times over."""

from hedged.evaluation.reference import TABLES
from hedged.paper import main_task
from hedged.paper.shelf import SAMPLED
from hedged.paper.tables import Series, Table

EXHIBIT = Table(
    name="uncertainty-correlation",
    title="Kendall’s τ between the uncertainty η(x) and performance",
    cells=TABLES["uncertainty-correlation"],
    series=(*main_task.EXHIBIT.series, Series(tests=(SAMPLED,), seeds=main_task.SEEDS, variant=True)),
)

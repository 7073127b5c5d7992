"""The table of plurality voting, told by η(x): the correlation is highest for corrupt probes."""

from hedged.evaluation.reference import TABLES
from hedged.paper import main_task
from hedged.paper.tables import Table

EXHIBIT = Table(
    name="knn-plurality-correlation",
    title="Kendall’s τ between η(x) and identification by plurality",
    cells=TABLES["knn-plurality-correlation"],
    series=main_task.EXHIBIT.series,
)

"""The table of plurality voting: clean and corrupt galleries, clean and corrupt probes."""

from hedged.evaluation.reference import TABLES
from hedged.paper import main_task
from hedged.paper.tables import Table

EXHIBIT = Table(
    name="knn-plurality",
    title="Identification by the plurality of 5 neighbours",
    cells=TABLES["knn-plurality"],
    series=main_task.EXHIBIT.series,
)

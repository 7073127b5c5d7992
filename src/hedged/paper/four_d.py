"""The table of four dimensions: 3 digits, where accuracy begins to saturate."""

from hedged.paper.exhibits import Series, Table
from hedged.paper.numbers import TABLES

EXHIBIT = Table(
    name="four-d",
    title="3 digits in 4 dimensions: accuracy, and Kendall’s τ between η(x) and performance",
    cells=TABLES["four-d"],
    series=(Series(),),
)

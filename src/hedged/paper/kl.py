"""The table of the KL term: β = 0 against β = 10⁻⁴."""

from hedged.evaluation.reference import TABLES
from hedged.paper.tables import Series, Table

EXHIBIT = Table(
    name="kl",
    title="One Gaussian without the KL term and with it",
    cells=TABLES["kl"],
    series=(Series(),),
)

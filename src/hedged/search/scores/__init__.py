"""The log-odds of a match in the languages of engines: one formula, `MatchModel.score()`, written in each.

| file | engine | what it writes |
|---|---|---|
| `_sql.py` | PostgreSQL | a function of arrays; the expression that `PostgresStore` ranks by |
| `_sql.py` | DuckDB | a macro of lists |
| `_clickhouse.py` | ClickHouse | a function of arrays |
| `_vespa.py` | Vespa | a rank profile |
| `_usearch.py` | usearch | a compiled metric |
"""

from hedged.search.scores._written import ENGINES as ENGINES
from hedged.search.scores._written import engine_score as engine_score
from hedged.search.scores._written import usearch_metric as usearch_metric

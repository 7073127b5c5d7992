"""Write what `measure_growth` and `measure_search` measured into docs/growth.md, and what follows for a billion.

    python tools/growth_page.py

Tables stand between marks on the page; what is not measured is a dash. A test compares the page with the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "growth.md", ROOT / "results" / "search"
ITEMS = (1_000_000, 3_000_000, 10_000_000)
NOTHING = "–"

Cell = dict[str, Any]

# Bytes of a row of a Gaussian in 20 dimensions, by the formats: an id of ten digits, no label, no metadata.
PACKED = 2 * 20 * 4  # means and variances in single precision
CODED = 2 * 20 * 2
IN_MEMORY = PACKED + CODED + 8 + 1  # with a key of eight bytes, and whether the row is still there
IN_INDEX_FILE = PACKED + 8 + 1
# Assumptions of the arithmetic, in dollars and bytes.
BILLION, SHARD = 10**9, 10_000_000
ROOM = 2.0  # of memory for what is made while a store is opened, times what its rows take
DOLLARS_MEMORY, DOLLARS_DISK, DOLLARS_OBJECTS = 4.0, 0.10, 0.023  # a GB a month
IN_SQLITE, IN_LANCE = 230, 500  # bytes of a row on disk, measured at 20,000 and at 200,000 rows


def number(cell: Cell, path: str, form: str = "{:,.0f}") -> str:
    """A measured number of a cell, as `built.store_mb`; a dash if it is not there."""
    found: Any = cell
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return NOTHING if found is None else form.format(found)


def several(*parts: tuple[str, str]) -> Callable[[Cell], str]:
    """Measured numbers in one place of the table, with a slash between them."""
    return lambda cell: " / ".join(number(cell, path, form) for path, form in parts)


def ratio(cell: Cell) -> str:
    ours, theirs = (cell.get(name, {}).get("query_ms") for name in ("hedged", "faiss"))
    return f"{ours / theirs:.2f}" if ours and theirs else NOTHING


MS, SHARE = "{:,.1f}", "{:.3f}"
ROWS: dict[str, Callable[[Cell], str]] = {
    "**hedged**, build: processor seconds for rows / index file": several(
        ("built.build_cpu_s", "{:,.0f}"), ("built.index_cpu_s", "{:,.0f}")
    ),
    "most memory of the build, MB: rows / index file": several(
        ("built.build_memory_mb", "{:,.0f}"), ("built.index_memory_mb", "{:,.0f}")
    ),
    "disk, MB: store / index file": several(("built.store_mb", "{:,.0f}"), ("built.index_file_mb", "{:,.0f}")),
    "seconds to open / of the first search": several(("hedged.open_s", MS), ("hedged.first_search_s", MS)),
    "memory while it serves, MB / most": several(("hedged.memory_mb", "{:,.0f}"), ("hedged.most_memory_mb", "{:,.0f}")),
    "one query / a hundred at once, ms": several(("hedged.query_ms", MS), ("hedged.hundred_ms", MS)),
    "recall@10": several(("hedged.recall", SHARE)),
    "**FAISS** on the means, exact: one query / a hundred, ms": several(
        ("faiss.query_ms", MS), ("faiss.hundred_ms", MS)
    ),
    "memory, MB": several(("faiss.memory_mb", "{:,.0f}")),
    "recall@10 of its ten / of 1,000 candidates": several(("faiss.recall", SHARE), ("faiss.recall_of_1000", SHARE)),
    "one query of hedged / of FAISS": ratio,
    "**pgvector** on the means: seconds to fill / for the graph": several(
        ("pgvector.fill_s", "{:,.0f}"), ("pgvector.graph_s", "{:,.0f}")
    ),
    "table / indexes, MB": several(("pgvector.table_mb", "{:,.0f}"), ("pgvector.indexes_mb", "{:,.0f}")),
    "one query, ms: exact / by the graph": several(("pgvector.exact.query_ms", MS), ("pgvector.graph.query_ms", MS)),
    "recall@10: exact / by the graph": several(("pgvector.exact.recall", SHARE), ("pgvector.graph.recall", SHARE)),
}


def growth(cells: list[Cell]) -> Iterator[str]:
    """The table of a store as it grows."""
    by_items = {cell["items"]: cell for cell in cells}
    yield "| rows | " + " | ".join(f"{items:,}" for items in ITEMS) + " |"
    yield "|---|" + "---|" * len(ITEMS)
    for name, show in ROWS.items():
        yield f"| {name} | " + " | ".join(show(by_items.get(items, {})) for items in ITEMS) + " |"


def approximate(cells: list[Cell]) -> Iterator[str]:
    """The table of first stages that look at some of the rows."""
    yield "| rows | store | first stage | looks at | seconds to build | recall@10 | one query, ms |"
    yield "|---|---|---|---|---|---|---|"
    for cell in cells or [{}]:
        names = [str(cell.get(name, NOTHING)) for name in ("store", "first stage", "looks at")]
        measured = number(cell, "build_s"), number(cell, "recall", SHARE), number(cell, "query_ms", MS)
        yield f"| {number(cell, 'items')} | {' | '.join(names)} | {' | '.join(measured)} |"


def billion(cells: list[Cell]) -> Iterator[str]:
    """What a billion rows take, by arithmetic."""
    (largest,) = sorted(cells, key=lambda cell: cell["items"])[-1:] or [{}]
    built = largest.get("built", {})
    seconds = [built.get(name) for name in ("build_cpu_s", "index_cpu_s")]
    hours = f"{sum(seconds) / largest['items'] * BILLION / 3600:,.0f}" if None not in seconds else NOTHING
    memory, disk = ROOM * IN_MEMORY * BILLION / 1e9, (IN_SQLITE + IN_INDEX_FILE) * BILLION / 1e9
    objects = IN_LANCE * BILLION / 1e9
    yield "| a billion rows | exact, in memory | lists, on object storage |"
    yield "|---|---|---|"
    yield "| engine | `SqliteStore`, in shards | `LanceStore`, in shards |"
    yield f"| shards of {SHARD:,} | {BILLION // SHARD} | {BILLION // SHARD} |"
    yield f"| memory, GB | {memory:,.0f}, of which rows take {memory / ROOM:,.0f} | that of the machines that search |"
    yield f"| disk, GB | {disk:,.0f} | {objects:,.0f}, of objects |"
    yield f"| dollars a month, memory | {memory * DOLLARS_MEMORY:,.0f} | as many machines as queries need |"
    yield f"| dollars a month, disk | {disk * DOLLARS_DISK:,.0f} | {objects * DOLLARS_OBJECTS:,.0f} |"
    yield f"| processor hours to build | {hours} | {NOTHING} |"


def read(name: str) -> list[Cell]:
    path = RESULTS / f"{name}.json"
    found: list[Cell] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return found


def rendered(text: str) -> str:
    """The page with its tables as the files have them.

    Args:
        text: The page as it is.
    """
    measured = read("growth")
    tables = {"growth": growth(measured), "approximate": approximate(read("approximate")), "billion": billion(measured)}
    for name, lines in tables.items():
        start, end = f"<!-- {name}: tools/growth_page.py -->\n\n", f"\n\n<!-- end of {name} -->"
        new = start + "\n".join(lines) + end
        text, count = re.subn(re.escape(start) + ".*?" + re.escape(end), lambda _, new=new: new, text, flags=re.DOTALL)  # type: ignore[misc]
        assert count == 1, f"{PAGE} has no place for the table {name}"
    return text


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

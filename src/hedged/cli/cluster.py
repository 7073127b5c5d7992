"""`hedged cluster`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedged.cli._output import Force, Json, examples, finite, owning_output, print_json, print_table, say
from hedged.cli._stores import StoreName, Wheres, filters
from hedged.errors import RunError

if TYPE_CHECKING:
    from hedged.search import Clusters

EXAMPLES = examples(
    "hedged cluster photos.db",
    "hedged cluster photos.db --where year=2021 --out clusters.csv",
    "hedged cluster photos.db --base-rate 0.001 --top 50 --json",
)
ENDINGS = (".csv", ".json")
ID_WIDTH = 50  # characters of an id that a table shows: a line has 80


def cluster(
    location: StoreName,
    base_rate: Annotated[
        float | None,
        typer.Option("--base-rate", metavar="SHARE", help="Share of all pairs that show one identity. [estimated]"),
    ] = None,
    where: Wheres = [],  # noqa: B006 - typer reads it, nobody writes it
    calibration: Annotated[
        Path | None,
        typer.Option("--calibration", metavar="RUN", help="The store's model, if `hedged calibrate` calibrated it."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, metavar="N", help="Rows of each table to print.")] = 20,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="F", help="File for all rows: .csv, or .json with all there is.")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find out which rows of a store show the same identity.

    No labels are needed. Each row gets a cluster and the probability that it belongs there; clusters that may be one
    are listed. Clusters grow by the log-odds of their pairs, as far as the match model of the store expects most pairs
    to be right.
    """
    from hedged.decisions import load_decider
    from hedged.search import open_store, read_clusters

    if out is not None and out.suffix not in ENDINGS:
        raise RunError(f"{out} does not end in .csv or .json, the kinds of file that can be written: rename it")
    with owning_output(out, force):
        with open_store(location) as store:
            decider = load_decider(calibration, store.header.fingerprint) if calibration else None
            if calibration and decider is None:
                raise RunError(f"{calibration} has no calibration: write one with `hedged calibrate {calibration}`")
            calibrated = decider.calibrator.log_odds if decider else None
            found = read_clusters(store, filters(where), base_rate, calibrated)
            name = store.name
        if out is not None:
            _write(out, name, found)
    if json:
        print_json(_content(name, found))
        return
    _print(name, found, top)
    if out is not None:
        say(f"\nwrote {len(found.ids):,} rows to {out}")


def _rows(found: Clusters) -> list[dict[str, Any]]:
    """What is known of each item, cluster by cluster, the surest first."""
    order = sorted(range(len(found.ids)), key=lambda i: (found.numbers[i], -found.probability[i], i))
    return [
        {
            "id": found.ids[i],
            "cluster": int(found.numbers[i]),
            "probability": float(found.probability[i]),
            "elsewhere": int(found.elsewhere[i]) if found.elsewhere[i] >= 0 else None,
            "elsewhere_probability": float(found.elsewhere_probability[i]),
        }
        for i in order
    ]


def _content(name: str, found: Clusters) -> dict[str, Any]:
    return {
        "store": name,
        "items": len(found.ids),
        "clusters": len(found),
        "base_rate": found.base_rate,
        "sizes": found.sizes.tolist(),
        "rows": _rows(found),
        "alike": [pair._asdict() for pair in found.alike],
    }


def _write(out: Path, name: str, found: Clusters) -> None:
    import csv

    from hedged._files import write_atomically, write_json

    if out.suffix == ".json":
        write_json(out, finite(_content(name, found)))
        return

    def write(part: Path) -> None:
        rows = _rows(found)
        with part.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, rows[0].keys())
            table.writeheader()
            table.writerows(rows)

    write_atomically(out, write)


def _print(name: str, found: Clusters, top: int) -> None:
    rows, sizes = _rows(found), found.sizes
    several = int((sizes > 1).sum())
    title = f"{len(found.ids):,} items of {name}: {several:,} clusters of several, {len(found) - several:,} items alone"
    table = [(_short(row["id"]), str(row["cluster"]), f"{row['probability']:.4f}") for row in rows[:top]]
    print_table(title, ("id", "cluster", "probability"), table)
    if len(rows) > top:
        say(f"and {len(rows) - top:,} more: --top {len(rows)} shows them, --out F.csv writes them")
    if found.alike[:top]:
        say()
        pairs = [(f"{one.first} and {one.second}", f"{one.probability:.4f}") for one in found.alike[:top]]
        print_table(f"{len(found.alike):,} pairs of clusters that may be one", ("clusters", "probability"), pairs)
    doubtful = int((found.probability < 0.5).sum())
    say(
        f"\nlargest cluster: {sizes[0]:,} items; base rate of pairs: {found.base_rate:.2g}; "
        f"probability below ½: {doubtful:,} items"
    )


def _short(name: str) -> str:
    """An id that fits a line; its end tells more than its beginning."""
    return name if len(name) <= ID_WIDTH else "…" + name[1 - ID_WIDTH :]

"""The table at the head of the page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from hedged.evaluation.headline import HeadlineRow
from hedged.evaluation.report.markup import escape


def table(rows: Sequence[HeadlineRow], comparable: bool) -> str:
    """The rows as an HTML table, grouped: the paper's column if it has any such number, differences if they compare."""
    width = 1 if all(row.paper is None for row in rows) else 3 if comparable else 2
    heads = ("Measured", "Paper", "Difference")[:width]
    parts = ['<table class="headline"><thead><tr><th scope="col"></th>']
    parts += [f'<th scope="col">{head}</th>' for head in heads]
    parts.append("</tr></thead>")
    for group, members in groupby(rows, key=lambda row: row.group):
        parts.append(f'<tbody><tr><th scope="rowgroup" colspan="{len(heads) + 1}">{escape(group)}</th></tr>')
        parts += [_table_row(row, width) for row in members]
        parts.append("</tbody>")
    return "\n".join([*parts, "</table>"])


def _table_row(row: HeadlineRow, width: int) -> str:
    difference = None
    if row.measured is not None and row.paper is not None:
        difference = round(row.measured, row.decimals) - row.paper  # of the numbers as shown
    cells = (
        f'<td class="measured">{_number(row.measured, row.decimals)}</td>',
        f"<td>{_number(row.paper, row.decimals)}</td>",
        f'<td class="difference">{_number(difference, row.decimals, sign="+")}</td>',
    )
    return f'<tr><th scope="row">{escape(row.name)}</th>{"".join(cells[:width])}</tr>'


def _number(value: float | None, decimals: int, sign: str = "-") -> str:
    if value is None:
        return "–"
    return f"{value:{sign}.{decimals}f}".replace("-", "−")

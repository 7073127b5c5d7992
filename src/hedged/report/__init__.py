"""The report of an evaluation: one HTML page, with its pictures inside it."""

from hedged.report.decisions import decision_rows as decision_rows
from hedged.report.headline import HeadlineRow as HeadlineRow
from hedged.report.headline import headline_rows as headline_rows
from hedged.report.page import write_report as write_report

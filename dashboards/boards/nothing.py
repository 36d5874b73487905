"""What a panel says if its queries have no result, depending on the metric sets of the exporter (`--metrics.set`).

In lean and standard, counters of faults have no series before the first fault, so that an empty panel is not always a NIC that does not count.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boards.measures import ROWS
from roce_exporter.catalog.row import MetricSet

if TYPE_CHECKING:
    from boards.model import Board, Panel
    from roce_exporter.catalog.row import Row

_NAME = re.compile(r"(?<![\w:])(roce_\w+?)(?:_bucket|_count|_sum)?(?![\w:])")
_TEXT = re.compile(r'"[^"]*"')
_MISSING = {
    MetricSet.LEAN: "",
    MetricSet.STANDARD: "; not in the metric set lean",
    MetricSet.FULL: "; only in the metric set full",
}
_REASON = re.compile(r"(?:The (?:NIC|drivers?|kernel)|This) ")
"""How the texts begin that name a reason but not the possibility that nothing happened."""


def rows_of(panel: Panel) -> tuple[Row, ...]:
    """The metrics of the exporter that the panel's queries select by name."""
    found = [name for query in panel.queries for name in _NAME.findall(_TEXT.sub("", query.expr))]
    return tuple(ROWS[name] for name in dict.fromkeys(found) if name in ROWS)


def set_of(panel: Panel) -> MetricSet:
    """The smallest metric set that has every metric of the panel."""
    return next(one for one in MetricSet if all(one.includes(row.metric_set) for row in rows_of(panel)))


def text_for_nothing(panel: Panel) -> str:
    """The panel's text, and what else may be the reason in a small metric set; empty if the panel has no text."""
    text = panel.empty
    if text and _is_sparse(panel):
        said = "Always 0" if _counts_values(panel) else "None so far" if _REASON.match(text) else ""
        begin = text[0].lower() if _REASON.match(text) else text[0]
        text = f"{said}, or {begin}{text[1:]}" if said else text
    return f"{text}{_MISSING[set_of(panel)]}" if text else ""


def description_of(panel: Panel) -> str:
    """The panel's description, with a note if it counts values of which the usual one has no series."""
    if not _is_sparse(panel) or not _counts_values(panel):
        return panel.reading
    return f"{panel.reading}\n\nIn the metric sets lean and standard, a value that has always been 0 has no series."


def description_of_board(board: Board) -> str:
    """The board's description, and the metric sets that have its series."""
    sets = [one for one in MetricSet if one.includes(board.metric_set)]
    return f"{board.description} Metric set of the exporter: {', '.join(sets[:-1])} or {sets[-1]}."


def _is_sparse(panel: Panel) -> bool:
    """Whether the panel may be empty because no value has ever been another than the usual one."""
    rows = [row for row in rows_of(panel) if row.name != "roce_pfc_enabled"]  # selects priorities
    return bool(rows) and all(row.sparse for row in rows)


def _counts_values(panel: Panel) -> bool:
    return any("count_values" in query.expr for query in panel.queries)

"""What a panel says if its queries have no result, depending on the metric sets of the exporter (`--metrics.set`)."""

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


def rows_of(panel: Panel) -> tuple[Row, ...]:
    """The metrics of the exporter that the panel's queries select by name."""
    found = [name for query in panel.queries for name in _NAME.findall(_TEXT.sub("", query.expr))]
    return tuple(ROWS[name] for name in dict.fromkeys(found) if name in ROWS)


def set_of(panel: Panel) -> MetricSet:
    """The smallest metric set that has every metric of the panel."""
    return next(one for one in MetricSet if all(one.includes(row.metric_set) for row in rows_of(panel)))


def text_for_nothing(panel: Panel) -> str:
    """The panel's text, and the metric set that it needs; empty if the panel has no text."""
    text = panel.empty
    return f"{text}{_MISSING[set_of(panel)]}" if text else ""


def description_of_board(board: Board) -> str:
    """The board's description, and the metric sets that have its series."""
    sets = [one for one in MetricSet if one.includes(board.metric_set)]
    return f"{board.description} Metric set of the exporter: {' or '.join(sets)}."

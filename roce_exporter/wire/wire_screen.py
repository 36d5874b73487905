"""The live table on a terminal, with rich (extra `demo`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from roce_exporter.wire.sentences import sentences
from roce_exporter.wire.wire_table import HEADINGS, TEXT_COLUMNS, headline, table_rows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from roce_exporter.wire.wire_summary import WireSummary

AROUND = 5
"""Lines of a screen for the headline, the heading of the table and space."""


def wire_screen(summary: WireSummary, top: int, height: int, dropped: int | None) -> RenderableType:
    """One screen: the pairs that hurt most, then as many sentences as fit."""
    room = max(1, height - AROUND)
    rows = table_rows(summary, min(top, max(1, room // 2)))
    table = Table(box=None, pad_edge=False)
    for position, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if position < TEXT_COLUMNS else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    said = sentences(summary, top)[: max(0, room - len(rows))]
    return Group(Text(headline(summary, dropped)), Text(""), table, Text(""), *(Text(one) for one in said))

"""The reference of all metrics, drawn from the catalogue: `python -m roce_exporter.introspection.reference > docs/metrics.md`."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.essential import ANY_FUNCTION, ESSENTIALS, PHYSICAL, RENAMED
from roce_exporter.catalog.row import ANY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.catalog.row import Row, Spelling


def reference(rows: Sequence[Row] = CATALOG) -> str:
    """The reference in Markdown: per area one section, per metric its kind, unit, labels, meaning and spellings."""
    lines = [
        "# Metrics",
        "",
        "Drawn from the catalogue by `python -m roce_exporter.introspection.reference`; do not edit. A metric is there when the",
        "driver has the counter, and missing when it does not or when it cannot be read: it is never 0 instead.",
        "",
    ]
    for area, of_area in groupby(rows, key=_area):
        lines += [f"## {area}", ""]
        for row in of_area:
            lines += _about(row)
    return "\n".join([*lines, *_essentials()])


REQUIRED = {
    ANY_FUNCTION: "always",
    PHYSICAL: "by physical functions",
    RENAMED: "where the interface has names that no row knows",
}


def _essentials() -> Iterator[str]:
    yield "## Essential facts"
    yield ""
    yield "What a port of each driver must report where the interface answers; see `roce_exporter_missing_facts`."
    yield ""
    yield "| driver | fact | interface | any of the metrics | required |"
    yield "| --- | --- | --- | --- | --- |"
    for one in ESSENTIALS:
        metrics = ", ".join(f"`{metric}`" for metric in one.metrics)
        required = REQUIRED[one.required] + (", while PFC is on" if one.where_pfc_is_on else "")
        yield f"| {one.dialect} | {one.fact} | {one.source} | {metrics} | {required} |"
    yield ""


def _area(row: Row) -> str:
    return row.name.split("_")[1]


def _about(row: Row) -> Iterator[str]:
    labels = ", ".join(f"`{label}`" for label in row.labels) or "none"
    yield f"### `{row.name}`"
    yield ""
    yield f"{row.help}"
    yield ""
    yield f"{row.kind} of {row.unit}; labels: {labels}; {row.stability}."
    yield ""
    if row.spellings:
        yield "| driver | where | raw name | bits |"
        yield "| --- | --- | --- | --- |"
        yield from (_spelling(spelling) for spelling in row.spellings)
        yield ""


def _spelling(spelling: Spelling) -> str:
    who = "any" if spelling.dialect == ANY else spelling.dialect
    raw = (" - " if spelling.difference else " + ").join(f"`{name}`" for name in spelling.raw)
    scale = f" x {spelling.times}" if spelling.times != 1 else ""
    scale += f" / {spelling.per}" if spelling.per != 1 else ""
    return f"| {who} | {spelling.source} | {raw}{scale} | {spelling.bits} |"


if __name__ == "__main__":
    sys.stdout.write(reference())

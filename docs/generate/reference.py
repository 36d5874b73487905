"""The reference of all metrics: `python docs/generate/reference.py docs/metrics.md`.

One section per area of the catalogue's tables, with the area's introduction.
"""

# ruff: noqa: INP001 - a script next to the documents, not a package
from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from roce_exporter.catalog import AREAS, CATALOG, Area
from roce_exporter.catalog.drivers import ANY_FUNCTION, ESSENTIALS, PHYSICAL, RENAMED
from roce_exporter.catalog.kernel_events import EVENTS, MESSAGES
from roce_exporter.catalog.row import ANY
from roce_exporter.catalog.windows import WINDOWS_SETTINGS
from roce_exporter.introspection.explain import row_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.catalog.row import Row, Spelling

REQUIRED = {
    ANY_FUNCTION: "always",
    PHYSICAL: "by physical functions",
    RENAMED: "where the interface has names that no row has",
}

HEAD = """\
# Metrics

Generated from the catalogue by `make generate`; do not edit. One section per area of
`roce_exporter/catalog/tables/`.

A metric is exported when the driver has the counter. It is missing, and not 0, when the driver does not have it or when it
cannot be read. `roce-exporter explain NAME` takes a metric or a raw name and prints its row, its source and its value on
this host.

The column `set` is the lowest set that has the metric (`--metrics.set`): lean, standard (the default) or full. A series of a set is
there from its first 0 on. In lean and standard, metrics about sources have one series per source, that of the worst device. Metrics of
switches and of the wire view have no sets.

"""

RAW_NAMES = """\
Raw names per driver. `+` and `-` combine several names, `x` and `/` scale to the base unit. Counters have 64 bits where no
width is given."""


def reference(rows: Sequence[Row] = CATALOG) -> str:
    """The reference in Markdown: contents, one section per area, the essential facts."""
    found = areas(rows)
    lines = [*_contents(found)]
    for area in found:
        lines += _section(area)
    return HEAD + "\n".join([*lines, *_kernel_log_events(), *_windows_settings(), *_essentials()])


def areas(rows: Sequence[Row]) -> list[Area]:
    """The rows by the area of the catalogue that holds them, in the catalogue's order; `other` holds the rest."""
    places = {row.name: area.name for area in AREAS for row in area.rows}
    introductions = {area.name: area.introduction for area in reversed(AREAS)}
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(places.get(row.name, "other"), []).append(row)
    return [Area(name, introductions.get(name, ""), tuple(those)) for name, those in found.items()]


def _contents(found: Sequence[Area]) -> Iterator[str]:
    yield "| area | metrics | what is in it |"
    yield "| --- | ---: | --- |"
    for area in found:
        yield f"| [{area.name}](#{area.name}) | {len(area.rows)} | {area.introduction.partition(chr(10))[0]} |"
    yield f"| [kernel log events](#kernel-log-events) | {len(EVENTS)} | What messages of the kernel log mean. |"
    yield f"| [Windows settings](#windows-settings) | {len(WINDOWS_SETTINGS)} | Names of WinOF-2, without series. |"
    yield f"| [essential facts](#essential-facts) | {len(ESSENTIALS)} | What a port of each driver must report. |"
    yield ""


def _section(area: Area) -> Iterator[str]:
    yield f"## {area.name}"
    yield ""
    if area.introduction:
        yield area.introduction
        yield ""
    yield "| metric | type | unit | set | labels | meaning |"
    yield "| --- | --- | --- | --- | --- | --- |"
    yield from map(_metric, area.rows)
    yield ""
    if spelt := [row for row in area.rows if row.spellings]:
        yield RAW_NAMES
        yield ""
        yield "| metric | raw names |"
        yield "| --- | --- |"
        yield from map(_raw_names, spelt)
        yield ""


def _metric(row: Row) -> str:
    labels = ", ".join(row.labels) or "none"
    meaning = row.help if row.stability == "stable" else f"{row.help} ({row.stability})"
    return f"| `{row.name}` | {row.kind} | {row.unit} | {_set(row)} | {labels} | {_cell(meaning)} |"


def _set(row: Row) -> str:
    few = f", {row.only[0]} {', '.join(row.only[1:])}" if row.only else ""
    return f"{row.metric_set}{few}"


def _raw_names(row: Row) -> str:
    by_driver = groupby(row.spellings, key=lambda spelling: (spelling.dialect, spelling.source))
    drivers = (
        f"{'any driver' if dialect == ANY else dialect}, {source}: {', or '.join(map(_spelling, spellings))}"
        for (dialect, source), spellings in by_driver
    )
    return f"| `{row.name}` | {'<br>'.join(drivers)} |"


def _spelling(spelling: Spelling) -> str:
    raw = (" - " if spelling.difference else " + ").join(f"`{name}`" for name in spelling.raw)
    raw += f" x {spelling.times}" if spelling.times != 1 else ""
    raw += f" / {spelling.per}" if spelling.per != 1 else ""
    return raw + (f" ({spelling.bits} bits)" if spelling.bits != 64 else "")  # noqa: PLR2004 - as RAW_NAMES says


def _cell(text: str) -> str:
    """A text that cannot end its cell."""
    return text.replace("|", "\\|")


def _essentials() -> Iterator[str]:
    yield "## Essential facts"
    yield ""
    yield "What a port of each driver must report when the interface answers; see `roce_exporter_missing_facts`."
    yield ""
    yield "| driver | fact | interface | any of the metrics | required |"
    yield "| --- | --- | --- | --- | --- |"
    for one in ESSENTIALS:
        metrics = ", ".join(f"`{metric}`" for metric in one.metrics)
        required = REQUIRED[one.required] + (", while PFC is on" if one.where_pfc_is_on else "")
        yield f"| {one.dialect} | {one.fact} | {one.source} | {metrics} | {required} |"
    yield ""


def _kernel_log_events() -> Iterator[str]:
    yield "## Kernel log events"
    yield ""
    yield "Values of the label `event` of `roce_kernel_log_events_total`; `catalog/tables/kernel_log.txt` has the text of each message."
    yield ""
    yield "| event | severity | meaning | drivers |"
    yield "| --- | --- | --- | --- |"
    for event in EVENTS:
        yield f"| {event.name} | {event.severity} | {event.meaning} | {_event_drivers(event.name)} |"
    yield ""


def _event_drivers(event: str) -> str:
    rows = [one for one in MESSAGES if one.event == event]
    drivers = dict.fromkeys(driver for one in rows for driver in one.drivers if driver.islower())
    if all(one.drivers for one in rows):
        return ", ".join(drivers)
    return "any"


def _windows_settings() -> Iterator[str]:
    yield "## Windows settings"
    yield ""
    yield (
        "Settings of WinOF-2, and the metric that a Linux host has for the same setting. No counter of Windows has their values, "
        "so Windows hosts have no such series."
    )
    yield ""
    yield "| setting | where | meaning | values | on Linux |"
    yield "| --- | --- | --- | --- | --- |"
    for one in WINDOWS_SETTINGS:
        metric = f"`{row_of(one).name}`" if one.source else "-"
        yield f"| `{one.name}` | {one.place} | {one.meaning} | {one.values} | {metric} |"
    yield ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")

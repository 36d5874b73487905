"""What a raw counter or a metric is, where it comes from, and what it is now, in words for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog import INDEX
from roce_exporter.catalog.row import ANY
from roce_exporter.debug import series_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.catalog.row import Row, Spelling
    from roce_exporter.exporter import Observation
    from roce_exporter.normalise import Normaliser


def explain(name: str, observation: Observation, normaliser: Normaliser) -> Iterator[str]:
    """Lines about a metric name or a raw name; none when nothing is known of it."""
    rows = [row for row in INDEX.rows if name in (row.name, row.name.removesuffix("_total"))]
    rows = rows or [row for row in INDEX.rows if any(name in spelling.raw for spelling in row.spellings)]
    for row in rows:
        yield from _about_row(row)
        yield from _values_now(row, observation)
    for dialect, source, reason in _reasons(name, normaliser):
        yield f"{name} ({dialect or 'unknown driver'}, {source}): not exported: {reason}"
    for device, plan in sorted(normaliser.plans.items()):
        for source, port, raw in plan.unmapped:
            if raw == name:
                yield f"{name}: {device} port {port} has it in {source}; no row of the catalogue knows it"


def unmapped(normaliser: Normaliser) -> Iterator[str]:
    """A line for every raw name on this host that no row of the catalogue knows."""
    for device, plan in sorted(normaliser.plans.items()):
        dialect = plan.device.dialect or "unknown driver"
        for source, port, raw in plan.unmapped:
            yield f"{device} ({dialect}) port {port} {source} {raw}"


def _about_row(row: Row) -> Iterator[str]:
    yield f"{row.name} ({row.kind}, {row.unit}, {row.stability})"
    yield f"  {row.help}"
    for spelling in row.spellings:
        yield f"  {_spelling(spelling)}"


def _spelling(spelling: Spelling) -> str:
    who = "any driver" if spelling.dialect == ANY else spelling.dialect
    scale = f" x {spelling.times}" if spelling.times != 1 else ""
    scale += f" / {spelling.per}" if spelling.per != 1 else ""
    raw = (" - " if spelling.difference else " + ").join(spelling.raw)
    return f"{who}: {raw}{scale} in {spelling.source}, {spelling.bits} bits"


def _values_now(row: Row, observation: Observation) -> Iterator[str]:
    found = False
    for part in observation.samples:
        for series, value in zip(part.series, part.values, strict=True):
            if series.row is row:
                found = True
                yield f"  now {series_text(series)} {'unreadable' if value is None else value}"
    if not found:
        yield "  now: this host has no such series"


def _reasons(name: str, normaliser: Normaliser) -> Iterator[tuple[str, str, str]]:
    seen = set()
    for plan in normaliser.plans.values():
        for source in sorted({source for source, _, _, names in plan.key if name in names}):
            reason = INDEX.left_out(plan.device.dialect, source, name)
            if reason and (plan.device.dialect, source) not in seen:
                seen.add((plan.device.dialect, source))
                yield plan.device.dialect, source, reason

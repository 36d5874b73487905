"""Convert tables of SONiC to readings, whichever door they came through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.switches.readings import SwitchReadings
from roce_exporter.switches.systems.sonic import tables as t
from roce_exporter.switches.systems.sonic.configuration_readings import (
    configuration_readings,
    missing_rows,
    override_reading,
    queue_facts,
)
from roce_exporter.switches.systems.sonic.counter_readings import counter_readings
from roce_exporter.switches.systems.sonic.facts import identity_facts, name_of, port_facts
from roce_exporter.switches.systems.sonic.lossless import Lossless, lossless_by_counters, lossless_of
from roce_exporter.switches.systems.sonic.polling import polling_of, renewals_of
from roce_exporter.switches.systems.sonic.rows import SonicRows, rows_of
from roce_exporter.switches.systems.sonic.view import NamespaceView
from roce_exporter.switches.targets import PFC_PRIORITIES
from roce_exporter.words import few

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.switches.readings import SwitchFact, SwitchReading


def read_tables(
    namespaces: Sequence[t.SonicTables], faults: Mapping[str, str], priorities: str = PFC_PRIORITIES
) -> SwitchReadings:
    """What the tables of a switch say. `faults` are those of the doors, by source; they are kept.

    `priorities` is that of the target: `pfc` limits queues, groups and priorities to those with PFC. Where CONFIG_DB is not
    available, those are the priorities with PFC frames and the queues on which the watchdog runs. Raw names are SONiC's own:
    `SAI_PORT_STAT_PFC_3_RX_PKTS`; the catalogue takes the label `priority` from the name.
    """
    views = _views(namespaces, everything=priorities != PFC_PRIORITIES)
    complaints: dict[str, list[str]] = {}
    for view in views:
        for source, line in _complaints(view):
            complaints.setdefault(source, []).append(f"{view.tables.namespace}: {line}".removeprefix(": "))
    return SwitchReadings(
        name=name_of(views),
        readings=tuple(_readings(views)),
        facts=tuple(_facts(views)),
        renewals=renewals_of([view.polling for view in views]),
        faults={source: few(lines, 1) for source, lines in complaints.items()} | dict(faults),
        sources=tuple(
            source for source in t.SOURCES if source in faults or any(_has(view, source) for view in views)
        ),
    )


def _views(namespaces: Sequence[t.SonicTables], *, everything: bool) -> list[NamespaceView]:
    """The namespaces with what is needed to interpret each. A port belongs to the first namespace that has it."""
    parts = [(tables, rows_of(tables.configuration or {})) for tables in namespaces]
    lossless = [_lossless(tables, rows) for tables, rows in parts]
    used = frozenset(priority for part in lossless for priority in part.priorities)
    taken: set[str] = set()
    views = []
    for (tables, rows), part in zip(parts, lossless, strict=True):
        ports = _front_panel(tables, rows) - taken
        taken |= ports
        polling = polling_of(rows, tables.state or {})
        views.append(NamespaceView(tables, rows, part, polling, frozenset(ports), used, everything))
    return views


def _lossless(tables: t.SonicTables, rows: SonicRows) -> Lossless:
    return lossless_by_counters(tables) if not tables.configuration else lossless_of(rows)


def _front_panel(tables: t.SonicTables, rows: SonicRows) -> set[str]:
    """The ports of the namespace that lead out of the switch. The `role` of others is Int, Inb, Rec or Dpc."""
    names = {*(tables.port_counters or {}), *rows.ports}
    names |= {queue.port for queue in tables.queue_counters or {}}
    names |= {group.port for group in tables.priority_group_counters or {}}
    roles = {port: fields.get("role", "Ext") for port, fields in rows.ports.items()}
    return {port for port in names if t.is_front_panel(port) and roles.get(port, "Ext") == "Ext"}


def _readings(views: Sequence[NamespaceView]) -> Iterator[SwitchReading]:
    for view in views:
        yield from counter_readings(view)
        yield from configuration_readings(view)
    yield from override_reading(views)


def _facts(views: Sequence[NamespaceView]) -> Iterator[SwitchFact]:
    yield from identity_facts(views)
    for view in views:
        yield from port_facts(view)
        yield from queue_facts(view)


def _has(view: NamespaceView, source: str) -> bool:
    """Whether the switch has the source: a table that was queried and holds something, or should."""
    table = getattr(view.tables, source)
    if source == t.PORT_COUNTERS:
        return table is not None
    if source == t.QUEUE_COUNTERS and table is not None and "QUEUE" in view.polling.enabled:
        return True
    if source == t.WATERMARKS:
        return any(part.queues or part.groups or part.pools for part in (table or {}).values())
    return bool(table)


def _complaints(view: NamespaceView) -> Iterator[tuple[str, str]]:
    """What is wrong with a reply as a whole, by source: one line."""
    tables = view.tables
    if tables.port_counters is not None and not any(tables.port_counters.values()):
        yield (
            t.PORT_COUNTERS,
            (
                f"none of the {len(tables.port_counters)} ports has counters"
                if tables.port_counters
                else "COUNTERS_PORT_NAME_MAP has no ports"
            )
            + ": the switch's services (swss, syncd) restart, port counters are off (counterpoll port enable), "
            "or this is not COUNTERS_DB",
        )
    if (
        tables.queue_counters is not None
        and not any(tables.queue_counters.values())
        and "QUEUE" in view.polling.enabled
    ):
        yield (
            t.QUEUE_COUNTERS,
            "no queue has counters, though their polling is enabled: the switch's services (swss, syncd) restart",
        )
    if tables.configuration is not None and not tables.configuration:
        yield (t.CONFIGURATION, "no row of CONFIG_DB was found: database_config may name another database")
    for line in view.lossless.unclear.values():
        yield t.CONFIGURATION, line
    for line in missing_rows(view):
        yield t.CONFIGURATION, line

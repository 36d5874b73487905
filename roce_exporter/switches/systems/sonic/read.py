"""Convert tables of SONiC to readings, whichever client they came through."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from roce_exporter.catalog import named
from roce_exporter.catalog.switch_systems import SONIC
from roce_exporter.switches import reply_values as v
from roce_exporter.switches.readings import (
    Labels,
    Origin,
    ProbeReply,
    RawNumber,
    SwitchFact,
    SwitchReading,
    SwitchReadings,
    Unreadable,
    label_text,
)
from roce_exporter.switches.reply_values import fact, is_absent
from roce_exporter.switches.systems.sonic import scope
from roce_exporter.switches.systems.sonic import tables as t
from roce_exporter.switches.systems.sonic.keys import RATES, SENSORS, WATERMARK_TABLES
from roce_exporter.switches.systems.sonic.scope import NamespaceView
from roce_exporter.switches.targets import PFC_PRIORITIES, SwitchTarget
from roce_exporter.words import few

ENTRY = "LLDP_ENTRY_TABLE:"
VERSION = re.compile(r"SONiC Software Version: (?:SONiC\.)?(\S{1,100})")
"""In the description that SONiC announces by LLDP (dockers/docker-lldp, lldpd.conf.j2)."""

PORT_ID_KINDS = {"1": "name", "3": "mac", "5": "name"}
"""IEEE 802.1AB subtypes of port identifiers: interface alias, MAC address, interface name; all others are `other`."""

CONVERSIONS: Mapping[str, Callable[[Any], RawNumber]] = {
    name: read
    for source in (t.QUEUE_COUNTERS, t.LINKS, t.TRANSCEIVERS)
    for name, read in v.readers(SONIC, source).items()
    if read is not v.number
}
"""Fields that are not unsigned numbers."""
NO_PORT_COUNTERS = (
    ": the switch's services (swss, syncd) restart, port counters are off (counterpoll port enable), "
    "or this is not COUNTERS_DB"
)
NO_QUEUE_COUNTERS = (
    "no queue has counters, though their polling is enabled: the switch's services (swss, syncd) restart"
)
SURE_DIGITS = 20
"""A number with fewer digits is below 2^64 - 1."""


def name_of(views: Sequence[NamespaceView]) -> str:
    """The switch's host name: DEVICE_METADATA, else the name that it announces by LLDP; empty if neither is known."""
    names = [_metadata(view).get("hostname", "") for view in views]
    names += [_chassis(view).get("lldp_loc_sys_name", "") for view in views]
    return next((name for name in map(label_text, names) if name), "")


def identity_facts(views: Sequence[NamespaceView]) -> Iterator[SwitchFact]:
    """What the switch is; nothing if no row of it was read."""
    metadata = next(filter(None, map(_metadata, views)), {})
    described = next(filter(None, (_chassis(view).get("lldp_loc_sys_desc") for view in views)), "")
    version = VERSION.search(described)
    if metadata or described:
        yield fact(
            named.SWITCH_INFO,
            os=SONIC,
            version=version[1] if version else None,
            model=metadata.get("hwsku") or metadata.get("platform"),
            asic=metadata.get("asic_type"),
        )


def port_facts(view: NamespaceView) -> Iterator[SwitchFact]:
    """Names of the ports, and the module in and the neighbour behind each."""
    for port, row in view.rows.ports.items():
        if port in view.ports:
            labels = {"alias": row.get("alias"), "description": row.get("description")}
            yield fact(named.SWITCH_PORT_INFO, port=port, **labels)
    for port, row in (view.tables.transceivers or {}).items():
        if port in view.ports:
            yield from v.module_facts(port, *map(row.get, t.MODULE_FIELDS))
    for key, entry in (view.tables.lldp or {}).items():
        port = key.removeprefix(ENTRY)
        if key.startswith(ENTRY) and (port in view.ports or (not view.ports and t.is_front_panel(port))):
            name, chassis, identifier, subtype, text = (entry.get(f"lldp_rem_{part}") for part in t.NEIGHBOR)
            kind = PORT_ID_KINDS.get(subtype or "", "other")
            ends = {"name": name, "chassis": chassis, "port_id": identifier, "description": text}
            yield v.neighbor(port, **ends, kind=kind, as_said=True)


def _metadata(view: NamespaceView) -> t.Fields:
    return view.rows.get("DEVICE_METADATA|localhost")


def _chassis(view: NamespaceView) -> t.Fields:
    return (view.tables.lldp or {}).get("LLDP_LOC_CHASSIS", {})


def counter_readings(view: NamespaceView) -> Iterator[SwitchReading]:
    """Everything that is counted on the ports, queues, priority groups and pools that are shown."""
    for table in t.COUNTERS:
        yield from _counted(view, table, "COUNTERS", getattr(view.tables, table.source) or {})
    for window, part in (view.tables.watermarks or {}).items():
        for table in t.MAXIMA:
            key = WATERMARK_TABLES[window]
            yield from _counted(view, table, key, getattr(part, table.kind), ("window", window))


def health_readings(view: NamespaceView) -> Iterator[SwitchReading]:
    """State, faults and bit errors of the ports, and what their transceivers measure."""
    for port, fields in (view.tables.links or {}).items():
        if port in view.ports:
            labels: Labels = (("port", port),)
            present = [one for one in t.raw(t.LINKS) if one != "speed" or fields.get(one) != "0"]
            yield from _reading(t.LINKS, labels, fields, present, (view.tables.namespace, RATES, port))
            times = [
                v.unix_time(fields[name]) for name in ("last_up_time", "last_down_time") if name in fields
            ]
            if changed := [time for time in times if not isinstance(time, Unreadable)]:
                yield SwitchReading(t.LINKS, labels, {"last_change": max(changed)})
    for port, fields in (view.tables.transceivers or {}).items():
        if port in view.ports:
            origin = (view.tables.namespace, SENSORS, port)
            yield from _reading(t.TRANSCEIVERS, (("port", port),), fields, t.raw(t.TRANSCEIVERS), origin)


def _counted(
    view: NamespaceView,
    table: t.CountedObjects,
    prefix: str,
    objects: Mapping[Any, t.Fields],
    *more: tuple[str, str],
) -> Iterator[SwitchReading]:
    """The objects of one table that are shown. Of some queues only the part of the watchdog is."""
    if table.group in view.polling.disabled:
        return
    names = table.fields
    if table.source == t.PORT_COUNTERS:
        names = t.port_fields(view.priorities)
    elif table.source == t.QUEUE_COUNTERS:
        names = view.polling.fresh(names)
    watchdog = tuple(name for name in names if name.startswith("PFC_WD_"))
    typed = scope.ports_with_unicast(objects) if table.kind == "queues" else frozenset()
    for one, fields in objects.items():
        chosen = names
        if isinstance(one, t.SonicQueue):
            label = scope.queue_label(one, typed)
            labels: Labels = (("port", one.port), ("queue", label))
            if not view.shows_queue(one.port, label):
                chosen = watchdog if view.watches_queue(one.port, label) else ()
        elif isinstance(one, t.SonicGroup):
            labels = (("port", one.port), ("priority_group", str(one.number)))
            chosen = names if view.shows_group(one) else ()
        elif isinstance(one, t.SonicVoq):
            asic = _metadata(view).get("asic_name") or view.tables.namespace or "asic0"
            ends = (("egress_device", label_text(one.device)), ("egress_port", one.port))
            labels = (("asic", label_text(asic)), *ends, ("queue", str(one.number)))
            chosen = names if view.everything or one.number in view.lossless.used_queues else ()
        elif table.kind == "pools":
            # On a switch of several ASICs, each has pools of the same names.
            labels = (("pool", label_text(f"{view.tables.namespace}/{one}".removeprefix("/"))),)
        else:
            labels = (("port", one),)
            chosen = names if one in view.ports else ()
        origin = (view.tables.namespace, prefix, one)
        yield from _reading(table.source, (*labels, *more), fields, chosen, origin)


def _reading(
    source: str, labels: Labels, fields: t.Fields, names: Iterable[str], origin: Origin | None = None
) -> Iterator[SwitchReading]:
    """One reading of the fields that the switch has; nothing if it has none of them."""
    values: dict[str, RawNumber] = {}
    for name in names:
        text = fields.get(name)
        if text is None:
            continue
        if name in CONVERSIONS:
            if not is_absent(text):
                values[name] = CONVERSIONS[name](text)
        elif (
            text.isdigit() and text.isascii() and len(text) < SURE_DIGITS
        ):  # nearly all of some 20,000 values
            values[name] = int(text)
        elif not is_absent(text):
            values[name] = v.number(text)
    if values:
        yield SwitchReading(source, labels, values, origin)


def read(replies: ProbeReply, target: SwitchTarget) -> SwitchReadings:
    """The readings of the tables in the replies of a round, through either client."""
    return read_tables(replies.replies.get("tables", ()), replies.faults, target.priorities)


def read_tables(
    namespaces: Sequence[t.SonicTables], faults: Mapping[str, str], priorities: str = PFC_PRIORITIES
) -> SwitchReadings:
    """What the tables of a switch say. `faults` are those of the clients, by source; they are kept.

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
        readings=(
            *(
                one
                for view in views
                for part in (counter_readings, scope.configuration_readings, health_readings)
                for one in part(view)
            ),
            *scope.override_reading(views),
        ),
        facts=(
            *identity_facts(views),
            *(one for view in views for one in (*port_facts(view), *scope.queue_facts(view))),
        ),
        missing=frozenset(
            (t.FLEX_GROUPS[group], "disabled") for view in views for group in view.polling.disabled
        )
        | {(t.QUEUE_COUNTERS, "unsupported") for view in views if view.polling.lacking},
        renewals=scope.renewals_of([view.polling for view in views]),
        faults={source: few(lines, 1) for source, lines in complaints.items()} | dict(faults),
        sources=tuple(
            source
            for source in (*t.SOURCES, t.VOQ_COUNTERS)
            if source in faults or any(_has(view, source) for view in views)
        ),
    )


def _views(namespaces: Sequence[t.SonicTables], *, everything: bool) -> list[NamespaceView]:
    """The namespaces with what is needed to interpret each. A port belongs to the first namespace that has it."""
    parts = [(tables, t.rows_of(tables.configuration or {})) for tables in namespaces]
    lossless = [
        scope.lossless_of(rows) if tables.configuration else scope.lossless_by_counters(tables)
        for tables, rows in parts
    ]
    if any(part.ports for part in lossless):  # what is usual counts only where no ASIC of the switch has PFC
        lossless = [replace(part, usual={}) for part in lossless]
    used = frozenset(priority for part in lossless for priority in part.priorities)
    taken: set[str] = set()
    views = []
    for (tables, rows), part in zip(parts, lossless, strict=True):
        ports = _front_panel(tables, rows) - taken
        taken |= ports
        polling = scope.polling_of(rows, tables.state or {})
        views.append(NamespaceView(tables, rows, part, polling, frozenset(ports), used, everything))
    return views


def _front_panel(tables: t.SonicTables, rows: t.SonicRows) -> set[str]:
    """The ports of the namespace that lead out of the switch. The `role` of others is Int, Inb, Rec or Dpc."""
    names = {*(tables.port_counters or {}), *rows.ports}
    names |= {queue.port for queue in tables.queue_counters or {}}
    names |= {group.port for group in tables.priority_group_counters or {}}
    roles = {port: fields.get("role", "Ext") for port, fields in rows.ports.items()}
    return {port for port in names if t.is_front_panel(port) and roles.get(port, "Ext") == "Ext"}


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
    ports, queues = tables.port_counters, tables.queue_counters
    if ports is not None and not any(ports.values()):
        what = (
            f"none of the {len(ports)} ports has counters" if ports else "COUNTERS_PORT_NAME_MAP has no ports"
        )
        yield t.PORT_COUNTERS, what + NO_PORT_COUNTERS
    if queues is not None and not any(queues.values()) and "QUEUE" in view.polling.enabled:
        yield t.QUEUE_COUNTERS, NO_QUEUE_COUNTERS
    if tables.configuration is not None and not tables.configuration:
        yield (t.CONFIGURATION, "no row of CONFIG_DB was found: database_config may name another database")
    yield from (
        (t.CONFIGURATION, line) for line in (*view.lossless.unclear.values(), *scope.missing_rows(view))
    )

"""Interpret replies of NX-OS: pure functions, total for any reply."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from roce_exporter.catalog import named
from roce_exporter.catalog.switch_systems import NXOS
from roce_exporter.net import NetError
from roce_exporter.switches import reply_values as v
from roce_exporter.switches.readings import (
    Labels,
    ProbeReply,
    SwitchFact,
    SwitchReading,
    SwitchReadings,
    label_text,
)
from roce_exporter.switches.reply_values import PortScope, below, fact, is_absent, of_port
from roce_exporter.switches.systems import table_of
from roce_exporter.switches.systems.nxos import ports as p
from roce_exporter.switches.systems.nxos.ports import QUEUING, NxosPort, NxosPorts, Values
from roce_exporter.switches.targets import ALL_PRIORITIES, SwitchTarget

T = TypeVar("T")

WATCHDOG, PFC, NEIGHBORS = "pfc_queue_detail", "priority_flow_control", "lldp_neighbors"
VERSION, STATISTICS, MODULES = "version", "queuing_statistics", "transceivers"
REFUSED_DME = "the DME refuses the query"
CLASSES = table_of("nxos dme")
NOT_SET = frozenset({"inherit", "auto", "unknown", "never", "1970-01-01T00:00:00.000+00:00"})
"""Values of attributes that say nothing: a speed without a link, a change that never was."""
CLASS_GROUP = re.compile(r"-q(?:-(default)|([0-7]))$", re.ASCII)
"""The system's egress classes: c-out-q3 (four queues), c-out-8q-q3 (eight), c-out-8q-q-default for qos-group 0."""
INTERFACE_NAME = frozenset({"5", "interface name"})
"""How `port_type` says that the port identifier is a name: as a number (IEEE 802.1AB, table 8-3) or, in newer versions, as text."""


def read(replies: ProbeReply, target: SwitchTarget) -> SwitchReadings:
    """Interpret the replies. Total: whatever the switch sent, the other sources are read."""
    faults = dict(replies.faults)
    bodies = dict(_bodies(replies.replies, faults))

    def parsed(source: str, parse: Callable[[Any], T]) -> T | None:
        """What a source says; None, and a fault, if its reply has another form."""
        try:
            return parse(bodies[source]) if source in bodies and source not in faults else None
        except NetError as error:
            faults[source] = str(error)
            return None

    ports: NxosPorts = defaultdict(NxosPort)
    for source, add in ((PFC, p.add_pfc), (QUEUING, p.add_queuing), (WATCHDOG, p.add_watchdog)):
        parsed(source, partial(add, ports))
    everything = target.priorities == ALL_PRIORITIES
    scopes = {name: port.scope(everything=everything) for name, port in ports.items()}
    statistics = parsed(STATISTICS, _class_rows) or {}
    # A DME that is late or broken for once must not switch counters to those of the command line, which count differently.
    without_dme = not statistics and (STATISTICS not in faults or faults[STATISTICS].startswith(REFUSED_DME))
    overridden = parsed(WATCHDOG, p.watchdog_of_switch) or {}
    cages = parsed(
        MODULES, lambda body: [(p.port_name(row.get("interface")), row) for row in p.rows(body, "interface")]
    )
    modules = {port: row for port, row in cages or () if port and str(row.get("sfp")).strip() == "present"}
    readings = [
        SwitchReading(WATCHDOG, (), overridden),
        *_port_readings(ports, scopes, without_dme=without_dme),
        *_statistics_readings(statistics, scopes, everything=everything),
        *_module_readings(modules),
    ]
    for source in [*CLASSES][1:]:
        readings += parsed(source, partial(_health_readings, source)) or ()
    return SwitchReadings(
        name=v.said(below(bodies.get(VERSION), "host_name")),
        readings=one_per_object(readings),
        facts=(*_facts(bodies, {*ports, *modules}, modules), *_queue_facts(ports)),
        faults={source: fault for source, fault in faults.items() if source not in replies.faults},
        sources=tuple(sorted({*bodies, *faults})),
        missing=frozenset((source, "unsupported") for source in replies.replies.keys() - {*bodies, *faults}),
    )


def one_per_object(readings: Iterable[SwitchReading]) -> tuple[SwitchReading, ...]:
    """One reading per source and object, with all its values; none without values."""
    merged: dict[tuple[str, Labels], Values] = {}
    for reading in readings:
        if reading.values:
            merged.setdefault((reading.source, reading.labels), {}).update(reading.values)
    return tuple(SwitchReading(source, labels, values) for (source, labels), values in merged.items())


def _bodies(replies: Mapping[str, Any], faults: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """What each source replied, without the envelope. A command that the switch does not have is no source."""
    for source, reply in replies.items():
        try:
            body = reply if source in CLASSES else p.command_body(reply)
        except NetError as error:
            faults[source] = str(error)
            continue
        if isinstance(body, dict):
            yield source, body
        elif source == NEIGHBORS and body in ("", []):  # without neighbours NX-OS returns an empty text
            yield source, {}
        elif body is not None:
            faults[source] = "the reply has no structured output"


def _port_readings(
    ports: NxosPorts, scopes: Mapping[str, PortScope], *, without_dme: bool
) -> Iterator[SwitchReading]:
    for name, port in ports.items():
        scope = scopes[name]
        if port.is_listed:
            yield from v.pfc_readings(PFC, name, "oper", port.on)
        yield of_port(QUEUING, name, port.ingress)
        yield from _pause_readings(name, port, scope)
        for queue, values in port.egress.items() if without_dme else ():
            if scope.has_queue(queue):
                yield of_port(QUEUING, name, values, queue=queue)
        watched = {one.queue: one.values for one in port.watched}
        paused = {one.queue for one in port.pauses} & scope.queues
        for queue in sorted((paused | watched.keys()) if port.watchdog or watched else ()):
            if scope.has_queue(queue):
                yield of_port(WATCHDOG, name, port.watchdog | watched.get(queue, {}), queue=queue)


def _pause_readings(name: str, port: NxosPort, scope: PortScope) -> Iterator[SwitchReading]:
    paused: dict[str, int] = {}
    groups: dict[str, str] = {}
    for pause in port.pauses:
        if scope.has_priority(pause.priority):
            yield of_port(QUEUING, name, pause.values, priority=pause.priority)
            if pause.queue:
                groups[pause.queue] = pause.group
                if pause.paused is not None:
                    paused[pause.queue] = max(paused.get(pause.queue, 0), pause.paused)
    for queue, state in paused.items():
        yield of_port(QUEUING, name, {"rx-pause-state": state}, queue=queue)
    for queue, threshold in port.thresholds.items():
        if groups.get(queue):
            yield of_port(QUEUING, name, {"pause-threshold": threshold}, priority_group=groups[queue])


def _class_rows(body: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """By port and class the attributes of the egress queues. The direction is a segment of dn.

    Raises:
        NetError: as `dme_objects`.
    """
    return {
        (port, label): attributes
        for port, attributes in p.dme_objects(body, CLASSES[STATISTICS])
        if port
        and "/in/" not in str(attributes.get("dn"))
        and not (label := str(attributes.get("cmapName"))).startswith("c-in")
    }


def _health_readings(source: str, body: Any) -> tuple[SwitchReading, ...]:
    """By port the values of one class about ports.

    Raises:
        NetError: as `dme_objects`.
    """
    found: dict[str, Values] = {}
    for port, attributes in p.dme_objects(body, CLASSES[source]):
        if port:
            row = {name: value for name, value in attributes.items() if str(value) not in NOT_SET}
            found[port] = values = v.values_of(NXOS, source, row, p.counter)
            if values.get("operSt") != 1:
                values.pop("operSpeed", None)
            # A cut-through switch passes damaged packets on with a stomped checksum: the damage was done on another link.
            crc, stomped = values.get("cRCAlignErrors"), values.get("stompedCRCAlignErrors")
            if isinstance(crc, int) and isinstance(stomped, int) and stomped <= crc:
                values["cRCAlignErrors"] = crc - stomped
    return tuple(of_port(source, port, values) for port, values in found.items())


def _module_readings(modules: Mapping[str, dict[str, Any]]) -> Iterator[SwitchReading]:
    """What modules measure, per lane; limits and the temperature are those of the first one that has them.

    Values can have their unit behind them, and a module of one lane can have no lanes.
    """
    for port, row in modules.items():
        found: dict[str, str] = {}
        for lane in [*p.rows(row, "lane")] or [row]:
            number = str(lane.get("lane_number", "1")).strip()
            for name, value in lane.items():
                text = str(value).partition(" ")[0]
                if not is_absent(text):
                    found.setdefault(f"rx_pwr-{number}" if name == "rx_pwr" else name, text)
        yield of_port(MODULES, port, v.values_of(NXOS, MODULES, found))


def _statistics_readings(
    statistics: Mapping[tuple[str, str], dict[str, Any]], scopes: Mapping[str, PortScope], *, everything: bool
) -> Iterator[SwitchReading]:
    """The counters of the DME: not the watchdog's, which are 0 here, nor maxQueueDepth, whose window is not documented."""
    for (port, name), attributes in statistics.items():
        found = CLASS_GROUP.search(name)
        queue = (found[2] or "0") if found else ""
        # A class with a name of its own cannot be matched with a qos-group: PFC frames show that it is lossless.
        used = not queue and any(v.numbers(attributes, ("pfcTxPpp", "pfcRxPpp"), p.counter).values())
        if everything or used or (queue and port in scopes and scopes[port].has_queue(queue)):
            values = v.values_of(NXOS, STATISTICS, attributes, p.counter)
            yield of_port(STATISTICS, port, values, queue=queue or label_text(name))


def _facts(
    bodies: Mapping[str, Any], ports: set[str], modules: Mapping[str, dict[str, Any]]
) -> Iterator[SwitchFact]:
    if isinstance(body := bodies.get(VERSION), dict):
        version = body.get("nxos_ver_str") or body.get("kickstart_ver_str")
        yield fact(named.SWITCH_INFO, os=NXOS, version=version, model=body.get("chassis_id"), asic="")
    for port in sorted(ports):
        yield fact(named.SWITCH_PORT_INFO, port=port, alias="", description="")
    for port, row in modules.items():
        yield from v.module_facts(port, row.get("type"), row.get("name"), row.get("partnum"))
    for row in p.rows(bodies.get(NEIGHBORS), "nbor_detail"):
        if port := p.port_name(row.get("l_port_id")):
            port_id = row.get("port_id")
            yield v.neighbor(
                port,
                name=row.get("sys_name"),
                chassis=row.get("chassis_id"),
                port_id=p.port_name(port_id) or port_id,
                description=row.get("port_desc"),
                kind="name" if str(row.get("port_type")).strip().lower() in INTERFACE_NAME else "",
            )


def _queue_facts(ports: NxosPorts) -> Iterator[SwitchFact]:
    """The queue and the priority group of each priority with PFC, from the PFC statistics, else from the watchdog."""
    for name, port in ports.items():
        maps = {priority: (one.queue, "") for one in port.watched for priority in one.priorities}
        maps |= {one.priority: (one.queue, one.group) for one in port.pauses if one.queue}
        for priority in sorted(maps.keys() & port.priorities):
            queue, group = maps[priority]
            labels = {"port": name, "priority": priority, "queue": queue, "priority_group": group}
            yield fact(named.SWITCH_QUEUE_INFO, **labels)

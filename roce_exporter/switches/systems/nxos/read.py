"""Interpret replies of NX-OS: pure functions, total for any reply."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from roce_exporter.catalog.named import (
    SWITCH_INFO,
    SWITCH_NEIGHBOR_INFO,
    SWITCH_PORT_INFO,
    SWITCH_QUEUE_INFO,
    SWITCH_TRANSCEIVER_INFO,
)
from roce_exporter.catalog.switch_systems import NXOS
from roce_exporter.net import NetError
from roce_exporter.switches.readings import (
    ProbeReply,
    RawNumber,
    SwitchFact,
    SwitchReading,
    SwitchReadings,
    Unreadable,
    label_text,
)
from roce_exporter.switches.reply_values import (
    UNKNOWN_WORD,
    UP_DOWN,
    below,
    bits_per_second,
    fraction,
    is_absent,
    neighbor_labels,
    said,
    unix_time,
    watts,
    word,
)
from roce_exporter.switches.systems.nxos import ports as p
from roce_exporter.switches.targets import ALL_PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from roce_exporter.switches.readings import Labels
    from roce_exporter.switches.targets import SwitchTarget

K = TypeVar("K")
V = TypeVar("V")

WATCHDOG = "pfc_queue_detail"
QUEUING = "queuing_interface"
PFC = "priority_flow_control"
NEIGHBORS = "lldp_neighbors"
VERSION = "version"
STATISTICS = "queuing_statistics"

REFUSED_DME = "the DME refuses the query"
MODULES = "transceivers"
CLASSES = {
    STATISTICS: "ipqosQueuingStats",
    "interface_settings": "l1PhysIf",
    "interface_states": "ethpmPhysIf",
    "receive_counters": "rmonIfHCIn",
    "transmit_counters": "rmonIfHCOut",
    "receive_errors": "rmonIfIn",
    "transmit_errors": "rmonIfOut",
    "frame_errors": "rmonEtherStats",
}
"""The classes of the DME that are read, by source."""
HEALTH: dict[str, dict[str, Callable[[Any], RawNumber]]] = {
    "interface_settings": {"adminSt": partial(word, meanings=UP_DOWN), "mtu": p.counter},
    "interface_states": {
        "operSt": partial(word, meanings={**UP_DOWN, "link-up": 1}),
        "operSpeed": bits_per_second,
        "lastLinkStChg": unix_time,
    },
    **dict.fromkeys(
        ("receive_counters", "transmit_counters"), dict.fromkeys(("octets", "ucastPkts"), p.counter)
    ),
    **dict.fromkeys(("receive_errors", "transmit_errors"), dict.fromkeys(("errors", "discards"), p.counter)),
    "frame_errors": dict.fromkeys(("cRCAlignErrors", "stompedCRCAlignErrors"), p.counter),
}
"""The attributes about a port, by source."""
NOT_SET = frozenset({"inherit", "auto", "unknown", "never", "1970-01-01T00:00:00.000+00:00"})
"""Values of attributes that say nothing: a speed without a link, a change that never was."""
LIGHT = (
    ("rx_pwr", "rx_pwr-{lane}", watts),
    ("rx_pwr_alrm_lo", "rx_pwr_alrm_lo", watts),
    ("temperature", "temperature", fraction),
    ("temp_alrm_hi", "temp_alrm_hi", fraction),
)
"""Keys of a lane of a transceiver, the raw name of each, and what reads it; limits and the temperature are those of the first lane."""
MODULE_FACTS = {"type": "type", "vendor": "name", "model": "partnum"}
DME_COUNTERS = (
    "txPackets",
    "txBytes",
    "dropPackets",
    "randDropPackets",
    "randEcnMarkedPackets",
    "currQueueDepth",
)
"""Not the watchdog's counts, which NX-OS reports as 0 here, nor maxQueueDepth, whose window is not documented."""
CLASS_GROUP = re.compile(r"-q(?:-(default)|([0-7]))$", re.ASCII)
"""The system's egress classes: c-out-q3 (four queues), c-out-8q-q3 (eight), c-out-8q-q-default for qos-group 0."""
INTERFACE_NAME = frozenset({"5", "interface name"})
"""How `port_type` says that the port identifier is a name: as a number (IEEE 802.1AB, table 8-3) or, in newer versions, as text."""


def read(replies: ProbeReply, target: SwitchTarget) -> SwitchReadings:
    """Interpret the replies. Total: whatever the switch sent, the other sources are read."""
    faults = dict(replies.faults)
    bodies = dict(_bodies(replies.replies, faults))
    pfc = _parsed(PFC, p.pfc_priorities, bodies, faults)
    queuing = _parsed(QUEUING, p.queuing_of_ports, bodies, faults)
    watchdog = _parsed(WATCHDOG, p.watchdog_of_ports, bodies, faults)
    everything = target.priorities == ALL_PRIORITIES
    scope = p.lossless_scope(pfc, queuing, watchdog, everything=everything)
    statistics = _parsed(STATISTICS, _class_rows, bodies, faults)
    # A DME that is late or broken for once must not switch counters to those of the command line, which count differently.
    without_dme = not statistics and (STATISTICS not in faults or faults[STATISTICS].startswith(REFUSED_DME))
    overridden = _parsed(WATCHDOG, p.watchdog_of_switch, bodies, faults)
    modules = _parsed(MODULES, _modules, bodies, faults)
    readings = (
        *([SwitchReading(WATCHDOG, (), overridden)] if overridden else ()),
        *_pfc_readings(pfc, scope),
        *_queuing_readings(queuing, scope),
        *(
            _of_queue(QUEUING, port, queue, values)
            for port, one in queuing.items()
            for queue, values in one.egress.items()
            if without_dme and scope.has_queue(port, queue)
        ),
        *_watchdog_readings(watchdog, scope),
        *_statistics_readings(statistics, scope),
        *(
            SwitchReading(source, (("port", port),), values)
            for source in HEALTH
            for port, values in _parsed(source, partial(_health_readings, source), bodies, faults).items()
        ),
        *_module_readings(modules),
    )
    return SwitchReadings(
        name=said(below(bodies.get(VERSION), "host_name")),
        readings=one_per_object(readings),
        facts=(
            *_facts(bodies, {*pfc, *queuing, *watchdog, *modules}, modules),
            *_queue_facts(queuing, watchdog, scope),
        ),
        faults={source: fault for source, fault in faults.items() if source not in replies.faults},
        sources=tuple(sorted({*bodies, *faults})),
    )


def one_per_object(readings: Iterable[SwitchReading]) -> tuple[SwitchReading, ...]:
    """One reading per source and object, with all its values; none without values."""
    merged: dict[tuple[str, Labels], dict[str, RawNumber]] = {}
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


def _parsed(
    source: str, parse: Callable[[Any], dict[K, V]], bodies: dict[str, Any], faults: dict[str, str]
) -> dict[K, V]:
    """What a source says; nothing, and a fault, if its reply has another form."""
    try:
        return parse(bodies[source]) if source in bodies and source not in faults else {}
    except NetError as error:
        faults[source] = str(error)
        return {}


def _pfc_readings(
    pfc: Mapping[str, frozenset[int] | None], scope: p.LosslessScope
) -> Iterator[SwitchReading]:
    """Whether PFC is on: for the priorities in scope, and for all of a port that has it off, so that the ends of a link can be compared."""
    for port, on in pfc.items():
        for priority in range(8):
            if scope.has_priority(port, priority) or on == frozenset():
                value = Unreadable(UNKNOWN_WORD) if on is None else int(priority in on)
                labels = (("port", port), ("priority", str(priority)))
                yield SwitchReading(PFC, labels, {"oper": value})


def _queuing_readings(
    ports: Mapping[str, p.QueuingOfPort], scope: p.LosslessScope
) -> Iterator[SwitchReading]:
    for port, queuing in ports.items():
        yield SwitchReading(QUEUING, (("port", port),), queuing.ingress)
        paused: dict[str, int] = {}
        groups: dict[str, str] = {}
        for pause in queuing.pauses:
            if not scope.has_priority(port, pause.priority):
                continue
            labels = (("port", port), ("priority", str(pause.priority)))
            yield SwitchReading(QUEUING, labels, pause.values)
            if pause.queue:
                groups[pause.queue] = pause.group
                if pause.paused is not None:
                    paused[pause.queue] = max(paused.get(pause.queue, 0), pause.paused)
        for queue, value in paused.items():
            yield _of_queue(QUEUING, port, queue, {"rx-pause-state": value})
        for queue, threshold in queuing.thresholds.items():
            if groups.get(queue):
                labels = (("port", port), ("priority_group", groups[queue]))
                yield SwitchReading(QUEUING, labels, {"pause-threshold": threshold})


def _watchdog_readings(
    ports: Mapping[str, p.WatchdogOfPort], scope: p.LosslessScope
) -> Iterator[SwitchReading]:
    for port, watchdog in ports.items():
        queues = {entry.queue: entry for entry in watchdog.queues}
        for queue in sorted(scope.queues.get(port, frozenset()) | queues.keys()):
            if not scope.has_queue(port, queue):
                continue
            values = dict(watchdog.values)
            if queue in queues:
                values |= queues[queue].values
            yield _of_queue(WATCHDOG, port, queue, values)


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


def _health_readings(source: str, body: Any) -> dict[str, dict[str, RawNumber]]:
    """By port the values of one class about ports.

    Raises:
        NetError: as `dme_objects`.
    """
    found: dict[str, dict[str, RawNumber]] = {}
    for port, attributes in p.dme_objects(body, CLASSES[source]):
        if port:
            found[port] = values = {
                name: convert(attributes[name])
                for name, convert in HEALTH[source].items()
                if not is_absent(attributes.get(name)) and str(attributes[name]) not in NOT_SET
            }
            if values.get("operSt") != 1:
                values.pop("operSpeed", None)
            # A cut-through switch passes damaged packets on with a stomped checksum: the damage was done on another link.
            crc, stomped = values.get("cRCAlignErrors"), values.get("stompedCRCAlignErrors")
            if isinstance(crc, int) and isinstance(stomped, int) and stomped <= crc:
                values["cRCAlignErrors"] = crc - stomped
    return found


def _modules(body: Any) -> dict[str, dict[str, Any]]:
    """By port its row of `show interface transceiver details`, without empty cages."""
    found = ((p.port_name(row.get("interface")), row) for row in p.rows(body, "interface"))
    return {port: row for port, row in found if port and str(row.get("sfp")).strip() == "present"}


def _module_readings(modules: Mapping[str, dict[str, Any]]) -> Iterator[SwitchReading]:
    """What modules measure, per lane. Values can have their unit behind them, and a module of one lane can have no lanes."""
    for port, row in modules.items():
        values: dict[str, RawNumber] = {}
        for lane in [*p.rows(row, "lane")] or [row]:
            number = str(lane.get("lane_number", "1")).strip()
            for name, raw, convert in LIGHT:
                text = str(lane.get(name)).partition(" ")[0]
                if not is_absent(text) and number in set("12345678"):
                    values.setdefault(raw.format(lane=number), convert(text))
        yield SwitchReading(MODULES, (("port", port),), values)


def _statistics_readings(
    statistics: Mapping[tuple[str, str], dict[str, Any]], scope: p.LosslessScope
) -> Iterator[SwitchReading]:
    for (port, name), attributes in statistics.items():
        found = CLASS_GROUP.search(name)
        queue = (found[2] or "0") if found else ""
        # A class with a name of its own cannot be matched with a qos-group: PFC frames show that it is lossless.
        used = any(p.present(attributes, "pfcTxPpp", "pfcRxPpp").values())
        if scope.has_queue(port, queue) if queue else scope.everything or used:
            values = p.present(attributes, *DME_COUNTERS)
            yield _of_queue(STATISTICS, port, queue or label_text(name), values)


def _of_queue(source: str, port: str, queue: str, values: Mapping[str, RawNumber]) -> SwitchReading:
    return SwitchReading(source, (("port", port), ("queue", queue)), values)


def _facts(
    bodies: Mapping[str, Any], ports: set[str], modules: Mapping[str, dict[str, Any]]
) -> Iterator[SwitchFact]:
    if isinstance(body := bodies.get(VERSION), dict):
        version = body.get("nxos_ver_str") or body.get("kickstart_ver_str")
        labels = {"os": NXOS, "version": said(version), "model": said(body.get("chassis_id")), "asic": ""}
        yield SwitchFact(SWITCH_INFO, labels)
    for port in sorted(ports):
        yield SwitchFact(SWITCH_PORT_INFO, {"port": port, "alias": "", "description": ""})
    for port, row in modules.items():
        known = {label: said(row.get(name)) for label, name in MODULE_FACTS.items()}
        yield SwitchFact(SWITCH_TRANSCEIVER_INFO, {"port": port, **known})
    for row in p.rows(bodies.get(NEIGHBORS), "nbor_detail"):
        if port := p.port_name(row.get("l_port_id")):
            port_id = row.get("port_id")
            labels = neighbor_labels(
                name=row.get("sys_name"),
                chassis=row.get("chassis_id"),
                port_id=p.port_name(port_id) or port_id,
                description=row.get("port_desc"),
                kind="name" if str(row.get("port_type")).strip().lower() in INTERFACE_NAME else "",
            )
            yield SwitchFact(SWITCH_NEIGHBOR_INFO, {"port": port, **labels})


def _queue_facts(
    queuing: Mapping[str, p.QueuingOfPort], watchdog: Mapping[str, p.WatchdogOfPort], scope: p.LosslessScope
) -> Iterator[SwitchFact]:
    """The queue and the priority group of each priority with PFC, from the PFC statistics, else from the watchdog."""
    maps: dict[tuple[str, int], tuple[str, str]] = {}
    for port, state in watchdog.items():
        for entry in state.queues:
            maps.update({(port, priority): (entry.queue, "") for priority in entry.priorities})
    for port, counts in queuing.items():
        maps.update(
            {(port, pause.priority): (pause.queue, pause.group) for pause in counts.pauses if pause.queue}
        )
    for (port, priority), (queue, group) in sorted(maps.items()):
        if priority in scope.priorities.get(port, ()):
            labels = {"port": port, "priority": str(priority), "queue": queue, "priority_group": group}
            yield SwitchFact(SWITCH_QUEUE_INFO, labels)

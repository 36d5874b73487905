"""What the replies of EOS mean: a pure function from replies to readings.

Its own YANG models have PFC, the watchdog and settings: arista-intf-augments, arista-pfc-history-counters-augment and
-buffer-counters-augment, arista-qos-augments; EOS 4.36.1F. The others are OpenConfig's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from roce_exporter.catalog import named
from roce_exporter.catalog.switch_systems import EOS
from roce_exporter.net import NetError
from roce_exporter.switches import reply_values as v
from roce_exporter.switches.readings import (
    ProbeReply,
    RawNumber,
    SwitchFact,
    SwitchReading,
    SwitchReadings,
    Unreadable,
)
from roce_exporter.switches.reply_values import below, fact, is_absent, members, number, numbers, of_port
from roce_exporter.switches.systems.openconfig import read as openconfig
from roce_exporter.switches.systems.openconfig.read import Row, Tables
from roce_exporter.switches.targets import ALL_PRIORITIES, SwitchTarget

PRIORITY = "interfaces/interface/ethernet/pfc/priorities/priority/state"
TX_QUEUE = "interfaces/interface/ethernet/pfc/watchdog/tx-queues/tx-queue/state"
NO_DROP = "qos/interfaces/interface/output/pfc/config"
WATCHDOG = "qos/pfc/watchdog/config"

TABLES = (*openconfig.TABLES, PRIORITY, TX_QUEUE, NO_DROP, WATCHDOG)
LISTS = {
    **openconfig.LISTS,
    "interfaces/interface/ethernet/pfc/priorities/priority": ("index",),
    "interfaces/interface/ethernet/pfc/watchdog/tx-queues/tx-queue": ("index", "queue-type"),
}

BITMAP = re.compile(r"[0-9a-fA-F]{1,2}", re.ASCII)
"""The type of `priorities-no-drop`: hexadecimal, one bit per priority."""
FRONT_PANEL = "Ethernet"

PfcPriorities = dict[str, frozenset[str]]
"""Per port the priorities with PFC."""

PRIORITY_LEAVES = ("in-frames", "out-frames", "pfc-on-total-rx-time", "pfc-on-max-rx-time", "rx-transitions")
WATCHDOG_LEAVES = ("stuck-count", "recovery-count")
ACTS = {"ERROR_DISABLE": 1, "DROP": 1, "FORCED_DROP": 1, "IGNORE_PFC": 1, "NOTIFY_ONLY": 0}
"""The watchdog's actions (arista-qos-augments, `watchdog-action`)."""
LABEL = re.compile(r"(mc)?[0-9]{1,3}", re.ASCII)
"""What is the label of a priority or a queue."""


def is_port(name: str) -> bool:
    """Whether the interface is a port of the front panel."""
    return name.startswith(FRONT_PANEL)


def configured_priorities(tables: Tables) -> PfcPriorities:
    """Per port the priorities that are configured as no-drop; empty if the switch does not say so of any port.

    EOS does not expose by gNMI whether PFC itself is on: a port with no-drop priorities and PFC off is reported as on.
    """
    return {
        port: frozenset(bit for bit in v.DIGITS_TO_7 if int(text, 16) >> int(bit) & 1)
        for (port,), row in tables[NO_DROP].items()
        if is_port(port)
        and BITMAP.fullmatch(text := str(row.get("priorities-no-drop", "")).removeprefix("0x"))
    }


def active_priorities(tables: Tables) -> PfcPriorities:
    """Per port the priorities that sent or received PFC frames, or had a stuck queue: the next best without configuration."""
    found: dict[str, set[str]] = {}
    for (port, index), row in tables[PRIORITY].items():
        if any(str(row.get(name, "0")) != "0" for name in ("in-frames", "out-frames")):
            found.setdefault(port, set()).add(index)
    for port, index, _ in tables[TX_QUEUE]:
        found.setdefault(port, set()).add(index)
    return {port: frozenset(indexes) for port, indexes in found.items()}


class EosView(NamedTuple):
    """What is needed to interpret the tables."""

    tables: Tables
    pfc: PfcPriorities
    every: bool
    """Whether readings cover priorities and queues without PFC, too."""

    @property
    def scope(self) -> tuple[str, ...]:
        """The priorities that are shown on every port: those with PFC on any port, else the usual ones of RoCE."""
        used = tuple(sorted(frozenset().union(*self.pfc.values())))
        return tuple(v.DIGITS_TO_7) if self.every else used or v.USUAL

    def wants(self, port: str, label: str) -> bool:
        """Whether readings of this priority, or of this queue, are wanted.

        The queue of a priority is taken to be that of the same number, as in EOS's default maps: gNMI does not show them.
        """
        if not is_port(port) or not LABEL.fullmatch(label):
            return False
        return self.every or label in (self.pfc.get(port, ()) if any(self.pfc.values()) else v.USUAL)


def priority_readings(view: EosView) -> Iterator[SwitchReading]:
    """PFC frames, pause time and buffer drops per priority. The priority group of a priority has its number on EOS."""
    for (port, index), row in view.tables[PRIORITY].items():
        if is_port(port) and index in view.scope:
            yield of_port("pfc", port, numbers(row, PRIORITY_LEAVES), priority=index)
        if view.wants(port, index):
            yield of_port("pfc", port, numbers(row, ("dropped-pkts",)), priority_group=index)


def watchdog_readings(view: EosView) -> Iterator[SwitchReading]:
    """Trips and restores per queue.

    A queue without counters has had no storm since they were cleared, if the watchdog is on: EOS lists a queue with its
    first event. If it is off or not known to be on, such a queue has no reading.
    """
    rows: dict[tuple[str, str], Row] = {}
    if watchdog_enabled(view.tables):
        none = dict.fromkeys(WATCHDOG_LEAVES, 0)
        rows = {(port, index): none for port, found in view.pfc.items() for index in sorted(found)}
    for (port, index, kind), row in view.tables[TX_QUEUE].items():
        label = f"mc{index}" if kind in ("MULTICAST", "MC") else index
        if is_port(port) and LABEL.fullmatch(label):
            rows[port, label] = {**rows.get((port, label), {}), **row}
    for (port, label), row in rows.items():
        yield of_port("pfc", port, numbers(row, WATCHDOG_LEAVES), queue=label)


def watchdog_enabled(tables: Tables) -> bool | None:
    """Whether the watchdog has a timeout, which turns it on; None if the switch does not say so."""
    timeout = v.at_least_zero(tables[WATCHDOG].get((), {}).get("default-timeout"))
    return None if isinstance(timeout, Unreadable) else timeout > 0


def setting_readings(view: EosView) -> Iterator[SwitchReading]:
    """PFC per priority, and the watchdog's settings per queue with PFC.

    They are the switch's own; EOS does not expose by gNMI those that one port overrides.
    """
    rows = {port: row for (port,), row in view.tables[NO_DROP].items() if "priorities-no-drop" in row}
    # A port without the leaf has no such priority; without any leaf the switch does not say so of any port.
    for port in sorted({*rows, *(port for port, _ in view.tables[PRIORITY])}) if rows else ():
        is_read = port not in rows or port in view.pfc
        on = view.pfc.get(port, frozenset()) if is_read else None
        if is_port(port):
            yield from v.pfc_readings("configuration", port, "priorities-no-drop", on)
    settings = dict(_watchdog_settings(view.tables))
    for port, found in view.pfc.items() if settings else ():
        for index in sorted(found):
            yield of_port("configuration", port, settings, queue=index)


def _watchdog_settings(tables: Tables) -> Iterator[tuple[str, RawNumber]]:
    row = tables[WATCHDOG].get((), {})
    enabled = watchdog_enabled(tables)
    if enabled is not None:
        yield "watchdog-enabled", int(enabled)
    if (action := str(row.get("action"))) in ACTS:
        yield "action", ACTS[action]
    for name in ("default-timeout", "default-recovery-time"):
        # 0 is no time: no watchdog, and a recovery time that EOS chooses by itself
        if name in row and (seconds := v.at_least_zero(row[name])) != 0:
            yield name, seconds


PORT_COMMANDS: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {
    "links": ("interfaces", ((), ("interfaceCounters",), ("interfaceCounters", "inputErrorsDetail"))),
    "error_counters": ("interfaceErrorCounters", ((),)),
    "discard_counters": ("interfaces", ((),)),
    "fec": ("interfacePhyStatuses", (("line",), ("line", "fec"))),
    "transceivers": ("interfaces", ((),)),
}
"""The commands about ports (models of CliPlugin; test data of Arista's anta): where ports are in a reply, and where values are of a port."""
CASTS = {"ucastQueues": "", "mcastQueues": "mc"}
STUCK = ("stuckCount", "recoveryCount")


def member(result: Any, name: str) -> dict[str, Any]:
    """An object of a result.

    Raises:
        NetError: the result does not have it: another version, or another command.
    """
    found = result.get(name) if isinstance(result, dict) else None
    if not isinstance(found, dict):
        raise NetError(f"the reply has no {name}: the switch's version is not supported")
    return found


def ecn_readings(result: Any, view: EosView) -> Iterator[SwitchReading]:
    """`show qos interfaces ecn counters queue`: marked packets per queue. A queue with "-" is not counted."""
    for port, interface in members(member(result, "intfQueueCounters")).items():
        counters = interface.get("queueCounters")
        for queue, value in counters.items() if isinstance(counters, dict) else ():
            if view.wants(port, queue) and not is_absent(value):
                yield of_port("ecn_counters", port, {"queueCounter": number(value)}, queue=queue)


def drop_readings(result: Any, view: EosView) -> Iterator[SwitchReading]:
    """`show interfaces counters queue drops`: drops per traffic class, whose queue has the same number by default."""
    for port, interface in members(below(member(result, "egressQueueCounters"), "interfaces")).items():
        for cast, prefix in CASTS.items():
            for name, traffic_class in members(below(interface.get(cast), "trafficClasses")).items():
                label = prefix + name.removeprefix("TC")
                precedences = members(below(traffic_class, "dropPrecedences"))
                parts = [number(one.get("droppedPackets")) for one in precedences.values()]
                if parts and view.wants(port, label):
                    # The drops of all drop precedences, if all of them are valid numbers.
                    yield of_port("queue_drops", port, {"droppedPackets": v.total(parts)}, queue=label)


def stuck_readings(result: Any, view: EosView) -> Iterator[SwitchReading]:
    """`show priority-flow-control counters watchdog`: an interface is listed with its first event only."""
    for port, interface in members(member(result, "interfaces")).items():
        for queue, row in members(below(interface, "txQueues")).items():
            if view._replace(every=True).wants(port, queue):
                yield of_port("watchdog_counters", port, numbers(row, STUCK), queue=queue)


def eapi_neighbors(result: Any) -> Iterator[SwitchFact]:
    """`show lldp neighbors detail`. `interfaceId` is in quotation marks for some subtypes, `interfaceId_v2` is not.

    Raises:
        NetError: it is no such result.
    """
    for port, entry in member(result, "lldpNeighbors").items():
        found = entry.get("lldpNeighborInfo") if isinstance(entry, dict) else None
        for one in found if is_port(port) and isinstance(found, list) else ():
            if isinstance(one, dict):
                info = below(one, "neighborInterfaceInfo")
                info = info if isinstance(info, dict) else {}
                identifier = info.get("interfaceId_v2") or str(info.get("interfaceId") or "").strip('"')
                kind, text = info.get("interfaceIdType"), info.get("interfaceDescription")
                known = (one.get("systemName"), one.get("chassisId"), identifier, kind, text)
                yield openconfig.neighbor_fact(port, known)


EAPI_READINGS: Mapping[str, Callable[[Any, EosView], Iterator[SwitchReading]]] = {
    "ecn_counters": ecn_readings,
    "queue_drops": drop_readings,
    "watchdog_counters": stuck_readings,
}


def port_readings(found: Mapping[str, Any]) -> Iterator[SwitchReading]:
    """The readings of all commands about ports that answered."""
    for source, (table, places) in PORT_COMMANDS.items():
        for port, row in members(below(found.get(source), table)).items():
            whole = {**row, **_line(row), **_module(row.get("parameters"))}
            nodes = [below(whole, *place) for place in places]
            merged = {name: value for node in nodes if isinstance(node, dict) for name, value in node.items()}
            if source == "fec":
                merged = {
                    name: value.get("value") if isinstance(value, dict) else value
                    for name, value in merged.items()
                }
            if state := merged.get("interfaceStatus"):
                merged["admin-up"] = state != "disabled"
            if is_port(port):
                yield of_port(source, port, v.values_of(EOS, source, merged))


def _line(row: Row) -> Row:
    """A port has a list of PHYs; the first one on the line's side with FEC is that of the cable."""
    phys = row.get("phyStatuses")
    for one in phys if isinstance(phys, list) else ():
        if below(one, "description", "location") == "line" and isinstance(below(one, "fec"), dict):
            return {"line": one}
    return {}


def _module(parameters: Any) -> Row:
    light = {f"rxPower-{lane}": below(parameters, "rxPower", "channels", str(lane)) for lane in v.LANES}
    alarm = below(parameters, "rxPower", "threshold", "lowAlarm")
    heat = below(parameters, "temperature", "channels", "-")
    return {**light, "rxPower-lowAlarm": alarm, "temperature": heat}


def read(replies: ProbeReply, target: SwitchTarget) -> SwitchReadings:
    """The readings of one round. If it is unknown which priorities have PFC, those with PFC frames count as such."""
    found = replies.replies
    leaves = chain.from_iterable(reply for reply in found.values() if isinstance(reply, tuple))
    tables = openconfig.tables_of(leaves, TABLES, LISTS)
    pfc = configured_priorities(tables) or active_priorities(tables)
    # Without gNMI nothing says which priorities have PFC: then eAPI's queues are shown as they are.
    view = EosView(
        tables, pfc, target.priorities == ALL_PRIORITIES or not (pfc or tables[PRIORITY] or tables[NO_DROP])
    )
    readings = [
        *priority_readings(view),
        *watchdog_readings(view),
        *setting_readings(view),
        *openconfig.queue_readings(tables, view.wants),
        *openconfig.port_readings(tables, is_port),
        *port_readings(found),
    ]
    faults = {}
    for source, interpret in EAPI_READINGS.items():
        try:
            readings += interpret(found[source], view) if source in found else ()
        except NetError as error:
            faults[source] = str(error)
    # The neighbours that eAPI lists, or else those of openconfig-lldp.
    neighbors = tuple(openconfig.neighbor_facts(tables, is_port))
    try:
        neighbors = tuple(eapi_neighbors(found["lldp"])) if "lldp" in found else neighbors
    except NetError as error:
        faults["lldp"] = str(error)
    named_by = tables[openconfig.SYSTEM].get(()), found.get("hostname")
    return SwitchReadings(
        name=next(filter(None, (v.said(below(one, "hostname")) for one in named_by)), ""),
        readings=tuple(reading for reading in readings if reading.values),
        facts=(*_switch_facts(found, tables), *_queue_facts(pfc), *neighbors),
        faults=faults,
        sources=tuple(dict.fromkeys((*found, *replies.faults))),
    )


def _switch_facts(found: Mapping[str, Any], tables: Tables) -> Iterator[SwitchFact]:
    system, answer = tables[openconfig.SYSTEM].get(()), found.get("version")
    version = v.said(below(answer, "version")) or v.said(below(system, "software-version"))
    model = v.said(below(answer, "modelName"))
    if version or model:
        yield fact(named.SWITCH_INFO, os=EOS, version=version, model=model)
    yield from openconfig.port_facts(tables, is_port, (port for port, _ in tables[PRIORITY]))


def _queue_facts(pfc: PfcPriorities) -> Iterator[SwitchFact]:
    """The queue of each priority with PFC, by the default map: no reply has the map of the switch."""
    for port, priorities in pfc.items():
        for priority in sorted(priorities):
            same = dict.fromkeys(("priority", "queue", "priority_group"), priority)
            yield fact(named.SWITCH_QUEUE_INFO, port=port, **same)

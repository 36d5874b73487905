"""What the replies of EOS mean: a pure function from replies to readings."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from roce_exporter.catalog.named import SWITCH_INFO, SWITCH_NEIGHBOR_INFO, SWITCH_PORT_INFO, SWITCH_QUEUE_INFO
from roce_exporter.net import NetError
from roce_exporter.switches.readings import SwitchFact, SwitchReading, SwitchReadings, Unreadable, label_text
from roce_exporter.switches.reply_values import below, is_absent, members, neighbor_labels, number, numbers
from roce_exporter.switches.systems.eos import models
from roce_exporter.switches.systems.eos.ports import port_readings
from roce_exporter.switches.targets import ALL_PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from roce_exporter.switches.readings import ProbeReply, RawNumber
    from roce_exporter.switches.systems.eos.models import PfcPriorities, Tables
    from roce_exporter.switches.targets import SwitchTarget

CASTS = {"ucastQueues": "", "mcastQueues": "mc"}
STUCK = ("stuckCount", "recoveryCount")

KINDS = {"macAddress": "mac", "MAC_ADDRESS": "mac", "interfaceName": "name", "INTERFACE_NAME": "name"}
"""Subtypes of the port identifier, as eAPI and openconfig-lldp name them."""
LEAVES = ("system-name", "chassis-id", "port-id", "port-id-type", "port-description")


def member(result: Any, name: str) -> dict[str, Any]:
    """An object of a result.

    Raises:
        NetError: the result does not have it: another version, or another command.
    """
    found = result.get(name) if isinstance(result, dict) else None
    if not isinstance(found, dict):
        raise NetError(f"the reply has no {name}: the switch's version is not supported")
    return found


def ecn_readings(result: Any, view: models.EosView) -> Iterator[SwitchReading]:
    """`show qos interfaces ecn counters queue`: marked packets per queue. A queue with "-" is not counted."""
    for port, interface in members(member(result, "intfQueueCounters")).items():
        counters = interface.get("queueCounters")
        for queue, value in counters.items() if isinstance(counters, dict) else ():
            if view.wants(port, queue) and not is_absent(value):
                yield SwitchReading(
                    "ecn_counters", models.labels(port, "queue", queue), {"queueCounter": number(value)}
                )


def drop_readings(result: Any, view: models.EosView) -> Iterator[SwitchReading]:
    """`show interfaces counters queue drops`: drops per traffic class, whose queue has the same number by default."""
    for port, interface in members(below(member(result, "egressQueueCounters"), "interfaces")).items():
        for cast, prefix in CASTS.items():
            for name, traffic_class in members(below(interface.get(cast), "trafficClasses")).items():
                label = prefix + name.removeprefix("TC")
                precedences = members(below(traffic_class, "dropPrecedences"))
                if precedences and view.wants(port, label):
                    dropped = {"droppedPackets": _total(precedences)}
                    yield SwitchReading("queue_drops", models.labels(port, "queue", label), dropped)


def _total(precedences: dict[str, dict[str, Any]]) -> RawNumber:
    """The drops of all drop precedences, if all of them are valid numbers."""
    total = 0
    for precedence in precedences.values():
        dropped = number(precedence.get("droppedPackets"))
        if isinstance(dropped, Unreadable):
            return dropped
        total += int(dropped)
    return number(total)


def stuck_readings(result: Any, view: models.EosView) -> Iterator[SwitchReading]:
    """`show priority-flow-control counters watchdog`: an interface is listed with its first event only."""
    for port, interface in members(member(result, "interfaces")).items():
        for queue, row in members(below(interface, "txQueues")).items():
            if view._replace(every=True).wants(port, queue):
                values = numbers(row, STUCK)
                yield SwitchReading("watchdog_counters", models.labels(port, "queue", queue), values)


def _neighbor(port: str, found: Iterable[Any]) -> SwitchFact:
    """What LLDP says of a neighbour, in the order of `LEAVES`; None: it did not announce this."""
    name, chassis, port_id, kind, description = found
    labels = neighbor_labels(
        name=name,
        chassis=chassis,
        port_id=port_id,
        description=description,
        kind=KINDS.get(str(kind), "other"),
    )
    return SwitchFact(SWITCH_NEIGHBOR_INFO, {"port": label_text(port), **labels})


def eapi_neighbors(result: Any) -> Iterator[SwitchFact]:
    """`show lldp neighbors detail`. `interfaceId` is in quotation marks for some subtypes, `interfaceId_v2` is not.

    Raises:
        NetError: it is no such result.
    """
    for port, entry in member(result, "lldpNeighbors").items():
        found = entry.get("lldpNeighborInfo") if isinstance(entry, dict) else None
        for one in found if models.is_port(port) and isinstance(found, list) else ():
            if isinstance(one, dict):
                yield _eapi_neighbor(port, one)


def _eapi_neighbor(port: str, one: dict[str, Any]) -> SwitchFact:
    known = below(one, "neighborInterfaceInfo")
    known = known if isinstance(known, dict) else {}
    identifier = known.get("interfaceId_v2") or str(known.get("interfaceId") or "").strip('"')
    kind, description = known.get("interfaceIdType"), known.get("interfaceDescription")
    return _neighbor(port, (one.get("systemName"), one.get("chassisId"), identifier, kind, description))


def gnmi_neighbors(tables: Tables) -> Iterator[SwitchFact]:
    """The table of openconfig-lldp."""
    for (port, _), row in tables[models.NEIGHBOR].items():
        if models.is_port(port):
            yield _neighbor(port, map(row.get, LEAVES))


EAPI_READINGS: Mapping[str, Callable[[Any, models.EosView], Iterator[SwitchReading]]] = {
    "ecn_counters": ecn_readings,
    "queue_drops": drop_readings,
    "watchdog_counters": stuck_readings,
}


def read(replies: ProbeReply, target: SwitchTarget) -> SwitchReadings:
    """The readings of one round. If it is unknown which priorities have PFC, those with PFC frames count as such."""
    found = replies.replies
    tables = models.tables_of(
        chain.from_iterable(reply for reply in found.values() if isinstance(reply, tuple))
    )
    pfc = models.configured_priorities(tables) or models.active_priorities(tables)
    # Without gNMI nothing says which priorities have PFC: then eAPI's queues are shown as they are.
    view = models.EosView(
        tables,
        pfc,
        target.priorities == ALL_PRIORITIES or not (pfc or tables[models.PRIORITY] or tables[models.NO_DROP]),
    )
    readings = [
        *models.priority_readings(view),
        *models.watchdog_readings(view),
        *models.setting_readings(view),
        *models.queue_readings(view),
        *port_readings(found),
    ]
    faults = {}
    for source, interpret in EAPI_READINGS.items():
        try:
            readings += interpret(found[source], view) if source in found else ()
        except NetError as error:
            faults[source] = str(error)
    # The neighbours that eAPI lists, or else those of openconfig-lldp.
    neighbors = tuple(gnmi_neighbors(tables))
    try:
        neighbors = tuple(eapi_neighbors(found["lldp"])) if "lldp" in found else neighbors
    except NetError as error:
        faults["lldp"] = str(error)
    return SwitchReadings(
        name=label_text(
            _text(tables[models.SYSTEM].get(()), "hostname") or _text(found.get("hostname"), "hostname")
        ),
        readings=tuple(reading for reading in readings if reading.values),
        facts=(*_switch_facts(found, tables), *_queue_facts(pfc), *neighbors),
        faults=faults,
        sources=tuple(dict.fromkeys((*found, *replies.faults))),
    )


def _switch_facts(found: Mapping[str, Any], tables: Tables) -> Iterator[SwitchFact]:
    version = _text(found.get("version"), "version") or _text(
        tables[models.SYSTEM].get(()), "software-version"
    )
    model = _text(found.get("version"), "modelName")
    if version or model:
        yield SwitchFact(
            SWITCH_INFO, {"os": "eos", "version": label_text(version), "model": label_text(model)}
        )
    descriptions = {port: row.get("description", "") for (port,), row in tables[models.INTERFACE].items()}
    ports = dict.fromkeys((*(port for port, _ in tables[models.PRIORITY]), *descriptions))
    for port in filter(models.is_port, ports):
        description = label_text(descriptions.get(port) or "")
        yield SwitchFact(SWITCH_PORT_INFO, {"port": label_text(port), "description": description})


def _queue_facts(pfc: PfcPriorities) -> Iterator[SwitchFact]:
    """The queue of each priority with PFC, by the default map: no reply has the map of the switch."""
    for port, priorities in pfc.items():
        for priority in sorted(priorities):
            numbers = dict.fromkeys(("priority", "queue", "priority_group"), priority)
            yield SwitchFact(SWITCH_QUEUE_INFO, {"port": label_text(port), **numbers})


def _text(result: Any, name: str) -> str:
    value = result.get(name) if isinstance(result, dict) else None
    return value if isinstance(value, str) else ""

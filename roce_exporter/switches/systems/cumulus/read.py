"""Cumulus Linux: from the replies of NVUE to readings.

Names: a switch priority is the priority of PFC, a traffic class is an egress queue, and the egress queue mapping joins the two. No reply says
which priority group belongs to which priority, so `roce_switch_queue_info` has no group, and priority groups are exported only where the
target asks for all of them: discards of lossy traffic are no fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from roce_exporter.catalog import named
from roce_exporter.catalog.switch_systems import CUMULUS
from roce_exporter.switches import reply_values as v
from roce_exporter.switches.readings import (
    ProbeReply,
    RawNumber,
    SwitchFact,
    SwitchReading,
    SwitchReadings,
    Unreadable,
)
from roce_exporter.switches.reply_values import (
    PortScope,
    below,
    fact,
    is_absent,
    members,
    number,
    numbers,
    of_port,
)
from roce_exporter.switches.systems import requests_of
from roce_exporter.switches.targets import ALL_PRIORITIES, SwitchTarget

SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(KB|MB|GB)", re.ASCII)
BYTES = {"KB": 1024, "MB": 1024**2, "GB": 1024**3}

COUNTERS, LINKS, PHY, MODULES = "counters", "links", "phy_detail", "transceivers"
WATCHDOG, SETTINGS, PFC, PROFILES = "pfc_watchdog", "pfc_watchdog_settings", "pfc", "pfc_profiles"
CONGESTION, NEIGHBORS, QUEUES, SYSTEM = "congestion_control", "lldp_neighbors", "queue_mapping", "system"
PORT = re.compile(r"swp[0-9]{1,4}(?:s[0-9]{1,2})?", re.ASCII)
"""Front-panel ports, and the parts of a breakout."""
NO_ERRORS = 1e-100
"""Smaller ratios are NVUE's 15E-255 for no error at all."""
BINS = tuple(f"rs-num-corr-err-bin{number}" for number in range(1, 16))
RAW_ERRORS = tuple(f"phy-raw-errors-lane{lane}" for lane in range(8))
POWER = re.compile(r"ch-([1-8])-rx-power", re.ASCII)
GROUP = "priority_group"
COUNTED = {"pfc-stats": "priority", "egress-queue-stats": "queue", "ingress-buffer-stats": GROUP}
"""The tables of a port's QoS counters, each with the label of its rows."""
PRIORITIES = "pfc-stats"
PFC_FRAMES = ("rx-pause-frames", "tx-pause-frames")
Subtree = tuple[str, ...]
SUBTREES: dict[str, tuple[Subtree, ...]] = {
    source: tuple(tuple(path.split("/")) for path in paths) for source, *paths in requests_of("cumulus ports")
}
DEFAULT_PROFILE = "default-global"
INTERFACE_NAME = ("ifname", "interface-name")
Ports = dict[str, dict[str, Any]]
"""By port one subtree of it."""


def classes(node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of an object that are numbered 0 to 7: priorities, traffic classes, priority groups."""
    return ((key, value) for key, value in members(node).items() if len(key) == 1 and key in v.DIGITS_TO_7)


def size(value: Any) -> RawNumber:
    """Bytes: a number, `40000 B`, or a rounded `153.00 KB`."""
    found = SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    return round(float(found[1]) * BYTES[found[2]]) if found else number(value)


def milliwatts(value: Any) -> RawNumber:
    """An optical power in milliwatts, as watts."""
    found = v.at_least_zero(value)
    return found if isinstance(found, Unreadable) else float(f"{found / 1000:.12g}")


def is_port(name: Any) -> bool:
    """Whether an interface is a port of the switch, and not a bond, a bridge or the management port."""
    return isinstance(name, str) and PORT.fullmatch(name) is not None


def read(replies: ProbeReply, target: SwitchTarget) -> SwitchReadings:
    """Interpret the replies. Total: whatever the switch sent, the other sources are read."""
    faults = dict(replies.faults)
    documents = {}
    for source, reply in replies.replies.items():
        if isinstance(reply, dict):
            documents[source] = reply
        elif reply is not None:  # None: the switch does not have it
            faults[source] = "the reply is no JSON object"
    counters, watchdog = subtree(documents, COUNTERS), subtree(documents, WATCHDOG)
    if COUNTERS in documents and not counters:
        faults[COUNTERS] = "the reply has no QoS counters of any port (swp)"
    scopes = port_classes(documents, counters, watchdog, everything=target.priorities == ALL_PRIORITIES)
    readings = (
        *(
            reading
            for port, on in pfc_of_ports(documents).items()
            for reading in (() if on is None else v.pfc_readings(PFC, port, "pfc_enabled", on))
        ),
        *_counter_readings(counters, scopes),
        *_watchdog_readings(watchdog, documents.get(SETTINGS), scopes),
        *_congestion_readings(subtree(documents, CONGESTION), scopes),
        *_link_readings(subtree(documents, LINKS)),
        *_phy_readings(subtree(documents, PHY)),
        *_module_readings(subtree(documents, MODULES)),
    )
    return SwitchReadings(
        name=v.said(below(documents.get(SYSTEM), "hostname")),
        readings=tuple(reading for reading in readings if reading.values),
        facts=tuple(_facts(documents, scopes)),
        faults={source: fault for source, fault in faults.items() if source not in replies.faults},
        sources=tuple(sorted({*documents, *faults})),
    )


def subtree(documents: Mapping[str, Any], source: str) -> Ports:
    """By port the first of the source's subtrees that it has."""
    found: Ports = {}
    for port, content in members(documents.get(source)).items():
        for path in SUBTREES[source] if is_port(port) else ():
            node = below(content, *path)
            if isinstance(node, dict):
                found.setdefault(port, node)
    return found


def queue_of_priority(document: Any) -> dict[str, str]:
    """The queue of each switch priority; empty if the reply does not have the map."""
    mapping = classes(below(document, "switch-priority"))
    found = {priority: str(node.get("traffic-class")) for priority, node in mapping}
    return {priority: queue for priority, queue in found.items() if queue in set(v.DIGITS_TO_7)}


def pfc_of_ports(documents: Mapping[str, Any]) -> dict[str, frozenset[str] | None]:
    """By port the priorities with PFC: its own list, else that of its profile; None if neither is known.

    A port on which PFC neither sends nor obeys pause has none.
    """
    found: dict[str, frozenset[str] | None] = {}
    for port, settings in subtree(documents, PFC).items():
        name = settings.get("profile")
        profile = below(documents.get(PROFILES), name if isinstance(name, str) else DEFAULT_PROFILE)
        switches = [v.switched(settings[way]) for way in ("rx", "tx") if way in settings]
        if 0 in switches and 1 not in switches:
            found[port] = frozenset()
        else:
            own, shared = settings.get("switch-priority"), below(profile, "switch-priority")
            found[port] = _listed(own, _listed(shared, None))
    return found


def _listed(value: Any, otherwise: frozenset[str] | None) -> frozenset[str] | None:
    """Priorities as the keys of an object, a list, a number or a text like `3,4`."""
    if value is None or value == "":
        return otherwise
    words = value if isinstance(value, dict | list) else [value]
    return frozenset(
        digit for word in words if isinstance(word, str | int) for digit in re.findall(r"[0-7]", str(word))
    )


def port_classes(
    documents: Mapping[str, Any], counters: Ports, watchdog: Ports, *, everything: bool
) -> dict[str, PortScope]:
    """By port the priorities with PFC and their queues.

    Where the PFC settings of a port are not known, priorities count that have had a PFC frame, and queues that the watchdog has
    tripped. Where the queue mapping is not known, queues count that the watchdog watches; the priority's number is never taken
    for the queue's.
    """
    pfc = pfc_of_ports(documents)
    queues = queue_of_priority(documents.get(QUEUES))
    scopes = {}
    for port in sorted({*counters, *watchdog, *pfc}):
        on = pfc.get(port)
        watched = dict(classes(below(watchdog.get(port), "status")))
        frames = classes(below(counters.get(port), PRIORITIES)) if on is None else ()
        used = (key for key, node in frames if any(number(node.get(name)) for name in PFC_FRAMES))
        priorities = on or frozenset(used)
        known = frozenset(queues[priority] for priority in priorities if priority in queues)
        if not queues:
            known = frozenset(watched)
        elif on is None:
            known |= {queue for queue, node in watched.items() if any(_watched(node).values())}
        scopes[port] = PortScope(everything, priorities, known, off=on == frozenset())
    return scopes


def _counter_readings(ports: Ports, scopes: Mapping[str, PortScope]) -> Iterator[SwitchReading]:
    for port, document in ports.items():
        scope = scopes[port]
        for table, label in COUNTED.items():
            wanted = scope.has_priority if table == PRIORITIES else scope.has_queue
            for key, node in classes(document.get(table) if scope.everything or label != GROUP else None):
                if wanted(key):
                    yield of_port(COUNTERS, port, v.values_of(CUMULUS, COUNTERS, node), **{label: key})


def _watchdog_readings(
    ports: Ports, settings: Any, scopes: Mapping[str, PortScope]
) -> Iterator[SwitchReading]:
    interval, robustness = number(below(settings, "polling-interval")), number(below(settings, "robustness"))
    times = {"detection-milliseconds": interval * robustness} if interval and robustness else {}
    for port, document in ports.items():
        statuses = dict(classes(document.get("status")))
        common = {**times, **numbers(document, ("state",), v.switched)}
        wanted = {*statuses, *scopes[port].queues}
        for queue in sorted(queue for queue in wanted if scopes[port].has_queue(queue)):
            yield of_port(WATCHDOG, port, common | _watched(statuses.get(queue, {})), queue=queue)


def _watched(node: dict[str, Any]) -> dict[str, RawNumber]:
    return v.values_of(CUMULUS, WATCHDOG, {name: node.get(name) for name in ("status", "deadlock-count")})


def _congestion_readings(ports: Ports, scopes: Mapping[str, PortScope]) -> Iterator[SwitchReading]:
    """ECN by queue. A queue that a port does not list among its traffic classes has no ECN: NVUE lists those that are configured."""
    for port, document in ports.items():
        table = document.get("traffic-class")
        if not isinstance(table, dict) or port not in scopes:
            continue
        listed = dict(classes(table))
        for queue in sorted({*listed, *scopes[port].queues}):
            if scopes[port].has_queue(queue):
                node = listed.get(queue, {"ecn": False})
                values = v.values_of(CUMULUS, CONGESTION, node, size)
                yield of_port(CONGESTION, port, values, queue=queue)


def _link_readings(ports: Ports) -> Iterator[SwitchReading]:
    """State, speed and counters of all ports, with PFC or without. A port that is down has no speed."""
    for port, link in ports.items():
        stats = link.get("stats")
        # Not `in-pkts`, which has more than unicast packets.
        counted = stats if isinstance(stats, dict) else {}
        speed = link.get("speed") if v.switched(link.get("state")) == 1 else None
        row = {**counted, "link-state": link.get("state"), "mtu": link.get("mtu"), "speed": speed}
        yield of_port(LINKS, port, v.values_of(CUMULUS, LINKS, row))


def _phy_readings(ports: Ports) -> Iterator[SwitchReading]:
    """Errors and bit error ratios of the PHY (AmBER). Bin n of Reed-Solomon counts code words in which n symbols were corrected."""
    for port, phy in ports.items():
        values = v.values_of(CUMULUS, PHY, phy)
        values |= {
            name: 0.0 for name, value in values.items() if isinstance(value, float) and value < NO_ERRORS
        }
        for raw, names in (("corrected-blocks", BINS), ("corrected-bits", RAW_ERRORS)):
            parts = [*numbers(phy, names).values()]
            if parts and not isinstance(found := v.total(parts), Unreadable):
                values[raw] = found
        yield of_port(PHY, port, values)


def _module_readings(ports: Ports) -> Iterator[SwitchReading]:
    """Light and temperature of the transceivers: `0.8625 mW / -0.64 dBm`, `42.56 degrees C / 108.61 degrees F`."""
    for port, module in ports.items():
        values: dict[str, RawNumber] = {}
        for name, value in module.items():
            found = POWER.fullmatch(name)
            power, _, unit = str(value).partition(" / ")[0].partition(" ")
            if found and not is_absent(power):
                values[f"rx-power-{found[1]}"] = (milliwatts if unit == "mW" else v.watts)(power)
        celsius = str(module.get("temperature", "")).partition(" ")[0]
        if not is_absent(celsius):
            values["temperature"] = v.fraction(celsius)
        yield of_port(MODULES, port, values)


def _facts(documents: Mapping[str, Any], scopes: Mapping[str, PortScope]) -> Iterator[SwitchFact]:
    system = documents.get(SYSTEM)
    if system is not None:
        # Up to 5.11 the release is at the top, later in an object of its own.
        release = below(system, "product-release") or below(system, "version", "product-release")
        model = below(system, "platform")
        yield fact(named.SWITCH_INFO, os=CUMULUS, version=release, model=model, asic="")
    queues = queue_of_priority(documents.get(QUEUES))
    for port, scope in scopes.items():
        yield fact(named.SWITCH_PORT_INFO, port=port, alias="", description="")
        for priority in sorted(scope.priorities & queues.keys()):
            labels = {"priority": priority, "queue": queues[priority], "priority_group": ""}
            yield fact(named.SWITCH_QUEUE_INFO, port=port, **labels)
    for port, module in subtree(documents, MODULES).items():
        yield from v.module_facts(port, *map(module.get, ("identifier", "vendor-name", "vendor-pn")))
    # NVUE keys the neighbours of a port by system name.
    for port, neighbors in subtree(documents, NEIGHBORS).items():
        for key, node in members(neighbors).items():
            name = below(node, "chassis", "system-name")
            yield v.neighbor(
                port,
                name=key if name is None else name,
                chassis=below(node, "chassis", "chassis-id"),
                port_id=below(node, "port", "name"),
                description=below(node, "port", "description"),
                kind="name" if str(below(node, "port", "type")).lower() in INTERFACE_NAME else "",
            )

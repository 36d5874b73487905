"""Cumulus Linux: from the replies of NVUE to readings.

Names: a switch priority is the priority of PFC, a traffic class is an egress queue, and the egress queue mapping joins the two. No reply says
which priority group belongs to which priority, so `roce_switch_queue_info` has no group, and priority groups are exported only where the
target asks for all of them: discards of lossy traffic are no fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.catalog.named import (
    SWITCH_INFO,
    SWITCH_NEIGHBOR_INFO,
    SWITCH_PORT_INFO,
    SWITCH_QUEUE_INFO,
    SWITCH_TRANSCEIVER_INFO,
)
from roce_exporter.catalog.switch_systems import CUMULUS
from roce_exporter.switches.readings import ProbeReply, SwitchFact, SwitchReading, SwitchReadings, Unreadable
from roce_exporter.switches.reply_values import (
    UP_DOWN,
    at_least_zero,
    below,
    bits_per_second,
    fraction,
    is_absent,
    members,
    neighbor_labels,
    number,
    numbers,
    said,
    switched,
    watts,
    word,
)
from roce_exporter.switches.targets import ALL_PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roce_exporter.switches.readings import RawNumber
    from roce_exporter.switches.targets import SwitchTarget

EXACT = re.compile(r"([0-9,]{1,26})(?:\s*(?:B|Bytes))?", re.ASCII)
SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(KB|MB|GB)", re.ASCII)
BYTES = {"KB": 1024, "MB": 1024**2, "GB": 1024**3}

COUNTERS = "counters"
WATCHDOG = "pfc_watchdog"
SETTINGS = "pfc_watchdog_settings"
PFC = "pfc"
PROFILES = "pfc_profiles"
CONGESTION = "congestion_control"
LINKS = "links"
PHY = "phy_detail"
MODULES = "transceivers"
NEIGHBORS = "lldp_neighbors"
QUEUES = "queue_mapping"
SYSTEM = "system"
PORT = re.compile(r"swp[0-9]{1,4}(?:s[0-9]{1,2})?", re.ASCII)
"""Front-panel ports, and the parts of a breakout."""
LINK_COUNTERS = (
    "carrier-transitions",
    *(f"{way}-{name}" for way in ("in", "out") for name in ("bytes", "errors", "drops")),
)
"""Not `in-pkts`, which has more than unicast packets."""
NO_ERRORS = 1e-100
"""Smaller ratios are NVUE's 15E-255 for no error at all."""
BINS = tuple(f"rs-num-corr-err-bin{number}" for number in range(1, 16))
RAW_ERRORS = tuple(f"phy-raw-errors-lane{lane}" for lane in range(8))
POWER = re.compile(r"ch-([1-8])-rx-power", re.ASCII)
MODULE_FACTS = {"type": "identifier", "vendor": "vendor-name", "model": "vendor-pn"}
Subtree = tuple[str, ...]
SUBTREES: dict[str, tuple[Subtree, ...]] = {
    COUNTERS: (("counters", "qos"), ("qos", "counters")),
    WATCHDOG: (("qos", "pfc-watchdog"),),
    PFC: (("qos", "pfc"),),
    CONGESTION: (("qos", "congestion-control"),),
    NEIGHBORS: (("lldp", "neighbor"),),
    LINKS: (("link",),),
    PHY: (("link", "phy", "health"), ("link", "phy-detail")),
    MODULES: (("transceiver",),),
}
"""Subtrees of every port, the newest name first: `counters qos` is `qos counters` up to 5.4, `link phy health` `link phy-detail` up to
5.14. The PHY's is there since 5.10, the transceiver's since 5.11."""
DEFAULT_PROFILE = "default-global"
INTERFACE_NAME = ("ifname", "interface-name")
WATCHDOG_STATES = {"ok": 0, "deadlock": 1}
Ports = dict[str, dict[str, Any]]
"""By port one subtree of it."""


def classes(node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of an object that are numbered 0 to 7: priorities, traffic classes, priority groups."""
    return ((key, value) for key, value in members(node).items() if len(key) == 1 and key in "01234567")


def exact(value: Any) -> RawNumber:
    """A counter: a number, or a text like `12 Bytes`. A rounded text is none."""
    found = EXACT.fullmatch(value.strip()) if isinstance(value, str) else None
    return number(found[1] if found else value)


def size(value: Any) -> RawNumber:
    """Bytes: a number, `40000 B`, or a rounded `153.00 KB`."""
    found = SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    return round(float(found[1]) * BYTES[found[2]]) if found else exact(value)


def state(value: Any) -> RawNumber:
    """As `switched`; NVUE also writes a state as an object with one key: `{"enabled": {}}`."""
    return switched(next(iter(value))) if isinstance(value, dict) and len(value) == 1 else switched(value)


class CounterTable(NamedTuple):
    """One table of a port's QoS counters: the label of its rows and the counters that are metrics."""

    name: str
    label: str
    counters: tuple[str, ...]


PRIORITIES = CounterTable("pfc-stats", "priority", ("rx-pause-frames", "tx-pause-frames"))
EGRESS_QUEUES = CounterTable(
    "egress-queue-stats",
    "queue",
    ("tx-frames", "tx-bytes", "tx-uc-buffer-discards", "wred-discards", "ecn-marked-frames"),
)
GROUPS = CounterTable("ingress-buffer-stats", "priority_group", ("rx-buffer-discards",))


def is_port(name: Any) -> bool:
    """Whether an interface is a port of the switch, and not a bond, a bridge or the management port."""
    return isinstance(name, str) and PORT.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class PortClasses:
    """Which priorities and queues the readings of a port cover."""

    everything: bool
    priorities: frozenset[str]
    queues: frozenset[str]
    off: bool = False
    """PFC is known to be off on the port."""

    def has_priority(self, priority: str) -> bool:
        """Whether this priority is covered."""
        return self.everything or priority in self.priorities

    def has_queue(self, queue: str) -> bool:
        """Whether this queue is covered."""
        return self.everything or queue in self.queues


def read(replies: ProbeReply, target: SwitchTarget) -> SwitchReadings:
    """Interpret the replies. Total: whatever the switch sent, the other sources are read."""
    faults = dict(replies.faults)
    documents = {}
    for source, reply in replies.replies.items():
        if isinstance(reply, dict):
            documents[source] = reply
        elif reply is not None:  # None: the switch does not have it
            faults[source] = "the reply is no JSON object"
    counters = subtree(documents.get(COUNTERS), *SUBTREES[COUNTERS])
    watchdog = subtree(documents.get(WATCHDOG), *SUBTREES[WATCHDOG])
    if COUNTERS in documents and not counters:
        faults[COUNTERS] = "the reply has no QoS counters of any port (swp)"
    scopes = port_classes(documents, counters, watchdog, everything=target.priorities == ALL_PRIORITIES)
    congestion = subtree(documents.get(CONGESTION), *SUBTREES[CONGESTION])
    readings = (
        *_pfc_readings(documents, scopes),
        *_counter_readings(counters, scopes),
        *_watchdog_readings(watchdog, watchdog_times(documents.get(SETTINGS)), scopes),
        *_congestion_readings(congestion, scopes),
        *_link_readings(subtree(documents.get(LINKS), *SUBTREES[LINKS])),
        *_phy_readings(subtree(documents.get(PHY), *SUBTREES[PHY])),
        *_module_readings(subtree(documents.get(MODULES), *SUBTREES[MODULES])),
    )
    return SwitchReadings(
        name=said(below(documents.get(SYSTEM), "hostname")),
        readings=tuple(reading for reading in readings if reading.values),
        facts=tuple(_facts(documents, scopes)),
        faults={source: fault for source, fault in faults.items() if source not in replies.faults},
        sources=tuple(sorted({*documents, *faults})),
    )


def subtree(document: Any, *paths: tuple[str, ...]) -> Ports:
    """By port the first of these subtrees that it has."""
    found: Ports = {}
    for port, content in members(document).items():
        for path in paths if is_port(port) else ():
            node = below(content, *path)
            if isinstance(node, dict):
                found.setdefault(port, node)
    return found


def queue_of_priority(document: Any) -> dict[str, str]:
    """The queue of each switch priority; empty if the reply does not have the map."""
    mapping = classes(below(document, "switch-priority"))
    found = {priority: str(node.get("traffic-class")) for priority, node in mapping}
    return {priority: queue for priority, queue in found.items() if queue in set("01234567")}


def pfc_of_ports(documents: Mapping[str, Any]) -> dict[str, frozenset[str] | None]:
    """By port the priorities with PFC: its own list, else that of its profile; None if neither is known.

    A port on which PFC neither sends nor obeys pause has none.
    """
    found: dict[str, frozenset[str] | None] = {}
    for port, settings in subtree(documents.get(PFC), *SUBTREES[PFC]).items():
        name = settings.get("profile")
        profile = below(documents.get(PROFILES), name if isinstance(name, str) else DEFAULT_PROFILE)
        switches = [switched(settings[way]) for way in ("rx", "tx") if way in settings]
        if 0 in switches and 1 not in switches:
            found[port] = frozenset()
        else:
            found[port] = _listed(
                settings.get("switch-priority"), _listed(below(profile, "switch-priority"), None)
            )
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
) -> dict[str, PortClasses]:
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
        frames = classes(below(counters.get(port), PRIORITIES.name)) if on is None else ()
        priorities = on or frozenset(
            priority
            for priority, node in frames
            if any(exact(node.get(name)) for name in PRIORITIES.counters)
        )
        known = frozenset(queues[priority] for priority in priorities if priority in queues)
        if not queues:
            known = frozenset(watched)
        elif on is None:
            known |= {queue for queue, node in watched.items() if any(_watched(node).values())}
        scopes[port] = PortClasses(everything, priorities, known, off=on == frozenset())
    return scopes


def _pfc_readings(documents: Mapping[str, Any], scopes: Mapping[str, PortClasses]) -> Iterator[SwitchReading]:
    """Whether PFC is on: for the priorities in scope, and for all of a port that has it off, so that the ends of a link can be compared."""
    for port, on in pfc_of_ports(documents).items():
        for priority in "01234567" if on is not None else "":
            if scopes[port].has_priority(priority) or scopes[port].off:
                yield _of(PFC, port, "priority", priority, {"pfc_enabled": int(priority in (on or ()))})


def _counter_readings(ports: Ports, scopes: Mapping[str, PortClasses]) -> Iterator[SwitchReading]:
    for port, document in ports.items():
        scope = scopes[port]
        tables = [(PRIORITIES, scope.has_priority), (EGRESS_QUEUES, scope.has_queue)]
        for table, wanted in [*tables, (GROUPS, scope.has_queue)] if scope.everything else tables:
            for key, node in classes(document.get(table.name)):
                if wanted(key):
                    yield _of(COUNTERS, port, table.label, key, numbers(node, table.counters, exact))


def watchdog_times(document: Any) -> dict[str, RawNumber]:
    """The detection time in milliseconds: polling interval x robustness, if the reply has both."""
    interval, robustness = exact(below(document, "polling-interval")), exact(below(document, "robustness"))
    return {"detection-milliseconds": interval * robustness} if interval and robustness else {}


def _watchdog_readings(
    ports: Ports, times: Mapping[str, RawNumber], scopes: Mapping[str, PortClasses]
) -> Iterator[SwitchReading]:
    for port, document in ports.items():
        statuses = dict(classes(document.get("status")))
        common: dict[str, RawNumber] = dict(times)
        common |= numbers(document, ("state",), state)
        wanted = {*statuses, *scopes[port].queues}
        for queue in sorted(queue for queue in wanted if scopes[port].has_queue(queue)):
            yield _of(WATCHDOG, port, "queue", queue, common | _watched(statuses.get(queue, {})))


def _watched(node: dict[str, Any]) -> dict[str, RawNumber]:
    status = numbers(node, ("status",), lambda text: word(text, WATCHDOG_STATES))
    return status | numbers(node, ("deadlock-count",), exact)


def _congestion_readings(ports: Ports, scopes: Mapping[str, PortClasses]) -> Iterator[SwitchReading]:
    """ECN by queue. A queue that a port does not list among its traffic classes has no ECN: NVUE lists those that are configured."""
    for port, document in ports.items():
        table = document.get("traffic-class")
        if not isinstance(table, dict) or port not in scopes:
            continue
        listed = dict(classes(table))
        for queue in sorted({*listed, *scopes[port].queues}):
            if scopes[port].has_queue(queue):
                node = listed.get(queue, {"ecn": False})
                values = numbers(node, ("ecn",), state)
                values |= numbers(node, ("min-threshold", "max-threshold"), size)
                values |= numbers(node, ("probability",), exact)
                yield _of(CONGESTION, port, "queue", queue, values)


def _link_readings(ports: Ports) -> Iterator[SwitchReading]:
    """State, speed and counters of all ports, with PFC or without. A port that is down has no speed."""
    for port, link in ports.items():
        said = link.get("state")
        text = next(iter(said)) if isinstance(said, dict) and len(said) == 1 else said
        values = {} if is_absent(text) else {"link-state": word(text, UP_DOWN)}
        if values.get("link-state") == 1:
            values |= numbers(link, ("speed",), bits_per_second)
        stats = link.get("stats")
        values |= numbers(link, ("mtu",), exact)
        values |= numbers(stats if isinstance(stats, dict) else {}, LINK_COUNTERS, exact)
        yield SwitchReading(LINKS, (("port", port),), values)


def _phy_readings(ports: Ports) -> Iterator[SwitchReading]:
    """Errors and bit error ratios of the PHY (AmBER). Bin n of Reed-Solomon counts code words in which n symbols were corrected."""
    for port, phy in ports.items():
        values = numbers(phy, ("symbol-errors",), exact)
        for name, ratio in numbers(phy, ("raw-ber", "effective-ber"), at_least_zero).items():
            values[name] = 0.0 if isinstance(ratio, float) and ratio < NO_ERRORS else ratio
        for raw, names in (("corrected-blocks", BINS), ("corrected-bits", RAW_ERRORS)):
            parts = [*numbers(phy, names, exact).values()]
            if parts and not any(isinstance(part, Unreadable) for part in parts):
                values[raw] = number(sum(part for part in parts if not isinstance(part, Unreadable)))
        yield SwitchReading(PHY, (("port", port),), values)


def _module_readings(ports: Ports) -> Iterator[SwitchReading]:
    """Light and temperature of the transceivers: `0.8625 mW / -0.64 dBm`, `42.56 degrees C / 108.61 degrees F`."""
    for port, module in ports.items():
        values: dict[str, RawNumber] = {}
        for name, value in module.items():
            found = POWER.fullmatch(name)
            power, _, unit = str(value).partition(" / ")[0].partition(" ")
            if found and not is_absent(power):
                milliwatts = at_least_zero(power)
                linear = (
                    milliwatts if isinstance(milliwatts, Unreadable) else float(f"{milliwatts / 1000:.12g}")
                )
                values[f"rx-power-{found[1]}"] = linear if unit == "mW" else watts(power)
        celsius = str(module.get("temperature", "")).partition(" ")[0]
        if not is_absent(celsius):
            values["temperature"] = fraction(celsius)
        yield SwitchReading(MODULES, (("port", port),), values)


def _of(source: str, port: str, label: str, value: str, values: Mapping[str, RawNumber]) -> SwitchReading:
    return SwitchReading(source, (("port", port), (label, value)), values)


def _facts(documents: Mapping[str, Any], scopes: Mapping[str, PortClasses]) -> Iterator[SwitchFact]:
    system = documents.get(SYSTEM)
    if system is not None:
        # Up to 5.11 the release is at the top, later in an object of its own.
        release = below(system, "product-release") or below(system, "version", "product-release")
        labels = {
            "os": CUMULUS,
            "version": said(release),
            "model": said(below(system, "platform")),
            "asic": "",
        }
        yield SwitchFact(SWITCH_INFO, labels)
    queues = queue_of_priority(documents.get(QUEUES))
    for port, scope in scopes.items():
        yield SwitchFact(SWITCH_PORT_INFO, {"port": port, "alias": "", "description": ""})
        for priority in sorted(scope.priorities & queues.keys()):
            labels = {"port": port, "priority": priority, "queue": queues[priority], "priority_group": ""}
            yield SwitchFact(SWITCH_QUEUE_INFO, labels)
    for port, module in subtree(documents.get(MODULES), *SUBTREES[MODULES]).items():
        known = {label: said(module.get(name)) for label, name in MODULE_FACTS.items()}
        if any(known.values()):
            yield SwitchFact(SWITCH_TRANSCEIVER_INFO, {"port": port, **known})
    # NVUE keys the neighbours of a port by system name.
    for port, neighbors in subtree(documents.get(NEIGHBORS), *SUBTREES[NEIGHBORS]).items():
        for key, node in members(neighbors).items():
            name = below(node, "chassis", "system-name")
            labels = neighbor_labels(
                name=key if name is None else name,
                chassis=below(node, "chassis", "chassis-id"),
                port_id=below(node, "port", "name"),
                description=below(node, "port", "description"),
                kind="name" if str(below(node, "port", "type")).lower() in INTERFACE_NAME else "",
            )
            yield SwitchFact(SWITCH_NEIGHBOR_INFO, {"port": port, **labels})

"""The shapes of NX-OS replies: NX-API's envelope, tables, port names, qos-groups and bitmaps.

Source: the `__readonly__` schemas in Cisco's "Nexus 9000 NX-OS Show Command Reference", release 9.3(x), and public programs
that parse these replies. No device was queried. Known habits of NX-OS, all of them at every level of a reply: a table of one row
is an object and of several rows a list; numbers are text, with commas between thousands where they come from CLI output; `-` means
that there is no value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roce_exporter.model.values import OUT_OF_RANGE
from roce_exporter.net import NetError
from roce_exporter.switches.readings import Unreadable
from roce_exporter.switches.reply_values import below, is_absent, number, numbers, switched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from roce_exporter.switches.readings import RawNumber

MOST = 1 << 63
"""Larger counters are not plausible: NX-OS sometimes reports such numbers instead of small negative ones."""

PORT = re.compile(
    r"(?<![a-z0-9])eth(?:ernet)?\s?(\d{1,4}(?:/\d{1,4}){1,3})(?![\d/.])", re.IGNORECASE | re.ASCII
)
GROUP = re.compile(r"(?<![\w.])([0-7])(?![\w.])", re.ASCII)
SYSTEM_GROUP = re.compile(r"control|cpu|span", re.IGNORECASE)
BITMAP = re.compile(r"\(\s*(?:0x)?([0-9a-f]{1,2})\s*\)", re.IGNORECASE | re.ASCII)
UNKNOWN_COMMAND = "400"
DENIED = re.compile(r"permission|denied|not authori", re.IGNORECASE)

ACTIVE = {"active": 1, "inactive": 0}
WATCHDOG_STATES = {"shutdown": 1, "active": 0}
"""CISCO-PFC-EXT-MIB has a third state, not applicable, which is no state."""
WATCHDOG_COUNTERS = ("q-shutdown", "q-restored", "q-aggr-pkt-dropped", "q-ing-aggr-pkt-dropped")
DROPS = ("Dropped", "WRED/AFD & Tail Drop", "WRED & Tail Drop")
"""What generations of Nexus 9000 call the packets that an egress queue discarded."""
EGRESS = frozenset({"Tx Pkts", "Tx Byts", "Q Depth Byts", "ECN Pkts", *(f"{name} Pkts" for name in DROPS)})
"""The egress statistics that are metrics, as `eq-stat-type eq-stat-units`."""
UNICAST_AND_OTHERS = ("eq-uc-stat-value", "eq-oobfc-uc-stat-value", "eq-mc-stat-value")


def command_body(reply: Any) -> Any:
    """The body of the only command in an NX-API reply; None if the switch does not know the command, as when its feature is off.

    Raises:
        NetError: the reply has another form, or says that the command failed.
    """
    output = below(reply, "ins_api", "outputs", "output")
    if isinstance(output, list):
        output = output[0] if output else None
    if not isinstance(output, dict) or "code" not in output:
        raise NetError("the reply has no output of a command: is this NX-API?")
    code = str(output["code"]).strip()
    if code == "200":
        return output.get("body")
    said = f"{output.get('msg', '')} {output.get('clierror', '')}"
    if DENIED.search(said):
        raise NetError("the role of the user does not permit the command: network-operator does")
    if code == UNKNOWN_COMMAND:
        return None
    raise NetError(f"the command failed with code {code[:3] if code.isdecimal() else 'unknown'}")


def rows(node: Any, name: str) -> Iterator[dict[str, Any]]:
    """The rows of `TABLE_name` in an object, whether tables and rows are objects or lists."""
    for table in objects(below(node, f"TABLE_{name}")):
        yield from objects(table.get(f"ROW_{name}"))


def objects(node: Any) -> Iterator[dict[str, Any]]:
    """An object, or the objects in a list."""
    for item in node if isinstance(node, list) else (node,):
        if isinstance(item, dict):
            yield item


def modules(body: Any) -> list[dict[str, Any]]:
    """The line cards of a reply.

    Raises:
        NetError: it has none.
    """
    found = list(rows(body, "module"))
    if not found:
        raise NetError("the reply has no TABLE_module: the version of NX-OS prints another form")
    return found


def dme_objects(body: Any, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The port and the attributes of each object of a class in a reply of the DME; the port is empty where it has none.

    Raises:
        NetError: the reply has no list of objects, or reports an error.
    """
    data = below(body, "imdata")
    if not isinstance(data, list):
        raise NetError("the reply has no imdata: is this the DME?")
    if any("error" in item for item in objects(data)):
        raise NetError("the DME reports an error")
    for item in objects(data):
        attributes = below(item, kind, "attributes")
        if isinstance(attributes, dict):
            # The layout of dn is not documented; all known ones have the port in brackets.
            name = str(attributes.get("dn"))
            yield port_name((name.partition("[")[2]).partition("]")[0]), attributes


def port_name(text: Any) -> str:
    """The port in a text as `Ethernet1/1` or, of a breakout, `Ethernet1/1/1`; empty for internal links, SPAN and port-channels.

    The text can be a name in three spellings, or a sentence: "Ethernet1/1 Interface PFC watchdog: [Enabled]".
    """
    found = PORT.search(text) if isinstance(text, str) else None
    return f"Ethernet{found[1]}" if found else ""


def qos_group(text: Any) -> str:
    """The number of the qos-group in a text, 0 to 7; empty for the groups of control traffic and SPAN."""
    words = str(text) if isinstance(text, int | str) else ""
    found = GROUP.findall(words)
    return found[0] if len(found) == 1 and not SYSTEM_GROUP.search(words) else ""


def bitmap(text: Any) -> frozenset[int] | None:
    """The priorities in `On (8)`: a hexadecimal bitmap, 8 is priority 3. Empty for `Off`; None if the text does not say."""
    words = text.strip() if isinstance(text, str) else ""
    if re.search(r"\boff\b", words, re.IGNORECASE):
        return frozenset()
    found = BITMAP.search(words)
    if not (found and re.search(r"\bon\b", words, re.IGNORECASE)):
        return None
    bits = int(found[1], 16)
    return frozenset(priority for priority in range(8) if bits >> priority & 1)


def counter(value: Any) -> RawNumber:
    """A number below 2^63."""
    found = number(value)
    return Unreadable(OUT_OF_RANGE) if isinstance(found, int) and found >= MOST else found


def present(row: Mapping[str, Any], *names: str) -> dict[str, RawNumber]:
    """The counters of a row under their own names, without those that the switch does not have."""
    return numbers(row, names, counter)


@dataclass(frozen=True, slots=True)
class PauseCounts:
    """The PFC statistics of one CoS on one port."""

    priority: int
    queue: str
    group: str
    values: Mapping[str, RawNumber]
    paused: int | None

    def used(self) -> bool:
        """Whether any PFC frame of this priority was seen."""
        return bool(self.paused) or any(self.values.values())


@dataclass(slots=True)
class QueuingOfPort:
    """`show queuing interface` for one port."""

    egress: dict[str, dict[str, RawNumber]] = field(default_factory=dict)
    ingress: dict[str, RawNumber] = field(default_factory=dict)
    thresholds: dict[str, RawNumber] = field(default_factory=dict)
    """By qos-group the fill level at which pause is sent."""
    pauses: list[PauseCounts] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WatchedQueue:
    """The watchdog of one qos-group on one port."""

    queue: str
    priorities: frozenset[int]
    configured: bool
    values: Mapping[str, RawNumber]


@dataclass(slots=True)
class WatchdogOfPort:
    """`show queuing pfc-queue detail` for one port."""

    values: dict[str, RawNumber] = field(default_factory=dict)
    """What holds for every queue of the port."""
    queues: list[WatchedQueue] = field(default_factory=list)


def pfc_priorities(body: Any) -> dict[str, frozenset[int] | None]:
    """By port the priorities with PFC; None where `show interface priority-flow-control` does not say.

    Raises:
        NetError: the reply has another form.
    """
    return {
        port: bitmap(row.get("oper"))
        for module in modules(body)
        for row in rows(module, "pfc_interface")
        if (port := port_name(row.get("if_name_str")))
    }


def queuing_of_ports(body: Any) -> dict[str, QueuingOfPort]:
    """By port what `show queuing interface` says. A port has two rows, one per direction.

    Raises:
        NetError: the reply has another form.
    """
    ports: dict[str, QueuingOfPort] = {}
    for module in modules(body):
        for row in rows(module, "queuing_interface"):
            port = port_name(row.get("if_name_str"))
            if port:
                _add_queuing(ports.setdefault(port, QueuingOfPort()), row)
    return ports


def _add_queuing(queuing: QueuingOfPort, row: dict[str, Any]) -> None:
    for group in rows(row, "qosgrp_egress_stats"):
        queue = qos_group(group.get("eq-qosgrp"))
        if queue:
            queuing.egress[queue] = egress_counters(rows(group, "qosgrp_egress_stats_entry"))
    for entry in rows(row, "ingress_stats_entry"):
        name = f"{entry.get('ip-stat-type')} {entry.get('ip-stat-units')}"
        if name == "Ingress MMU Drop Pkts" and not is_absent(entry.get("ip-stat-value")):
            queuing.ingress[name] = counter(entry.get("ip-stat-value"))
    for setting in rows(row, "qosgrp_cfg"):
        queue = qos_group(setting.get("qosgrp"))
        if queue:
            for value in present(setting, "pause-threshold").values():
                queuing.thresholds[queue] = value
    queuing.pauses.extend(_pauses(row))


def egress_counters(entries: Iterable[dict[str, Any]]) -> dict[str, RawNumber]:
    """The statistics of one egress queue: unicast, out-of-band unicast and multicast added up, if all of them are numbers."""
    found: dict[str, RawNumber] = {}
    for entry in entries:
        name = f"{entry.get('eq-stat-type')} {entry.get('eq-stat-units')}"
        parts = [*present(entry, *UNICAST_AND_OTHERS).values()]
        if name in EGRESS and parts:
            unreadable = next((part for part in parts if isinstance(part, Unreadable)), None)
            total = counter(sum(part for part in parts if not isinstance(part, Unreadable)))
            found[name] = total if unreadable is None else unreadable
    return found


def _pauses(row: dict[str, Any]) -> Iterator[PauseCounts]:
    for entry in rows(row, "pfc_stats"):
        priority = qos_group(entry.get("cos"))
        if not priority:
            continue
        queue = qos_group(entry.get("pfc-qosgrp"))
        group = qos_group(entry.get("pfc-pg")) if "pfc-pg" in entry else queue
        state = str(entry.get("rx-pause-state")).strip().lower()
        yield PauseCounts(
            int(priority), queue, group, present(entry, "rx-pause-count", "tx-pause-count"), ACTIVE.get(state)
        )


def watchdog_of_switch(body: Any) -> dict[str, RawNumber]:
    """Whether the watchdog of the whole switch is forced, as the value `glb-wd-force-status`.

    Raises:
        NetError: the reply has another form.
    """
    values: dict[str, RawNumber] = {}
    for module in modules(body):
        if not is_absent(module.get("glb-wd-force-status")):
            values["glb-wd-force-status"] = switched(module["glb-wd-force-status"])
    return values


def watchdog_of_ports(body: Any) -> dict[str, WatchdogOfPort]:
    """By port what `show queuing pfc-queue detail` says.

    Raises:
        NetError: the reply has another form.
    """
    ports: dict[str, WatchdogOfPort] = {}
    for module in modules(body):
        port = ""
        for row in rows(module, "queuing_interface"):
            # The queues of a port can come in a row of their own, after the row with its name.
            port = port_name(row["if_name_str"]) if "if_name_str" in row else port
            if not port:
                continue
            watchdog = ports.setdefault(port, WatchdogOfPort())
            watchdog.queues.extend(_watched_queues(row))
            if "if_name_str" not in row:
                continue
            if not is_absent(row.get("wd-status")):
                status = switched(row["wd-status"])
                watchdog.values["wd-status"] = 0 if switched(module.get("glb-wd-status")) == 0 else status
            if not is_absent(row.get("disable-action")):
                off = switched(row["disable-action"])
                watchdog.values["disable-action"] = off if isinstance(off, Unreadable) else 1 - off
            watchdog.values |= _times(module, row.get("intf-multi"))
    return ports


def _times(module: dict[str, Any], interface_multiplier: Any) -> dict[str, RawNumber]:
    """Detection and restoration in milliseconds: poll interval x multiplier.

    A multiplier of 0 on the interface means that none is set. A fixed restoration, if it is set, replaces the automatic one.
    """
    timer, threshold = counter(module.get("glb-wd-timer")), counter(module.get("glb-wd-timer-thresh"))
    restore = counter(module.get("glb-fixed-restore")) or counter(module.get("glb-auto-restore"))
    times: dict[str, RawNumber] = {}
    if timer and threshold:
        times["detection-milliseconds"] = counter(timer * threshold * (counter(interface_multiplier) or 1))
    if timer and restore:
        times["restoration-milliseconds"] = counter(timer * restore)
    return times


def _watched_queues(row: dict[str, Any]) -> Iterator[WatchedQueue]:
    for group in rows(row, "qosgrp_stats"):
        queue = qos_group(group.get("eq-qosgrp"))
        if not queue:
            continue
        values: dict[str, RawNumber] = {}
        state = str(group.get("eq-qosgrp-state", "-")).strip(" []").lower()
        if state in WATCHDOG_STATES:
            values["eq-qosgrp-state"] = WATCHDOG_STATES[state]
        # Each statistic has a row of its own.
        for entry in rows(group, "qosgrp_stats_entry"):
            values |= present(entry, *WATCHDOG_COUNTERS)
        priorities = frozenset(int(digit) for digit in re.findall(r"[0-7]", str(group.get("pfc-cos", ""))))
        yield WatchedQueue(queue, priorities, switched(group.get("pfc-configured")) == 1, values)


@dataclass(frozen=True, slots=True)
class LosslessScope:
    """Which priorities and qos-groups the metrics of queues cover."""

    everything: bool
    priorities: Mapping[str, frozenset[int]]
    """By port the priorities with PFC."""
    queues: Mapping[str, frozenset[str]]
    """By port their qos-groups. Empty although the port has priorities: no reply has the map, so all of them are covered."""

    def has_priority(self, port: str, priority: int) -> bool:
        """Whether metrics of this priority are wanted."""
        return self.everything or priority in self.priorities.get(port, ())

    def has_queue(self, port: str, queue: str) -> bool:
        """Whether metrics of this qos-group are wanted."""
        known = self.queues.get(port, frozenset())
        return self.everything or queue in known or (not known and bool(self.priorities.get(port)))


def lossless_scope(
    pfc: Mapping[str, frozenset[int] | None],
    queuing: Mapping[str, QueuingOfPort],
    watchdog: Mapping[str, WatchdogOfPort],
    *,
    everything: bool,
) -> LosslessScope:
    """The priorities with PFC by port and their qos-groups.

    Where the PFC mode of a port is not known, priorities count that have had a PFC frame or are configured in the watchdog.
    """
    priorities: dict[str, frozenset[int]] = {}
    queues: dict[str, frozenset[str]] = {}
    for port in {*pfc, *queuing, *watchdog}:
        pauses = queuing[port].pauses if port in queuing else []
        watched = [entry for entry in watchdog[port].queues if entry.configured] if port in watchdog else []
        on = pfc.get(port)
        if on is None:
            used = frozenset(pause.priority for pause in pauses if pause.used())
            on = used.union(*(entry.priorities for entry in watched))
        priorities[port] = on
        queues[port] = frozenset(
            pause.queue for pause in pauses if pause.queue and pause.priority in on
        ).union(entry.queue for entry in watched if entry.priorities & on)
    return LosslessScope(everything, priorities, queues)

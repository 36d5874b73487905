"""The shapes of NX-OS replies: NX-API's envelope, tables, port names, qos-groups and bitmaps.

Source: the `__readonly__` schemas in Cisco's "Nexus 9000 NX-OS Show Command Reference", release 9.3(x), and public programs
that parse these replies. No device was queried. Known habits of NX-OS, all of them at every level of a reply: a table of one row
is an object and of several rows a list; numbers are text, with commas between thousands where they come from CLI output; `-` means
that there is no value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from roce_exporter.catalog.switch_systems import NXOS
from roce_exporter.model.values import OUT_OF_RANGE
from roce_exporter.net import NetError
from roce_exporter.switches.readings import RawNumber, Unreadable
from roce_exporter.switches.reply_values import (
    DIGITS_TO_7,
    PortScope,
    below,
    is_absent,
    number,
    numbers,
    readers,
    switched,
    total,
)

Values = dict[str, RawNumber]

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
QUEUING = "queuing_interface"
QUEUING_NAMES = frozenset(readers(NXOS, QUEUING))
"""Those of egress and ingress statistics are their type and unit: `Tx Pkts`, `Ingress MMU Drop Pkts`."""
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
    if DENIED.search(f"{output.get('msg', '')} {output.get('clierror', '')}"):
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
    return (item for item in (node if isinstance(node, list) else (node,)) if isinstance(item, dict))


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


def bitmap(text: Any) -> frozenset[str] | None:
    """The priorities in `On (8)`: a hexadecimal bitmap, 8 is priority 3. Empty for `Off`; None if the text does not say."""
    words = text.strip() if isinstance(text, str) else ""
    if re.search(r"\boff\b", words, re.IGNORECASE):
        return frozenset()
    found = BITMAP.search(words)
    if not (found and re.search(r"\bon\b", words, re.IGNORECASE)):
        return None
    return frozenset(priority for priority in DIGITS_TO_7 if int(found[1], 16) >> int(priority) & 1)


def counter(value: Any) -> RawNumber:
    """A number below 2^63."""
    found = number(value)
    return Unreadable(OUT_OF_RANGE) if isinstance(found, int) and found >= MOST else found


class PauseCounts(NamedTuple):
    """The PFC statistics of one CoS on one port."""

    priority: str
    queue: str
    group: str
    values: Values
    paused: int | None


class WatchedQueue(NamedTuple):
    """The watchdog of one qos-group on one port."""

    queue: str
    priorities: frozenset[str]
    configured: bool
    values: Values


@dataclass(slots=True)
class NxosPort:
    """What the show commands say of one port."""

    is_listed: bool = False
    """Whether `show interface priority-flow-control` has the port."""
    on: frozenset[str] | None = None
    """The priorities with PFC by that command; None if it does not say."""
    egress: dict[str, Values] = field(default_factory=dict)
    ingress: Values = field(default_factory=dict)
    thresholds: Values = field(default_factory=dict)
    """By qos-group the fill level at which pause is sent."""
    pauses: list[PauseCounts] = field(default_factory=list)
    watchdog: Values = field(default_factory=dict)
    """What holds for every queue of the port."""
    watched: list[WatchedQueue] = field(default_factory=list)

    @property
    def priorities(self) -> frozenset[str]:
        """The priorities with PFC; where that is not known, those with a PFC frame, or configured in the watchdog."""
        if self.on is not None:
            return self.on
        used = (one.priority for one in self.pauses if one.paused or any(one.values.values()))
        return frozenset(used).union(*(one.priorities for one in self.watched if one.configured))

    def scope(self, *, everything: bool) -> PortScope:
        """What metrics of the port cover."""
        on = self.priorities
        queues = {one.queue for one in self.pauses if one.queue and one.priority in on}
        queues |= {one.queue for one in self.watched if one.configured and one.priorities & on}
        # No reply has the map of a port that has priorities, and no queue of them: all queues are covered.
        known = frozenset(queues) or frozenset(DIGITS_TO_7 if on else "")
        return PortScope(everything, on, known, off=self.on == frozenset())


NxosPorts = defaultdict[str, NxosPort]
"""The ports by name, filled by the replies of the show commands, each of which raises NetError if it has another form."""


def add_pfc(ports: NxosPorts, body: Any) -> None:
    """Take `show interface priority-flow-control`."""
    for module in modules(body):
        for row in rows(module, "pfc_interface"):
            if name := port_name(row.get("if_name_str")):
                ports[name].is_listed, ports[name].on = True, bitmap(row.get("oper"))


def add_queuing(ports: NxosPorts, body: Any) -> None:
    """Take `show queuing interface`. A port has two rows, one per direction."""
    for module in modules(body):
        for row in rows(module, "queuing_interface"):
            if name := port_name(row.get("if_name_str")):
                _add_queuing(ports[name], row)


def add_watchdog(ports: NxosPorts, body: Any) -> None:
    """Take `show queuing pfc-queue detail`. The queues of a port can come in a row of their own, after the row with its name."""
    for module in modules(body):
        name = ""
        for row in rows(module, "queuing_interface"):
            name = port_name(row["if_name_str"]) if "if_name_str" in row else name
            if not name:
                continue
            ports[name].watched.extend(_watched_queues(row))
            if "if_name_str" in row:
                values = numbers(row, ("wd-status", "disable-action"), switched)
                if "wd-status" in values and switched(module.get("glb-wd-status")) == 0:
                    values["wd-status"] = 0
                if not isinstance(off := values.get("disable-action", Unreadable("")), Unreadable):
                    values["disable-action"] = 1 - off
                ports[name].watchdog |= values | _times(module, row.get("intf-multi"))


def _add_queuing(port: NxosPort, row: dict[str, Any]) -> None:
    for group in rows(row, "qosgrp_egress_stats"):
        if queue := qos_group(group.get("eq-qosgrp")):
            port.egress[queue] = egress_counters(rows(group, "qosgrp_egress_stats_entry"))
    for entry in rows(row, "ingress_stats_entry"):
        name = f"{entry.get('ip-stat-type')} {entry.get('ip-stat-units')}"
        if name in QUEUING_NAMES and not is_absent(entry.get("ip-stat-value")):
            port.ingress[name] = counter(entry.get("ip-stat-value"))
    for setting in rows(row, "qosgrp_cfg"):
        if queue := qos_group(setting.get("qosgrp")):
            for value in numbers(setting, ("pause-threshold",), counter).values():
                port.thresholds[queue] = value
    for entry in rows(row, "pfc_stats"):
        if priority := qos_group(entry.get("cos")):
            queue = qos_group(entry.get("pfc-qosgrp"))
            members = qos_group(entry.get("pfc-pg")) if "pfc-pg" in entry else queue
            state = str(entry.get("rx-pause-state")).strip().lower()
            values = numbers(entry, ("rx-pause-count", "tx-pause-count"), counter)
            port.pauses.append(PauseCounts(priority, queue, members, values, ACTIVE.get(state)))


def egress_counters(entries: Iterable[dict[str, Any]]) -> Values:
    """The statistics of one egress queue: unicast, out-of-band unicast and multicast added up, if all of them are numbers."""
    found: Values = {}
    for entry in entries:
        name = f"{entry.get('eq-stat-type')} {entry.get('eq-stat-units')}"
        parts = [*numbers(entry, UNICAST_AND_OTHERS, counter).values()]
        if name in QUEUING_NAMES and parts:
            found[name] = total(parts, counter)
    return found


def watchdog_of_switch(body: Any) -> Values:
    """Whether the watchdog of the whole switch is forced, as the value `glb-wd-force-status`.

    Raises:
        NetError: the reply has another form.
    """
    values: Values = {}
    for module in modules(body):
        values |= numbers(module, ("glb-wd-force-status",), switched)
    return values


def _times(module: dict[str, Any], interface_multiplier: Any) -> Values:
    """Detection and restoration in milliseconds: poll interval x multiplier.

    A multiplier of 0 on the interface means that none is set. A fixed restoration, if it is set, replaces the automatic one.
    """
    timer, threshold = counter(module.get("glb-wd-timer")), counter(module.get("glb-wd-timer-thresh"))
    restore = counter(module.get("glb-fixed-restore")) or counter(module.get("glb-auto-restore"))
    times: Values = {}
    if timer and threshold:
        times["detection-milliseconds"] = counter(timer * threshold * (counter(interface_multiplier) or 1))
    if timer and restore:
        times["restoration-milliseconds"] = counter(timer * restore)
    return times


def _watched_queues(row: dict[str, Any]) -> Iterator[WatchedQueue]:
    for group in rows(row, "qosgrp_stats"):
        if not (queue := qos_group(group.get("eq-qosgrp"))):
            continue
        values: Values = {}
        state = str(group.get("eq-qosgrp-state", "-")).strip(" []").lower()
        if state in WATCHDOG_STATES:
            values["eq-qosgrp-state"] = WATCHDOG_STATES[state]
        # Each statistic has a row of its own.
        for entry in rows(group, "qosgrp_stats_entry"):
            values |= numbers(entry, WATCHDOG_COUNTERS, counter)
        priorities = frozenset(re.findall(r"[0-7]", str(group.get("pfc-cos", ""))))
        yield WatchedQueue(queue, priorities, switched(group.get("pfc-configured")) == 1, values)

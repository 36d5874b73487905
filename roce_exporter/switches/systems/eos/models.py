"""The leaves that EOS sends by gNMI as tables of its YANG models, and which priorities they say have PFC.

Models: openconfig-interfaces with arista-intf-augments, arista-pfc-history-counters-augment and -buffer-counters-augment,
openconfig-qos with arista-qos-augments, openconfig-lldp, openconfig-system; EOS 4.36.1F.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.model.values import GARBAGE
from roce_exporter.net.gnmi_messages import flat, plain_name
from roce_exporter.switches.readings import SwitchReading, Unreadable, label_text
from roce_exporter.switches.reply_values import number, numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from roce_exporter.net.gnmi_messages import Leaf, Path
    from roce_exporter.switches.readings import Labels, RawNumber

PRIORITY = "interfaces/interface/ethernet/pfc/priorities/priority/state"
TX_QUEUE = "interfaces/interface/ethernet/pfc/watchdog/tx-queues/tx-queue/state"
QUEUE = "qos/interfaces/interface/output/queues/queue/state"
NO_DROP = "qos/interfaces/interface/output/pfc/config"
WATCHDOG = "qos/pfc/watchdog/config"
PROFILE = "qos/queue-management-profiles/queue-management-profile/wred/uniform/state"
INTERFACE = "interfaces/interface/state"
SYSTEM = "system/state"
NEIGHBOR = "lldp/interfaces/interface/neighbors/neighbor/state"

KEYS = {
    PRIORITY: ("name", "index"),
    TX_QUEUE: ("name", "index", "queue-type"),
    QUEUE: ("interface-id", "name"),
    NO_DROP: ("interface-id",),
    WATCHDOG: (),
    PROFILE: ("name",),
    INTERFACE: ("name",),
    SYSTEM: (),
    NEIGHBOR: ("name", "id"),
}
"""The tables that are kept, each with the keys of its rows."""

LISTS = {
    "interfaces/interface": ("name",),
    "interfaces/interface/ethernet/pfc/priorities/priority": ("index",),
    "interfaces/interface/ethernet/pfc/watchdog/tx-queues/tx-queue": ("index", "queue-type"),
    "qos/interfaces/interface": ("interface-id",),
    "qos/interfaces/interface/output/queues/queue": ("name",),
    "qos/queue-management-profiles/queue-management-profile": ("name",),
    "lldp/interfaces/interface": ("name",),
    "lldp/interfaces/interface/neighbors/neighbor": ("id",),
}
"""The lists of the models with their keys, for replies that hold a document for a subtree."""

Row = dict[str, Any]
Tables = dict[str, dict[tuple[str, ...], Row]]

BITMAP = re.compile(r"[0-9a-fA-F]{1,2}", re.ASCII)
"""The type of `priorities-no-drop`: hexadecimal, one bit per priority."""
FRONT_PANEL = "Ethernet"
PRIORITIES = tuple(map(str, range(8)))
USUAL = ("3", "4")
"""The usual lossless priorities, shown as off where no port has PFC."""

PfcPriorities = dict[str, frozenset[str]]
"""Per port the priorities with PFC."""

PRIORITY_LEAVES = ("in-frames", "out-frames", "pfc-on-total-rx-time", "pfc-on-max-rx-time", "rx-transitions")
GROUP_LEAVES = ("dropped-pkts",)
WATCHDOG_LEAVES = ("stuck-count", "recovery-count")
QUEUE_LEAVES = ("transmit-pkts", "transmit-octets", "dropped-pkts", "wred-dropped-pkts", "ecn-marked-pkts")
PROFILE_LEAVES = ("enable-ecn", "min-threshold", "max-threshold", "max-drop-probability-percent")
ACTS = {"ERROR_DISABLE": 1, "DROP": 1, "FORCED_DROP": 1, "IGNORE_PFC": 1, "NOTIFY_ONLY": 0}
"""The watchdog's actions (arista-qos-augments, `watchdog-action`)."""
DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
LAST_NUMBER = re.compile(r"([0-9]{1,3})$", re.ASCII)
LABEL = re.compile(r"(mc)?[0-9]{1,3}", re.ASCII)
"""What is the label of a priority or a queue."""


def tables_of(leaves: Iterable[Leaf]) -> Tables:
    """The rows of all tables that are kept, by table and by the values of the row's keys."""
    found: Tables = {table: {} for table in KEYS}
    place: Path = ()
    row: Row | None = None
    for leaf in leaves:
        parent = leaf.path[:-1]
        if row is None or parent != place or isinstance(leaf.value, dict | list):
            place, row = parent, _add(leaf, found)
        else:  # the next leaf of the same row: thousands of them make up a reply
            row[plain_name(leaf.path[-1].name)] = leaf.value
    return found


def _add(leaf: Leaf, found: Tables) -> Row | None:
    """Add the leaves in a leaf of a reply; the row, if it is a single one in a table that is kept."""
    row: Row | None = None
    for spot, value in flat(leaf, LISTS):
        table = "/".join(spot.names[:-1])
        if table in KEYS:
            keys = tuple(spot.keys.get(key, "") for key in KEYS[table])
            row = found[table].setdefault(keys, {})
            row[spot.names[-1]] = value
    return None if isinstance(leaf.value, dict | list) else row


def is_port(name: str) -> bool:
    """Whether the interface is a port of the front panel."""
    return name.startswith(FRONT_PANEL)


def configured_priorities(tables: Tables) -> PfcPriorities:
    """Per port the priorities that are configured as no-drop; empty if the switch does not say so of any port.

    EOS does not expose by gNMI whether PFC itself is on: a port with no-drop priorities and PFC off is reported as on.
    """
    return {
        port: frozenset(bit for bit in PRIORITIES if int(text, 16) >> int(bit) & 1)
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


def queue_label(number: str, kind: str) -> str:
    """The label of a queue: its number, and for queues that carry multicast alone `mc` before it."""
    return f"mc{number}" if kind in ("MULTICAST", "MC") else number


class EosView(NamedTuple):
    """What is needed to interpret the tables."""

    tables: Tables
    pfc: PfcPriorities
    every: bool
    """Whether readings cover priorities and queues without PFC, too."""

    @property
    def scope(self) -> tuple[str, ...]:
        """The priorities that are shown on every port: those with PFC on any port, else the usual ones of RoCE."""
        return PRIORITIES if self.every else tuple(sorted(frozenset().union(*self.pfc.values()))) or USUAL

    def wants_priority(self, port: str, index: str) -> bool:
        """Whether readings of this priority are wanted, also on a port on which its PFC is off."""
        return is_port(port) and index in self.scope

    def wants(self, port: str, label: str) -> bool:
        """Whether readings of this priority, or of this queue, are wanted.

        The queue of a priority is taken to be that of the same number, as in EOS's default maps: gNMI does not show them.
        """
        if not is_port(port) or not LABEL.fullmatch(label):
            return False
        return self.every or label in self.pfc.get(port, ())


def decimal(value: Any) -> float | Unreadable:
    """A decimal64 of YANG, which RFC 7951 writes as text."""
    text = str(value)
    return float(text) if not isinstance(value, bool) and DECIMAL.fullmatch(text) else Unreadable(GARBAGE)


def labels(port: str, name: str, index: str) -> Labels:
    """The labels of a reading of one priority, queue or group."""
    return ("port", label_text(port)), (name, index)


def priority_readings(view: EosView) -> Iterator[SwitchReading]:
    """PFC frames, pause time and buffer drops per priority. The priority group of a priority has its number on EOS."""
    for (port, index), row in view.tables[PRIORITY].items():
        if view.wants_priority(port, index):
            yield SwitchReading("pfc", labels(port, "priority", index), numbers(row, PRIORITY_LEAVES))
        if view.wants(port, index):
            yield SwitchReading("pfc", labels(port, "priority_group", index), numbers(row, GROUP_LEAVES))


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
        label = queue_label(index, kind)
        if is_port(port) and LABEL.fullmatch(label):
            rows[port, label] = {**rows.get((port, label), {}), **row}
    for (port, label), row in rows.items():
        yield SwitchReading("pfc", labels(port, "queue", label), numbers(row, WATCHDOG_LEAVES))


def watchdog_enabled(tables: Tables) -> bool | None:
    """Whether the watchdog has a timeout, which turns it on; None if the switch does not say so."""
    timeout = decimal(tables[WATCHDOG].get((), {}).get("default-timeout"))
    return None if isinstance(timeout, Unreadable) else timeout > 0


def setting_readings(view: EosView) -> Iterator[SwitchReading]:
    """PFC per priority, and the watchdog's settings per queue with PFC.

    They are the switch's own; EOS does not expose by gNMI those that one port overrides.
    """
    rows = {port: row for (port,), row in view.tables[NO_DROP].items() if "priorities-no-drop" in row}
    if rows:  # a port without the leaf has no such priority; without any leaf the switch does not say so of any port
        for port in sorted({*rows, *(port for port, _ in view.tables[PRIORITY])}):
            if is_port(port):
                yield from _enabled_readings(port, view, is_read=port not in rows or port in view.pfc)
    settings = dict(_watchdog_settings(view.tables))
    if settings:
        for port, found in view.pfc.items():
            for index in sorted(found):
                yield SwitchReading("configuration", labels(port, "queue", index), settings)


def _enabled_readings(port: str, view: EosView, *, is_read: bool) -> Iterator[SwitchReading]:
    known = view.pfc.get(port, frozenset())
    for index in view.scope:
        value = int(index in known) if is_read else Unreadable(GARBAGE)
        yield SwitchReading("configuration", labels(port, "priority", index), {"priorities-no-drop": value})


def _watchdog_settings(tables: Tables) -> Iterator[tuple[str, RawNumber]]:
    row = tables[WATCHDOG].get((), {})
    enabled = watchdog_enabled(tables)
    if enabled is not None:
        yield "watchdog-enabled", int(enabled)
    if (action := str(row.get("action"))) in ACTS:
        yield "action", ACTS[action]
    for name in ("default-timeout", "default-recovery-time"):
        # 0 is no time: no watchdog, and a recovery time that EOS chooses by itself
        if name in row and (seconds := decimal(row[name])) != 0:
            yield name, seconds


def queue_readings(view: EosView) -> Iterator[SwitchReading]:
    """Counters per queue, and the marking profile that it refers to."""
    profiles = {name: numbers(row, PROFILE_LEAVES) for (name,), row in view.tables[PROFILE].items()}
    for (port, name), row in view.tables[QUEUE].items():
        label = queue_of(name, row)
        if not view.wants(port, label):
            continue
        yield SwitchReading("queues", labels(port, "queue", label), numbers(row, QUEUE_LEAVES))
        profile = profiles.get(str(row.get("queue-management-profile", "")))
        if profile:
            yield SwitchReading("ecn_profiles", labels(port, "queue", label), profile)


def queue_of(name: str, row: Mapping[str, Any]) -> str:
    """The label of a queue: its position on the interface, or else the number at the end of its name; empty without one."""
    position = number(row.get("id"))
    if isinstance(position, Unreadable):
        position = number(found[1] if (found := LAST_NUMBER.search(name)) else "")
    unknown = isinstance(position, Unreadable)
    return "" if unknown else queue_label(str(position), str(row.get("queue-type", "")))

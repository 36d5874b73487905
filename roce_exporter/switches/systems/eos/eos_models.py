"""The leaves that EOS sends by gNMI as tables of its YANG models, and which priorities they say have PFC.

Models: openconfig-interfaces with arista-intf-augments, arista-pfc-history-counters-augment and -buffer-counters-augment,
openconfig-qos with arista-qos-augments, openconfig-lldp, openconfig-system; EOS 4.36.1F.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from roce_exporter.switches.doors.gnmi_paths import flat, plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roce_exporter.switches.doors.gnmi_paths import Leaf, Path

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

PfcPriorities = dict[str, frozenset[str]]
"""Per port the priorities with PFC."""


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


def stuck_queues(tables: Tables) -> Mapping[str, set[str]]:
    """Per port the queues for which the watchdog has counters."""
    found: dict[str, set[str]] = {}
    for port, index, kind in tables[TX_QUEUE]:
        found.setdefault(port, set()).add(queue_label(index, kind))
    return found


def queue_label(number: str, kind: str) -> str:
    """The label of a queue: its number, and for queues that carry multicast alone `mc` before it."""
    return f"mc{number}" if kind in ("MULTICAST", "MC") else number

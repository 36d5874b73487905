"""OpenConfig's models: the leaves of a reply as tables, and what they say of ports, light, queues, ECN and neighbours.

Models: openconfig-interfaces, -if-ethernet, -platform-transceiver, -qos, -lldp and -system (openconfig/public). Priorities with PFC are in
none of them: vendors have tables of their own, and the module of a vendor says which queues are shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from roce_exporter.catalog import named
from roce_exporter.catalog.row import ANY
from roce_exporter.catalog.switch_systems import OPENCONFIG
from roce_exporter.net.gnmi_messages import Leaf, Path, flat, plain_name
from roce_exporter.switches import reply_values as v
from roce_exporter.switches.readings import ProbeReply, SwitchFact, SwitchReading, SwitchReadings, Unreadable
from roce_exporter.switches.reply_values import fact, number, of_port

if TYPE_CHECKING:
    from roce_exporter.switches.targets import SwitchTarget

INTERFACE = "interfaces/interface/state"
COUNTERS = "interfaces/interface/state/counters"
ETHERNET = "interfaces/interface/ethernet/state"
ETHERNET_COUNTERS = "interfaces/interface/ethernet/state/counters"
MODULE = "components/component/transceiver/state"
LIGHT = "components/component/transceiver/physical-channels/channel/state/input-power"
HEAT = "components/component/state/temperature"
PRE_FEC, POST_FEC = f"{MODULE}/pre-fec-ber", f"{MODULE}/post-fec-ber"
QUEUE = "qos/interfaces/interface/output/queues/queue/state"
PROFILE = "qos/queue-management-profiles/queue-management-profile/wred/uniform/state"
SYSTEM = "system/state"
NEIGHBOR = "lldp/interfaces/interface/neighbors/neighbor/state"

PFC_STATE = "qos/interfaces/interface/pfc/pfc-priorities/pfc-priority/state"
PFC_TABLES = {
    PFC_STATE: "pfc_dell",
    f"{PFC_STATE}/statistics": "pfc_dell",
    "qos/interfaces/interface/pfc/pfc-priority": "pfc_srlinux",
}
"""The tables of vendors with a row per port and priority, each with its source."""

TABLES = (
    *(INTERFACE, COUNTERS, ETHERNET, ETHERNET_COUNTERS, MODULE, HEAT, PRE_FEC, POST_FEC, LIGHT),
    *(QUEUE, PROFILE, SYSTEM, NEIGHBOR, *PFC_TABLES),
)
"""The tables that are kept."""
LISTS = {
    "interfaces/interface": ("name",),
    "components/component": ("name",),
    "components/component/transceiver/physical-channels/channel": ("index",),
    "qos/interfaces/interface": ("interface-id",),
    "qos/interfaces/interface/output/queues/queue": ("name",),
    "qos/interfaces/interface/pfc/pfc-priorities/pfc-priority": ("dot1p",),
    "qos/interfaces/interface/pfc/pfc-priority": ("index",),
    "qos/queue-management-profiles/queue-management-profile": ("name",),
    "lldp/interfaces/interface": ("name",),
    "lldp/interfaces/interface/neighbors/neighbor": ("id",),
}
"""The lists of the models with their keys, for replies that hold a document for a subtree."""

Row = dict[str, Any]
Tables = dict[str, dict[tuple[str, ...], Row]]

PORT_TABLES = {
    INTERFACE: "interfaces",
    COUNTERS: "interfaces",
    ETHERNET: "ethernet_state",
    ETHERNET_COUNTERS: "ethernet_state",
}
"""The tables with a row per port, each with its source."""
MEASURED = {"pre-fec-ber": PRE_FEC, "post-fec-ber": POST_FEC, "temperature": HEAT}
"""What is measured of a module: by raw name the table whose leaf `instant` has it."""
LAST_NUMBER = re.compile(r"([0-9]{1,3})$", re.ASCII)
KINDS = {"macAddress": "mac", "MAC_ADDRESS": "mac", "interfaceName": "name", "INTERFACE_NAME": "name"}
"""Subtypes of the port identifier, as eAPI and openconfig-lldp name them."""
NEIGHBOR_LEAVES = ("system-name", "chassis-id", "port-id", "port-id-type", "port-description")
MANAGEMENT = re.compile(r"(mgmt|management|ma\d|fxp|em\d|me\d|eth\d)", re.IGNORECASE | re.ASCII)


def tables_of(
    leaves: Iterable[Leaf], tables: Iterable[str] = TABLES, lists: Mapping[str, tuple[str, ...]] = LISTS
) -> Tables:
    """The rows of these tables, by table and by the values of the row's keys, which are those of the lists above it."""
    keys = {
        table: [key for place, own in lists.items() if f"{table}/".startswith(f"{place}/") for key in own]
        for table in tables
    }
    found: Tables = {table: {} for table in keys}
    place: Path = ()
    row: Row | None = None
    for leaf in leaves:
        parent, is_one = leaf.path[:-1], not isinstance(leaf.value, dict | list)
        if is_one and row is not None and parent == place:
            # The next leaf of the same row: thousands of them make up a reply.
            row[plain_name(leaf.path[-1].name)] = leaf.value
            continue
        place, row = parent, None
        for spot, value in flat(leaf, lists):
            table = "/".join(spot.names[:-1])
            if table in keys:
                row = found[table].setdefault(tuple(spot.keys.get(key, "") for key in keys[table]), {})
                row[spot.names[-1]] = value
        row = row if is_one else None
    return found


def port_readings(tables: Tables, is_port: Callable[[str], bool]) -> Iterator[SwitchReading]:
    """State, speed and counters of the ports, and what their modules measure."""
    for table, source in PORT_TABLES.items():
        for (port,), row in tables[table].items():
            if is_port(port):
                yield of_port(source, port, v.values_of(ANY, source, row))
    for port, component, channels in _modules(tables, is_port):
        measured = {raw: tables[table].get((component,), {}) for raw, table in MEASURED.items()}
        # A row of the port's own: the ports of a breakout share the module, and not its lanes.
        row = {**tables[MODULE].get((component,), {})}
        row |= {raw: found.get("instant") for raw, found in measured.items()}
        for (name, index), lane in tables[LIGHT].items():
            # The first channel has the index 0, and the first lane the number 1.
            if name == component and index in set(v.DIGITS_TO_7) and (not channels or index in channels):
                row[f"input-power-{int(index) + 1}"] = lane.get("instant")
        yield of_port("optics", port, v.values_of(ANY, "optics", row))


def _modules(tables: Tables, is_port: Callable[[str], bool]) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Each port with the component that is its module, and the channels of it that are the port's; none: all of them."""
    known = {name for name, *_ in (*tables[MODULE], *tables[LIGHT])}
    for (port,), row in tables[INTERFACE].items():
        component = str(row.get("transceiver") or port)
        if is_port(port) and component in known:
            channels = row.get("physical-channel")
            yield port, component, frozenset(map(str, channels if isinstance(channels, list) else ()))


def _pfc_readings(tables: Tables, is_port: Callable[[str], bool]) -> Iterator[SwitchReading]:
    for table, source in PFC_TABLES.items():
        for (port, priority), row in tables[table].items():
            if is_port(port) and priority in set(v.DIGITS_TO_7):
                yield of_port(source, port, v.values_of(OPENCONFIG, source, row), priority=priority)


def queue_of(name: str, row: Mapping[str, Any]) -> str:
    """The label of a queue: its position on the interface, or else the number at the end of its name; empty without one.

    Queues that carry multicast alone have `mc` before it.
    """
    position = number(row.get("id"))
    if isinstance(position, Unreadable):
        position = number(found[1] if (found := LAST_NUMBER.search(name)) else "")
    if isinstance(position, Unreadable):
        return ""
    return f"mc{position}" if row.get("queue-type") in ("MULTICAST", "MC") else str(position)


def queue_readings(tables: Tables, wants: Callable[[str, str], bool]) -> Iterator[SwitchReading]:
    """Counters per queue, and the marking profile that it refers to."""
    profiles = {name: v.values_of(ANY, "ecn_profiles", row) for (name,), row in tables[PROFILE].items()}
    for (port, name), row in tables[QUEUE].items():
        label = queue_of(name, row)
        if label and wants(port, label):
            yield of_port("queues", port, v.values_of(ANY, "queues", row), queue=label)
            profile = profiles.get(str(row.get("queue-management-profile", "")), {})
            yield of_port("ecn_profiles", port, profile, queue=label)


def neighbor_fact(port: str, found: Iterable[Any]) -> SwitchFact:
    """What LLDP says of a neighbour, in the order of `NEIGHBOR_LEAVES`; None: it did not announce this."""
    name, chassis, port_id, kind, text = found
    known = KINDS.get(plain_name(str(kind)), "other")
    return v.neighbor(port, name=name, chassis=chassis, port_id=port_id, description=text, kind=known)


def port_facts(
    tables: Tables, is_port: Callable[[str], bool], more: Iterable[str] = ()
) -> Iterator[SwitchFact]:
    """The names of the ports, and their modules; `more` are ports that other tables have."""
    interfaces = {port: row for (port,), row in tables[INTERFACE].items()}
    for port in filter(is_port, dict.fromkeys((*more, *interfaces))):
        yield fact(named.SWITCH_PORT_INFO, port=port, description=interfaces.get(port, {}).get("description"))
    for port, component, _ in _modules(tables, is_port):
        row = tables[MODULE].get((component,), {})
        kind = plain_name(str(row.get("form-factor") or ""))
        yield from v.module_facts(port, kind, row.get("vendor"), row.get("vendor-part"))


def neighbor_facts(tables: Tables, is_port: Callable[[str], bool]) -> Iterator[SwitchFact]:
    """The table of openconfig-lldp."""
    for (port, _), row in tables[NEIGHBOR].items():
        if is_port(port):
            yield neighbor_fact(port, map(row.get, NEIGHBOR_LEAVES))


def read(replies: ProbeReply, _: SwitchTarget) -> SwitchReadings:
    """The readings of one round. No model says which queues are lossless, so all of them are shown."""
    tables = tables_of(chain.from_iterable(replies.replies.values()))

    def is_port(name: str) -> bool:
        row = tables[INTERFACE].get((name,), {})
        kind = plain_name(str(row.get("type", "ethernetCsmacd")))
        others = any(row.get(leaf) in (True, "true") for leaf in ("management", "logical", "cpu"))
        is_ethernet = kind in ("ethernetCsmacd", "IF_ETHERNET") and (name,) in tables[ETHERNET]
        return is_ethernet and not others and not MANAGEMENT.match(name)

    system = tables[SYSTEM].get((), {})
    known = [fact(named.SWITCH_INFO, os=OPENCONFIG, version=system.get("software-version"))] if system else []
    readings = chain(
        port_readings(tables, is_port),
        _pfc_readings(tables, is_port),
        queue_readings(tables, lambda port, _: is_port(port)),
    )
    return SwitchReadings(
        name=v.said(system.get("hostname")),
        readings=tuple(reading for reading in readings if reading.values),
        facts=(*known, *port_facts(tables, is_port), *neighbor_facts(tables, is_port)),
        sources=tuple(dict.fromkeys((*replies.replies, *replies.faults))),
    )

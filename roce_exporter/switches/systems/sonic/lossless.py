"""The priorities with PFC per port, and the queue and the priority group behind each priority.

SONiC: PORT_QOS_MAP names the priorities (`pfc_enable`) and the maps from priority to queue and to group; without a map, the
queue and the group have the number of the priority. The watchdog always takes the queue with the number of the priority
(sonic-swss, pfcwdorch), whatever the map says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.switches.numbers import number
from roce_exporter.switches.readings import label_text
from roce_exporter.switches.systems.sonic.rows import SonicRows, reference
from roce_exporter.switches.systems.sonic.tables import EVERY_TYPE, UNICAST

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roce_exporter.switches.systems.sonic.tables import Fields, SonicQueue, SonicTables

PRIORITIES = range(8)
QUEUE_MAP = "MAP_PFC_PRIORITY_TO_QUEUE"
GROUP_MAP = "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"
PREFIXES = {"MULTICAST": "MC", "UNICAST_VOQ": "VOQ", EVERY_TYPE: "ALL"}
LIST = re.compile(r"[0-7](,[0-7])*", re.ASCII)


class PortLossless(NamedTuple):
    """The priorities of one port that have PFC."""

    queues: Mapping[int, int]
    """The queue of each priority with PFC."""
    groups: Mapping[int, int]
    """The priority group of each priority with PFC."""
    watched: frozenset[int]
    """The priorities that the watchdog watches if it is configured on the port: `pfcwd_sw_enable`, else all of them."""


@dataclass(frozen=True, slots=True)
class Lossless:
    """The lossless part of one namespace."""

    ports: Mapping[str, PortLossless]
    """A port that is absent has no priority with PFC, or it is not known which."""
    unclear: Mapping[str, str] = field(default_factory=dict)
    """Per port whose row does not say which priorities have PFC, why not: one line."""

    @property
    def priorities(self) -> frozenset[int]:
        """The priorities with PFC on any port: on other ports, pause of these is a mismatch worth a metric."""
        return frozenset(priority for port in self.ports.values() for priority in port.queues)


def lossless_of(rows: SonicRows) -> Lossless:
    """The lossless part as it is configured."""
    ports, unclear = {}, {}
    for port, fields in rows.qos.items():
        enabled = _listed(fields.get("pfc_enable", ""))
        if enabled is None:
            unclear[port] = f"PORT_QOS_MAP|{port}: pfc_enable is not a list of priorities"
        elif enabled:
            watched = _listed(fields.get("pfcwd_sw_enable", ""))
            ports[port] = PortLossless(
                _mapped(enabled, rows.get(f"{QUEUE_MAP}|{reference(fields.get('pfc_to_queue_map'))}")),
                _mapped(enabled, rows.get(f"{GROUP_MAP}|{reference(fields.get('pfc_to_pg_map'))}")),
                enabled & watched if watched else enabled,
            )
    return Lossless(ports, unclear)


def named_maps(rows: SonicRows) -> set[str]:
    """Keys of the maps to which the ports refer."""
    return {
        f"{table}|{name}"
        for fields in rows.qos.values()
        for table, setting in ((QUEUE_MAP, "pfc_to_queue_map"), (GROUP_MAP, "pfc_to_pg_map"))
        if (name := reference(fields.get(setting)))
    }


def lossless_by_counters(tables: SonicTables) -> Lossless:
    """Where the configuration is unknown: the priorities with PFC frames, and the queues on which the watchdog runs."""
    used: dict[str, set[int]] = {}
    for port, fields in (tables.port_counters or {}).items():
        used.setdefault(port, set()).update(_with_frames(fields))
    for queue, fields in (tables.queue_counters or {}).items():
        if "PFC_WD_STATUS" in fields and queue.number in PRIORITIES:
            used.setdefault(queue.port, set()).add(queue.number)
    same = {port: {priority: priority for priority in sorted(found)} for port, found in used.items() if found}
    return Lossless({port: PortLossless(found, found, frozenset(found)) for port, found in same.items()})


def _with_frames(fields: Fields) -> Iterable[int]:
    for priority in PRIORITIES:
        if any(number(fields.get(f"SAI_PORT_STAT_PFC_{priority}_{way}_PKTS")) for way in ("RX", "TX")):
            yield priority


def _listed(text: str) -> frozenset[int] | None:
    """The priorities in `3,4`; None if the text is something else."""
    plain = text.replace(" ", "")
    if not plain:
        return frozenset()
    return frozenset(map(int, plain.split(","))) if LIST.fullmatch(plain) else None


def _mapped(priorities: Iterable[int], fields: Fields) -> dict[int, int]:
    found = {priority: number(fields.get(str(priority))) for priority in sorted(priorities)}
    return {
        priority: value if isinstance(value, int) and value <= 1 << 8 else priority
        for priority, value in found.items()
    }


def ports_with_unicast(queues: Iterable[SonicQueue]) -> frozenset[str]:
    """The ports whose queues are typed; on the others, a queue takes all types of packets."""
    return frozenset(queue.port for queue in queues if queue.type == UNICAST)


def queue_label(queue: SonicQueue, typed: frozenset[str]) -> str:
    """The number of a queue of unicast, or of all packets where the port has no others; else as SONiC's CLI: `MC10`."""
    if queue.type == UNICAST or (queue.type == EVERY_TYPE and queue.port not in typed):
        return str(queue.number)
    return f"{PREFIXES.get(queue.type) or label_text(queue.type) + '-'}{queue.number}"

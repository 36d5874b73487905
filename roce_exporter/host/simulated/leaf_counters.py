"""The simulated switch's COUNTERS_DB, with the names of SONiC (sonic-swss: portsorch, pfcwdorch, watermarkorch; SAI headers).

An NVIDIA switch: pause time is measured, each port has eight unicast and eight multicast queues, and the watchdog adds
its fields only to the queues that it watches. All values are decimal text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.simulated.conditions import PRIORITIES
from roce_exporter.host.simulated.leaf_port import HEADROOM, QUEUE, ROCE_QUEUE, SHARED
from roce_exporter.host.simulated.rates import CNP_PRIORITY, HOST_PRIORITY, PACKET_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.host.simulated.leaf_port import LeafPortState
    from roce_exporter.host.simulated.leaf_watchdog import LeafWatchdog

Table = dict[str, dict[str, str]]
"""Fields and values by key."""

QUEUES = 16
UNICAST_QUEUES = len(PRIORITIES)
MICROSECONDS = 1_000_000

INGRESS_POOL, EGRESS_POOL = "ingress_lossless_pool", "egress_lossless_pool"
POOLS = {INGRESS_POOL: 0x18000000000B01, EGRESS_POOL: 0x18000000000B02}

PORT_OID, QUEUE_OID, GROUP_OID = 0x1000000000011, 0x15000000000301, 0x1A000000000201
"""The first identifier of each kind; the digits in front are the type of the object in SAI."""

QUEUE_WATERMARK = "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"
GROUP_STAT = "SAI_INGRESS_PRIORITY_GROUP_STAT_"
POOL_STAT = "SAI_BUFFER_POOL_STAT_"


def counters_db(ports: Sequence[LeafPortState]) -> Table:
    """All tables of COUNTERS_DB by key."""
    found = _name_maps(ports)
    for number, port in enumerate(ports):
        found[f"COUNTERS:{_oid(PORT_OID, number)}"] = _port_fields(port)
        for queue in range(QUEUES):
            found[f"COUNTERS:{_queue_oid(number, queue)}"] = _queue_fields(port, queue)
        for group in PRIORITIES:
            found[f"COUNTERS:{_group_oid(number, group)}"] = _group_fields(port, group)
    for window in ("USER", "PERSISTENT", "PERIODIC"):
        found |= {f"{window}_WATERMARKS:{oid}": fields for oid, fields in _watermarks(ports, window)}
    return found


def _oid(first: int, number: int) -> str:
    return f"oid:{first + number:#x}"


def _queue_oid(port: int, queue: int) -> str:
    return _oid(QUEUE_OID, port * QUEUES + queue)


def _group_oid(port: int, group: int) -> str:
    return _oid(GROUP_OID, port * len(PRIORITIES) + group)


def _name_maps(ports: Sequence[LeafPortState]) -> Table:
    names: Table = {
        "COUNTERS_PORT_NAME_MAP": {},
        "COUNTERS_BUFFER_POOL_NAME_MAP": {name: f"oid:{number:#x}" for name, number in POOLS.items()},
    }
    for number, port in enumerate(ports):
        oid, name = _oid(PORT_OID, number), port.plan.name
        names["COUNTERS_PORT_NAME_MAP"][name] = oid
        for queue in range(QUEUES):
            kind = "UNICAST" if queue < UNICAST_QUEUES else "MULTICAST"
            _add_member(names, "QUEUE", f"{name}:{queue}", _queue_oid(number, queue), oid)
            names.setdefault("COUNTERS_QUEUE_TYPE_MAP", {})[_queue_oid(number, queue)] = (
                f"SAI_QUEUE_TYPE_{kind}"
            )
        for group in PRIORITIES:
            _add_member(names, "PG", f"{name}:{group}", _group_oid(number, group), oid)
    return names


def _add_member(names: Table, kind: str, name: str, oid: str, port: str) -> None:
    names.setdefault(f"COUNTERS_{kind}_NAME_MAP", {})[name] = oid
    names.setdefault(f"COUNTERS_{kind}_INDEX_MAP", {})[oid] = name.rpartition(":")[2]
    names.setdefault(f"COUNTERS_{kind}_PORT_MAP", {})[oid] = port


def _texts(values: Mapping[str, float]) -> dict[str, str]:
    return {name: str(int(value)) for name, value in values.items()}


def _port_fields(port: LeafPortState) -> dict[str, str]:
    facts, extra = port.facts, port.extra
    found = {"SAI_PORT_STAT_PAUSE_RX_PKTS": 0.0, "SAI_PORT_STAT_PAUSE_TX_PKTS": 0.0}
    for priority in PRIORITIES:
        pfc = f"SAI_PORT_STAT_PFC_{priority}"
        # What the host transmits the switch receives.
        found[f"{pfc}_RX_PKTS"] = facts.get(f"transmit_frames_{priority}", 0.0)
        found[f"{pfc}_TX_PKTS"] = facts.get(f"receive_frames_{priority}", 0.0) + extra.get(
            f"vain_frames_{priority}", 0.0
        )
        if port.plan.watchdog:
            # SONiC polls the pause time only of ports with a watchdog.
            found[f"{pfc}_RX_PAUSE_DURATION_US"] = facts.get(f"transmit_pause_us_{priority}", 0.0)
    return _texts(found)


def _queue_fields(port: LeafPortState, queue: int) -> dict[str, str]:
    sent = {unit: _sent(port, queue, unit) for unit in ("packets", "bytes")}
    discards = port.extra.get(f"queue_discards_{queue}", 0.0)
    discards += port.extra.get(f"watchdog_transmit_{queue}", 0.0)
    marks = port.facts.get("marks", 0.0) if queue == port.roce_queue else 0.0
    found = {
        "SAI_QUEUE_STAT_PACKETS": sent["packets"],
        "SAI_QUEUE_STAT_BYTES": sent["bytes"],
        "SAI_QUEUE_STAT_DROPPED_PACKETS": discards,
        "SAI_QUEUE_STAT_DROPPED_BYTES": int(discards) * PACKET_BYTES,
    }
    if queue < UNICAST_QUEUES:
        found |= {
            "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": marks,
            "SAI_QUEUE_STAT_WRED_ECN_MARKED_BYTES": int(marks) * PACKET_BYTES,
            "SAI_QUEUE_STAT_WRED_DROPPED_PACKETS": 0.0,
            "SAI_QUEUE_STAT_WRED_DROPPED_BYTES": 0.0,
        }
    texts = _texts(found)
    watchdog = port.plan.watchdog
    return (
        texts | _watchdog_fields(port, queue, watchdog)
        if watchdog and queue in watchdog.priorities
        else texts
    )


def _sent(port: LeafPortState, queue: int, unit: str) -> float:
    """Packets or bytes transmitted from a queue, of the priorities that the host gives to them."""
    # The switch can put RoCE packets into another queue than the host's priority; all other traffic is mapped alike.
    priorities = {HOST_PRIORITY, CNP_PRIORITY} - {port.host_priority}
    wanted = priorities & {queue} | ({port.host_priority} if queue == port.roce_queue else set())
    return sum(port.facts.get(f"receive_{unit}_{priority}", 0.0) for priority in sorted(wanted))


def _watchdog_fields(port: LeafPortState, queue: int, watchdog: LeafWatchdog) -> dict[str, str]:
    stormed = queue in port.stormed
    detection, restoration = (
        int(seconds * MICROSECONDS) for seconds in (watchdog.detection, watchdog.restoration)
    )
    found = {
        "PFC_WD_ACTION": watchdog.action,
        "PFC_WD_STATUS": "stormed" if stormed else "operational",
        "PFC_WD_DETECTION_TIME": str(detection),
        "PFC_WD_RESTORATION_TIME": str(restoration),
        **_texts(
            {
                "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": port.extra.get(f"trips_{queue}", 0.0),
                "PFC_WD_QUEUE_STATS_DEADLOCK_RESTORED": port.extra.get(f"restores_{queue}", 0.0),
                "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES": port.occupancy if queue == port.roce_queue else 0.0,
            }
        ),
    }
    return found | (_storm_fields(port, queue) if port.last else {})


def _storm_fields(port: LeafPortState, queue: int) -> dict[str, str]:
    """Fields that exist from the first storm on: packets that met a tripped watchdog, in all and in the last storm."""
    found = {}
    for way, direction in (("TX", "transmit"), ("RX", "receive")):
        for ending, amounts in (("", port.extra), ("_LAST", port.last)):
            found[f"PFC_WD_QUEUE_STATS_{way}_PACKETS{ending}"] = 0.0
            found[f"PFC_WD_QUEUE_STATS_{way}_DROPPED_PACKETS{ending}"] = amounts.get(
                f"watchdog_{direction}_{queue}", 0.0
            )
    return _texts(found)


def _group_fields(port: LeafPortState, group: int) -> dict[str, str]:
    names = (f"group_discards_{group}", f"watchdog_receive_{group}")
    return _texts({f"{GROUP_STAT}DROPPED_PACKETS": sum(port.extra.get(name, 0.0) for name in names)})


def _watermarks(ports: Sequence[LeafPortState], window: str) -> Iterator[tuple[str, dict[str, str]]]:
    found = [port.periodic if window == "PERIODIC" else port.ever for port in ports]
    for number, (port, peaks) in enumerate(zip(ports, found, strict=True)):
        for queue in range(QUEUES):
            level = peaks[QUEUE] if queue == port.roce_queue else 0.0
            yield _queue_oid(number, queue), _texts({QUEUE_WATERMARK: level})
        for group in PRIORITIES:
            lossless = group == ROCE_QUEUE
            yield (
                _group_oid(number, group),
                _texts(
                    {
                        f"{GROUP_STAT}SHARED_WATERMARK_BYTES": peaks[SHARED] if lossless else 0.0,
                        f"{GROUP_STAT}XOFF_ROOM_WATERMARK_BYTES": peaks[HEADROOM] if lossless else 0.0,
                    }
                ),
            )
    # The highest level of all ports at once is not known: their sum is a bound.
    shared, headroom, queues = (sum(peaks[name] for peaks in found) for name in (SHARED, HEADROOM, QUEUE))
    ingress = {f"{POOL_STAT}WATERMARK_BYTES": shared, f"{POOL_STAT}XOFF_ROOM_WATERMARK_BYTES": headroom}
    yield f"oid:{POOLS[INGRESS_POOL]:#x}", _texts(ingress)
    yield f"oid:{POOLS[EGRESS_POOL]:#x}", _texts({f"{POOL_STAT}WATERMARK_BYTES": queues})

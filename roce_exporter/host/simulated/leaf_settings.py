"""What the simulated switch has apart from counters: CONFIG_DB, STATE_DB, and the neighbours in APPL_DB.

Names of tables and fields are those of SONiC (its YANG models in sonic-buildimage, src/sonic-yang-models). All values are
text. Times of the watchdog are milliseconds here and microseconds in COUNTERS_DB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.simulated.conditions import PRIORITIES
from roce_exporter.host.simulated.leaf_buffers import HEADROOM_BYTES, KIBIBYTE, POOL_BYTES
from roce_exporter.host.simulated.leaf_counters import EGRESS_POOL, INGRESS_POOL
from roce_exporter.host.simulated.leaf_port import DEFAULT_QUEUE, ROCE_DSCP, ROCE_QUEUE
from roce_exporter.host.simulated.rates import CNP_PRIORITY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.host.simulated.leaf_buffers import LeafWred
    from roce_exporter.host.simulated.leaf_counters import Table
    from roce_exporter.host.simulated.leaf_port import LeafPlan, LeafPortState
    from roce_exporter.host.simulated.leaf_watchdog import LeafWatchdog

MAP = "AZURE"
"""SONiC's usual name for its QoS maps."""

CNP_DSCP = 48
LANES = 8
MEGABIT = 10**6
MTU = 9100
XON_BYTES = 18 * KIBIBYTE

MAC_SUBTYPE, NAME_SUBTYPE, CHASSIS_SUBTYPE = "3", "5", "4"
"""Subtypes of port and chassis identifiers (IEEE 802.1AB): MAC address, interface name; MAC address."""

COUNTER_GROUPS = ("PORT", "QUEUE", "QUEUE_WATERMARK", "PG_DROP", "PG_WATERMARK", "WRED_ECN_QUEUE")
RENEWAL = {"POLL_INTERVAL": "1000", "FLEX_COUNTER_STATUS": "enable"}
"""The simulated switch refreshes all its counters once a second."""


def config_db(hostname: str, mac: str, plans: Sequence[LeafPlan]) -> Table:
    """All tables of CONFIG_DB by key."""
    found = {
        "DEVICE_METADATA|localhost": {
            "hostname": hostname,
            "hwsku": "ACS-SN5600",
            "platform": "x86_64-nvidia_sn5600-r0",
            "mac": mac,
            "type": "LeafRouter",
            "default_pfcwd_status": "disable",
        },
        **{f"FLEX_COUNTER_TABLE|{group}": dict(RENEWAL) for group in COUNTER_GROUPS},
        **_maps(),
        **_buffers(),
    }
    polls = {plan.watchdog.poll for plan in plans if plan.watchdog}
    if polls:
        found["PFC_WD|GLOBAL"] = {"POLL_INTERVAL": _milliseconds(min(polls))}
    for number, plan in enumerate(plans):
        found |= dict(_port(plan, number))
        found[f"WRED_PROFILE|{plan.wred.name}"] = _wred(plan.wred)
    return found


def _milliseconds(seconds: float) -> str:
    return str(round(1000 * seconds))


def _maps() -> Table:
    """Every priority has the queue and the priority group of its number; only lossless traffic has a group of its own."""
    traffic_classes = {str(dscp): str(DEFAULT_QUEUE) for dscp in range(64)}
    traffic_classes |= {str(ROCE_DSCP): str(ROCE_QUEUE), str(CNP_DSCP): str(CNP_PRIORITY)}
    same = {str(priority): str(priority) for priority in PRIORITIES}
    groups = {str(priority): str(priority if priority == ROCE_QUEUE else 0) for priority in PRIORITIES}
    return {
        f"DSCP_TO_TC_MAP|{MAP}": traffic_classes,
        f"TC_TO_QUEUE_MAP|{MAP}": same,
        f"TC_TO_PRIORITY_GROUP_MAP|{MAP}": groups,
        f"MAP_PFC_PRIORITY_TO_QUEUE|{MAP}": dict(same),
    }


def _buffers() -> Table:
    pool = {"mode": "dynamic", "size": str(POOL_BYTES)}
    lossless = {
        "pool": INGRESS_POOL,
        "xon": str(XON_BYTES),
        "xoff": str(HEADROOM_BYTES),
        "size": str(XON_BYTES + HEADROOM_BYTES),
        "dynamic_th": "0",
    }
    return {
        f"BUFFER_POOL|{INGRESS_POOL}": {"type": "ingress", **pool},
        f"BUFFER_POOL|{EGRESS_POOL}": {"type": "egress", **pool},
        "BUFFER_PROFILE|pg_lossless_400000_5m_profile": lossless,
        "BUFFER_PROFILE|ingress_lossy_profile": {"pool": INGRESS_POOL, "size": "0", "dynamic_th": "3"},
        "BUFFER_PROFILE|egress_lossless_profile": {"pool": EGRESS_POOL, "size": "0", "dynamic_th": "7"},
    }


def _port(plan: LeafPlan, number: int) -> Iterator[tuple[str, dict[str, str]]]:
    name, lossless = plan.name, ",".join(map(str, plan.lossless))
    yield (
        f"PORT|{name}",
        {
            "admin_status": "up",
            "alias": f"etp{number + 1}",
            "description": f"{plan.neighbor.host}:{plan.neighbor.netdev}",
            "index": str(number + 1),
            "lanes": ",".join(str(LANES * number + lane) for lane in range(LANES)),
            "mtu": str(MTU),
            "speed": str(plan.speed // MEGABIT),
        },
    )
    maps = ("dscp_to_tc_map", "tc_to_queue_map", "tc_to_pg_map", "pfc_to_queue_map")
    enabled = {"pfc_enable": lossless}
    if plan.watchdog:
        enabled["pfcwd_sw_enable"] = ",".join(map(str, plan.watchdog.priorities))
        yield f"PFC_WD|{name}", _watchdog(plan.watchdog)
    yield f"PORT_QOS_MAP|{name}", {**dict.fromkeys(maps, MAP), **enabled}
    yield f"BUFFER_PG|{name}|0", {"profile": "ingress_lossy_profile"}
    for priority in plan.lossless:
        yield f"BUFFER_PG|{name}|{priority}", {"profile": "pg_lossless_400000_5m_profile"}
        yield f"BUFFER_QUEUE|{name}|{priority}", {"profile": "egress_lossless_profile"}
        yield f"QUEUE|{name}|{priority}", {"scheduler": "scheduler.1", "wred_profile": plan.wred.name}


def _watchdog(watchdog: LeafWatchdog) -> dict[str, str]:
    return {
        "action": watchdog.action,
        "detection_time": _milliseconds(watchdog.detection),
        "restoration_time": _milliseconds(watchdog.restoration),
    }


def _wred(wred: LeafWred) -> dict[str, str]:
    found = {"ecn": "ecn_all" if wred.ecn else "ecn_none"}
    for colour in ("green", "yellow", "red"):
        found |= {
            f"wred_{colour}_enable": "true",
            f"{colour}_min_threshold": str(wred.minimum),
            f"{colour}_max_threshold": str(wred.maximum),
            f"{colour}_drop_probability": str(wred.percent),
        }
    return found


def state_db() -> Table:
    """The capabilities of the switch in STATE_DB: it counts marks per queue."""
    names = ("WRED_DROPPED_PKT", "WRED_DROPPED_BYTE", "ECN_MARKED_PKT", "ECN_MARKED_BYTE")
    return {
        f"QUEUE_COUNTER_CAPABILITIES|WRED_ECN_QUEUE_{name}_COUNTER": {"isSupported": "true"} for name in names
    }


def appl_db(hostname: str, mac: str, ports: Sequence[LeafPortState]) -> Table:
    """The LLDP tables of APPL_DB. A port without a link has no neighbour."""
    local = {
        "lldp_loc_chassis_id_subtype": CHASSIS_SUBTYPE,
        "lldp_loc_chassis_id": mac,
        "lldp_loc_sys_name": hostname,
        "lldp_loc_sys_desc": "SONiC Software Version: simulated",
        "lldp_loc_sys_cap_supported": "28 00",
        "lldp_loc_sys_cap_enabled": "28 00",
    }
    neighbors = {f"LLDP_ENTRY_TABLE:{port.plan.name}": _neighbor(port.plan) for port in ports if port.up}
    return {"LLDP_LOC_CHASSIS": local, **neighbors}


def _neighbor(plan: LeafPlan) -> dict[str, str]:
    found = plan.neighbor
    return {
        "lldp_rem_chassis_id_subtype": CHASSIS_SUBTYPE,
        "lldp_rem_chassis_id": found.chassis,
        "lldp_rem_port_id_subtype": MAC_SUBTYPE if found.by_mac else NAME_SUBTYPE,
        "lldp_rem_port_id": found.mac if found.by_mac else found.netdev,
        "lldp_rem_port_desc": found.netdev,
        "lldp_rem_sys_name": found.host,
        "lldp_rem_sys_desc": "Linux",
        "lldp_rem_sys_cap_supported": "80 00",
        "lldp_rem_sys_cap_enabled": "80 00",
        "lldp_rem_index": "1",
    }

"""A SONiC switch of any size in a Redis: 20 queues and 8 priority groups per port, every field that SONiC writes there."""

from __future__ import annotations

from redis import Redis

from roce_exporter.switches.systems.sonic.tables import PORT_FIELDS

QUEUES = 20
UNICAST = 10
GROUPS = 8
LOSSLESS = (3, 4)
WINDOWS = ("USER", "PERSISTENT", "PERIODIC")
FILLER = 60
"""Fields of a port that no row of the catalogue has: SONiC writes about 120."""

Rows = dict[str, dict[str, str]]


def counters(ports: int) -> Rows:
    """COUNTERS_DB."""
    maps = ("PORT_NAME", "QUEUE_NAME", "QUEUE_INDEX", "QUEUE_TYPE", "PG_NAME", "PG_INDEX", "BUFFER_POOL_NAME")
    rows: Rows = {f"COUNTERS_{name}_MAP": {} for name in maps}
    for number in range(ports):
        port, oid = f"Ethernet{number * 8}", f"oid:0x10000000{number:05x}"
        rows["COUNTERS_PORT_NAME_MAP"][port] = oid
        rows[f"COUNTERS:{oid}"] = _port()
        for queue in range(QUEUES):
            oid, unicast = f"oid:0x15000000{number:03x}{queue:02x}", queue < UNICAST
            rows["COUNTERS_QUEUE_NAME_MAP"][f"{port}:{queue}"] = oid
            rows["COUNTERS_QUEUE_INDEX_MAP"][oid] = str(queue)
            rows["COUNTERS_QUEUE_TYPE_MAP"][oid] = f"SAI_QUEUE_TYPE_{'UNICAST' if unicast else 'MULTICAST'}"
            rows[f"COUNTERS:{oid}"] = _queue(watched=queue in LOSSLESS)
            for window in WINDOWS:
                rows[f"{window}_WATERMARKS:{oid}"] = {"SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES": "1048576"}
        for group in range(GROUPS):
            oid, stat = f"oid:0x1a000000{number:03x}{group:02x}", "SAI_INGRESS_PRIORITY_GROUP_STAT_"
            rows["COUNTERS_PG_NAME_MAP"][f"{port}:{group}"] = oid
            rows["COUNTERS_PG_INDEX_MAP"][oid] = str(group)
            rows[f"COUNTERS:{oid}"] = {f"{stat}DROPPED_PACKETS": "0"}
            for window in WINDOWS:
                rows[f"{window}_WATERMARKS:{oid}"] = {
                    f"{stat}{name}_WATERMARK_BYTES": "65536" for name in ("XOFF_ROOM", "SHARED")
                }
    return rows


def _port() -> dict[str, str]:
    fields = {f"SAI_PORT_STAT_IF_NUMBER_{number}": "123456789" for number in range(FILLER)}
    for priority in range(8):
        for name in ("RX_PKTS", "TX_PKTS", "RX_PAUSE_DURATION_US", "ON2OFF_RX_PKTS"):
            fields[f"SAI_PORT_STAT_PFC_{priority}_{name}"] = "123456789"
    return fields | dict.fromkeys(PORT_FIELDS, "123456789")


def _queue(*, watched: bool) -> dict[str, str]:
    names = [
        "PACKETS",
        "BYTES",
        "DROPPED_PACKETS",
        "DROPPED_BYTES",
        "WRED_ECN_MARKED_PACKETS",
        "WRED_DROPPED_PACKETS",
    ]
    fields = {f"SAI_QUEUE_STAT_{name}": "1234567890" for name in names}
    if watched:
        fields |= {"PFC_WD_STATUS": "operational", "SAI_QUEUE_ATTR_PAUSE_STATUS": "false"}
        fields |= {f"PFC_WD_QUEUE_STATS_DEADLOCK_{name}": "2" for name in ("DETECTED", "RESTORED")}
        fields |= {f"PFC_WD_QUEUE_STATS_{way}_DROPPED_PACKETS": "300" for way in ("TX", "RX")}
        fields["SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES"] = "4096"
    return fields


def configuration(ports: int) -> Rows:
    """CONFIG_DB: single queues with a row each, lossless groups as a range, as SONiC's templates write them."""
    rows: Rows = {
        "DEVICE_METADATA|localhost": {"hostname": "leaf1", "hwsku": "Example"},
        "PFC_WD|GLOBAL": {"POLL_INTERVAL": "200"},
        "WRED_PROFILE|W": {"ecn": "ecn_all", "green_min_threshold": "1000", "green_max_threshold": "2000"},
        "BUFFER_PROFILE|B": {"pool": "P", "xoff": "165888", "dynamic_th": "0"},
        "BUFFER_POOL|P": {"size": "33554432"},
    }
    for number in range(ports):
        port = f"Ethernet{number * 8}"
        rows[f"PORT|{port}"] = {"alias": f"Eth1/{number + 1}", "description": f"gpu-{number:03}"}
        rows[f"PORT_QOS_MAP|{port}"] = {"pfc_enable": "3,4"}
        rows[f"PFC_WD|{port}"] = {"action": "drop", "detection_time": "200", "restoration_time": "200"}
        rows |= {f"QUEUE|{port}|{queue}": {"wred_profile": "W"} for queue in range(7)}
        rows[f"BUFFER_PG|{port}|3-4"] = {"profile": "B"}
    return rows


def neighbors(ports: int) -> Rows:
    """APPL_DB: a host behind every port."""
    return {
        f"LLDP_ENTRY_TABLE:Ethernet{number * 8}": {
            "lldp_rem_sys_name": f"gpu-{number:03}",
            "lldp_rem_port_id": f"02:00:5e:00:53:{number:02x}",
            "lldp_rem_port_id_subtype": "3",
            "lldp_rem_chassis_id": "02:00:5e:00:53:ff",
        }
        for number in range(ports)
    }


def load(socket: str, ports: int) -> None:
    """Put the switch into a Redis."""
    for database, rows in ((0, neighbors(ports)), (2, counters(ports)), (4, configuration(ports))):
        with Redis(unix_socket_path=socket, db=database) as client:
            pipeline = client.pipeline(transaction=False)
            for key, fields in rows.items():
                if fields:
                    pipeline.hset(key, mapping=dict(fields))
            pipeline.execute()

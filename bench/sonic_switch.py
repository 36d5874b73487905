"""A SONiC switch of any size in a Redis: 20 queues and 8 priority groups per port, every field that SONiC writes there.

Switches of different numbers have no value, identifier, host or neighbour in common, and of four in a row each names its ports in another way.
"""

from __future__ import annotations

from itertools import count

from redis import Redis

from roce_exporter.switches.systems.sonic.tables import PORT_FIELDS

QUEUES = 20
UNICAST = 10
GROUPS = 8
LOSSLESS = (3, 4)
WINDOWS = ("USER", "PERSISTENT", "PERIODIC")
FILLER = 60
"""Fields of a port that no row of the catalogue has: SONiC writes about 120."""

STRIDES = (8, 4, 2, 1)
"""What the numbers of ports rise by: the lanes of a port."""
MOVE = """for _, key in ipairs(redis.call('KEYS', 'COUNTERS:*')) do
  for _, name in ipairs(redis.call('HKEYS', key)) do pcall(redis.call, 'HINCRBY', key, name, ARGV[1]) end
end"""
"""Every counter rises: a script of Redis, so that it costs this process nothing."""

Rows = dict[str, dict[str, str]]
Values = "Iterator[int]"
"""No value comes twice."""


def names(ports: int, number: int = 0) -> list[str]:
    """The ports of the switch of this number."""
    return [f"Ethernet{port * STRIDES[number % 4]}" for port in range(ports)]


def counters(ports: int, number: int = 0) -> Rows:
    """COUNTERS_DB."""
    values = count(100_000_000 + number * 1_000_003, 7)
    area = f"{number:03x}"
    maps = ("PORT_NAME", "QUEUE_NAME", "QUEUE_INDEX", "QUEUE_TYPE", "PG_NAME", "PG_INDEX", "BUFFER_POOL_NAME")
    rows: Rows = {f"COUNTERS_{name}_MAP": {} for name in maps}
    for place, port in enumerate(names(ports, number)):
        oid = f"oid:0x10{area}000{place:05x}"
        rows["COUNTERS_PORT_NAME_MAP"][port] = oid
        rows[f"COUNTERS:{oid}"] = _port(values)
        for queue in range(QUEUES):
            oid, unicast = f"oid:0x15{area}000{place:03x}{queue:02x}", queue < UNICAST
            rows["COUNTERS_QUEUE_NAME_MAP"][f"{port}:{queue}"] = oid
            rows["COUNTERS_QUEUE_INDEX_MAP"][oid] = str(queue)
            rows["COUNTERS_QUEUE_TYPE_MAP"][oid] = f"SAI_QUEUE_TYPE_{'UNICAST' if unicast else 'MULTICAST'}"
            rows[f"COUNTERS:{oid}"] = _queue(values, watched=queue in LOSSLESS)
            for window in WINDOWS:
                rows[f"{window}_WATERMARKS:{oid}"] = {
                    "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES": str(next(values))
                }
        for group in range(GROUPS):
            oid, stat = f"oid:0x1a{area}000{place:03x}{group:02x}", "SAI_INGRESS_PRIORITY_GROUP_STAT_"
            rows["COUNTERS_PG_NAME_MAP"][f"{port}:{group}"] = oid
            rows["COUNTERS_PG_INDEX_MAP"][oid] = str(group)
            rows[f"COUNTERS:{oid}"] = {f"{stat}DROPPED_PACKETS": str(next(values))}
            for window in WINDOWS:
                rows[f"{window}_WATERMARKS:{oid}"] = {
                    f"{stat}{name}_WATERMARK_BYTES": str(next(values)) for name in ("XOFF_ROOM", "SHARED")
                }
    return rows


def _port(values: Values) -> dict[str, str]:
    fields = [f"SAI_PORT_STAT_IF_NUMBER_{number}" for number in range(FILLER)]
    parts = ("RX_PKTS", "TX_PKTS", "RX_PAUSE_DURATION_US", "ON2OFF_RX_PKTS")
    fields += [f"SAI_PORT_STAT_PFC_{priority}_{name}" for priority in range(8) for name in parts]
    return {field: str(next(values)) for field in (*fields, *PORT_FIELDS)}


def _queue(values: Values, *, watched: bool) -> dict[str, str]:
    counted = [
        "PACKETS",
        "BYTES",
        "DROPPED_PACKETS",
        "DROPPED_BYTES",
        "WRED_ECN_MARKED_PACKETS",
        "WRED_DROPPED_PACKETS",
    ]
    fields = {f"SAI_QUEUE_STAT_{name}": str(next(values)) for name in counted}
    if watched:
        fields |= {"PFC_WD_STATUS": "operational", "SAI_QUEUE_ATTR_PAUSE_STATUS": "false"}
        fields |= {
            f"PFC_WD_QUEUE_STATS_DEADLOCK_{name}": str(next(values)) for name in ("DETECTED", "RESTORED")
        }
        fields |= {f"PFC_WD_QUEUE_STATS_{way}_DROPPED_PACKETS": str(next(values)) for way in ("TX", "RX")}
        fields["SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES"] = str(next(values))
    return fields


def configuration(ports: int, number: int = 0) -> Rows:
    """CONFIG_DB: single queues with a row each, lossless groups as a range, as SONiC's templates write them."""
    rows: Rows = {
        "DEVICE_METADATA|localhost": {"hostname": f"leaf{number}", "hwsku": "Example"},
        "PFC_WD|GLOBAL": {"POLL_INTERVAL": "200"},
        "WRED_PROFILE|W": {"ecn": "ecn_all", "green_min_threshold": "1000", "green_max_threshold": "2000"},
        "BUFFER_PROFILE|B": {"pool": "P", "xoff": "165888", "dynamic_th": "0"},
        "BUFFER_POOL|P": {"size": "33554432"},
    }
    for place, port in enumerate(names(ports, number)):
        rows[f"PORT|{port}"] = {"alias": f"Eth1/{place + 1}", "description": f"gpu-{number:03}-{place:03}"}
        rows[f"PORT_QOS_MAP|{port}"] = {"pfc_enable": "3,4"}
        rows[f"PFC_WD|{port}"] = {"action": "drop", "detection_time": "200", "restoration_time": "200"}
        rows |= {f"QUEUE|{port}|{queue}": {"wred_profile": "W"} for queue in range(7)}
        rows[f"BUFFER_PG|{port}|3-4"] = {"profile": "B"}
    return rows


def state(ports: int, number: int = 0) -> Rows:
    """APPL_DB: the state of each port, and the host behind it."""
    rows: Rows = {"LLDP_LOC_CHASSIS": {"lldp_loc_sys_name": f"leaf{number}"}}
    for place, port in enumerate(names(ports, number)):
        rows[f"PORT_TABLE:{port}"] = {
            "oper_status": "up",
            "admin_status": "up",
            "speed": "400000",
            "mtu": "9100",
            "flap_count": str(place % 5),
            "fec": "rs",
        }
        rows[f"LLDP_ENTRY_TABLE:{port}"] = {
            "lldp_rem_sys_name": f"gpu-{number:03}-{place:03}",
            "lldp_rem_port_id": f"02:00:5e:{number:02x}:53:{place % 256:02x}",
            "lldp_rem_port_id_subtype": "3",
            "lldp_rem_chassis_id": f"02:00:5e:{number:02x}:53:ff",
        }
    return rows


def modules(ports: int, number: int = 0) -> Rows:
    """STATE_DB: light and temperature."""
    values = count(number, 3)
    return {
        f"TRANSCEIVER_DOM_SENSOR|{port}": {
            "temperature": f"{40 + next(values) % 300 / 10}",
            **{f"rx{lane}power": f"-{1 + next(values) % 400 / 100}" for lane in range(1, 9)},
        }
        for port in names(ports, number)
    }


def load(socket: str, ports: int, number: int = 0) -> None:
    """Put the switch of this number into a Redis."""
    tables = {0: state, 2: counters, 4: configuration, 6: modules}
    for database, rows in ((database, make(ports, number)) for database, make in tables.items()):
        with Redis(unix_socket_path=socket, db=database) as client:
            pipeline = client.pipeline(transaction=False)
            for key, fields in rows.items():
                if fields:
                    pipeline.hset(key, mapping=dict(fields))
            pipeline.execute()


def move(socket: str, step: int) -> None:
    """Let every counter rise by this, as between two scrapes."""
    with Redis(unix_socket_path=socket, db=2) as client:
        client.eval(MOVE, 0, step)

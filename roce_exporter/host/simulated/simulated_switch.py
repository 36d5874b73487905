"""The switch of the simulated fabric: a SONiC with a port for each network device of the simulated host, and two more.

The same scenario, vendors and seed give the same switch, and one that fits the host: both ends of a link play one script.
The host's script does not depend on the watchdog: a port that feels the storm of another feels it until the host's
storm ends, also where the watchdog has stopped it at this switch.

The two other ports lead to quiet hosts. In the scenario `victim` the cause that is elsewhere is the first of them: it sends
pause without end while the victims are paused, and the watchdog of its port only reports.

Tables have the names of SONiC: COUNTERS_DB (sonic-swss: portsorch, pfcwdorch, watermarkorch; SAI headers), CONFIG_DB, STATE_DB and
the neighbours in APPL_DB (YANG models in sonic-buildimage, src/sonic-yang-models). It is an NVIDIA switch: pause time is
measured, each port has eight unicast and eight multicast queues, and the watchdog adds its fields only to the queues that it
watches. All values are text. Times of the watchdog are milliseconds in CONFIG_DB and microseconds in COUNTERS_DB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from roce_exporter.host.simulated.conditions import PRIORITIES, TRANSMIT, Pause, Setup
from roce_exporter.host.simulated.rates import CNP_PRIORITY, HOST_PRIORITY, PACKET_BYTES
from roce_exporter.host.simulated.scenarios import PortSeed, again, overlay, paused, quiet
from roce_exporter.host.simulated.simulated_switch_port import (
    ALERT,
    DEFAULT_QUEUE,
    HEADROOM,
    HEADROOM_BYTES,
    KIBIBYTE,
    MEBIBYTE,
    POOL_BYTES,
    QUEUE,
    ROCE_DSCP,
    ROCE_QUEUE,
    SHARED,
    SimulatedSwitchPort,
    SwitchPortNeighbor,
    SwitchPortPlan,
    SwitchPortState,
    SwitchWatchdog,
    WredProfile,
)
from roce_exporter.host.simulated.static_files import hostname_of, mac_of
from roce_exporter.host.simulated.world import scenario_courses
from roce_exporter.words import word_map

Table = dict[str, dict[str, str]]  # fields and values by key
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


def counters_db(ports: Sequence[SwitchPortState]) -> Table:
    """All tables of COUNTERS_DB by key."""
    found = _name_maps(ports)
    for number, port in enumerate(ports):
        found[f"COUNTERS:{_oid(PORT_OID, number)}"] = _port_fields(port)
        for queue in range(QUEUES):
            found[f"COUNTERS:{_queue_oid(number, queue)}"] = _queue_fields(port, queue)
        for group in PRIORITIES:
            names = (f"group_discards_{group}", f"watchdog_receive_{group}")
            dropped = sum(port.extra.get(name, 0.0) for name in names)
            found[f"COUNTERS:{_group_oid(number, group)}"] = _texts({f"{GROUP_STAT}DROPPED_PACKETS": dropped})
    for window in ("USER", "PERSISTENT", "PERIODIC"):
        found |= {f"{window}_WATERMARKS:{oid}": fields for oid, fields in _watermarks(ports, window)}
    return found


def _oid(first: int, number: int) -> str:
    return f"oid:{first + number:#x}"


def _queue_oid(port: int, queue: int) -> str:
    return _oid(QUEUE_OID, port * QUEUES + queue)


def _group_oid(port: int, group: int) -> str:
    return _oid(GROUP_OID, port * len(PRIORITIES) + group)


def _name_maps(ports: Sequence[SwitchPortState]) -> Table:
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


def _port_fields(port: SwitchPortState) -> dict[str, str]:
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


def _queue_fields(port: SwitchPortState, queue: int) -> dict[str, str]:
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
    watchdog = port.plan.watchdog
    watched = watchdog and queue in watchdog.priorities
    return _texts(found) | (_watchdog_fields(port, queue, watchdog) if watchdog and watched else {})


def _sent(port: SwitchPortState, queue: int, unit: str) -> float:
    """Packets or bytes transmitted from a queue, of the priorities that the host gives to them."""
    # The switch can put RoCE packets into another queue than the host's priority; all other traffic is mapped alike.
    priorities = {HOST_PRIORITY, CNP_PRIORITY} - {port.host_priority}
    wanted = priorities & {queue} | ({port.host_priority} if queue == port.roce_queue else set())
    return sum(port.facts.get(f"receive_{unit}_{priority}", 0.0) for priority in sorted(wanted))


def _watchdog_fields(port: SwitchPortState, queue: int, watchdog: SwitchWatchdog) -> dict[str, str]:
    stats = "PFC_WD_QUEUE_STATS_"
    found = {
        "PFC_WD_DETECTION_TIME": watchdog.detection * MICROSECONDS,
        "PFC_WD_RESTORATION_TIME": watchdog.restoration * MICROSECONDS,
        f"{stats}DEADLOCK_DETECTED": port.extra.get(f"trips_{queue}", 0.0),
        f"{stats}DEADLOCK_RESTORED": port.extra.get(f"restores_{queue}", 0.0),
        "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES": port.occupancy if queue == port.roce_queue else 0.0,
    }
    # From the first storm on: packets that met a tripped watchdog, in all and in the last storm.
    for way, direction in (("TX", "transmit"), ("RX", "receive")) if port.last else ():
        for ending, amounts in (("", port.extra), ("_LAST", port.last)):
            found[f"{stats}{way}_PACKETS{ending}"] = 0.0
            found[f"{stats}{way}_DROPPED_PACKETS{ending}"] = amounts.get(f"watchdog_{direction}_{queue}", 0.0)
    status = "stormed" if queue in port.stormed else "operational"
    return {"PFC_WD_ACTION": watchdog.action, "PFC_WD_STATUS": status} | _texts(found)


def _watermarks(ports: Sequence[SwitchPortState], window: str) -> Iterator[tuple[str, dict[str, str]]]:
    found = [port.periodic if window == "PERIODIC" else port.ever for port in ports]
    for number, (port, peaks) in enumerate(zip(ports, found, strict=True)):
        for queue in range(QUEUES):
            level = peaks[QUEUE] if queue == port.roce_queue else 0.0
            yield _queue_oid(number, queue), _texts({QUEUE_WATERMARK: level})
        for group in PRIORITIES:
            lossless = group == ROCE_QUEUE
            levels = {"SHARED": peaks[SHARED], "XOFF_ROOM": peaks[HEADROOM]}
            shown = {
                f"{GROUP_STAT}{name}_WATERMARK_BYTES": level * lossless for name, level in levels.items()
            }
            yield _group_oid(number, group), _texts(shown)
    # The highest level of all ports at once is not known: their sum is a bound.
    shared, headroom, queues = (sum(peaks[name] for peaks in found) for name in (SHARED, HEADROOM, QUEUE))
    ingress = {f"{POOL_STAT}WATERMARK_BYTES": shared, f"{POOL_STAT}XOFF_ROOM_WATERMARK_BYTES": headroom}
    yield f"oid:{POOLS[INGRESS_POOL]:#x}", _texts(ingress)
    yield f"oid:{POOLS[EGRESS_POOL]:#x}", _texts({f"{POOL_STAT}WATERMARK_BYTES": queues})


MAP = "AZURE"  # SONiC's usual name for its QoS maps
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


def config_db(hostname: str, mac: str, plans: Sequence[SwitchPortPlan]) -> Table:
    """All tables of CONFIG_DB by key. Only lossless traffic has a priority group of its own."""
    found = _entries(
        f"""
        DEVICE_METADATA|localhost hostname={hostname} hwsku=ACS-SN5600 platform=x86_64-nvidia_sn5600-r0 mac={mac} type=LeafRouter default_pfcwd_status=disable
        BUFFER_POOL|{INGRESS_POOL} type=ingress mode=dynamic size={POOL_BYTES}
        BUFFER_POOL|{EGRESS_POOL} type=egress mode=dynamic size={POOL_BYTES}
        BUFFER_PROFILE|pg_lossless_400000_5m_profile pool={INGRESS_POOL} xon={XON_BYTES} xoff={HEADROOM_BYTES} size={XON_BYTES + HEADROOM_BYTES} dynamic_th=0
        BUFFER_PROFILE|ingress_lossy_profile pool={INGRESS_POOL} size=0 dynamic_th=3
        BUFFER_PROFILE|egress_lossless_profile pool={EGRESS_POOL} size=0 dynamic_th=7
        """
    )
    found |= {f"FLEX_COUNTER_TABLE|{group}": dict(RENEWAL) for group in COUNTER_GROUPS}
    # Every priority has the queue and the priority group of its number.
    same = {str(priority): str(priority) for priority in PRIORITIES}
    traffic_classes = {str(dscp): str(DEFAULT_QUEUE) for dscp in range(64)}
    traffic_classes |= {str(ROCE_DSCP): str(ROCE_QUEUE), str(CNP_DSCP): str(CNP_PRIORITY)}
    found[f"DSCP_TO_TC_MAP|{MAP}"] = traffic_classes
    found[f"TC_TO_QUEUE_MAP|{MAP}"] = found[f"MAP_PFC_PRIORITY_TO_QUEUE|{MAP}"] = same
    found[f"TC_TO_PRIORITY_GROUP_MAP|{MAP}"] = dict.fromkeys(same, "0") | {str(ROCE_QUEUE): str(ROCE_QUEUE)}
    if polls := {plan.watchdog.poll for plan in plans if plan.watchdog}:
        found["PFC_WD|GLOBAL"] = {"POLL_INTERVAL": _milliseconds(min(polls))}
    for number, plan in enumerate(plans):
        found |= _port(plan, number)
    return found


def _entries(text: str) -> Table:
    """The entries of a text: a line has a key, and the fields as words NAME=VALUE."""
    lines = (line.partition(" ") for line in map(str.strip, text.splitlines()) if line)
    return {key: word_map(fields) for key, _, fields in lines}


def _milliseconds(seconds: float) -> str:
    return str(round(1000 * seconds))


def _port(plan: SwitchPortPlan, number: int) -> Table:
    name, wred, watchdog = plan.name, plan.wred, plan.watchdog
    lanes = ",".join(str(LANES * number + lane) for lane in range(LANES))
    found = _entries(
        f"""
        PORT|{name} admin_status=up alias=etp{number + 1} description={plan.neighbor.host}:{plan.neighbor.netdev} index={number + 1} lanes={lanes} mtu={MTU} speed={plan.speed // MEGABIT}
        PORT_QOS_MAP|{name} dscp_to_tc_map={MAP} tc_to_queue_map={MAP} tc_to_pg_map={MAP} pfc_to_queue_map={MAP} pfc_enable={",".join(map(str, plan.lossless))}
        BUFFER_PG|{name}|0 profile=ingress_lossy_profile
        WRED_PROFILE|{wred.name} ecn={"ecn_all" if wred.ecn else "ecn_none"}
        """
    )
    for colour in ("green", "yellow", "red"):
        found[f"WRED_PROFILE|{wred.name}"] |= {
            f"wred_{colour}_enable": "true",
            f"{colour}_min_threshold": str(wred.minimum),
            f"{colour}_max_threshold": str(wred.maximum),
            f"{colour}_drop_probability": str(wred.percent),
        }
    if watchdog:
        found[f"PORT_QOS_MAP|{name}"]["pfcwd_sw_enable"] = ",".join(map(str, watchdog.priorities))
        detection, restoration = map(_milliseconds, (watchdog.detection, watchdog.restoration))
        found |= _entries(
            f"PFC_WD|{name} action={watchdog.action} detection_time={detection} restoration_time={restoration}"
        )
    for priority in plan.lossless:
        found |= _entries(
            f"""
            BUFFER_PG|{name}|{priority} profile=pg_lossless_400000_5m_profile
            BUFFER_QUEUE|{name}|{priority} profile=egress_lossless_profile
            QUEUE|{name}|{priority} scheduler=scheduler.1 wred_profile={wred.name}
            """
        )
    return found


def state_db() -> Table:
    """The capabilities of the switch in STATE_DB: it counts marks per queue."""
    names = ("WRED_DROPPED_PKT", "WRED_DROPPED_BYTE", "ECN_MARKED_PKT", "ECN_MARKED_BYTE")
    return {
        f"QUEUE_COUNTER_CAPABILITIES|WRED_ECN_QUEUE_{name}_COUNTER": {"isSupported": "true"} for name in names
    }


def appl_db(hostname: str, mac: str, ports: Sequence[SwitchPortState]) -> Table:
    """The LLDP tables of APPL_DB. A port without a link has no neighbour."""
    local = {
        "lldp_loc_chassis_id_subtype": CHASSIS_SUBTYPE,
        "lldp_loc_chassis_id": mac,
        "lldp_loc_sys_name": hostname,
        "lldp_loc_sys_desc": "SONiC Software Version: simulated",
        "lldp_loc_sys_cap_supported": "28 00",
        "lldp_loc_sys_cap_enabled": "28 00",
    }
    tables = {"LLDP_LOC_CHASSIS": local}
    for port in ports:
        found = port.plan.neighbor
        if port.up:
            tables[f"LLDP_ENTRY_TABLE:{port.plan.name}"] = {
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
    return tables


Databases = dict[str, "Table"]  # the tables of a SONiC by the name of their database
DATABASE_NUMBERS = {"APPL_DB": 0, "COUNTERS_DB": 2, "CONFIG_DB": 4, "STATE_DB": 6}
"""The numbers of the databases in SONiC's default layout (database_config.json)."""
OTHERS = 2  # hosts behind the switch besides the simulated one
OTHER_SPEED = 400 * 10**9
LARGEST_HOST = 2**24
LATE_MARKS = WredProfile("LATE_MARKS", minimum=4 * MEBIBYTE, maximum=5 * MEBIBYTE)
NO_MARKS = WredProfile("NO_MARKS", ecn=False)
REPORTING = SwitchWatchdog(action=ALERT)


class SimulatedSwitch:
    """The switch over time. Times never decrease."""

    def __init__(self, hostname: str, mac: str, ports: Sequence[SimulatedSwitchPort]) -> None:
        self.hostname = hostname
        self.plans = tuple(port.plan for port in ports)
        self._mac = mac
        self._ports = tuple(ports)
        self._config = config_db(hostname, mac, self.plans)

    def databases(self, now: float) -> Databases:
        """All tables of the switch at `now`, which is a time of the host's clock."""
        ports = [port.state(now) for port in self._ports]
        return {
            "APPL_DB": appl_db(self.hostname, self._mac, ports),
            "COUNTERS_DB": counters_db(ports),
            "CONFIG_DB": self._config,
            "STATE_DB": state_db(),
        }


def simulate_switch(scenario: str, *, start: float, vendors: Sequence[str], seed: int) -> SimulatedSwitch:
    """The switch of a simulated host; `start` is the time at which the host's world began."""
    ports = [*_host_ports(scenario, start, vendors, seed)]
    for other in range(1, OTHERS + 1):
        ports.append(_other_port(scenario, start, seed, other, len(ports)))
    # Locally administered, in another range than those of the hosts.
    mac = (bytes((6,)) + (seed % LARGEST_HOST).to_bytes(3) + bytes(2)).hex(":")
    return SimulatedSwitch(f"leaf-{seed:03}", mac, ports)


def _host_ports(
    scenario: str, start: float, vendors: Sequence[str], seed: int
) -> Iterator[SimulatedSwitchPort]:
    for number, (driver, course) in enumerate(scenario_courses(scenario, vendors, seed)):
        neighbor = _host_behind(seed, f"eth{number}", by_mac=number % 4 < 3)  # noqa: PLR2004 - every fourth by its name
        plan = SwitchPortPlan(f"Ethernet{LANES * number}", neighbor, driver.speed)
        if scenario == "misconfigured":
            plan = replace(plan, **_MISTAKES[number % len(_MISTAKES)])
        yield SimulatedSwitchPort(plan, course.setup, course.spans, start)


_MISTAKES: tuple[Mapping[str, Any], ...] = (
    {},  # the host has PFC on another priority
    {"wred": NO_MARKS},
    {"watchdog": None},
    {"wred": LATE_MARKS},
)
"""What is wrong with each port in the scenario `misconfigured`."""


def _host_behind(host: int, netdev: str, *, by_mac: bool) -> SwitchPortNeighbor:
    return SwitchPortNeighbor(hostname_of(host), mac_of(host, "eth0"), netdev, mac_of(host, netdev), by_mac)


def _other_port(scenario: str, start: float, seed: int, other: int, number: int) -> SimulatedSwitchPort:
    """The port of another host, of which only the first one can have a problem."""
    neighbor = _host_behind(seed + other, "eth0", by_mac=other == 1)
    plan, port = (
        SwitchPortPlan(f"Ethernet{LANES * number}", neighbor, OTHER_SPEED),
        PortSeed(100 + other, seed),
    )
    spans = quiet(port)
    if scenario == "victim" and other == 1:
        # The victims are paused in the same windows.
        plan = replace(plan, watchdog=REPORTING)
        spans = overlay(spans, again(port.random("storms"), paused(Pause(3, TRANSMIT, 1.0))))
    return SimulatedSwitchPort(plan, Setup(), spans, start)

"""Which keys and fields of SONiC's databases are read: pure functions from what is known so far.

Redis finds unknown keys only by KEYS or SCAN, which walk through the whole database of the switch's control plane. So every key
is derived: object identifiers from the name maps, rows of the configuration from the names of ports, and ranges
(`QUEUE|Ethernet0|3-4`) by trying those that can include a queue with PFC.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from roce_exporter.switches.systems import requests_of, table_of
from roce_exporter.switches.systems.sonic import tables as t
from roce_exporter.switches.systems.sonic.scope import PRIORITIES, Lossless, ports_with_unicast, queue_label
from roce_exporter.switches.systems.sonic.tables import Fields

Row = tuple[str, tuple[str, ...]]
"""A key and the fields to read; no fields means all of them."""

NAME_MAPS = table_of("sonic names")
"""Each with the source that depends on it."""

WATERMARK_TABLES = {
    "user": "USER_WATERMARKS",
    "persistent": "PERSISTENT_WATERMARKS",
    "periodic": "PERIODIC_WATERMARKS",
}

RATES = "RATES"
SENSORS = "TRANSCEIVER_DOM_SENSOR"
METADATA_ROW = ("hostname", "hwsku", "platform", "asic_type", "switch_type", "asic_name")
PROFILE_ROW = ("pool", "xoff", "static_th", "dynamic_th")
WRED_ROW = ("ecn", "green_min_threshold", "green_max_threshold", "green_drop_probability")
PORT_ROWS: dict[str, list[Row]] = {}
for source, start, names in requests_of("sonic ports"):
    fields = t.SENSOR_FIELDS if names == "SENSORS" else tuple(names.split())
    PORT_ROWS.setdefault(source, []).append((start, fields))
WAIT_SHARE = 0.5
"""The part of the remaining time for which counters wait for the configuration, which says what is lossless."""
NO_ROWS: Mapping[str, Fields] = {}
METADATA: Row = ("DEVICE_METADATA|localhost", METADATA_ROW)
CHASSIS: Row = ("LLDP_LOC_CHASSIS", ("lldp_loc_sys_name", "lldp_loc_sys_desc"))


@dataclass(frozen=True, slots=True)
class SonicNames:
    """What the name maps of one namespace say: objects by object identifier, which is valid for this round only."""

    ports: Mapping[str, str]
    queues: Mapping[str, t.SonicQueue]
    groups: Mapping[str, t.SonicGroup]
    pools: Mapping[str, str]
    voqs: Mapping[str, t.SonicVoq] = field(default_factory=dict)


def names_of(maps: Sequence[Fields]) -> SonicNames:
    """The objects in the hashes of `NAME_MAPS`."""
    ports, queues, indexes, types, groups, group_indexes, pools, voqs = maps
    return SonicNames(
        {oid: port for port, oid in ports.items() if t.is_front_panel(port)},
        {
            oid: t.SonicQueue(port, index, types.get(oid, "").removeprefix(t.QUEUE_TYPE) or t.UNICAST)
            for oid, port, index in t.members(queues, indexes)
        },
        {oid: t.SonicGroup(port, index) for oid, port, index in t.members(groups, group_indexes)},
        {oid: pool for pool, oid in pools.items()},
        {  # `sonic-lc1|asic0|Ethernet0:3`: the line card, its ASIC, and the port
            oid: t.SonicVoq(parts[0], parts[2], index)
            for oid, place, index in t.members(voqs)
            if len(parts := place.split("|")) == len(("device", "asic", "port"))
        },
    )


def chosen_names(names: SonicNames, lossless: Lossless | None, *, everything: bool) -> SonicNames:
    """The objects to read: all, or those of priorities with PFC; where these are unknown, all that can have PFC."""
    if everything:
        return names
    typed = ports_with_unicast(names.queues.values())
    plans = (
        {
            port: (set(plan.queues) | {*plan.queues.values()}, {*plan.groups.values()})
            for port, plan in lossless.shown.items()
        }
        if lossless is not None
        else dict.fromkeys(names.ports.values(), ({*PRIORITIES}, {*PRIORITIES}))
    )
    nothing: tuple[set[int], set[int]] = (set(), set())
    return SonicNames(
        names.ports,
        {
            oid: queue
            for oid, queue in names.queues.items()
            if queue.number in plans.get(queue.port, nothing)[0] and queue_label(queue, typed).isdigit()
        },
        {
            oid: group
            for oid, group in names.groups.items()
            if group.number in plans.get(group.port, nothing)[1]
        },
        names.pools,
        {oid: voq for oid, voq in names.voqs.items() if lossless and voq.number in lossless.used_queues},
    )


def port_rows(source: str, ports: Iterable[str]) -> list[Row]:
    """The rows of this source whose keys are known from the names of the ports."""
    return [(f"{start}{port}", fields) for port in ports for start, fields in PORT_ROWS[source]]


def first_rows(ports: Iterable[str]) -> list[Row]:
    """The rows of CONFIG_DB whose keys are known."""
    polling = ("POLL_INTERVAL", "FLEX_COUNTER_STATUS")
    return [
        METADATA,
        ("PFC_WD|GLOBAL", ("BIG_RED_SWITCH",)),
        *((f"FLEX_COUNTER_TABLE|{group}", polling) for group in t.FLEX_GROUPS),
        *port_rows(t.CONFIGURATION, ports),
    ]


def range_search(
    table: str,
    wanted: Mapping[str, frozenset[int]],
    lossless: Mapping[str, frozenset[int]],
    configuration: Mapping[str, Fields] = NO_ROWS,
) -> Generator[list[Row], Mapping[str, Fields], None]:
    """The rows of queues or priority groups, whose keys hold a range, found by trying: yields rows four times, and is sent those that exist.

    All ports of a switch are usually configured alike. So all ranges are tried on one port of each kind, then on the others
    those that exist there, and on a port where these leave a lossless queue without a row, all the rest. `configuration` has the row of
    the switch's metadata, on which the form of the keys depends.
    """
    start = f"{table}|{t.voq_prefix(configuration) if table == 'QUEUE' else ''}"
    ports = {port: numbers for port, numbers in wanted.items() if numbers}
    ranges = {numbers: tuple(t.ranges_with(numbers)) for numbers in set(ports.values())}
    samples = {numbers: port for port, numbers in reversed(ports.items())}
    tried: set[str] = set()

    def untried(pairs: Iterable[tuple[str, str]]) -> list[Row]:
        keys = [key for port, text in pairs if (key := f"{start}{port}|{text}") not in tried]
        tried.update(keys)
        return [(key, ()) for key in dict.fromkeys(keys)]

    found = {**(yield untried((port, text) for numbers, port in samples.items() for text in ranges[numbers]))}
    found |= yield untried(
        (port, text)
        for port, numbers in ports.items()
        for text in ranges[numbers]
        if f"{start}{samples[numbers]}|{text}" in found
    )
    rows = t.rows_of({**configuration, **found})
    covered = rows.queues if table == "QUEUE" else rows.groups
    yield untried(
        (port, text)
        for port, numbers in ports.items()
        if any((port, number) not in covered for number in lossless[port])
        for text in ranges[numbers]
    )
    yield []


def profile_rows(configuration: Mapping[str, Fields]) -> list[Row]:
    """The profiles to which queues and priority groups refer."""
    rows = t.rows_of(configuration)
    wred = (t.reference(fields.get("wred_profile")) for fields in rows.queues.values())
    buffers = buffer_profiles(configuration)
    return [
        *((f"WRED_PROFILE|{name}", WRED_ROW) for name in dict.fromkeys(wred) if name),
        *((f"BUFFER_PROFILE|{name}", PROFILE_ROW) for name in buffers),
    ]


def buffer_profiles(configuration: Mapping[str, Fields]) -> list[str]:
    """The names of the buffer profiles in use."""
    rows = t.rows_of(configuration)
    used = (*rows.groups.values(), *rows.chosen_groups.values())
    names = (t.reference(fields.get("profile")) for fields in used)
    return [name for name in dict.fromkeys(names) if name]


def dynamic_group_keys(configuration: Mapping[str, Fields]) -> list[Row]:
    """The rows of APPL_DB with the profile of groups for which the switch itself chooses one: `profile: NULL`."""
    return [
        (key.replace("BUFFER_PG|", "BUFFER_PG_TABLE:", 1).replace("|", ":"), ("profile",))
        for key, fields in configuration.items()
        if key.startswith("BUFFER_PG|") and not t.reference(fields.get("profile"))
    ]


def pools_of(profiles: Iterable[Fields]) -> list[str]:
    """The names of the pools to which buffer profiles refer."""
    names = (t.reference(fields.get("pool")) for fields in profiles)
    return [name for name in dict.fromkeys(names) if name]


def state_rows(profiles: Iterable[str]) -> list[Row]:
    """The rows of STATE_DB that are known before pools are: what the ASIC can count, and profiles that the switch chose."""
    rows: list[Row] = [(key, ("isSupported",)) for key in t.CAPABILITIES.values()]
    return rows + [(f"BUFFER_PROFILE_TABLE|{name}", PROFILE_ROW) for name in profiles]

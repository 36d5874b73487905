"""SONiC over gNMI: the tables that Redis holds, from the switch's gNMI server (sonic-gnmi).

Name maps, configuration and counters are queried at the same time; then, by the object identifiers in the name maps, what has
no path by name: drops of priority groups, and watermarks. One switch gives the same series as over Redis, except:

* Switches of several ASICs are not supported: use the module `sonic` there.
* If one object has no watermark in a window, that kind of objects has none: the server refuses a request if one key is missing.

The server lists the rows of tables in CONFIG_DB, STATE_DB and of LLDP_ENTRY_TABLE by KEYS. It keeps its name maps until it is
restarted: ports without counters after a change of breakout mean that the container `gnmi` must be restarted.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.catalog.switch_systems import SONIC
from roce_exporter.net import NetError
from roce_exporter.net.gnmi_messages import path_text
from roce_exporter.switches.gnmi import AbsentError, GnmiClient
from roce_exporter.switches.readings import Module, ProbeReply
from roce_exporter.switches.systems.sonic import tables as t
from roce_exporter.switches.systems.sonic.keys import (
    NAME_MAPS,
    WATERMARK_TABLES,
    SonicNames,
    chosen_names,
    dynamic_group_keys,
    names_of,
)
from roce_exporter.switches.systems.sonic.read import read_tables
from roce_exporter.switches.systems.sonic.scope import lossless_of
from roce_exporter.switches.systems.sonic.tables import (
    Fields,
    SonicTables,
    SonicWatermarks,
    fields_of,
    rows_of,
)
from roce_exporter.switches.targets import PFC_PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from roce_exporter.net.gnmi_messages import Leaf
    from roce_exporter.switches.readings import ProbeRequest, SwitchReadings
    from roce_exporter.switches.systems.sonic.tables import SonicGroup, SonicQueue
    from roce_exporter.switches.targets import SwitchTarget

IDENTIFIER = re.compile(r"oid:0x[0-9a-f]{1,16}", re.ASCII)
"""An object identifier of SAI, as SONiC writes it."""

COUNTERS_DB, CONFIG_DB, STATE_DB, APPL_DB = "COUNTERS_DB", "CONFIG_DB", "STATE_DB", "APPL_DB"
PORTS = "COUNTERS/Ethernet*"
QUEUES = "COUNTERS/Ethernet*/Queues"
PERIODIC_GROUPS = "PERIODIC_WATERMARKS/Ethernet*/PriorityGroups"
NEIGHBORS = "LLDP_ENTRY_TABLE"
CHOSEN_GROUPS = "BUFFER_PG_TABLE"
CHASSIS = "LLDP_LOC_CHASSIS"
CHASSIS_FIELDS = ("lldp_loc_sys_name", "lldp_loc_sys_desc")
CONFIG_TABLES = (
    "DEVICE_METADATA",
    "FLEX_COUNTER_TABLE",
    "PORT",
    "PORT_QOS_MAP",
    "PFC_WD",
    "MAP_PFC_PRIORITY_TO_QUEUE",
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
    "QUEUE",
    "WRED_PROFILE",
    "BUFFER_PG",
    "BUFFER_PROFILE",
    "BUFFER_POOL",
)
STATE_TABLES = ("QUEUE_COUNTER_CAPABILITIES", "BUFFER_PROFILE_TABLE", "BUFFER_POOL_TABLE")
NO_ALIASES = (
    "ports are named by the vendor's alias, which is in the table PORT of CONFIG_DB, which cannot be used"
)
WAIT_SHARE = 0.5
"""The part of the remaining time for which objects wait for the configuration, which says what is lossless."""
BY_NAME_MAPS = (t.PORT_COUNTERS, t.QUEUE_COUNTERS, t.GROUP_COUNTERS, t.WATERMARKS)
NO_WATERMARKS = SonicWatermarks({}, {}, {})


class MapReply(NamedTuple):
    """The name maps of one reply."""

    names: SonicNames
    queues: Fields
    """The object identifier of each queue by its name, `Ethernet68:3`."""
    groups: Fields
    """The object identifier of each priority group by its name, `Ethernet68:3`."""


def documents(leaves: Iterable[Leaf]) -> dict[str, object]:
    """The value of each path of a reply, by the path as text."""
    return {path_text(path): value for path, value in leaves}


def maps_of(leaves: Iterable[Leaf]) -> MapReply:
    """The name maps."""
    found = documents(leaves)
    maps = {name: fields_of(found.get(name)) for name in NAME_MAPS}
    names = names_of(list(maps.values()))
    return MapReply(names, maps["COUNTERS_QUEUE_NAME_MAP"], maps["COUNTERS_PG_NAME_MAP"])


def paths_of(table: str, oids: Iterable[str]) -> list[str]:
    """The paths of these objects in a table. What is no object identifier has no path: it came from the network."""
    return [f"{table}/{oid}" for oid in oids if IDENTIFIER.fullmatch(oid)]


def rows_of_tables(leaves: Iterable[Leaf], separator: str) -> dict[str, Fields]:
    """Rows by whole key, from replies with whole tables: `PFC_WD` and `Ethernet0` give `PFC_WD|Ethernet0`."""
    return {
        f"{table}{separator}{key}": fields_of(fields)
        for table, rows in documents(leaves).items()
        if isinstance(rows, dict)
        for key, fields in rows.items()
        if isinstance(fields, dict)
    }


def aliases_of(rows: Mapping[str, Fields]) -> dict[str, str]:
    """SONiC's name of each port by its alias, from the rows of CONFIG_DB."""
    return {
        fields["alias"]: key.removeprefix("PORT|")
        for key, fields in rows.items()
        if key.startswith("PORT|") and fields.get("alias")
    }


def objects_of(leaves: Iterable[Leaf], aliases: Mapping[str, str]) -> dict[str, Fields]:
    """The objects of a reply for all ports, by SONiC's name of the port and what follows it: `Ethernet68:3`."""
    found = {}
    for document in documents(leaves).values():
        for name, fields in document.items() if isinstance(document, dict) else ():
            port, colon, rest = name.partition(":")
            found[f"{aliases.get(port, port)}{colon}{rest}"] = fields_of(fields)
    return found


def hashes_of(leaves: Iterable[Leaf]) -> dict[str, Fields]:
    """The hashes of a reply for object identifiers (`COUNTERS/oid:0x15`), by path as text."""
    return {path: fields_of(document) for path, document in documents(leaves).items()}


def port_counters(objects: Mapping[str, Fields], names: SonicNames) -> dict[str, Fields]:
    """Counters of all ports; empty fields for a port that the reply leaves out."""
    return {port: objects.get(port, {}) for port in names.ports.values()}


def queue_counters(objects: Mapping[str, Fields], maps: MapReply) -> dict[SonicQueue, Fields]:
    """Counters of all queues; empty fields for a queue that the reply leaves out."""
    found = {oid: objects.get(name, {}) for name, oid in maps.queues.items()}
    return {queue: found[oid] for oid, queue in maps.names.queues.items()}


def group_counters(hashes: Mapping[str, Fields], names: SonicNames) -> dict[SonicGroup, Fields]:
    """Counters of the priority groups that were queried by object identifier."""
    return {group: hashes.get(f"COUNTERS/{oid}", {}) for oid, group in names.groups.items()}


def with_watermarks(
    window: str, hashes: Mapping[str, Fields], names: SonicNames, periodic: SonicWatermarks
) -> SonicWatermarks:
    """One window's watermarks: those that were queried by object identifier, and those that came with other."""
    table = WATERMARK_TABLES[window]
    parts: list[dict[Any, Fields]] = []
    for kind in (one.kind for one in t.MAXIMA):
        objects: Mapping[str, Any] = getattr(names, kind)
        known = {name: hashes.get(f"{table}/{oid}") for oid, name in objects.items()}
        parts.append(
            {
                **getattr(periodic, kind),
                **{name: fields for name, fields in known.items() if fields is not None},
            }
        )
    return SonicWatermarks(*parts)


def periodic_watermarks(
    queues: Mapping[str, Fields], groups: Mapping[str, Fields], maps: MapReply
) -> SonicWatermarks:
    """The periodic window, from `COUNTERS/Ethernet*/Queues` (as `Ethernet68:3:periodic`) and from `.../PriorityGroups`."""
    of_queue = {oid: queues.get(f"{name}:periodic") for name, oid in maps.queues.items()}
    of_group = {oid: groups.get(name) for name, oid in maps.groups.items()}
    return SonicWatermarks(
        {queue: fields for oid, queue in maps.names.queues.items() if (fields := of_queue[oid])},
        {group: fields for oid, group in maps.names.groups.items() if (fields := of_group[oid])},
        {},
    )


async def query(probe: ProbeRequest) -> ProbeReply:
    """Read the tables of a switch: `replies["tables"]` has one `SonicTables`."""
    async with GnmiClient(probe) as client:
        part = _GnmiRound(probe, client)
        await part.run()
        return ProbeReply({"tables": (part.tables(),)}, part.faults, tuple(client.logged))


@dataclass(slots=True)
class _GnmiRound:
    """One round of queries. What has arrived by the deadline is kept."""

    probe: ProbeRequest
    client: GnmiClient
    faults: dict[str, str] = field(default_factory=dict)
    maps: MapReply | None = None
    rows: dict[str, Fields] | None = None
    """Rows of CONFIG_DB."""
    state: dict[str, Fields] | None = None
    lldp: dict[str, Fields] | None = None
    by_name: dict[str, tuple[Leaf, ...]] = field(default_factory=dict)
    """The replies for all ports by path. Their names of ports are aliases."""
    by_identifier: dict[str, Fields] = field(default_factory=dict)
    """Hashes by path; of those that were queried by object identifier."""
    chosen: SonicNames | None = None
    """The objects that were queried by object identifier."""
    drops: dict[str, Fields] | None = None
    """Counters of priority groups by path."""

    async def run(self) -> None:
        """Query everything, as far as one part does not need what is in another."""
        async with asyncio.TaskGroup() as group:
            maps = group.create_task(self._name_maps())
            configuration = group.create_task(self._configuration())
            for source, path in ((t.PORT_COUNTERS, PORTS), (t.QUEUE_COUNTERS, QUEUES)):
                group.create_task(self._of_all_ports(source, path))
            group.create_task(self._of_all_ports(t.WATERMARKS, PERIODIC_GROUPS, optional=True))
            group.create_task(self._state())
            group.create_task(self._lldp())
            await asyncio.wait({maps})
            left = self.probe.deadline - asyncio.get_running_loop().time()
            await asyncio.wait({configuration}, timeout=max(left, 0.0) * WAIT_SHARE)
            if self.maps:
                await self._by_identifier(self.maps.names)

    async def _get(
        self, sources: Sequence[str], database: str, paths: Sequence[str], *, optional: bool = False
    ) -> tuple[Leaf, ...] | None:
        """The reply for these paths; None if it failed, which is a fault of the sources that depend on it.

        What is optional may be absent: SONiC returns NOT_FOUND if one of the paths does not exist.
        """
        try:
            return await self.client.get(sources[0], database, paths)
        except AbsentError as error:
            if not optional:
                self._fail(sources, str(error))
        except NetError as error:
            self._fail(sources, str(error))
        return None

    def _fail(self, sources: Sequence[str], line: str) -> None:
        for source in sources:
            self.faults.setdefault(source, line)

    async def _name_maps(self) -> None:
        reply = await self._get(BY_NAME_MAPS, COUNTERS_DB, tuple(NAME_MAPS))
        if reply is not None:
            self.maps = maps_of(reply)

    async def _configuration(self) -> None:
        reply = await self._get((t.CONFIGURATION,), CONFIG_DB, CONFIG_TABLES)
        if reply is None:
            return
        self.rows = rows_of_tables(reply, "|")
        # A dynamic buffer model writes to APPL_DB what it has chosen.
        if dynamic_group_keys(self.rows):
            chosen = await self._get((t.CONFIGURATION,), APPL_DB, (CHOSEN_GROUPS,), optional=True)
            self.rows |= rows_of_tables(chosen or (), ":")

    async def _of_all_ports(self, source: str, path: str, *, optional: bool = False) -> None:
        reply = await self._get((source,), COUNTERS_DB, (path,), optional=optional)
        if reply is not None:
            self.by_name[path] = reply

    async def _state(self) -> None:
        reply = await self._get((t.STATE,), STATE_DB, STATE_TABLES, optional=True)
        self.state = None if reply is None else rows_of_tables(reply, "|")

    async def _lldp(self) -> None:
        reply = await self._get((t.LLDP,), APPL_DB, (NEIGHBORS,))
        if reply is None:
            return
        self.lldp = rows_of_tables(reply, ":")
        paths = [f"{CHASSIS}/{name}" for name in CHASSIS_FIELDS]
        own = await self._get((t.LLDP,), APPL_DB, paths, optional=True)
        named = documents(own or ())
        values = {name: named.get(f"{CHASSIS}/{name}") for name in CHASSIS_FIELDS}
        self.lldp[CHASSIS] = t.fields_of(values)

    async def _by_identifier(self, names: SonicNames) -> None:
        """What has no path by name, of the queues and groups that are wanted."""
        everything = self.probe.target.priorities != PFC_PRIORITIES
        plan = lossless_of(rows_of(self.rows)) if self.rows else None
        self.chosen = chosen_names(names, plan, everything=everything)
        drops = paths_of("COUNTERS", self.chosen.groups)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._group_drops(drops))
            for window, table in WATERMARK_TABLES.items():
                # One object without a watermark costs the reply, so each kind has a request of its own.
                known = () if window == "periodic" else (self.chosen.queues, self.chosen.groups)
                for objects in (*known, self.chosen.pools):
                    group.create_task(self._hashes(t.WATERMARKS, paths_of(table, objects)))

    async def _group_drops(self, paths: Sequence[str]) -> None:
        """Where the switch does not poll drops, their keys do not exist."""
        try:
            reply = await self.client.get(t.GROUP_COUNTERS, COUNTERS_DB, paths) if paths else ()
            self.drops = hashes_of(reply)
        except AbsentError:
            self.drops = {}
        except NetError as error:
            self._fail((t.GROUP_COUNTERS,), str(error))

    async def _hashes(self, source: str, paths: Sequence[str]) -> None:
        if paths:
            reply = await self._get((source,), COUNTERS_DB, paths, optional=True)
            self.by_identifier |= hashes_of(reply or ())

    def tables(self) -> SonicTables:
        """What was read, by SONiC's names of ports."""
        maps, chosen = self.maps, self.chosen
        if maps is None or chosen is None:
            return SonicTables(configuration=self.rows, state=self.state, lldp=self.lldp)
        ports = self._objects(t.PORT_COUNTERS, PORTS)
        queues = self._objects(t.QUEUE_COUNTERS, QUEUES)
        groups = self._objects(t.WATERMARKS, PERIODIC_GROUPS)
        return SonicTables(
            port_counters=None if ports is None else port_counters(ports, maps.names),
            queue_counters=None if queues is None else queue_counters(queues, maps),
            priority_group_counters=None if self.drops is None else group_counters(self.drops, chosen),
            watermarks=self._watermarks(maps, chosen, queues or {}, groups or {}),
            configuration=self.rows,
            state=self.state,
            lldp=self.lldp,
        )

    def _objects(self, source: str, path: str) -> dict[str, Fields] | None:
        """The objects of a reply for all ports; None if it failed, or if the names in it cannot be translated."""
        reply = self.by_name.get(path)
        if reply is None or self.maps is None:
            return None
        objects = objects_of(reply, aliases_of(self.rows or {}))
        ports = set(self.maps.names.ports.values())
        if self.rows is None and any(name.partition(":")[0] not in ports for name in objects):
            self._fail((source,), NO_ALIASES)
            return None
        return objects

    def _watermarks(
        self, maps: MapReply, chosen: SonicNames, queues: dict[str, Fields], groups: dict[str, Fields]
    ) -> dict[str, SonicWatermarks]:
        periodic = periodic_watermarks(queues, groups, maps)
        return {
            window: with_watermarks(
                window, self.by_identifier, chosen, periodic if window == "periodic" else NO_WATERMARKS
            )
            for window in WATERMARK_TABLES
        }


def read(found: ProbeReply, target: SwitchTarget) -> SwitchReadings:
    """The readings of the tables: those of the module `sonic`."""
    tables: Any = found.replies.get("tables", ())
    return read_tables(tables, found.faults, target.priorities)


MODULE = Module("sonic_gnmi", SONIC, query, read)

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from roce_exporter.catalog.switch_systems import SONIC
from roce_exporter.net import NetError
from roce_exporter.net.gnmi_messages import Leaf, path_text
from roce_exporter.switches.gnmi import AbsentError, GnmiClient
from roce_exporter.switches.readings import Module, ProbeReply, ProbeRequest, StreamPlan
from roce_exporter.switches.stream import SwitchStream
from roce_exporter.switches.systems import table_of
from roce_exporter.switches.systems.sonic import keys
from roce_exporter.switches.systems.sonic import tables as t
from roce_exporter.switches.systems.sonic.read import read
from roce_exporter.switches.systems.sonic.scope import lossless_of
from roce_exporter.switches.targets import PFC_PRIORITIES

IDENTIFIER = re.compile(r"oid:0x[0-9a-f]{1,16}", re.ASCII)
"""An object identifier of SAI, as SONiC writes it."""

COUNTERS_DB, CONFIG_DB, STATE_DB, APPL_DB = "COUNTERS_DB", "CONFIG_DB", "STATE_DB", "APPL_DB"
PORTS, QUEUES, RATES = "COUNTERS/Ethernet*", "COUNTERS/Ethernet*/Queues", "RATES/Ethernet*"
PERIODIC_GROUPS = "PERIODIC_WATERMARKS/Ethernet*/PriorityGroups"
STATES, NEIGHBORS, CHOSEN_GROUPS = "PORT_TABLE", "LLDP_ENTRY_TABLE", "BUFFER_PG_TABLE"
CHASSIS, CHASSIS_FIELDS = keys.CHASSIS
TABLES = {source: tuple(names.split()) for source, names in table_of("sonic gnmi").items()}
NO_ALIASES = (
    "ports are named by the vendor's alias, which is in the table PORT of CONFIG_DB, which cannot be used"
)
STREAMED = {
    t.PORT_COUNTERS: {PORTS: 1.0},
    t.QUEUE_COUNTERS: {QUEUES: 10.0},
    t.LINKS: {STATES: 0.0},
    t.LLDP: {NEIGHBORS: 0.0},
}
"""What a stream sends, by source: seconds between two samples; 0: with each change."""
DATABASES = {source: APPL_DB if source in (t.LINKS, t.LLDP) else COUNTERS_DB for source in STREAMED}
TRIPS = "COUNTERS/Ethernet*/Pfcwd"
"""The queues that the watchdog watches: with each change, if there are any."""


def documents(leaves: Iterable[Leaf]) -> dict[str, object]:
    """The value of each path of a reply, by the path as text."""
    return {path_text(path): value for path, value in leaves}


def rows_of_tables(leaves: Iterable[Leaf], separator: str) -> dict[str, t.Fields]:
    """Rows by whole key, from replies with whole tables: `PFC_WD` and `Ethernet0` give `PFC_WD|Ethernet0`."""
    return {
        f"{table}{separator}{key}": t.fields_of(fields)
        for table, rows in documents(leaves).items()
        if isinstance(rows, dict)
        for key, fields in rows.items()
        if isinstance(fields, dict)
    }


async def query(probe: ProbeRequest) -> ProbeReply:
    """Read the tables of a switch: `replies["tables"]` has one `SonicTables`."""
    async with GnmiClient(probe) as client:
        part = _GnmiRound(probe, client)
        await part.run()
        return ProbeReply({"tables": (part.tables(),), **part.queried}, part.faults, tuple(client.logged))


@dataclass(slots=True)
class _GnmiRound:
    """One round of queries. What has arrived by the deadline is kept."""

    probe: ProbeRequest
    client: GnmiClient
    faults: dict[str, str] = field(default_factory=dict)
    maps: dict[str, t.Fields] = field(default_factory=dict)
    """The name maps."""
    rows: dict[str, t.Fields] | None = None
    """Rows of CONFIG_DB."""
    state: dict[str, t.Fields] | None = None
    lldp: dict[str, t.Fields] | None = None
    links: dict[str, t.Fields] | None = None
    modules: dict[str, t.Fields] = field(default_factory=dict)
    by_name: dict[str, tuple[Leaf, ...]] = field(default_factory=dict)
    """The replies for all ports by path. Their names of ports are aliases."""
    hashes: dict[str, t.Fields] = field(default_factory=dict)
    """By path: `COUNTERS/oid:0x15`."""
    chosen: keys.SonicNames | None = None
    """The objects that were queried by object identifier."""
    queried: dict[str, tuple[Leaf, ...]] = field(default_factory=dict)
    """The replies that a stream may bring the next time, by source."""

    async def run(self) -> None:
        """Query everything, as far as one part does not need what is in another."""
        async with asyncio.TaskGroup() as group:
            maps = group.create_task(self._get(t.COUNTED, COUNTERS_DB, tuple(keys.NAME_MAPS)))
            configuration = group.create_task(self._configuration())
            for source, path in ((t.PORT_COUNTERS, PORTS), (t.QUEUE_COUNTERS, QUEUES)):
                group.create_task(self._of_all_ports(source, path))
            group.create_task(self._of_all_ports(t.WATERMARKS, PERIODIC_GROUPS, optional=True))
            group.create_task(self._of_all_ports(t.LINKS, RATES, optional=True))
            group.create_task(self._health())
            group.create_task(self._state())
            group.create_task(self._lldp())
            await asyncio.wait({maps})
            left = self.probe.deadline - asyncio.get_running_loop().time()
            await asyncio.wait({configuration}, timeout=max(left, 0.0) * keys.WAIT_SHARE)
            if maps.result() is not None:
                found = documents(maps.result() or ())
                self.maps = {name: t.fields_of(found.get(name)) for name in keys.NAME_MAPS}
                await self._by_identifier()

    async def _get(
        self, sources: Sequence[str], database: str, paths: Sequence[str], *, optional: bool = False
    ) -> tuple[Leaf, ...] | None:
        """The reply for these paths; None if it failed, which is a fault of the sources that depend on it.

        What is optional may be absent: SONiC returns NOT_FOUND if one of the paths does not exist.
        """
        try:
            return await self.client.get(sources[0], database, paths)
        except NetError as error:
            if not (optional and isinstance(error, AbsentError)):
                for source in sources:
                    self.faults.setdefault(source, str(error))
        return None

    async def _configuration(self) -> None:
        reply = await self._get((t.CONFIGURATION,), CONFIG_DB, TABLES[CONFIG_DB])
        if reply is None:
            return
        self.rows = rows_of_tables(reply, "|")
        # A dynamic buffer model writes to APPL_DB what it has chosen.
        if keys.dynamic_group_keys(self.rows):
            chosen = await self._get((t.CONFIGURATION,), APPL_DB, (CHOSEN_GROUPS,), optional=True)
            self.rows |= rows_of_tables(chosen or (), ":")

    async def _of_all_ports(self, source: str, path: str, *, optional: bool = False) -> None:
        if (reply := await self._sent_or_queried(source, path, COUNTERS_DB, optional=optional)) is not None:
            self.by_name[path] = reply

    async def _sent_or_queried(
        self, source: str, path: str, database: str, *, optional: bool = False
    ) -> tuple[Leaf, ...] | None:
        is_streamed = path in STREAMED.get(source, {})
        reply = self.probe.held.get(source) if is_streamed else None
        if reply is None:
            reply = await self._get((source,), database, (path,), optional=optional)
            if is_streamed and reply is not None:
                self.queried[source] = reply
        return reply

    async def _state(self) -> None:
        reply = await self._get((t.STATE,), STATE_DB, TABLES[STATE_DB], optional=True)
        self.state = None if reply is None else rows_of_tables(reply, "|")

    async def _lldp(self) -> None:
        reply = await self._sent_or_queried(t.LLDP, NEIGHBORS, APPL_DB)
        if reply is None:
            return
        self.lldp = rows_of_tables(reply, ":")
        paths = [f"{CHASSIS}/{name}" for name in CHASSIS_FIELDS]
        named = documents(await self._get((t.LLDP,), APPL_DB, paths, optional=True) or ())
        self.lldp[CHASSIS] = t.fields_of({name: named.get(f"{CHASSIS}/{name}") for name in CHASSIS_FIELDS})

    async def _health(self) -> None:
        """State, faults and modules of the ports."""
        reply = await self._sent_or_queried(t.LINKS, STATES, APPL_DB, optional=True)
        if reply is not None:
            self.links = {key.partition(":")[2]: row for key, row in rows_of_tables(reply, ":").items()}
        for name in TABLES["health"]:
            found = await self._get((t.TRANSCEIVERS,), STATE_DB, (name,), optional=True)
            for key, row in rows_of_tables(found or (), "|").items():
                table, _, port = key.partition("|")
                if table != "PORT_OPERR_TABLE":
                    self.modules.setdefault(port, {}).update(row)
                elif self.links is not None:
                    self.links.setdefault(port, {}).update(row)

    async def _by_identifier(self) -> None:
        """What has no path by name, of the queues and groups that are wanted."""
        everything = self.probe.target.priorities != PFC_PRIORITIES
        plan = lossless_of(t.rows_of(self.rows)) if self.rows else None
        chosen = self.chosen = keys.chosen_names(
            keys.names_of([*self.maps.values()]), plan, everything=everything
        )
        async with asyncio.TaskGroup() as group:
            # Where the switch does not poll drops, their keys do not exist.
            group.create_task(self._hashes(t.GROUP_COUNTERS, "COUNTERS", chosen.groups))
            for window, table in keys.WATERMARK_TABLES.items():
                # One object without a watermark costs the reply, so each kind has a request of its own.
                known = () if window == "periodic" else (chosen.queues, chosen.groups)
                for objects in (*known, chosen.pools):
                    group.create_task(self._hashes(t.WATERMARKS, table, objects))

    async def _hashes(self, source: str, table: str, oids: Iterable[str]) -> None:
        # What is no object identifier has no path: it came from the network.
        paths = [f"{table}/{oid}" for oid in oids if IDENTIFIER.fullmatch(oid)]
        reply = await self._get((source,), COUNTERS_DB, paths, optional=True) if paths else ()
        self.hashes |= {path: t.fields_of(document) for path, document in documents(reply or ()).items()}

    def tables(self) -> t.SonicTables:
        """What was read, by SONiC's names of ports."""
        rest = t.SonicTables(configuration=self.rows, state=self.state, lldp=self.lldp)
        rest = replace(rest, links=self.links, transceivers=self.modules)
        if self.chosen is None:
            return rest
        names = keys.names_of([*self.maps.values()])
        queues, groups = self.maps["COUNTERS_QUEUE_NAME_MAP"], self.maps["COUNTERS_PG_NAME_MAP"]
        periodic = keys.WATERMARK_TABLES["periodic"]
        ports = {port: oid for oid, port in names.ports.items()}
        has_ports = self._named(t.PORT_COUNTERS, PORTS, "COUNTERS", ports)
        has_queues = self._named(t.QUEUE_COUNTERS, QUEUES, "COUNTERS", queues)
        self._named(t.QUEUE_COUNTERS, QUEUES, periodic, {f"{name}:periodic": queues[name] for name in queues})
        self._named(t.WATERMARKS, PERIODIC_GROUPS, periodic, groups)
        if self.links is not None and self._named(t.LINKS, RATES, "RATES", ports):
            for port, row in self.links.items():
                row.update(self.hashes.get(f"RATES/{ports.get(port)}", {}))
        found: dict[str, Any] = {
            table.source: {
                one: self.hashes.get(f"COUNTERS/{oid}", {})
                for oid, one in getattr(self.chosen if table.kind == "groups" else names, table.kind).items()
            }
            for table, is_read in (
                (t.COUNTERS[0], has_ports),
                (t.COUNTERS[1], has_queues),
                (t.COUNTERS[2], t.GROUP_COUNTERS not in self.faults),
            )
            if is_read
        }
        watermarks = {
            window: t.SonicWatermarks(
                *(
                    {
                        one: self.hashes[key]
                        for oid, one in getattr(names, kind.kind).items()
                        if (key := f"{table}/{oid}") in self.hashes
                    }
                    for kind in t.MAXIMA
                )
            )
            for window, table in keys.WATERMARK_TABLES.items()
        }
        return replace(rest, watermarks=watermarks, **found)

    def _named(self, source: str, path: str, table: str, oids: Mapping[str, str]) -> bool:
        """Add the objects of a reply for all ports to the hashes; whether there is one whose names of ports are known."""
        if path not in self.by_name:
            return False
        rows = self.rows or {}
        aliases = {
            fields["alias"]: key.removeprefix("PORT|")
            for key, fields in rows.items()
            if key.startswith("PORT|") and fields.get("alias")
        }
        ports = self.maps["COUNTERS_PORT_NAME_MAP"]
        for place, document in documents(self.by_name[path]).items():
            # A stream can have samples of single ports, which are the fields alone.
            found = document if "*" in place else {place.rpartition("/")[2]: document}
            for name, fields in found.items() if isinstance(found, dict) else ():
                port, colon, rest = name.partition(":")
                if self.rows is None and port not in ports:
                    self.faults.setdefault(source, NO_ALIASES)
                    return False
                if oid := oids.get(f"{aliases.get(port, port)}{colon}{rest}"):
                    self.hashes[f"{table}/{oid}"] = t.fields_of(fields)
        return True


def plan_of(reply: ProbeReply) -> StreamPlan | None:
    """What to subscribe to after a round that has queried everything."""
    tables: t.SonicTables = reply.replies["tables"][0]
    if tables.port_counters is None or tables.queue_counters is None:
        return None
    watched = any(t.WATCHDOG_STATUS in fields for fields in tables.queue_counters.values())
    found = {source: dict(STREAMED[source]) for source in STREAMED if getattr(tables, source) is not None}
    found[t.QUEUE_COUNTERS] |= {TRIPS: 0.0} if watched else {}
    paths = {source: tuple(every.items()) for source, every in found.items()}
    return StreamPlan(paths, databases=DATABASES, tables=(t.LINKS, t.LLDP))


MODULE = Module("sonic_gnmi", SONIC, query, read, partial(SwitchStream, plan_of))

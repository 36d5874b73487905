"""SONiC over Redis: name maps first, then one pipeline in slices per database, each database on a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from roce_exporter.catalog.switch_systems import SONIC
from roce_exporter.collect.workers import CallThread, run_in_thread
from roce_exporter.net import NetError, ReplyBudget
from roce_exporter.net.tls import client_context
from roce_exporter.switches.readings import (
    LoggedRequest,
    Module,
    Origin,
    ProbeReply,
    ProbeRequest,
    SwitchReadings,
    label_text,
)
from roce_exporter.switches.systems.sonic import database_layout as layouts
from roce_exporter.switches.systems.sonic import keys
from roce_exporter.switches.systems.sonic import tables as t
from roce_exporter.switches.systems.sonic.read import read
from roce_exporter.switches.systems.sonic.redis_client import (
    RedisAddress,
    RedisDatabase,
    ReplyError,
    Tls,
    open_database,
    round_budget,
)
from roce_exporter.switches.systems.sonic.repeat import Seen, SonicRepeat, repeat_of
from roce_exporter.switches.systems.sonic.scope import PRIORITIES, Lossless, lossless_of, named_maps
from roce_exporter.switches.systems.sonic.tables import OVERRIDE, QUEUE_FIELDS, port_fields, rows_of
from roce_exporter.switches.targets import PFC_PRIORITIES
from roce_exporter.words import few

LATE = "no complete reply by the deadline"
NO_NAMES = "the names of ports come from COUNTERS_DB, which cannot be used"
MOST_SECONDS = 60.0

_THREAD = CallThread()
T = TypeVar("T")
Buffers = tuple[list[str], list[str]]
"""The names of the buffer profiles in use, and of the pools of those that CONFIG_DB has."""


async def query(probe: ProbeRequest) -> ProbeReply:
    """Read the tables of a switch: `replies["tables"]` has one `SonicTables` per namespace."""
    try:
        layout = await layouts.layout_of(probe.target)
        secured = probe.target.scheme == "rediss"
        tls = (client_context(probe.target.tls), probe.server_name) if secured else None
    except NetError as error:
        return ProbeReply(faults=dict.fromkeys(t.SOURCES, str(error)))
    budget = round_budget()
    rounds = [_NamespaceRound(probe, layout, part, tls, budget) for part in layout.namespaces]
    async with asyncio.TaskGroup() as group:
        for part in rounds:
            group.create_task(part.run())
    lines: dict[str, list[str]] = {}
    for part in rounds:
        for source, line in part.faults.items():
            lines.setdefault(source, []).append(f"{part.place.name}: {line}".removeprefix(": "))
    return ProbeReply(
        replies={"tables": tuple(part.tables() for part in rounds)},
        faults={source: few(found, 1) for source, found in lines.items()},
        logged=tuple(exchange for part in rounds for exchange in part.logged),
        again=None if lines else partial(_again, rounds, tls),
    )


def _again(rounds: Iterable[_NamespaceRound], tls: Tls | None, readings: SwitchReadings) -> SonicRepeat:
    seen: Seen = {}
    places: dict[Origin, tuple[RedisAddress, str]] = {}
    for part in rounds:
        for database in part.opened:
            seen.setdefault(database.address, []).extend(database.seen)
        places |= part.places()
    return repeat_of(readings, seen, places, tls)


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True)
class _NamespaceRound:
    """One round of queries to one namespace. What has arrived by the deadline is kept."""

    probe: ProbeRequest
    layout: layouts.DatabaseLayout
    place: layouts.DatabaseNamespace
    tls: Tls | None
    budget: ReplyBudget
    faults: dict[str, str] = field(default_factory=dict)
    logged: list[LoggedRequest] = field(default_factory=list)
    read: dict[str, Any] = field(default_factory=dict)
    """By source what `SonicTables` has of it."""
    rates: dict[str, t.Fields] = field(default_factory=dict)
    """Bit error ratios by port."""
    port_faults: dict[str, t.Fields] = field(default_factory=dict)
    opened: list[RedisDatabase] = field(default_factory=list)
    names: keys.SonicNames | None = None
    """The objects that were read."""
    found: asyncio.Future[keys.SonicNames | None] = field(default_factory=_future)
    """All objects; None if their names could not be read. As the others: those who wait for them are in another database."""
    lossless: asyncio.Future[Lossless | None] = field(default_factory=_future)
    buffers: asyncio.Future[Buffers] = field(default_factory=_future)

    def places(self) -> dict[Origin, tuple[RedisAddress, str]]:
        """The database and the key of each object, by its origin in the readings."""
        if self.names is None:
            return {}
        name, names = self.place.name, self.names
        counters, state = map(self._address, (layouts.COUNTERS_DB, layouts.STATE_DB))
        found: dict[Origin, tuple[RedisAddress, str]] = {}
        objects = (*names.ports.items(), *names.queues.items(), *names.groups.items(), *names.voqs.items())
        found |= {(name, "COUNTERS", one): (counters, f"COUNTERS:{oid}") for oid, one in objects}
        for oid, port in names.ports.items():
            found[name, keys.RATES, port] = counters, f"{keys.RATES}:{oid}"
            found[name, keys.SENSORS, port] = state, f"{keys.SENSORS}|{port}"
        measured = (*names.queues.items(), *names.groups.items(), *names.pools.items())
        for table in keys.WATERMARK_TABLES.values():
            found |= {(name, table, one): (counters, f"{table}:{oid}") for oid, one in measured}
        return found

    def tables(self) -> t.SonicTables:
        """What was read."""
        read = dict(self.read)
        if t.LINKS in read:
            read[t.LINKS] = {
                port: {**fields, **self.port_faults.get(port, {}), **self.rates.get(port, {})}
                for port, fields in read[t.LINKS].items()
            }
        return t.SonicTables(namespace=self.place.name, **read)

    @property
    def everything(self) -> bool:
        return self.probe.target.priorities != PFC_PRIORITIES

    async def run(self) -> None:
        """Read all databases at the same time, as far as one does not need what is in another."""
        if self.layout.asics and not self.place.name:
            # The host's own databases: they say what the switch is, and have no counters.
            parts: tuple[Coroutine[Any, Any, None], ...] = (
                self._simple(t.CONFIGURATION, layouts.CONFIG_DB, keys.METADATA),
                self._simple(t.LLDP, layouts.APPL_DB, keys.CHASSIS),
            )
        else:
            parts = (self._counters(), self._configuration(), self._state(), self._ports())
        async with asyncio.TaskGroup() as group:
            for part in parts:
                group.create_task(part)

    async def _simple(self, source: str, name: str, row: keys.Row) -> None:
        async with self._attempt(source), self._open(source, name) as database:
            self.read[source] = await self._rows(database, source, [row])

    async def _counters(self) -> None:
        try:
            async with (
                self._attempt(*t.COUNTED),
                self._open(t.PORT_COUNTERS, layouts.COUNTERS_DB) as database,
            ):
                maps = await database.read([("HGETALL", name) for name in keys.NAME_MAPS])
                parts = zip(keys.NAME_MAPS.items(), maps, strict=True)
                usable = [self._usable(database, source, name, part) for (name, source), part in parts]
                found = await _aside(lambda: keys.names_of(usable))
                self.found.set_result(found)
                plan = await self._result_of(self.lossless, None)
                chosen = partial(keys.chosen_names, found, plan, everything=self.everything)
                self.names = await _aside(chosen)
                await self._objects(database, self.names, plan)
        finally:
            _settle(self.found, None)

    async def _objects(self, database: RedisDatabase, names: keys.SonicNames, plan: Lossless | None) -> None:
        """Counters first; the watermarks, three per object, last."""
        known = PRIORITIES if plan is None or self.everything else plan.priorities
        fields = {t.PORT_COUNTERS: port_fields(known), t.QUEUE_COUNTERS: (*QUEUE_FIELDS, OVERRIDE)}
        for table in t.COUNTERS:
            self.read[table.source] = await self._hashes(
                database, table, "COUNTERS", names, fields.get(table.source, table.fields)
            )
        windows = self.read.setdefault(t.WATERMARKS, {})
        for window, key in keys.WATERMARK_TABLES.items():
            parts = [await self._hashes(database, table, key, names, table.fields) for table in t.MAXIMA]
            windows[window] = t.SonicWatermarks(*parts)
        self.rates = await self._hashes(
            database, t.CountedObjects(t.LINKS, "ports", t.RATE_FIELDS), keys.RATES, names, t.RATE_FIELDS
        )

    async def _hashes(
        self,
        database: RedisDatabase,
        table: t.CountedObjects,
        prefix: str,
        names: keys.SonicNames,
        fields: tuple[str, ...],
    ) -> dict[Any, t.Fields]:
        """The hash of each object: empty if it does not exist, and without those that Redis could not return."""
        database.source = table.source
        objects: Mapping[str, Any] = getattr(names, table.kind)
        found = [f"{prefix}:{oid}" for oid in objects]
        hashes = await database.read([("HMGET", key, *fields) for key in found], keep=False)
        parts = zip(objects.values(), found, hashes, strict=True)
        return {name: self._usable(database, table.source, key, part) for name, key, part in parts}

    async def _configuration(self) -> None:
        source = t.CONFIGURATION
        try:
            async with self._attempt(source), self._open(source, layouts.CONFIG_DB) as database:
                known = await self.found
                ports = [] if known is None else list(known.ports.values())
                rows = await self._rows(database, source, keys.first_rows(ports))
                maps = [(key, ()) for key in sorted(await _aside(lambda: named_maps(rows_of(rows))))]
                rows |= await self._rows(database, source, maps)
                plan = await _aside(lambda: lossless_of(rows_of(rows)))
                self.lossless.set_result(plan if rows else None)
                self.read[source] = rows
                # Rows of queues without those to which they refer would say that settings are missing: all or none of them.
                self.read[source] = rows | await self._buffers(database, ports, plan)
                if known is None:
                    raise NetError(NO_NAMES)
        finally:
            _settle(self.lossless, None)
            _settle(self.buffers, ([], []))

    async def _buffers(
        self, database: RedisDatabase, ports: list[str], plan: Lossless
    ) -> dict[str, t.Fields]:
        """The rows of queues and priority groups, and the profiles and pools behind them."""
        source = t.CONFIGURATION
        rows = await self._ranges(database, ports, plan)
        if wanted := keys.dynamic_group_keys(rows):
            # What a dynamic buffer model has chosen is in APPL_DB.
            async with self._open(source, layouts.APPL_DB) as chosen:
                rows |= await self._rows(chosen, source, wanted)
        rows |= await self._rows(database, source, await _aside(lambda: keys.profile_rows(rows)))
        profiles = [fields for key, fields in rows.items() if key.startswith("BUFFER_PROFILE|")]
        pools = keys.pools_of(profiles)
        self.buffers.set_result((keys.buffer_profiles(rows), pools))
        return rows | await self._rows(
            database, source, [(f"BUFFER_POOL|{pool}", ("size",)) for pool in pools]
        )

    async def _ranges(self, database: RedisDatabase, ports: list[str], plan: Lossless) -> dict[str, t.Fields]:
        """The rows of queues and priority groups, both tables in the same pipelines."""
        searches = []
        for table in ("QUEUE", "BUFFER_PG"):
            known = {
                port: (one.queues if table == "QUEUE" else one.groups).values()
                for port, one in plan.shown.items()
            }
            lossless = {port: frozenset(known.get(port, ())) for port in ports}
            both = {port: numbers | {*PRIORITIES} for port, numbers in lossless.items()}
            tried = both if self.everything else lossless
            searches.append(keys.range_search(table, tried, lossless, self.read[t.CONFIGURATION]))
        found: dict[str, t.Fields] = {}
        wanted = await _aside(lambda: [row for search in searches for row in next(search)])
        for _ in range(3):  # none of a kind does not mean none at all
            new = await self._rows(database, t.CONFIGURATION, wanted)
            found |= new
            wanted = await _aside(lambda: [row for search in searches for row in search.send(new)])  # noqa: B023 - called here
        return found

    async def _state(self) -> None:
        source = t.STATE
        async with self._attempt(source, t.TRANSCEIVERS), self._open(source, layouts.STATE_DB) as database:
            profiles, pools = await self._result_of(self.buffers, ([], []))
            rows = await self._rows(database, source, keys.state_rows(profiles))
            used = dict.fromkeys((*pools, *keys.pools_of(rows.values())))
            wanted = [(f"BUFFER_POOL_TABLE|{pool}", ("size",)) for pool in used]
            self.read[source] = rows | await self._rows(database, source, wanted)

            known = await self.found
            database.source = t.TRANSCEIVERS
            ports = () if known is None else known.ports.values()
            found = await self._rows(database, t.TRANSCEIVERS, keys.port_rows(t.TRANSCEIVERS, ports))
            modules = self.read.setdefault(t.TRANSCEIVERS, {})
            for key, fields in found.items():
                table, _, port = key.partition("|")
                one = self.port_faults if table == "PORT_OPERR_TABLE" else modules
                one.setdefault(port, {}).update(fields)

    async def _ports(self) -> None:
        """The state of the ports, and their neighbours."""
        async with self._attempt(t.LINKS, t.LLDP), self._open(t.LINKS, layouts.APPL_DB) as database:
            known = await self.found
            ports = () if known is None else known.ports.values()
            found = await self._rows(database, t.LINKS, keys.port_rows(t.LINKS, ports))
            self.read[t.LINKS] = {key.partition(":")[2]: fields for key, fields in found.items()}
            database.source = t.LLDP
            self.read[t.LLDP] = await self._rows(
                database, t.LLDP, [keys.CHASSIS, *keys.port_rows(t.LLDP, ports)]
            )
            if known is None:
                raise NetError(NO_NAMES)

    async def _rows(
        self, database: RedisDatabase, source: str, rows: Iterable[keys.Row]
    ) -> dict[str, t.Fields]:
        """The rows that exist, by key."""
        wanted = list(rows)
        commands = [("HMGET", key, *fields) if fields else ("HGETALL", key) for key, fields in wanted]
        hashes = await database.read(commands)
        parts = zip(wanted, hashes, strict=True)
        rows_read = {key: self._usable(database, source, key, part) for (key, _), part in parts}
        return {key: fields for key, fields in rows_read.items() if fields}

    def _usable(
        self, database: RedisDatabase, source: str, key: str, found: t.Fields | ReplyError
    ) -> t.Fields:
        """The hash; empty, and a fault of the source, if Redis could not return it."""
        if isinstance(found, ReplyError):
            self.faults.setdefault(source, label_text(f"{key}: {database.line(found)}"))
            return {}
        return found

    async def _result_of(self, future: asyncio.Future[Any], otherwise: Any) -> Any:
        """The result of another task, awaited for a part of the remaining time only."""
        remaining = self.probe.deadline - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait({future}, timeout=max(0.0, remaining * keys.WAIT_SHARE))
        return future.result() if done else otherwise

    @asynccontextmanager
    async def _attempt(self, *sources: str) -> AsyncIterator[None]:
        """What fails here, or is late, is a fault of those of the sources that have not been read yet."""
        line = ""
        try:
            async with asyncio.timeout_at(self.probe.deadline):
                yield
        except TimeoutError:
            line = LATE
        except NetError as error:
            line = str(error)
        for source in sources if line else ():
            if source not in self.read or len(sources) == 1 or source == t.WATERMARKS:
                self.faults.setdefault(source, line)

    @asynccontextmanager
    async def _open(self, source: str, name: str) -> AsyncIterator[RedisDatabase]:
        probe, logged = self.probe, self.logged if self.probe.record else None
        opened = open_database(
            self._address(name),
            probe.login,
            self.tls,
            source,
            logged,
            probe.gate,
            probe.deadline,
            self.budget,
        )
        async with opened as database:
            self.opened.append(database)
            yield database

    def _address(self, name: str) -> RedisAddress:
        return layouts.address_of(self.layout, self.place, name, self.probe.target, self.probe.route)


async def _aside(work: Callable[[], T]) -> T:
    """The result of work in a thread: with a thousand ports it would hold up the other switches."""
    return await run_in_thread(work, MOST_SECONDS, _THREAD)


def _settle(future: asyncio.Future[Any], value: Any) -> None:
    """Give those who wait for a task the value that says that there is no result."""
    if not future.done():
        future.set_result(value)


MODULE = Module(name="sonic", dialect=SONIC, query=query, read=read, is_repeated=True)

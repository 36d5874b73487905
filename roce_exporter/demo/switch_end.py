"""The other end of the links in the demo: a simulated SONiC switch in a Redis server of its own, and the probe that reads it.

The probe is the one of `roce-exporter serve --switches.config`. It needs redis-server on the PATH and the package redis; without them the
demo has a note, and no switch.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from roce_exporter.background import background
from roce_exporter.demo.figures import SWITCH_WANTED, Address, Moments, ShownSwitch, switch_ports
from roce_exporter.demo.servers import LOOPBACK, describe_exit, find_program, running
from roce_exporter.host.simulated.simulated_switch import DATABASE_NUMBERS
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import ProbeLimits, SwitchesFile, SwitchTarget
from roce_exporter.view.history import timed_samples
from roce_exporter.web import Server
from roce_exporter.web.application import Application
from roce_exporter.web.switch_pages import SwitchPages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from redis.asyncio import Redis

    from roce_exporter.demo.servers import ChildProcess
    from roce_exporter.host.simulated.simulated_switch import Databases, SimulatedSwitch

REDIS = ("redis-server",)
RENEWAL_SECONDS = 1.0
"""Between two writes of the tables, as a SONiC refreshes the counters of its ports."""
START_SECONDS = 10.0  # until a redis-server that does not answer is given up
RETRY_SECONDS = 0.05
PROBE_SECONDS = 1.0
"""Most seconds that a scene waits for the switch."""
LONGEST_SOCKET = 107  # bytes of the path of a unix socket (unix(7))
WRITE_SECONDS = 2.0  # timeout of one request


class TablesNotWrittenError(Exception):
    """The Redis server does not answer: one line."""


class TableWriter:
    """Keeps the tables of the simulated switch up to date in the demo's own server: no other place of the package writes to Redis."""

    def __init__(self, clients: dict[str, Redis], error: type[Exception]) -> None:
        """`error` is what the clients raise besides OSError."""
        self._clients = clients
        self._errors = (error, OSError)
        self._written: Databases = {}

    async def write(self, databases: Databases) -> None:
        """Replace what has changed since the last call; each database in one transaction, so no reader sees a mixture.

        TablesNotWrittenError: the server does not answer.
        """
        try:
            for name, tables in databases.items():
                await self._write(name, tables)
        except self._errors as error:
            raise TablesNotWrittenError(f"the tables of the switch cannot be written: {error}") from error
        self._written = databases

    async def _write(self, name: str, tables: Mapping[str, Mapping[Any, Any]]) -> None:
        before = self._written.get(name, {})
        changed = {key: fields for key, fields in tables.items() if before.get(key) != fields}
        gone = [*(before.keys() - tables.keys()), *changed]
        if not gone:
            return
        async with self._clients[name].pipeline(transaction=True) as pipeline:
            pipeline.delete(*gone)
            for key, fields in changed.items():
                pipeline.hset(key, mapping=fields)
            await pipeline.execute()


@contextlib.asynccontextmanager
async def table_writer(socket: Path) -> AsyncIterator[TableWriter]:
    """A writer to the Redis server at this unix socket; it connects with the first call."""
    # Imported where the demo has found it.
    import redis.asyncio  # noqa: PLC0415
    from redis.asyncio.retry import Retry  # noqa: PLC0415
    from redis.backoff import NoBackoff  # noqa: PLC0415

    never = Retry(NoBackoff(), 0)
    async with contextlib.AsyncExitStack() as stack:
        clients = {
            name: redis.asyncio.Redis(
                unix_socket_path=str(socket),
                db=number,
                retry=never,
                socket_timeout=WRITE_SECONDS,
                socket_connect_timeout=WRITE_SECONDS,
            )
            for name, number in DATABASE_NUMBERS.items()
        }
        for client in clients.values():
            stack.push_async_callback(client.aclose)
        yield TableWriter(clients, redis.RedisError)


@dataclass(slots=True)
class SwitchEnd:
    """The switch end of the demo while it runs."""

    name: str
    address: str
    """HOST:PORT of the probe."""
    prober: Prober
    child: ChildProcess
    notes: list[str]
    moments: Moments = field(default_factory=Moments)
    written: float = 0.0
    """When the tables that the server has were written, by the clock of the host."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while tables are written or the demo reads them, so that it knows how old they are."""
    _last: ShownSwitch | None = None
    _lost: bool = False

    @property
    def page(self) -> Address:
        """The page of the probe."""
        return Address("switch", f"http://{self.address}/probe?target={self.name}")

    async def view(self) -> ShownSwitch | None:
        """The switch now, or when it was last read completely; None before that, and once redis-server has ended."""
        if not self.running:
            return None
        with contextlib.suppress(TimeoutError):
            # Also for the lock: a server that hangs blocks the writer, too.
            async with asyncio.timeout(PROBE_SECONDS), self.lock:
                answer = await self.prober.probe(self.name, "", PROBE_SECONDS)
                if not answer.readings.faults:
                    self.moments.add(timed_samples(answer.samples, self.written, SWITCH_WANTED))
                    self._last = ShownSwitch(answer.device, switch_ports(self.moments))
        return self._last

    @property
    def running(self) -> bool:
        """Whether redis-server runs; its end is noted once."""
        if not self.child.alive and not self._lost:
            self._lost = True
            self.notes.append(describe_exit(self.child))
        return self.child.alive


@contextlib.asynccontextmanager
async def switch_end(
    leaf: SimulatedSwitch, folder: Path, notes: list[str]
) -> AsyncIterator[SwitchEnd | None]:
    """The switch end of the demo, with its files in this folder; None, and a note, if something that it needs is missing."""
    program, socket = find_program(REDIS), folder / "redis.sock"
    if missing := _missing(program, socket):
        notes.append(missing)
    if missing or program is None:
        yield None
        return
    async with contextlib.AsyncExitStack() as stack:
        yield await _start(stack, leaf, program, socket, notes)


def _missing(program: str | None, socket: Path) -> str:
    if program is None:
        return "redis-server is not on the PATH: with it the demo shows the switch end of the links too"
    if find_spec("redis") is None:
        return "the package redis is not installed: with the extra sonic the demo shows the switch end of the links too"
    if len(os.fsencode(socket)) > LONGEST_SOCKET:
        return f"{socket} is too long for a socket: no switch here; set TMPDIR to a shorter folder"
    return ""


async def _start(
    stack: contextlib.AsyncExitStack, leaf: SimulatedSwitch, program: str, socket: Path, notes: list[str]
) -> SwitchEnd | None:
    try:
        child = await stack.enter_async_context(
            running("redis-server", redis_command(program, socket), socket.with_name("redis-server.log"))
        )
    except OSError as error:
        notes.append(f"{program} cannot be started: {error.strerror}; the rest goes on")
        return None
    writer = await stack.enter_async_context(table_writer(socket))
    if not await _first_write(writer, leaf, child, notes):
        return None
    prober = Prober(switches_file(leaf.hostname, socket))
    stack.push_async_callback(prober.close)
    registry = OwnRegistry()
    application = Application((SwitchPages(prober, registry),), registry)
    server = Server(application, None, private=application.private)
    stack.push_async_callback(server.close)
    (address,) = await server.start([f"{LOOPBACK}:0"])
    end = SwitchEnd(leaf.hostname, address, prober, child, notes)
    await stack.enter_async_context(background(server.accept(), keep_written(end, writer, leaf)))
    return end


def redis_command(program: str, socket: Path) -> list[str]:
    """A server with a unix socket for this user only, without a TCP port, that keeps nothing on disk."""
    return [
        *(program, "--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700"),
        *("--save", "", "--appendonly", "no", "--dir", str(socket.parent), "--daemonize", "no"),
        *("--loglevel", "warning"),
    ]


def switches_file(name: str, socket: Path) -> SwitchesFile:
    """The configuration of the probe: one target, whose answers are not kept, because Prometheus scrapes it each second."""
    target = SwitchTarget(name, "sonic", "unix", str(socket), {"unix": 0}, timeout=PROBE_SECONDS)
    return SwitchesFile({name: target}, None, ProbeLimits(cache_seconds=0.0))


async def _first_write(
    writer: TableWriter, leaf: SimulatedSwitch, child: ChildProcess, notes: list[str]
) -> bool:
    """Write the tables as soon as the server answers; False, and a note, if it does not."""
    end = time.monotonic() + START_SECONDS
    while child.alive and time.monotonic() < end:
        try:
            await writer.write(leaf.databases(time.monotonic()))
        except TablesNotWrittenError:
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return True
    notes.append("redis-server does not answer; the rest goes on" if child.alive else describe_exit(child))
    return False


async def keep_written(end: SwitchEnd, writer: TableWriter, leaf: SimulatedSwitch) -> None:
    """Write the tables of the switch every `RENEWAL_SECONDS` until the server ends. Its first failure is noted."""
    failed = False
    while end.child.alive:
        try:
            async with end.lock:
                now = time.monotonic()
                await writer.write(leaf.databases(now))
                end.written = now
        except TablesNotWrittenError as error:
            # That the server has ended is noted elsewhere, once.
            if end.child.alive and not failed:
                end.notes.append(f"{error}; the rest goes on")
            failed = True
        await asyncio.sleep(RENEWAL_SECONDS)

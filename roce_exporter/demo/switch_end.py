"""The other end of the links in the demo: a simulated SONiC switch in a Redis server of its own, and the probe that reads it.

The probe is the one of `roce-exporter serve --switches.config`. It needs redis-server on the PATH; without it the demo has a note, and no
switch.
"""

import asyncio
import contextlib
import os
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from roce_exporter.collect.rounds import background
from roce_exporter.demo.figures import SWITCH_WANTED, Address, Moments, ShownSwitch, switch_ports
from roce_exporter.demo.servers import ChildProcess, describe_exit, find_program, running, served
from roce_exporter.host.simulated.simulated_switch import DATABASE_NUMBERS, Databases, SimulatedSwitch
from roce_exporter.net import NetError
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.systems.sonic.redis_client import ReplyReader
from roce_exporter.switches.targets import ProbeLimits, SwitchesFile, SwitchTarget
from roce_exporter.view.host_view import timed_samples
from roce_exporter.web.application import Application
from roce_exporter.web.switch_pages import SwitchPages

REDIS = ("redis-server",)
RENEWAL_SECONDS = 1.0
"""Between two writes of the tables, as a SONiC refreshes the counters of its ports."""
START_SECONDS = 10.0  # until a redis-server that does not answer is given up
RETRY_SECONDS = 0.05
PROBE_SECONDS = 1.0  # most seconds that a scene waits for the switch
LONGEST_SOCKET = 107  # bytes of the path of a unix socket (unix(7))
WRITE_SECONDS = 2.0  # timeout of one write


class TablesNotWrittenError(Exception):
    """The Redis server does not answer: one line."""


class TableWriter:
    """Keeps the tables of the simulated switch up to date in the demo's own server: no other place of the package writes to Redis."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._written: Databases = {}

    async def write(self, databases: Databases) -> None:
        """Replace what has changed since the last call; each database in one transaction, so no reader sees a mixture.

        TablesNotWrittenError: the server does not answer.
        """
        commands = [
            command
            for name, tables in databases.items()
            for command in _changes(DATABASE_NUMBERS[name], self._written.get(name, {}), tables)
        ]
        if commands:
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    await self._send((*commands, ("PING",)))
            except (OSError, NetError) as error:
                why = str(error) or "Timeout"
                raise TablesNotWrittenError(f"the tables of the switch cannot be written: {why}") from error
        self._written = databases

    async def _send(self, commands: Iterable[Sequence[object]]) -> None:
        """Send commands, of which the last is a PING, and wait for their replies. NetError: one of them is an error."""
        reader, writer = await asyncio.open_unix_connection(self._socket)
        try:
            for command in commands:
                words = [str(word).encode() for word in command]
                writer.write(b"*%d\r\n" % len(words))
                writer.writelines(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
            replies = await ReplyReader(reader).until(b"+PONG\r\n")
        finally:
            writer.transport.abort()
        if refused := re.search(rb"^-(.*)\r$", replies, re.MULTILINE):
            raise NetError(refused[1].decode())


def _changes(
    number: int, before: Mapping[str, Mapping[Any, Any]], after: Mapping[str, Mapping[Any, Any]]
) -> list[tuple[object, ...]]:
    """The commands that turn one database into another; none where they are equal."""
    changed = {key: fields for key, fields in after.items() if before.get(key) != fields}
    gone = [*(before.keys() - after.keys()), *changed]
    if not gone:
        return []
    sets = (("HSET", key, *chain.from_iterable(fields.items())) for key, fields in changed.items())
    return [("SELECT", number), ("MULTI",), ("DEL", *gone), *sets, ("EXEC",)]


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
    async with contextlib.AsyncExitStack() as stack:
        if program is None:
            notes.append(
                "redis-server is not on the PATH: with it the demo shows the switch end of the links too"
            )
            yield None
        elif len(os.fsencode(socket)) > LONGEST_SOCKET:
            notes.append(f"{socket} is too long for a socket: no switch here; set TMPDIR to a shorter folder")
            yield None
        else:
            yield await _start(stack, leaf, program, socket, notes)


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
    writer = TableWriter(socket)
    if not await _first_write(writer, leaf, child, notes):
        return None
    prober = Prober(switches_file(leaf.hostname, socket))
    stack.push_async_callback(prober.close)
    registry = OwnRegistry()
    application = Application((SwitchPages(prober, registry),), registry)
    address = await stack.enter_async_context(served(application))
    end = SwitchEnd(leaf.hostname, address, prober, child, notes)
    await stack.enter_async_context(background(keep_written(end, writer, leaf)))
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
    return SwitchesFile({name: target}, (), ProbeLimits(cache_seconds=0.0))


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

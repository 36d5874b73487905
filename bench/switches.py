"""What one round of queries to a switch costs the exporter: 64 ports, 20 queues, 8 priority groups, in a real Redis.

The rival reads what vinted/sonic-exporter reads, queue by queue and key by key, through the same connection: the difference is the
round trips, which cost most where they cost least, on loopback.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import sonic_switch

from roce_exporter.switches.doors.redis import open_database
from roce_exporter.switches.doors.redis_address import RedisAddress
from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.module import Visit
from roce_exporter.switches.modules import sonic
from roce_exporter.switches.targets import Login, Route, SwitchTarget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PORTS = 64
ROUNDS = 15
WALL = 0.3
CPU = 0.1
"""Seconds that one round may take, on the wall clock and of this process."""

WATERMARKS = "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"


async def one_switch(socket: str, priorities: str, interpreter: Interpreter) -> int:
    """Query, interpret and convert; the number of series."""
    target = SwitchTarget("leaf1", "sonic", "unix", socket, {}, priorities=priorities)
    deadline = asyncio.get_running_loop().time() + 60
    readings = sonic.read(await sonic.query(Visit(target, Route(socket), Login(), deadline)), target)
    if readings.faults:
        raise AssertionError(readings.faults)
    return len(interpreter.samples("leaf1", readings).series)


async def key_by_key(socket: str) -> int:
    """The queues only: counters and two watermarks of each, one command after the other."""
    values = 0
    async with open_database(RedisAddress("", 0, socket, 2), Login()) as database:
        (names,) = await database.read([("HGETALL", "COUNTERS_QUEUE_NAME_MAP")])
        if not isinstance(names, dict):
            raise TypeError(names)
        for oid in names.values():
            for key in (f"COUNTERS:{oid}", f"USER_WATERMARKS:{oid}", f"PERSISTENT_WATERMARKS:{oid}"):
                values += len((await database.read([("HGETALL", key)]))[0])
    return values


async def measure(work: Callable[[], Awaitable[int]]) -> tuple[int, float, float]:
    """What the work returns, and the median of its wall and CPU seconds after a first round."""
    await work()
    walls, processors, found = [], [], 0
    for _ in range(ROUNDS):
        wall, processor = time.perf_counter(), time.process_time()
        found = await work()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return found, statistics.median(walls), statistics.median(processors)


async def compare(socket: str) -> None:
    """Print the table."""
    plain, everything = Interpreter("sonic"), Interpreter("sonic")
    works: list[tuple[str, Callable[[], Awaitable[int]]]] = [
        ("priorities with PFC (default)", lambda: one_switch(socket, "pfc", plain)),
        ("all priorities and queues", lambda: one_switch(socket, "all", everything)),
        ("key by key, queues only, as vinted/sonic-exporter", lambda: key_by_key(socket)),
    ]
    results = [(name, *await measure(work)) for name, work in works]
    rival = results[-1]
    print(f"\n### One SONiC switch of {PORTS} ports, median of {ROUNDS} rounds\n")
    print(
        f"| round | series | wall ms | CPU ms | wall / {WALL} s | CPU / {CPU} s | wall / rival | CPU / rival |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, found, wall, processor in results:
        print(
            f"| {name} | {found} | {wall * 1e3:.0f} | {processor * 1e3:.0f} | {wall / WALL:.2f} "
            f"| {processor / CPU:.2f} | {wall / rival[2]:.2f} | {processor / rival[3]:.2f} |",
            flush=True,
        )


def main() -> None:
    """Start a Redis, load the switch and measure."""
    program = shutil.which("redis-server")
    if program is None:
        print("bench: switches needs redis-server")
        return
    with tempfile.TemporaryDirectory() as folder:
        socket = str(Path(folder) / "redis.sock")
        flags = ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", folder]
        process = subprocess.Popen([program, *flags], stdout=subprocess.DEVNULL)  # noqa: S603 - a server of ours
        try:
            while not Path(socket).is_socket():
                time.sleep(0.01)
            sonic_switch.load(socket, PORTS)
            asyncio.run(compare(socket))
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()

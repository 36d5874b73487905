"""What one round of queries to a switch costs the exporter: 64 ports, 20 queues, 8 priority groups, in a real Redis.

The rival reads what vinted/sonic-exporter reads, queue by queue and key by key, through the same connection: the difference is the
round trips, which cost most where they cost least, on loopback.
"""

from __future__ import annotations

import asyncio
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sonic_switch

from roce_exporter.exposition import Format
from roce_exporter.net.login import Login
from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.readings import ProbeRequest
from roce_exporter.switches.systems.sonic import redis_requests as sonic
from roce_exporter.switches.systems.sonic.redis_client import RedisAddress, open_database
from roce_exporter.switches.targets import ProbeLimits, Route, SwitchesFile, SwitchTarget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PORTS = 64
ROUNDS = 15
WALL = 0.3
CPU = 0.1
"""Seconds that one round may take, on the wall clock and of this process."""

FLEET = 100
FLEET_ROUNDS = 5
SIZE_ROUNDS = 5
INTERVAL = 15
"""Seconds between two scrapes of every switch."""
SIZES = {64: 15, 256: 45, 1024: 200}
"""Ports of a switch, and the milliseconds of CPU time that a round may take while names and settings hold."""

WATERMARKS = "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"


async def one_switch(socket: str, priorities: str, interpreter: Interpreter) -> int:
    """Query, interpret and convert; the number of series."""
    target = SwitchTarget("leaf1", "sonic", "unix", socket, {}, priorities=priorities)
    deadline = asyncio.get_running_loop().time() + 60
    readings = sonic.read(await sonic.query(ProbeRequest(target, Route(socket), Login(), deadline)), target)
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


async def scrape_all(prober: Prober, names: list[str]) -> int:
    """Probe all switches at once and render the answers, as for one interval of Prometheus; the bytes."""

    async def scrape(name: str) -> int:
        answer = await prober.probe(name, "", 60)
        if answer.readings.faults:
            raise AssertionError(answer.readings.faults)
        return len(answer.renderer.render(answer.samples, Format.TEXT))

    return sum(await asyncio.gather(*map(scrape, names)))


async def compare_sizes(socket: str) -> None:
    """Print what rounds of one switch cost the process with their text, next to whole rounds of the same switch in the same run."""
    print(f"\n### One SONiC switch by its size, probed and rendered, median of {SIZE_ROUNDS} rounds\n")
    print(
        "| ports | MB of text | first round CPU ms | whole round CPU ms | round CPU ms | goal | round / whole |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for ports, goal in SIZES.items():
        sonic_switch.load(socket, ports)
        target = SwitchTarget("leaf", "sonic", "unix", socket, {"unix": 0}, timeout=300)
        prober = Prober(SwitchesFile({"leaf": target}, None, ProbeLimits(cache_seconds=0)))
        begin = time.process_time()
        size = await scrape_all(prober, ["leaf"])
        first = time.process_time() - begin
        state = prober._states["leaf"]  # noqa: SLF001 - to make a round whole that would read numbers only

        async def whole(prober: Prober = prober, state: Any = state) -> int:
            state.again = None
            return await scrape_all(prober, ["leaf"])

        _, _, slow = await measure(whole, SIZE_ROUNDS)
        _, _, fast = await measure(lambda prober=prober: scrape_all(prober, ["leaf"]), SIZE_ROUNDS)  # type: ignore[misc]
        print(
            f"| {ports:,} | {size / 1e6:.1f} | {first * 1e3:.0f} | {slow * 1e3:.0f} | {fast * 1e3:.0f} "
            f"| {goal} | {fast / slow:.2f} |",
            flush=True,
        )
        await prober.close()


async def compare_fleet(socket: str) -> None:
    """Print what 100 such switches cost one process. They share one Redis, which has a processor of its own here."""
    targets = {
        f"leaf{n}": SwitchTarget(f"leaf{n}", "sonic", "unix", socket, {"unix": 0}, timeout=60)
        for n in range(FLEET)
    }
    prober = Prober(SwitchesFile(targets, None, ProbeLimits(cache_seconds=0)))
    found, wall, processor = await measure(lambda: scrape_all(prober, list(targets)), FLEET_ROUNDS)
    print(
        f"\n### {FLEET} such switches in one process, probed and rendered, median of {FLEET_ROUNDS} rounds\n"
    )
    print(f"| MB of text | wall s | CPU s | CPU / {INTERVAL} s (one core) | peak MB of memory |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {found / 1e6:.1f} | {wall:.1f} | {processor:.1f} | {processor / INTERVAL:.2f} | {peak:.0f} |",
        flush=True,
    )
    await prober.close()


async def measure(work: Callable[[], Awaitable[int]], rounds: int = ROUNDS) -> tuple[int, float, float]:
    """What the work returns, and the median of its wall and CPU seconds after a first round."""
    await work()
    walls, processors, found = [], [], 0
    for _ in range(rounds):
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
            asyncio.run(compare_fleet(socket))
            asyncio.run(compare_sizes(socket))
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()

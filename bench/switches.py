"""What one round of queries to a switch costs the exporter: 64 ports, 20 queues, 8 priority groups, in a real Redis.

The rival reads what vinted/sonic-exporter reads, queue by queue and key by key, through the same connection: the difference is the
round trips, which cost most where they cost least, on loopback.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socket import socket as make_socket
from typing import TYPE_CHECKING

import sonic_switch

from roce_exporter.net.login import Login
from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.readings import ProbeRequest
from roce_exporter.switches.systems.sonic import redis_requests as sonic
from roce_exporter.switches.systems.sonic.redis_client import RedisAddress, open_database
from roce_exporter.switches.targets import Route, SwitchTarget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

PORTS = 64
ROUNDS = 15
WALL = 0.3
CPU = 0.1
"""Seconds that one round may take, on the wall clock and of this process."""

FLEET = int(os.environ.get("ROCE_BENCH_SWITCHES", "200"))
SIZE_ROUNDS = 20
INTERVAL = 15
"""Seconds between two scrapes of every switch."""
ROUNDS_HELD = int(os.environ.get("ROCE_BENCH_ROUNDS", "42"))
"""Scrapes of each switch after the first one: in ten and a half minutes each has one whole round."""
CLIENTS = 16
BEFORE = os.environ.get("ROCE_BENCH_BEFORE", "")
"""The folder of an earlier commit, to measure in the same run."""
TREES = (
    {"before": BEFORE, "now": str(Path(__file__).parents[1])}
    if BEFORE
    else {"now": str(Path(__file__).parents[1])}
)
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


class Served:
    """`serve --switches.config` of a folder with the exporter, and what it uses."""

    def __init__(self, tree: str, sockets: list[str], folder: Path) -> None:
        with make_socket() as chosen:
            chosen.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{chosen.getsockname()[1]}"
        config = folder / "switches.yml"
        lines = [f"  leaf{n}: {{module: sonic, address: 'unix://{one}'}}" for n, one in enumerate(sockets)]
        config.write_text("\n".join(["targets:", *lines, "limits: {cache: 0s, timeout: 120s}\n"]))
        flags = ("serve", "--no-host", f"--switches.config={config}", f"--web.listen-address={self.address}")
        self.process = subprocess.Popen(  # noqa: S603 - the exporter
            [sys.executable, "-m", "roce_exporter", *flags],
            cwd=tree,  # first in the path of modules
            stderr=(folder / "log").open("w"),
        )
        self.names, self.incomplete, self.old = [f"leaf{n}" for n in range(len(sockets))], 0, 0
        while not self._is_ready():
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            return bool(urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5).read())
        except OSError:
            if self.process.poll() is not None:
                raise
            return False

    def scrape(self, name: str, wait: int = 120) -> int:
        """Bytes of an answer, as Prometheus requests it."""
        headers = {"Accept-Encoding": "gzip", "X-Prometheus-Scrape-Timeout-Seconds": str(wait)}
        request = urllib.request.Request(f"http://{self.address}/probe?target={name}", headers=headers)
        with urllib.request.urlopen(request, timeout=300) as reply:  # noqa: S310 - http
            packed = reply.read()
        page = gzip.decompress(packed)
        self.incomplete += re.search(rb"\nroce_switch_(source_up|probe_success).* 0\n", page) is not None
        age = re.search(rb"\nroce_switch_answer_age_seconds.* (\S+)\n", page)
        self.old += age is not None and float(age[1]) > 0
        return len(page)

    def scrape_all(self) -> int:
        """Of all switches at once."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            return sum(pool.map(self.scrape, self.names))

    def hold(self, rounds: int, moved: Iterable[str]) -> None:
        """Scrape each switch at its own time of every interval, and let its counters rise before."""
        begin, step = time.monotonic(), INTERVAL / len(self.names)
        sockets = [*moved]

        def one(number: int) -> None:
            time.sleep(max(0.0, begin + number * step - time.monotonic()))
            sonic_switch.move(sockets[number % len(sockets)], 1 + number % 99)
            self.scrape(self.names[number % len(self.names)], 10)

        with ThreadPoolExecutor(CLIENTS) as pool:
            for _ in pool.map(one, range(rounds * len(self.names))):
                pass

    @property
    def cpu(self) -> float:
        """Seconds of processor time."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, name: str = "VmRSS") -> float:
        """MiB."""
        found = re.search(rf"{name}:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0


@contextmanager
def served(tree: str, sockets: list[str]) -> Iterator[Served]:
    """The exporter for these switches."""
    with tempfile.TemporaryDirectory() as folder:
        one = Served(tree, sockets, Path(folder))
        try:
            yield one
        finally:
            one.process.kill()
            one.process.wait()


def compare_large(socket: str) -> None:
    """Print what rounds of large switches cost the served process of each commit."""
    print(f"\n### One SONiC switch, served, counters that rise, mean of {SIZE_ROUNDS} rounds (CPU ms)\n")
    print("| ports | commit | MB of text | first round | round | goal | MiB |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for ports, goal in SIZES.items():
        sonic_switch.load(socket, ports)
        for label, tree in TREES.items():
            with served(tree, [socket]) as one:
                used, size = one.cpu, one.scrape_all()
                first, used = one.cpu - used, one.cpu
                for step in range(SIZE_ROUNDS):
                    sonic_switch.move(socket, 1 + step)
                    one.scrape_all()
                cost = (
                    (one.cpu - used) / SIZE_ROUNDS * 1e3
                )  # the kernel counts a process by hundredths of a second
                print(
                    f"| {ports:,} | {label} | {size / 1e6:.1f} | {first * 1e3:.0f} | {cost:.0f} | {goal} | {one.memory():.0f} |",
                    flush=True,
                )


def compare_fleet() -> None:
    """Print what switches with a Redis, values, names and neighbours of their own cost one process, scraped as Prometheus does."""
    print(f"\n### {FLEET} SONiC switches of {PORTS} ports in one process, a Redis each, every {INTERVAL} s\n")
    print(
        "| commit | MB of text | first round CPU s | CPU s per interval | share of a core | MiB | most MiB | incomplete answers | of the round before |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    with ExitStack() as servers:
        sockets = [servers.enter_context(redis_server("--hz", "1")) for _ in range(FLEET)]
        for number, place in enumerate(sockets):
            sonic_switch.load(place, PORTS, number)
        for label, tree in TREES.items():
            with served(tree, sockets) as one:
                used, size = one.cpu, one.scrape_all()
                first, used, begin = one.cpu - used, one.cpu, time.monotonic()
                one.hold(ROUNDS_HELD, sockets)
                share = (one.cpu - used) / (time.monotonic() - begin)
                print(
                    f"| {label} | {size / 1e6:.1f} | {first:.1f} | {share * INTERVAL:.2f} | {share:.3f} "
                    f"| {one.memory():.0f} | {one.memory('VmHWM'):.0f} "
                    f"| {one.incomplete} of {(ROUNDS_HELD + 1) * FLEET} | {one.old} |",
                    flush=True,
                )


@contextmanager
def redis_server(*flags: str) -> Iterator[str]:
    """The socket of a Redis of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "redis.sock")
        command = [
            "redis-server",
            "--port",
            "0",
            "--unixsocket",
            place,
            "--save",
            "",
            "--dir",
            folder,
            *flags,
        ]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - a server of ours
        try:
            while not Path(place).is_socket():
                time.sleep(0.01)
            yield place
        finally:
            process.kill()
            process.wait()


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
    if shutil.which("redis-server") is None:
        print("bench: switches needs redis-server")
        return
    with redis_server() as socket:
        sonic_switch.load(socket, PORTS)
        asyncio.run(compare(socket))
    with redis_server() as socket:
        compare_large(socket)
    compare_fleet()
    print(f"\nLoad of the machine at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

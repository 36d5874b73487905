"""What a prober costs and how noisy its clock is, over veth: python bench/probe_cost.py [SECONDS [CHECKOUT...]]. Needs root and `ip`.

Two hosts in network namespaces, each sends 50 probes a second and answers as many, while a loop runs on every processor. Printed are
the time in the network (kernel timestamps), the CPU time of one host for both roles, and the resident memory of both together. Other
checkouts, such as that of an older commit, are measured in turn with this one, so that other load on the machine affects all of them.

`python bench/probe_cost.py hour [MINUTES]` watches the same two hosts for an hour without the loops, and prints every five minutes what
must not grow: memory, descriptors, objects of the interpreter, and the tables of both hosts. They are read as by a scrape every 15 s.
"""

# ruff: noqa: SLF001 - the sizes of tables are on no page
from __future__ import annotations

import asyncio
import ctypes
import gc
import ipaddress
import math
import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

import roce_exporter
from roce_exporter.model import Device, Gid, Port
from roce_exporter.probe.outcomes import BOUNDS
from roce_exporter.probe.plan import ProbeTarget, SendRate
from roce_exporter.probe.service import ProbeService, ProbeSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence

ADDRESSES = 8
"""Of each host, as 8 ports: 32 probes of each are a burst of 256 every 5.1 s."""
RATE = SendRate()
ROUNDS = 3
WARM, ROW_MINUTES, SCRAPE_SECONDS = 5.0, 5.0, 15.0
GOAL_NOISE, GOAL_CPU, GOAL_MEMORY = 20e-6, 0.005, 40 << 20
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Sockets that are opened within belong to this namespace."""
    own, other = (
        os.open(one, os.O_RDONLY) for one in ("/proc/thread-self/ns/net", f"/run/netns/{namespace}")
    )
    LIBC.setns(other, CLONE_NEWNET)
    try:
        yield
    finally:
        LIBC.setns(own, CLONE_NEWNET)
        os.close(own)
        os.close(other)


def ip(text: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *text.split()], check=True)  # noqa: S603, S607 - the words are literals of this file


def spin() -> None:
    """Keep a processor busy."""
    while True:
        pass


@asynccontextmanager
async def probing(names: Sequence[str]) -> AsyncIterator[Sequence[ProbeService]]:
    """The probers of these namespaces, which run within the block."""
    hosts = {
        name: [f"10.89.{number}.{one + 1}" for one in range(ADDRESSES)] for number, name in enumerate(names)
    }
    targets = [
        ProbeTarget("", name, "", ipaddress.ip_address(text), 10124)
        for name, texts in hosts.items()
        for text in texts
    ]

    async def read() -> Sequence[ProbeTarget]:
        return targets

    services = []
    for name, texts in hosts.items():
        service = ProbeService(ProbeSettings(rate=RATE, whole=True), read, time.monotonic)
        await service.refresh()
        with inside(name):
            gids = tuple(Gid(number, "RoCE v2", "v0", text) for number, text in enumerate(texts))
            service.follow([Device("rxe0", "rdma_rxe", "rxe", ports=(Port(1, "Ethernet", gids=gids),))])
        services.append(service)

    async def run(name: str, service: ProbeService) -> None:
        with_namespace = service.burst

        def burst(wall: float) -> float:
            with inside(name):
                return with_namespace(wall)

        service.burst = burst  # type: ignore[method-assign]
        await service.run()

    tasks = [asyncio.create_task(run(*one)) for one in zip(hosts, services, strict=True)]
    try:
        yield services
    finally:
        for task in tasks:
            task.cancel()
        for service in services:
            service.close()


async def measure(names: Sequence[str], seconds: float) -> None:
    """Probe for some seconds, then print one row."""
    async with probing(names) as services:
        await asyncio.sleep(WARM)
        usage, begun = time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        took = time.monotonic() - begun
        cpu = (time.process_time() - usage) / took / len(services)
        memory = psutil.Process().memory_info().rss
        cells = (*noise(services, took + WARM), f"{cpu:.2%}", f"{memory >> 20}")
        print(f"| {Path(roce_exporter.__file__).parents[1].name} | {' | '.join(cells)} |", flush=True)


async def watch(names: Sequence[str], minutes: float) -> None:
    """Probe for some minutes, and print a row every five."""
    heads = ("minute", "CPU of a host", "MiB", "descriptors", "objects", *TABLES, "sent", "lost", "late")
    print(f"| {' | '.join(heads)} |\n|{' ---: |' * len(heads)}", flush=True)
    process = psutil.Process()
    async with probing(names) as services:
        await asyncio.sleep(WARM)
        begun = time.monotonic()
        for row in range(1, math.ceil(minutes / ROW_MINUTES) + 1):
            usage, since = time.process_time(), time.monotonic()
            end = begun + 60 * min(minutes, row * ROW_MINUTES)
            while (left := end - time.monotonic()) > 0:
                await asyncio.sleep(min(SCRAPE_SECONDS, left))
                counts = counted(services)
            cpu = (time.process_time() - usage) / (time.monotonic() - since) / len(services)
            gc.collect()
            cells = (
                f"{(time.monotonic() - begun) / 60:.0f}",
                f"{cpu:.2%}",
                f"{process.memory_info().rss / 2**20:.1f}",
                *map(str, (process.num_fds(), len(gc.get_objects()), *tables(services).values())),
                *(f"{counts[f'roce_probe_{name}_total']:,.0f}" for name in ("sent", "lost", "late")),
            )
            print(f"| {' | '.join(cells)} |", flush=True)


def counted(services: Sequence[ProbeService]) -> Counter[str]:
    """The sums of all samples by name, as a scrape reads them."""
    sums: Counter[str] = Counter()
    for service in services:
        for series, value in zip(*service.samples(), strict=True):
            sums[series.row.name] += int(value or 0)
    return sums


TABLES = ("sources", "sessions", "replies to time", "probes waiting", "answered", "pairs")


def tables(services: Sequence[ProbeService]) -> dict[str, int]:
    """The entries of the tables of all hosts together."""
    sums = Counter(dict.fromkeys(TABLES, 0))
    for service in services:
        guard = service._guard
        sums["sources"] += len(guard) + guard._is_allowed.cache_info().currsize
        sums["sessions"] += sum(one.cache_info().currsize for one in guard._sessions.values())
        for port in service._ports.values():
            sums["replies to time"] += len(port.responder._pending)
            sums["pairs"] += len(port.tally.pairs)
            for path in port.sender._paths.values():
                sums["probes waiting"] += len(path._waiting)
                sums["answered"] += len(path._answered)
    return dict(sums)


def noise(services: Sequence[ProbeService], seconds: float) -> tuple[str, ...]:
    """Probes sent a second and host, how many were measured, and the bucket of the median and of p99 of the network part."""
    sums: Counter[str] = Counter()
    for service in services:
        for series, value in zip(*service.samples(), strict=True):
            if series.row.name == "roce_probe_sent_total":
                sums["sent"] += int(value or 0)
            elif series.row.name == "roce_probe_network_seconds" and series.suffix == "_bucket":
                sums[series.labels[-1]] += int(value or 0)
    measured = sums["+Inf"]
    percentiles = [
        next((bound for bound in BOUNDS if sums[f"{bound:g}"] >= share * measured), math.inf)
        for share in (0.5, 0.99)
    ]
    rate = sums["sent"] / seconds / len(services)
    return f"{rate:.0f}", f"{measured:,}", *(f"{1e6 * bound:.0f}" for bound in percentiles)


def main() -> None:
    """Measure each checkout in a process of its own, in turn; or watch for an hour."""
    seconds, *others = sys.argv[1:] or ["60"]
    if seconds == "hour":
        between_hosts(lambda names: watch(names, float(others[0]) if others else 60), loops=0)
        return
    here = str(Path(__file__).resolve().parents[1])
    print(
        f"Goals: p99 {GOAL_NOISE * 1e6:.0f} us, {GOAL_CPU:.1%} of a core for both roles, {GOAL_MEMORY >> 20} MiB.\n"
        "| checkout | probes/s | measured | p50 us at most | p99 us at most | CPU of a host | MiB |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        flush=True,
    )
    for _ in range(ROUNDS if others else 1):
        for checkout in (*others, here):
            command = [sys.executable, "-c", f"import probe_cost; probe_cost.one({seconds})"]
            bench = Path(__file__).resolve().parent  # not the current folder, which would be imported first
            environment = os.environ | {"PYTHONPATH": f"{checkout}:{bench}"}
            subprocess.run(command, env=environment, cwd=bench, check=True)  # noqa: S603


def one(seconds: float) -> None:
    """Measure this checkout, with all processors busy."""
    between_hosts(lambda names: measure(names, seconds), loops=os.cpu_count() or 1)


def between_hosts(work: Callable[[Sequence[str]], Coroutine[None, None, None]], loops: int) -> None:
    """Make two namespaces, work with them next to so many busy loops, and remove them."""
    names = [f"pc{os.getpid()}{side}" for side in "ab"]
    spinning = [multiprocessing.Process(target=spin, daemon=True) for _ in range(loops)]
    for name in names:
        ip(f"netns add {name}")
    try:
        ip(f"link add v0 netns {names[0]} type veth peer name v0 netns {names[1]}")
        for number, name in enumerate(names):
            for one in range(ADDRESSES):
                ip(f"-n {name} addr add 10.89.{number}.{one + 1}/16 dev v0")
            ip(f"-n {name} link set v0 up")
            ip(f"-n {name} link set lo up")
        for loop in spinning:
            loop.start()
        asyncio.run(work(names))
    finally:
        for loop in spinning:
            if loop.pid:
                loop.terminate()
        for name in names:
            ip(f"netns del {name}")


if __name__ == "__main__":
    main()

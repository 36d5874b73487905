"""What a prober costs and how noisy its clock is, over veth: python bench/probe_cost.py [SECONDS [CHECKOUT...]]. Needs root and `ip`.

Two hosts in network namespaces, each sends 50 probes a second and answers as many, while a loop runs on every processor. Printed are
the time in the network (kernel timestamps), the CPU time of one host for both roles, and the resident memory with its growth. An hour
is too long for a benchmark: the growth is that of the second half of the run, by the hour. Other checkouts, such as that of an older
commit, are measured in turn with this one, so that other load on the machine affects all of them.
"""

from __future__ import annotations

import asyncio
import ctypes
import ipaddress
import math
import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

import roce_exporter
from roce_exporter.model import Device, Gid, Port
from roce_exporter.probe.outcomes import BOUNDS
from roce_exporter.probe.plan import ProbeTarget, SendRate
from roce_exporter.probe.service import ProbeService, ProbeSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ADDRESSES = 8
"""Of each host, as 8 ports: 32 probes of each are a burst of 256 every 5.1 s."""
RATE = SendRate()
ROUNDS = 3
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


async def measure(names: Sequence[str], seconds: float) -> None:
    """Probe, then print."""
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
    await asyncio.sleep(5)
    memory, usage, begun, half = [], time.process_time(), time.monotonic(), 0
    process = psutil.Process()
    while time.monotonic() - begun < seconds:
        await asyncio.sleep(1)
        memory.append(process.memory_info().rss)
        half = len(memory) // 2
    took = time.monotonic() - begun
    cpu = (time.process_time() - usage) / took / len(services)
    for task in tasks:
        task.cancel()
    growth = (memory[-1] - memory[half]) / max(1.0, took / 2) * 3600
    cells = (*noise(services, took + 5), f"{cpu:.2%}", f"{memory[-1] >> 20}", f"{growth / 2**20:.1f}")
    print(f"| {Path(roce_exporter.__file__).parents[1].name} | {' | '.join(cells)} |", flush=True)
    for service in services:
        service.close()


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
    """Measure each checkout in a process of its own, in turn."""
    seconds, *others = sys.argv[1:] or ["60"]
    here = str(Path(__file__).resolve().parents[1])
    print(
        f"Goals: p99 {GOAL_NOISE * 1e6:.0f} us, {GOAL_CPU:.1%} of a core for both roles, {GOAL_MEMORY >> 20} MiB.\n"
        "| checkout | probes/s | measured | p50 us at most | p99 us at most | CPU of a host | MiB | MiB/h |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        flush=True,
    )
    for _ in range(ROUNDS if others else 1):
        for checkout in (*others, here):
            command = [sys.executable, "-c", f"import probe_cost; probe_cost.one({seconds})"]
            bench = Path(__file__).resolve().parent  # not the current folder, which would be imported first
            environment = os.environ | {"PYTHONPATH": f"{checkout}:{bench}"}
            subprocess.run(command, env=environment, cwd=bench, check=True)  # noqa: S603


def one(seconds: float) -> None:
    """Make two namespaces, measure, and remove them."""
    names = [f"pc{os.getpid()}{side}" for side in "ab"]
    loops = [multiprocessing.Process(target=spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for name in names:
        ip(f"netns add {name}")
    try:
        ip(f"link add v0 netns {names[0]} type veth peer name v0 netns {names[1]}")
        for number, name in enumerate(names):
            for one in range(ADDRESSES):
                ip(f"-n {name} addr add 10.89.{number}.{one + 1}/16 dev v0")
            ip(f"-n {name} link set v0 up")
            ip(f"-n {name} link set lo up")
        for loop in loops:
            loop.start()
        asyncio.run(measure(names, seconds))
    finally:
        for loop in loops:
            if loop.pid:
                loop.terminate()
        for name in names:
            ip(f"netns del {name}")


if __name__ == "__main__":
    main()

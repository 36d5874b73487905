"""Does the cost grow with the host, and with nothing else?

CPU time of a scrape, a poll of the fast loop and a verdict as ports grow, of a scrape as raw names, virtual functions and simultaneous
scrapers grow, of a survey as owners grow; and memory over a day of storms. `per unit` is the slope to the line before: it stays or falls
where the cost is linear.
"""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import statistics
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

import ethtool_names
import fast_loop
from object_lists import ReplayedHost, made_devices
from tables import host, print_head, print_row

from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.host.kernel.live import LiveKernel, raise_descriptor_limit
from roce_exporter.host.recorded.recorded import Moment, RecordedKernel
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.model.owner import ProcessFacts
from roce_exporter.owners import SurveyLimits, Surveyor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from roce_exporter.host.kernel import Kernel

PORTS = (1, 4, 16, 64)
NAMES = (50, 100, 200, 400, 600)
OWNERS = (100, 1_000, 10_000)
FUNCTIONS = (10, 100, 1_000)
SCRAPERS = (1, 2, 4, 8, 16)
ROUNDS = 40
SURVEYS = 3
DAY, QUIET, STORM = 86_400, 1_800, 10
"""Seconds: a storm of ten in each half hour."""


async def cost(kernel: Kernel, scrapers: int = 1) -> tuple[float, int]:
    """Median CPU seconds of a round with `scrapers` simultaneous scrapers, and the series that they get."""
    collector = Collector(kernel, Settings(), time.monotonic)
    exporter = Exporter(collector)

    async def ask() -> bytes:
        return exporter.render(await exporter.observe(10.0), Format.TEXT)

    body = b""

    async def ask_all() -> None:
        nonlocal body
        body, *_ = await asyncio.gather(*(ask() for _ in range(scrapers)))

    taken = await _taken(ask_all)
    collector.close()
    return taken, sum(not line.startswith(b"#") for line in body.splitlines())


async def _taken(work: Callable[[], Awaitable[object]], rounds: int = ROUNDS) -> float:
    taken = []
    for _ in range(rounds + 5):
        begun = time.process_time()
        await work()
        taken.append(time.process_time() - begun)
    return statistics.median(taken[5:])


async def verdict(ports: int) -> float:
    """Median CPU seconds of a verdict over so many ports, with the history of the rounds before."""
    clock = fast_loop.Clock()
    exporter = Exporter(Collector(fast_loop.Host(ports), Settings(), time.monotonic))
    watch = HealthWatch(exporter.observe, clock, lambda: clock.now + 1.7e9)
    exporter.parts.append(watch)
    taken = []
    for _ in range(25):
        clock.now += 15.0
        await exporter.observe()
        begun = time.process_time()
        await watch.judge()
        taken.append(time.process_time() - begun)
    exporter.close()
    return statistics.median(taken[5:])


class Named(ethtool_names.Host):
    """Sixteen ports with so many raw names each, the first 80 with a row."""

    def __init__(self, names: int) -> None:
        super().__init__(600)
        self._names = self._names[:names]


class Processes(ReplayedHost):
    """A device whose queue pairs belong to so many processes, each in a cgroup of its own."""

    def process(self, pid: int) -> ProcessFacts:
        """A process of this unit."""
        return ProcessFacts(pid, 1.0, "rank", "user", f"0::/system.slice/job-{pid}.service\n")

    def process_start(self, pid: int) -> float:
        """As it is listed."""
        return float(pid)


async def survey(owners: int) -> tuple[float, int]:
    """Median CPU seconds of a survey of so many owners with one queue pair each, and its series."""
    passed = 0.0
    limits = SurveyLimits(timeout=600.0)
    surveyor = Surveyor(
        Processes(range(1000, 1000 + owners), owners), limits, lambda: time.monotonic() + passed, time.time
    )
    surveyor.follow(made_devices(1))
    taken = []
    for _ in range(SURVEYS):
        passed += 60.0
        begun = time.process_time()
        await surveyor.read_once()
        taken.append(time.process_time() - begun)
    served = ServedSeries(MetricSet.STANDARD).select(surveyor.samples())
    body = Renderer().render(served, Format.TEXT)
    surveyor.close()
    return statistics.median(taken), sum(not line.startswith(b"#") for line in body.splitlines())


def functions(count: int) -> RecordedKernel:
    """Eight ports with so many virtual functions together, as `ip -s -d link` prints them."""
    rows = {"address": "02:00:5e:00:01:00", "link_state": "auto", "spoofchk": True, "trust": False}
    counts = {
        "rx": {"bytes": 900, "packets": 9, "multicast": 0, "broadcast": 0, "dropped": 3},
        "tx": {"tx_bytes": 800, "tx_packets": 8, "dropped": 2},
    }
    tree = Tree()
    for port in range(8):
        own = [{"vf": number, **rows, "stats": counts} for number in range(port, count, 8)]
        tree.files[f"ethtool/eth{port}.driver"] = b"driver: mlx5_core\n"
        tree.files[f"sys/class/net/eth{port}/device/sriov_numvfs"] = b"%d\n" % len(own)
        link = {"ifname": f"eth{port}", "vfinfo_list": own}
        tree.files[f"ip/eth{port}.link.json"] = json.dumps([link]).encode()
    for path in tree.files:
        tree.add(path)
    links = tuple({"ifname": f"mlx5_{port}", "port": 1, "netdev": f"eth{port}"} for port in range(8))
    return RecordedKernel([Moment(tree, {"link": links})])


class Stormy(fast_loop.Moving):
    """Priority 3 is paused all the time, and nothing moves, for ten seconds of each half hour."""

    def __init__(self, clock: fast_loop.Clock) -> None:
        super().__init__()
        self._clock = clock

    def _move(self) -> None:
        rounds, into = divmod(self._clock.now, QUIET)
        if into >= STORM:
            super()._move()
        paused = rounds * STORM + min(into, STORM)
        for name, value in (("rx_prio3_pause", 1000 * paused), ("rx_prio3_pause_duration", 1e6 * paused)):
            place = fast_loop.HEAD + 8 * fast_loop.NAMES.index(name)
            struct.pack_into("=Q", self._statistics, place, int(value))


async def day() -> None:
    """Print memory and storms after each six hours of a day of polls, scrapes and verdicts on one port."""
    clock = fast_loop.Clock()
    kernel = fast_loop.Host(1)
    kernel.replay = lambda: Stormy(clock)
    sampler = Sampler(kernel, clock, clock, Pace())
    exporter = Exporter(Collector(kernel, Settings(), clock), [sampler])
    watch = HealthWatch(exporter.observe, clock, lambda: clock.now + 1.7e9)
    exporter.parts.append(watch)
    begin, due, shown = clock.now, clock.now, 0
    print_head("hours of storms", "storms", "RSS MB now", "largest RSS MB")
    while clock.now <= begin + DAY:
        if clock.now >= due:
            due += 60.0
            exporter.render(await exporter.observe(), Format.TEXT)
            await watch.judge()
        clock.now = max(clock.now + 0.1, sampler.tick() or 0.0)
        if (hours := int(clock.now - begin) // 3600) >= shown:
            shown = max(2 * hours, 1) if hours < 6 else hours + 6  # noqa: PLR2004 - after one, two, four and each six
            storms = sum(
                value or 0
                for part in sampler.samples()
                for one, value in zip(part.series, part.values, strict=True)
                if one.row.name == "roce_pfc_storms_total"
            )
            print_row(hours, storms, *_resident())
    exporter.close()


def _resident() -> tuple[float, float]:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _print_growth(what: str, found: list[tuple[int, float, int]], of: str = "scrape") -> None:
    print_head(what, "series", f"CPU ms per {of}", "us per unit")
    before = (0, 0.0)
    for number, seconds, series in found:
        slope = (seconds - before[1]) / (number - before[0])
        print_row(number, series, seconds * 1e3, slope * 1e6)
        before = (number, seconds)
    print()


async def _loops(ports: int) -> tuple[float, float]:
    look, _ = await fast_loop.measure(ports)
    return look - ports * fast_loop.replay_seconds(), await verdict(ports)


def main() -> None:
    """Print one table per quantity that grows."""
    logging.disable()  # ports whose drops always rise
    raise_descriptor_limit()
    found = []
    for ports in PORTS:
        with host(ports) as tree:
            found.append((ports, *asyncio.run(cost(LiveKernel(str(tree))))))
    _print_growth("ports of 54 files", found)
    loops = [asyncio.run(_loops(ports)) for ports in PORTS]
    for of, column in (("poll of the fast loop", 0), ("verdict", 1)):
        _print_growth("ports", [(ports, one[column], 0) for ports, one in zip(PORTS, loops, strict=True)], of)
    _print_growth(
        "raw names per port, 16 ports", [(names, *asyncio.run(cost(Named(names)))) for names in NAMES]
    )
    _print_growth("owners", [(owners, *asyncio.run(survey(owners))) for owners in OWNERS], "survey")
    _print_growth(
        "virtual functions", [(number, *asyncio.run(cost(functions(number)))) for number in FUNCTIONS]
    )
    with host(16) as tree:
        found = [(number, *asyncio.run(cost(LiveKernel(str(tree)), number))) for number in SCRAPERS]
    _print_growth("scrapers at once", found)
    asyncio.run(day())


if __name__ == "__main__":
    main()

"""What a scrape may require of the kernel and of the interpreter. Counts, not times: the load of the machine changes none."""

import asyncio
import os
import time
from pathlib import Path
from typing import Self

import fast_loop
import pytest
from exposition import Kept
from instructions import instructions
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from trees import COUNTERS, HW_COUNTERS, write_host

from roce_exporter.checks.finding import Report
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.health_watch import HealthWatch
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format, Renderer
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.view.host_view import History

PORT_FILES = 3
FILES = len(COUNTERS) + len(HW_COUNTERS) + PORT_FILES


class Counting(LiveKernel):
    """Counts the calls to the operating system."""

    def __init__(self, root: Path) -> None:
        self.calls = self.reads = 0
        super().__init__(str(root), pread=self._count_read, netlink=False)

    def _count_read(self, descriptor: int, count: int, offset: int) -> bytes:
        self.reads += 1
        return os.pread(descriptor, count, offset)

    def entries(self, path: str) -> tuple[str, ...]:
        self.calls += 1
        return super().entries(path)

    def text(self, path: str) -> str:
        self.calls += 1
        return super().text(path)

    def link(self, path: str) -> str:
        self.calls += 1
        return super().link(path)

    def identity(self, path: str) -> int:
        self.calls += 1
        return super().identity(path)


class Scraped:
    """An exporter of a tree, which the test scrapes."""

    def __init__(self, root: Path) -> None:
        self.kernel = Counting(root)
        self._collector = Collector(self.kernel, Settings(), time.monotonic)
        self.exporter = Exporter(self._collector)

    async def scrape(self) -> bytes:
        return self.exporter.render(await self.exporter.observe(30.0), Format.TEXT)

    async def __aenter__(self) -> Self:
        for _ in range(3):
            await self.scrape()
        self.kernel.calls = self.kernel.reads = 0
        return self

    async def __aexit__(self, *_: object) -> None:
        self._collector.close()


def series(body: bytes) -> int:
    return sum(not line.startswith(b"#") for line in body.splitlines())


async def test_a_steady_scrape_opens_no_file(tmp_path, opened) -> None:
    async with Scraped(write_host(tmp_path, 4)) as scraped:
        opened.clear()
        await scraped.scrape()
        assert opened == []
        with (tmp_path / "class/infiniband/mlx5_0/fw_ver").open():
            assert len(opened) == 1, "an open would have been counted"


async def test_every_file_is_read_once_and_few_other_calls_are_made(tmp_path) -> None:
    ports = 8
    async with Scraped(write_host(tmp_path, ports)) as scraped:
        body = await scraped.scrape()
    assert scraped.kernel.reads == ports * FILES
    assert scraped.kernel.calls == ports + 1, "the list of devices, and whether each is still the same"
    assert scraped.kernel.reads + scraped.kernel.calls <= 1.2 * series(body)


async def test_a_file_that_fails_costs_the_others_no_second_read(tmp_path) -> None:
    tree = write_host(tmp_path, 1)
    async with Scraped(tree) as scraped:
        broken = tree / "class/infiniband/mlx5_0/ports/1/counters/port_rcv_data"
        # The descriptor stays open: its content is no longer a number.
        broken.write_text("garbage\n")
        await scraped.scrape()
    assert scraped.kernel.reads == FILES


@pytest.mark.parametrize("scrapers", [2, 8])
async def test_simultaneous_scrapers_share_one_collection(tmp_path, scrapers) -> None:
    async with Scraped(write_host(tmp_path, 2)) as scraped:
        bodies = await asyncio.gather(*(scraped.scrape() for _ in range(scrapers)))
    assert len(set(bodies)) == 1
    assert scraped.kernel.reads == 2 * FILES


def scrape_instructions(root: Path, ports: int) -> float:
    """Instructions per scrape, of all threads: the difference between many scrapes and few. The first call in a process is less: it imports."""
    kernel = LiveKernel(str(write_host(root / str(ports), ports)), netlink=False)

    async def scrape(times: int) -> None:
        # Tracing slows reads down, and a busy machine more: neither may end a collection, or start further threads.
        collector = Collector(kernel, Settings(timeout=600.0, overtake=600.0, refresh=1e9), time.monotonic)
        exporter = Exporter(collector)
        for _ in range(times):
            exporter.render(await exporter.observe(30.0), Format.TEXT)
        collector.close()

    few, many = (instructions(lambda n=n: asyncio.run(scrape(n))) for n in (3, 8))  # type: ignore[misc]
    return (many - few) / 5


INSTRUCTIONS_PER_PORT = 1800
"""1,470 in Python 3.11, 1,390 in 3.13, for 54 files and 77 series that do not change; the margin is for other versions."""


@pytest.mark.ci
def test_the_cost_of_a_scrape_grows_linearly_with_its_ports_and_stays_small(tmp_path) -> None:
    _, four, eight, sixteen = (scrape_instructions(tmp_path, ports) for ports in (1, 4, 8, 16))
    assert sixteen - eight == pytest.approx(2 * (eight - four), rel=0.15)
    assert (sixteen - eight) / 8 < INSTRUCTIONS_PER_PORT


async def test_rendering_takes_three_hundredths_of_generate_latest(tmp_path) -> None:
    async with Scraped(write_host(tmp_path, 4)) as scraped:
        samples = (await scraped.exporter.observe(30.0)).samples
    renderer, registry = Renderer(), CollectorRegistry()
    text = renderer.render(samples, Format.TEXT).decode()
    registry.register(Kept(text_string_to_metric_families(text)))  # type: ignore[arg-type]
    ours = instructions(lambda: renderer.render(samples, Format.TEXT))
    theirs = instructions(lambda: generate_latest(registry))
    assert ours < 0.03 * theirs


async def verdict_instructions(ports: int) -> int:
    """Instructions of the rules over ports that all have a finding."""
    clock = fast_loop.Clock()
    # No real time: slow reads of a busy machine would have several workers, and the replay counts for each of them by itself.
    exporter = Exporter(Collector(fast_loop.Host(ports), Settings(timeout=600.0, overtake=600.0), clock))
    histories: list[History] = []

    def rules(history: History) -> Report:
        histories.append(history)
        return diagnose(history, past=False)

    watch = HealthWatch(exporter.observe, clock, lambda: clock.now + 1.7e9, rules=rules)
    exporter.parts.append(watch)
    for _ in range(3):
        clock.now += 15.0
        await exporter.observe()
        await watch.judge()
    exporter.close()
    assert len(rules(histories[-1]).findings) >= ports
    return instructions(lambda: diagnose(histories[-1], past=False))


@pytest.mark.ci
async def test_the_cost_of_a_verdict_grows_linearly_with_its_ports() -> None:
    """A view is searched by device, and a finding is compared with those of its device."""
    few, many = await verdict_instructions(4), await verdict_instructions(24)
    assert many < 6.5 * few

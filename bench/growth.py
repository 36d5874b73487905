"""Does the cost grow with the exported data, and with nothing else?

Ports, unmapped names and scrapers are each doubled four times; all scrapers send their requests at the same moment.
Figures are CPU time per round, its ratio to the line before, and CPU time per series.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import TYPE_CHECKING

from ethtool_names import Host
from tables import host, print_head, print_row

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.host.kernel.live import LiveKernel, raise_descriptor_limit

if TYPE_CHECKING:
    from roce_exporter.host.kernel import Kernel

PORTS = (2, 4, 8, 16, 32)
NAMES = (250, 500, 1000, 2000, 4000)
SCRAPERS = (1, 2, 4, 8, 16)
ROUNDS = 60


async def cost(kernel: Kernel, scrapers: int = 1) -> tuple[float, int]:
    """Median CPU seconds of a round with `scrapers` simultaneous scrapers, and the series that they get."""
    collector = Collector(kernel, Settings(), time.monotonic)
    exporter = Exporter(collector)

    async def ask() -> bytes:
        return exporter.render(await exporter.observe(10.0), Format.TEXT)

    taken, body = [], b""
    for _ in range(ROUNDS + 5):
        begun = time.process_time()
        body, *_ = await asyncio.gather(*(ask() for _ in range(scrapers)))
        taken.append(time.process_time() - begun)
    collector.close()
    return statistics.median(taken[5:]), sum(not line.startswith(b"#") for line in body.splitlines())


def _print_doubling(what: str, found: list[tuple[int, float, int]]) -> None:
    print_head(what, "series", "CPU ms", "to the line before", "us per series")
    before = 0.0
    for number, seconds, series in found:
        print_row(number, series, seconds * 1e3, seconds / before if before else 1.0, seconds / series * 1e6)
        before = seconds
    print()


def main() -> None:
    """Print one table per doubled quantity."""
    raise_descriptor_limit()
    found = []
    for ports in PORTS:
        with host(ports) as tree:
            found.append((ports, *asyncio.run(cost(LiveKernel(str(tree))))))
    _print_doubling("ports", found)
    _print_doubling("names without a row", [(names, *asyncio.run(cost(Host(names)))) for names in NAMES])
    with host(16) as tree:
        found = [(number, *asyncio.run(cost(LiveKernel(str(tree)), number))) for number in SCRAPERS]
    _print_doubling("scrapers at once", found)


if __name__ == "__main__":
    main()

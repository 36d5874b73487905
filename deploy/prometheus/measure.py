"""Measure the cost of a host and of a fleet per metric set: `python deploy/prometheus/measure.py`. Takes about ten minutes.

Simulated hosts under incast: series and bytes of a scrape by driver, bytes per sample on disk, and what a real Prometheus with our rules
needs for a small fleet. Needs prometheus and promtool. docs/operating.md has the results. `bench/fleet_live.py` measures larger fleets.
"""

# ruff: noqa: T201, INP001 - a measurement prints its table and is not a package
# ruff: noqa: S603 - it runs promtool and our own script
from __future__ import annotations

import asyncio
import gzip
import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from roce_exporter.fastloop import Pace
from roce_exporter.host.simulated.kernel import simulate

BENCH = Path(__file__).parents[2] / "bench"
sys.path.append(str(BENCH))

from fleet_exporter import BEGIN, SETS, SimulatedHost  # noqa: E402 - found by the path above

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DRIVERS = ("mlx5", "bnxt", "ionic", "ice")
PORTS = 8
SCRAPE = 15
WARM = 3
"""Scrapes until every source has been read and judged."""
BLOCK = 7200
"""Seconds of a block."""
FLEET = ("--hosts=40", "--every=5", "--seconds=90")


async def scrapes(driver: str, count: int) -> AsyncIterator[dict[str, bytes]]:
    """The expositions of a host under incast by metric set, scrape by scrape."""
    host = SimulatedHost(
        lambda clock: simulate("incast", clock=clock, vendors=(driver,) * PORTS), Pace(interval=0.5), SETS
    )
    for _ in range(count):
        yield await host.scrape(SCRAPE)
    host.close()


def samples(body: bytes) -> list[str]:
    """The lines that are samples."""
    return [line for line in body.decode().splitlines() if not line.startswith("#")]


async def print_series() -> None:
    """Series and bytes per scrape, by driver and set."""
    print(
        "| driver | set | series per port | bytes per scrape, 8 ports | gzipped |\n| --- | --- | ---: | ---: | ---: |"
    )
    for driver in DRIVERS:
        bodies = [bodies async for bodies in scrapes(driver, WARM)][-1]
        for name, body in bodies.items():
            packed = len(gzip.compress(body, 1))
            print(f"| {driver} | {name} | {len(samples(body)) / PORTS:.0f} | {len(body):,} | {packed:,} |")


async def write_histories(folder: Path) -> None:
    """Two hours of one mlx5 host in OpenMetrics, a file per set."""
    files = {name: (folder / f"{name}.om").open("w") for name in SETS}
    at = BEGIN
    async for bodies in scrapes("mlx5", BLOCK // SCRAPE):
        for name, body in bodies.items():
            files[name].writelines(f"{line} {at}\n" for line in samples(body))
        at += SCRAPE
    for file in files.values():
        file.write("# EOF\n")
        file.close()


def print_disk(folder: Path) -> None:
    """Bytes per sample in a block of two hours, by set."""
    asyncio.run(write_histories(folder))
    for name in SETS:
        blocks = folder / name
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", folder / f"{name}.om", blocks]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        size = count = 0
        for meta in blocks.glob("*/meta.json"):
            count += json.loads(meta.read_text())["stats"]["numSamples"]
            size += sum(path.stat().st_size for path in meta.parent.rglob("*") if path.is_file())
        print(f"{name}: {count:,} samples of two hours take {size / count:.2f} bytes each, index included")


def print_fleet() -> None:
    """What a Prometheus needs for a small fleet, by set."""
    for name in SETS:
        print(flush=True)
        subprocess.run([sys.executable, BENCH / "fleet_live.py", f"--set={name}", *FLEET], check=True)


def main() -> None:
    """Measure."""
    logging.disable(logging.WARNING)
    asyncio.run(print_series())
    print()
    with tempfile.TemporaryDirectory() as folder:
        print_disk(Path(folder))
    print_fleet()


if __name__ == "__main__":
    main()

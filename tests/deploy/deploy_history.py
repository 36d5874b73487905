"""Twenty minutes of three simulated hosts, made by the real exporter on a simulated clock, as text that both stores accept."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roce_exporter.audit import Auditor, load_profile
from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.sampler import Sampler
from roce_exporter.sampler.pace import Pace
from roce_exporter.simulation.kernel import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

END = 1_767_232_800
"""2026-01-01T02:00:00Z: the end of the history."""
SECONDS = 20 * 60
SCRAPE = 15
LOOKS = 0.2
"""Seconds between polls of the fast loop, long so that the tests take less time."""
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")


@dataclass(frozen=True, slots=True)
class Host:
    """One simulated host."""

    instance: str
    scenario: str
    ports: int = 2
    cluster: str = "simulated"


HOSTS = (Host("gpu-1", "pfc-storm"), Host("gpu-2", "incast"), Host("gpu-3", "quiet"))


@dataclass(slots=True)
class Clock:
    """Monotonic seconds that the script advances."""

    now: float = 0.0

    def __call__(self) -> float:
        """The seconds."""
        return self.now


def history(host: Host, seconds: int = SECONDS, *, looks: bool = True) -> list[str]:
    """Lines of one host, `SERIES VALUE TIMESTAMP` with the timestamp in seconds; without the fast loop, no storms."""
    logging.disable(logging.WARNING)
    try:
        return asyncio.run(_history(host, seconds, looks=looks))
    finally:
        logging.disable(logging.NOTSET)


async def _history(host: Host, seconds: int, *, looks: bool) -> list[str]:
    clock = Clock()
    kernel = simulate(host.scenario, clock=clock, vendors=("mlx5",) * host.ports, seed=host.ports)
    collector = Collector(kernel, Settings(), clock)
    sampler = Sampler(kernel, clock, lambda: END - seconds + clock(), Pace(interval=LOOKS, linger=5.0))
    exporter = Exporter(collector, sampler, Auditor(load_profile("auto")))
    lines: list[str] = []
    while clock.now <= seconds:
        text = exporter.render(await exporter.observe(5.0), Format.TEXT).decode() + "up 1\n"
        lines += _labelled(text, host, END - seconds + clock.now)
        until = clock.now + SCRAPE
        while looks and (due := sampler.tick()) < until:
            clock.now = max(due, clock.now)
        clock.now = until
    collector.close()
    return lines


def _labelled(text: str, host: Host, at: float) -> Iterator[str]:
    target = f'cluster="{host.cluster}",job="roce",instance="{host.instance}"'
    for name, labels, value in SAMPLE.findall(re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)):
        yield f"{name}{{{labels + ',' if labels else ''}{target}}} {value} {at:.0f}"

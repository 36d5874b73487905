"""A host observed with a stopped clock, and the content of its exposition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.host.kernel import ObjectKernel
from roce_exporter.host.kernel.kmsg import LogKernel
from roce_exporter.owners import SurveyLimits, Surveyor
from roce_exporter.surroundings import Surroundings
from roce_exporter.surroundings.kernel_log_follower import KernelLogFollower

if TYPE_CHECKING:
    from roce_exporter.exporter import Observation
    from roce_exporter.host.kernel import Kernel

WALL = 1_763_000_000.0
"""Unix time of every observation: after the start of every recorded process."""


async def observe(kernel: Kernel, times: int = 1) -> tuple[Exporter, list[Observation]]:
    """`times` collections of one kernel, each with a survey of its owners and a read of its log; every timed duration is 0 s."""
    collector = Collector(kernel, Settings(), clock=lambda: 0.0)
    surveyor = None
    if isinstance(kernel, ObjectKernel):
        surveyor = Surveyor(kernel, SurveyLimits(), clock=lambda: 0.0, wall=lambda: WALL)
    followers = [KernelLogFollower(kernel, clock=lambda: 0.0)] if isinstance(kernel, LogKernel) else []
    around = Surroundings([], clock=lambda: 0.0, followers=followers)
    exporter = Exporter(collector, surveyor=surveyor, surroundings=around)
    try:
        return exporter, [await exporter.observe_complete() for _ in range(times)]
    finally:
        collector.close()


async def exposition(kernel: Kernel) -> bytes:
    """One collection of a kernel, in the text format."""
    exporter, (observation,) = await observe(kernel)
    return exporter.render(observation, Format.TEXT)


def samples(text: bytes) -> dict[str, str]:
    """Each series and its value, both as written in the exposition."""
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    found = {series: value for series, _, value in (line.rpartition(" ") for line in lines)}
    assert len(found) == len(lines), "a series twice"
    return found

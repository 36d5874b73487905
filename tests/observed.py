"""A host observed with a stopped clock, and the content of its exposition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format

if TYPE_CHECKING:
    from roce_exporter.exporter import Observation
    from roce_exporter.kernel import Kernel


async def observe(kernel: Kernel, times: int = 1) -> tuple[Exporter, list[Observation]]:
    """`times` collections of one kernel; every timed duration is 0 s."""
    collector = Collector(kernel, Settings(), clock=lambda: 0.0)
    exporter = Exporter(collector)
    try:
        return exporter, [await exporter.observe(5.0) for _ in range(times)]
    finally:
        collector.close()
        kernel.close()


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

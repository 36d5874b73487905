"""What does rendering cost, compared with `prometheus_client.generate_latest` for the same families?

The families are those of a tree of mlx5 ports, parsed from our own text by prometheus_client, so that both render the
same series. CPU time, measured in turn, medians.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from importlib.metadata import version
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from tables import host, print_head, print_row

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format, Renderer
from roce_exporter.host.kernel.live import LiveKernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from prometheus_client import Metric

    from roce_exporter.normalise.series import Samples

PORTS = (1, 16)
ROUNDS = 15


class Kept:
    """A collector that has its families already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        """The families."""
        yield from self._families


async def observed(tree: Path) -> Sequence[Samples]:
    """The observation of one collection of the tree."""
    collector = Collector(LiveKernel(str(tree)), Settings(), time.monotonic)
    observation = await Exporter(collector).observe(5)
    collector.close()
    return observation.samples


def seconds(work: Callable[[], object], times: int) -> float:
    """CPU seconds of one round."""
    begun = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begun) / times


def compare(samples: Sequence[Samples]) -> tuple[int, float, float, float]:
    """Series, and the median CPU seconds of ours, theirs as text and theirs as OpenMetrics."""
    renderer, registry = Renderer(), CollectorRegistry()
    text = renderer.render(samples, Format.TEXT).decode()
    registry.register(Kept(text_string_to_metric_families(text)))  # type: ignore[arg-type]  # has what a Collector has
    taken = [
        (
            seconds(lambda: renderer.render(samples, Format.TEXT), 20),
            seconds(lambda: generate_latest(registry), 1),
            seconds(lambda: generate_openmetrics(registry), 1),
        )
        for _ in range(ROUNDS)
    ]
    ours, theirs, openmetrics = (statistics.median(column) for column in zip(*taken, strict=True))
    return sum(not line.startswith("#") for line in text.splitlines()), ours, theirs, openmetrics


def main() -> None:
    """Print the table."""
    name = f"generate_latest {version('prometheus_client')}"
    print_head("ports", "series", "ours ms", f"{name} ms", "OpenMetrics ms", "ratio", "ratio OpenMetrics")
    for ports in PORTS:
        with host(ports) as tree:
            series, ours, theirs, openmetrics = compare(asyncio.run(observed(tree)))
        print_row(
            ports, series, ours * 1e3, theirs * 1e3, openmetrics * 1e3, ours / theirs, ours / openmetrics
        )


if __name__ == "__main__":
    main()

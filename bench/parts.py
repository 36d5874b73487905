"""What does a scrape consist of? Parts of it in one process, each measured alone and undisturbed: the quickest of many.

Without HTTP and the event loop: `python bench limit` has a whole scrape. The files are those of `limit`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from typing import TYPE_CHECKING

from limit import PORTS, Traffic
from tables import host, print_head, print_row

from roce_exporter.catalog.row import MetricSet
from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.collect.batch import Batch
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.host.inventory import list_devices
from roce_exporter.host.kernel import FILE_BYTES
from roce_exporter.host.kernel.live import LiveFiles, LiveKernel
from roce_exporter.self_metrics.own_registry import OwnRegistry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from roce_exporter.collect.reads import Outcome, ReadKey, Task
    from roce_exporter.model import Snapshot

ROUNDS = 300


def quickest(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """CPU microseconds of the quickest of many calls; `before` is called before each."""
    taken = []
    for _ in range(ROUNDS):
        before()
        begun = time.thread_time_ns()
        work()
        taken.append(time.thread_time_ns() - begun)
    return min(taken) / 1e3


class Parts:
    """An exporter whose parts are called one by one."""

    def __init__(self, tree: Path) -> None:
        self.kernel = LiveKernel(str(tree))
        self.collector = Collector(self.kernel, Settings(), time.monotonic)
        self.exporter = Exporter(
            self.collector, [Auditor(load_profile("auto"))], ServedSeries(MetricSet.STANDARD)
        )
        self.registry = OwnRegistry()
        self.snapshot: Snapshot | None = None

    async def warm_up(self) -> None:
        """Open all files and make all plans."""
        for _ in range(3):
            self.snapshot = (await self.exporter.observe()).snapshot
            self.render()

    def read(self) -> dict[ReadKey, Outcome]:
        """The isolated reads of all sources, in one thread."""
        works = self.collector._works.values()  # noqa: SLF001 - parts are not public
        chains = [self.collector._tasks(work) for work in works]  # noqa: SLF001 - the same
        batch: Batch[Task, ReadKey, Outcome] = Batch(
            chains,
            self.collector._attempt,  # noqa: SLF001 - the same
            self.collector._in_flight,  # noqa: SLF001 - the same
        )
        batch.run()
        return batch.close()[0]

    def settle(self) -> None:
        """States, and the readings of each device."""
        self.collector._settle(self.outcomes)  # noqa: SLF001 - the same

    def render(self) -> bytes:
        """Samples and text of the readings now."""
        works = self.collector._works.values()  # noqa: SLF001 - the same
        assert self.snapshot  # noqa: S101 - for the type checker
        found = tuple(found for work in works if (found := work.found()))
        snapshot = type(self.snapshot)(found, self.snapshot.states)
        samples = self.exporter._normalise(snapshot)  # noqa: SLF001 - the same
        return self.exporter._render(samples, Format.TEXT)  # noqa: SLF001 - the same

    outcomes: dict[ReadKey, Outcome]


def descriptors() -> list[int]:
    """All counter files that this process has open."""
    files = [one for one in gc.get_objects() if isinstance(one, LiveFiles)]
    return [descriptor for one in files for descriptor in one._descriptors if descriptor >= 0]  # noqa: SLF001 - the same


def measure(tree: Path, *, moving: bool) -> list[float]:
    """Microseconds per part, in the order of the columns."""
    parts = Parts(tree)
    asyncio.run(parts.warm_up())
    opened = descriptors()
    traffic = Traffic(tree)
    move = traffic.move if moving else lambda: None

    def next_scrape() -> None:
        move()
        parts.outcomes = parts.read()
        parts.settle()

    parts.outcomes = parts.read()
    found = [
        quickest(lambda: [os.pread(descriptor, FILE_BYTES, 0) for descriptor in opened], move),
        quickest(parts.read, move),
        quickest(lambda: list_devices(parts.kernel)),
        quickest(parts.settle, lambda: (move(), setattr(parts, "outcomes", parts.read()))),
        quickest(parts.render, next_scrape),
        quickest(lambda: parts.registry.render(openmetrics=False)),
    ]
    traffic.close()
    parts.collector.close()
    for work in parts.collector._works.values():  # noqa: SLF001 - the same
        work.retire()
    return found


def main() -> None:
    """Print one line per number of ports, with counters that move and without."""
    print_head(
        "ports, counters",
        "preads alone us",
        "isolated reads us",
        "list of devices us",
        "states us",
        "samples and text us",
        "process metrics us",
    )
    for ports in PORTS:
        for moving in (False, True):
            with host(ports) as tree:
                what = f"{ports}, {'a dozen per port move' if moving else 'still'}"
                print_row(what, *measure(tree, moving=moving))


if __name__ == "__main__":
    main()

"""What does a survey of RDMA objects cost, compared with `rdma -j resource show` as a subprocess?

Lists as bytes of RDMA netlink (`object_lists.py`), 64 real processes of eight jobs, the real decoder and surveyor, and the real
`rdma` on the same bytes (`rdma_commands.py`). Each survey reads /proc again. CPU time in user and kernel mode of all threads and
child processes, medians, all in one run. Not measured, on either side: the kernel's own time for a list and the
queries of firmware for each queue pair. A machine without RDMA devices has none; both sides request the same lists.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from object_lists import ReplayedHost, made_devices
from rdma_commands import replayed
from tables import print_head, print_row

from roce_exporter.exposition import Format, Renderer
from roce_exporter.host.kernel.processes import read_process
from roce_exporter.owners import SurveyLimits, Surveyor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from roce_exporter.model import RdmaDevice

PROCESSES = 64
DEVICES = 16
PAIRS = (32, 500)
"""Queue pairs per device: about 500 together, and 500 each."""
ROUNDS = 7
INTERVAL, SCRAPE = 60, 15
"""Seconds between two surveys, and between two scrapes."""
TIMEOUT = 600.0


class Cost(NamedTuple):
    """CPU seconds in user mode and in the kernel, and wall seconds."""

    user: float
    system: float
    wall: float

    @property
    def cpu(self) -> float:
        """CPU seconds."""
        return self.user + self.system


def measured(work: Callable[[], object]) -> Cost:
    """The cost of one call, in this process and in those that it starts and waits for."""
    before = _times()
    work()
    return Cost(*(after - begun for begun, after in zip(before, _times(), strict=True)))


def _times() -> tuple[float, float, float]:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + children.ru_utime, own.ru_stime + children.ru_stime, time.perf_counter()


def median(costs: Sequence[Cost]) -> Cost:
    """The medians of all three."""
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def repeated(work: Callable[[], object]) -> Cost:
    """The median cost of some calls."""
    return median([measured(work) for _ in range(ROUNDS)])


class Surveys:
    """A surveyor of a host with so many queue pairs per device."""

    def __init__(self, pids: Sequence[int], devices: int, pairs: int) -> None:
        self.host = ReplayedHost(pids, pairs)
        self.renderer = Renderer()
        self.passed = 0.0
        limits = SurveyLimits(most=PROCESSES, timeout=TIMEOUT)
        self.surveyor = Surveyor(self.host, limits, self._clock, time.time)
        self.surveyor.follow(made_devices(devices))

    def survey(self) -> None:
        """One round over all devices, without pauses, an interval after the last one."""
        self.passed += INTERVAL
        asyncio.run(self.surveyor.read_once())

    def _clock(self) -> float:
        return time.monotonic() + self.passed

    def show(self) -> bytes:
        """The series of the last round, as a scrape renders them."""
        return self.renderer.render(self.surveyor.samples(), Format.TEXT)

    def check(self) -> int:
        """The number of series.

        Raises:
            RuntimeError: a device could not be surveyed.
        """
        if failed := [state.error for state in self.surveyor.states() if not state.up]:
            raise RuntimeError(f"the survey failed: {failed[0]}")
        return sum(not line.startswith(b"#") for line in self.show().splitlines())


def print_cost(work: str, cost: Cost, per_scrape: float, ours: float) -> None:
    """One line; `per_scrape` are CPU seconds, `ours` those of this exporter."""
    times = (cost.user * 1e3, cost.system * 1e3, cost.wall * 1e3)
    print_row(work, *times, per_scrape * 1e3, per_scrape / ours)


def measure(pids: Sequence[int], pairs: int) -> None:
    """Print the table of one number of queue pairs."""
    one = Surveys(pids, DEVICES, pairs)
    one.survey()
    print(f"\n### {DEVICES} devices, {DEVICES * pairs} queue pairs, {one.check()} series\n")
    print_head("work", "user ms", "system ms", "wall ms", f"CPU ms per scrape of {SCRAPE} s", "ratio")
    survey, shown = repeated(one.survey), repeated(one.show)
    share = survey.cpu * SCRAPE / INTERVAL
    ours = share + shown.cpu
    print_cost(f"survey every {INTERVAL} s", survey, share, ours)
    print_cost("its series in a scrape", shown, shown.cpu, ours)
    measure_rdma(
        one.host, [found.device.netlink for found in made_devices(DEVICES) if found.device.netlink], ours
    )


def measure_rdma(host: ReplayedHost, devices: Sequence[RdmaDevice], ours: float) -> None:
    """Print the lines of `rdma`, run for each scrape."""
    with replayed(host, devices) as rdma:
        if rdma is None:
            print("\nleft out: needs `rdma` and a C compiler (apt-get install iproute2 gcc libc6-dev)")
            return
        for work, run in (
            ("`rdma` per kind, start only", rdma.start_only),
            ("`rdma` per kind", rdma.read_host),
            ("`rdma` per kind and device", rdma.read_devices),
        ):
            cost = repeated(run)
            print_cost(work, cost, cost.cpu, ours)


def main() -> None:
    """Print the tables."""
    sleepers = [subprocess.Popen(["sleep", "3600"]) for _ in range(PROCESSES)]  # noqa: S607 - any program will do
    try:
        pids = [one.pid for one in sleepers]
        for pairs in PAIRS:
            measure(pids, pairs)
        read = repeated(lambda: [*map(read_process, pids)])
        print(f"\nreading {PROCESSES} processes from /proc once: {read.cpu * 1e3:.1f} ms of CPU")
    finally:
        for one in sleepers:
            one.kill()
            one.wait()


if __name__ == "__main__":
    main()

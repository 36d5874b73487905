"""What does a survey of RDMA objects cost, compared with `rdma -j resource show` as a subprocess?

Lists as bytes of RDMA netlink (`object_lists.py`), 64 real processes of eight jobs, the real decoder and surveyor. CPU time of all
threads, medians. The kernel's and the firmware's time per queue pair is not included on either side: a machine without
RDMA devices has none, so of `rdma` only the start of its processes is measured, the least that it can cost.
"""

from __future__ import annotations

import asyncio
import resource
import shutil
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

from object_lists import ReplayedHost, made_devices
from tables import print_head, print_row

from roce_exporter.exposition import Format, Renderer
from roce_exporter.kernel.processes import read_process
from roce_exporter.owners import SurveyLimits, Surveyor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PROCESSES = 64
DEVICES = 16
PAIRS = (32, 500)
"""Queue pairs per device: about 500 together, and 500 each."""
ROUNDS = 7
INTERVAL, SCRAPE = 60, 15
"""Seconds between two surveys, and between two scrapes."""
KINDS = ("ctx", "cq", "mr", "qp", "cm_id")
PATIENCE = 600.0


class Cost(NamedTuple):
    """CPU and wall seconds."""

    cpu: float
    wall: float


def measured(work: Callable[[], object]) -> Cost:
    """The cost of one call, in this process and in those that it starts and waits for."""
    before, begun = _cpu(), time.perf_counter()
    work()
    return Cost(_cpu() - before, time.perf_counter() - begun)


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def median(costs: Sequence[Cost]) -> Cost:
    """The medians of both."""
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


class Surveys:
    """A surveyor of a host with so many queue pairs per device."""

    def __init__(self, pids: Sequence[int], devices: int, pairs: int) -> None:
        self.host = ReplayedHost(pids, pairs)
        limits = SurveyLimits(most=PROCESSES, patience=PATIENCE)
        self.surveyor = Surveyor(self.host, limits, time.monotonic, time.time)
        self.surveyor.follow(made_devices(devices))
        self.renderer = Renderer()

    def survey(self) -> None:
        """One round over all devices, without pauses."""
        asyncio.run(self.surveyor.survey_once())

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


def run_rdma() -> None:
    """The commands that an exporter runs per scrape, one per kind of object."""
    for kind in KINDS:
        command = ["rdma", "-j", "resource", "show", kind]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # noqa: S603 - a constant


def measure(pids: Sequence[int], pairs: int) -> None:
    """Print the rows of one number of queue pairs."""
    one = Surveys(pids, DEVICES, pairs)
    one.survey()
    series = one.check()
    scrapes = INTERVAL / SCRAPE
    survey = median([measured(one.survey) for _ in range(ROUNDS)])
    shown = median([measured(one.show) for _ in range(ROUNDS)])
    name = f"{DEVICES} devices, {DEVICES * pairs} queue pairs"
    print_row(f"survey: {name}", series, survey.cpu * 1e3, survey.wall * 1e3, survey.cpu / scrapes * 1e3)
    print_row(f"its series in a scrape: {name}", series, shown.cpu * 1e3, shown.wall * 1e3, shown.cpu * 1e3)


def main() -> None:
    """Print the table."""
    print_head("work", "series", "CPU ms", "wall ms", f"CPU ms per scrape of {SCRAPE} s")
    sleepers = [subprocess.Popen(["sleep", "3600"]) for _ in range(PROCESSES)]  # noqa: S607 - any program will do
    try:
        pids = [one.pid for one in sleepers]
        for pairs in PAIRS:
            measure(pids, pairs)
        read = median([measured(lambda: [*map(read_process, pids)]) for _ in range(ROUNDS)])
        print_row(f"reading {PROCESSES} processes from /proc once", "-", read.cpu * 1e3, read.wall * 1e3, "-")
    finally:
        for one in sleepers:
            one.kill()
            one.wait()
    if shutil.which("rdma") is None:
        print("\nrdma is not installed (apt-get install iproute2)")
        return
    cost = median([measured(run_rdma) for _ in range(ROUNDS)])
    print_row(f"`rdma -j resource show`, {len(KINDS)} processes", "-", cost.cpu * 1e3, cost.wall * 1e3, cost.cpu * 1e3)  # fmt: skip


if __name__ == "__main__":
    main()

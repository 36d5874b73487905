"""How near is a scrape to the time that its own reads take, and to a quarter of node_exporter and rdma_exporter?

All are scraped in turn, ten scrapes each, with 1, 8 and 16 mlx5 ports of 54 files; once with counters that do not move, and once with
a dozen per port that have another value at every scrape, as on a port in use. The limit is measured between the scrapes in the process of the
exporter (`daemon_with_limit.py`).
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from processes import Running, free_port, wait_until_scraped
from rivals import HERE, PORT, TREE, Rival, command_of, node_exporters, rdma_exporters
from tables import host, print_head, print_row
from trees import VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PORTS = (1, 8, 16)
ROUNDS = 15
WARM_UP = 2
SCRAPES = 10
MOVING = (
    "counters/port_rcv_data",
    "counters/port_rcv_packets",
    "counters/port_xmit_data",
    "counters/port_xmit_packets",
    "counters/port_xmit_wait",
    "counters/unicast_rcv_packets",
    "counters/unicast_xmit_packets",
    "hw_counters/np_cnp_sent",
    "hw_counters/np_ecn_marked_roce_packets",
    "hw_counters/rp_cnp_handled",
    "hw_counters/rx_read_requests",
    "hw_counters/roce_adp_retrans",
)
"""The counters of a port that moves data and is congested now and then."""


OURS = Rival(
    "roce_exporter, everything",
    (
        sys.executable,
        str(HERE / "daemon_with_limit.py"),
        "serve",
        "--log.level=error",
        f"--path.sysfs={TREE}",
        f"--web.listen-address=127.0.0.1:{PORT}",
        "--collect.min-interval=0.001",
    ),
)


class Costs(NamedTuple):
    """CPU seconds of every scrape."""

    rivals: dict[str, list[float]]
    ours: list[float]
    limit: list[float]
    files: int


class Limited(Running):
    """The exporter, with its limit."""

    def limit(self) -> tuple[float, int]:
        """CPU seconds of the reads alone, and their number."""
        assert self.process.stdin  # noqa: S101 - for the type checker
        assert self.process.stdout  # noqa: S101 - the same
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        nanoseconds, files = map(int, self.process.stdout.readline().split())
        return nanoseconds / 1e9, files


@contextlib.contextmanager
def start(rival: Rival, tree: Path, kind: type[Running] = Running) -> Iterator[Running]:
    """Run an exporter with pipes until the block ends."""
    port = free_port()
    process = subprocess.Popen(  # noqa: S603 - our own commands
        command_of(rival, tree, port),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if kind is Limited else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_scraped(running := kind(rival, process, port))
        yield running
    finally:
        process.terminate()
        process.communicate()


class Traffic:
    """Gives a dozen counters of each port another value."""

    def __init__(self, tree: Path) -> None:
        ports = sorted(tree.glob("class/infiniband/*/ports/1"))
        self._files = [os.open(port / name, os.O_WRONLY) for port in ports for name in MOVING]
        self._value = VALUE

    def move(self) -> None:
        """One step."""
        self._value += 1_000_003
        for descriptor in self._files:
            os.pwrite(descriptor, b"%d\n" % self._value, 0)

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._files:
            os.close(descriptor)


def compare(tree: Path, *, moving: bool) -> Costs:
    """Scrape all in turn."""
    with contextlib.ExitStack() as stack:
        rivals = [
            stack.enter_context(start(rival, tree))
            for rival in (*node_exporters("infiniband"), *rdma_exporters())
        ]
        ours = stack.enter_context(start(OURS, tree, Limited))
        assert isinstance(ours, Limited)  # noqa: S101 - for the type checker
        stack.callback((traffic := Traffic(tree)).close)
        taken: dict[str, list[float]] = {one.rival.name: [] for one in (*rivals, ours)}
        limits: list[float] = []
        files = 0
        for number in range(WARM_UP + ROUNDS):
            for one in (*rivals, ours):
                for _ in range(SCRAPES):
                    cpu = _scrape(one, traffic if moving else None)
                    if number >= WARM_UP:
                        taken[one.rival.name].append(cpu)
                    if one is ours:
                        limit, files = ours.limit()
                        limits.append(limit)
    return Costs(taken, taken.pop(ours.rival.name), limits, files)


def _scrape(running: Running, traffic: Traffic | None) -> float:
    if traffic is not None:
        traffic.move()
    return running.scrape().cpu


def quick(values: list[float]) -> float:
    """The tenth percentile: scrapes that other load on the machine has disturbed least."""
    return statistics.quantiles(values, n=10)[0]


KINDS: tuple[tuple[str, Callable[[list[float]], float]], ...] = (
    ("median", statistics.median),
    ("tenth percentile", quick),
)


def print_costs(what: str, costs: Costs) -> None:
    """One line per kind of average."""
    for name, average in KINDS:
        ours, limit = average(costs.ours), average(costs.limit)
        rivals = [average(values) for values in costs.rivals.values()]
        print_row(
            what,
            name,
            costs.files,
            limit * 1e3,
            ours * 1e3,
            ours / limit,
            *(rival * 1e3 for rival in rivals),
            *(ours / rival for rival in rivals),
        )


def main() -> None:
    """Print the CPU time of all, and the ratios of ours to the reads alone and to each rival."""
    names = [rival.name for rival in (*node_exporters("infiniband"), *rdma_exporters())]
    print_head(
        "ports, counters",
        "of all scrapes",
        "files",
        "reads alone ms",
        "ours ms",
        "to reads",
        *(f"{name} ms" for name in names),
        *(f"to {name}" for name in names),
    )
    for ports in PORTS:
        for moving in (False, True):
            with host(ports) as tree:
                what = f"{ports}, {'a dozen per port move' if moving else 'still'}"
                print_costs(what, compare(tree, moving=moving))


if __name__ == "__main__":
    main()

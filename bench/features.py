"""What does each feature add to a scrape? The simulated host with it and without it, scraped in turn.

The simulation computes the same counters in both, so the difference is the exporter's. What happens between scrapes (a read once a minute, a round
of the verdict) is not in it.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
from typing import TYPE_CHECKING, NamedTuple

from processes import start
from rivals import PORT, Rival
from tables import host, print_head, print_row

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 60
WARM_UP = 15
PORTS = 8
WITHOUT = {
    "health": ("health",),
    "devlink (three sources)": ("devlink", "devlink_info", "devlink_vnic"),
    "addresses": ("addresses",),
    "kernel_log": ("kernel_log",),
    "owners": ("owners",),
    "mac_address": ("mac_address",),
    "virtual_functions": ("virtual_functions",),
    "configuration (audit)": ("configuration",),
    "transceiver": ("transceiver",),
}


def simulated(name: str, *flags: str) -> Rival:
    """The exporter of a simulated host."""
    ports = ",".join(["mlx5"] * PORTS)
    command = (sys.executable, "-m", "roce_exporter", "serve", "--log.level=error", "--host.simulate=quiet")
    where = (
        f"--host.simulate-ports={ports}",
        f"--web.listen-address=127.0.0.1:{PORT}",
        "--collect.min-interval=0.001",
    )
    return Rival(name, (*command, *where, *flags))


class Added(NamedTuple):
    """Median CPU seconds of a scrape with and without a feature, of their difference, and the feature's series."""

    whole: float
    without: float
    difference: float
    series: int


def added(tree: Path, flags: tuple[str, ...]) -> Added:
    """Two exporters, scraped in turn: other load affects both alike."""
    with contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(start(rival, tree))
            for rival in (simulated("everything"), simulated("without", *flags))
        ]
        pairs = [[one.scrape().cpu for one in running] for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
        series = [
            sum(not line.startswith(b"#") for line in one.scrape().body.splitlines()) for one in running
        ]
    whole, without = (statistics.median(values) for values in zip(*pairs, strict=True))
    difference = statistics.median([one - other for one, other in pairs])
    return Added(whole, without, difference, series[0] - series[1])


def main() -> None:
    """Print what each feature adds to the cost of a scrape."""
    print_head("feature", "ms of a scrape with everything", "without it", "added ms", "its series")
    with host(1) as tree:
        for name, sources in WITHOUT.items():
            cost = added(tree, tuple(f"--source.disable={one}" for one in sources))
            print_row(name, cost.whole * 1e3, cost.without * 1e3, cost.difference * 1e3, cost.series)
        cost = added(tree, ("--sampler.mode=off",))
        print_row("fast loop", cost.whole * 1e3, cost.without * 1e3, cost.difference * 1e3, cost.series)


if __name__ == "__main__":
    main()

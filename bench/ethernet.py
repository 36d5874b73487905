"""What do sixteen network devices with 2,000 private counters each cost, compared with node_exporter's ethtool collector?

In a network namespace of its own: veth devices with 220 queues, which have 1,980 counters, behind sixteen mlx5 ports
made of files. Their names have no row, so this exporter reads 33,000 values and exports the 2,200 that have a meaning;
node_exporter exports all. Both request all names at every scrape.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from processes import compare
from rivals import node_exporters, roce_exporter
from scrape import ALL
from tables import MEMORY, print_comparison
from trees import write_host

INSIDE = "--inside"
NETDEVS = tuple(f"v{number}" for number in range(16))
QUEUES = 220
QUIET = roce_exporter("all, without the fast loop", "--sampler.mode=off")
ROUNDS = 3
SCRAPES = 6


def prepare(folder: Path, queues: int = QUEUES) -> Path:
    """Create the network devices and the tree, and mount the tree as this namespace's /sys, as on a real host.

    The caller outside the namespace removes the folder: inside, a whole sysfs is mounted in it.
    """
    sysfs, tree = folder / "real", folder / "tree"
    sysfs.mkdir()
    _run("ip", "link", "set", "lo", "up")
    _run("mount", "-t", "sysfs", "sysfs", str(sysfs))
    for netdev in NETDEVS:
        both = ("numrxqueues", str(queues), "numtxqueues", str(queues))
        _run("ip", "link", "add", netdev, *both, "type", "veth", "peer", "name", f"p{netdev}")
        for one in (netdev, f"p{netdev}"):
            _run("ip", "link", "set", one, "up")
    write_host(tree, len(NETDEVS), NETDEVS, sysfs)
    _run("mount", "--bind", str(tree), "/sys")
    return Path("/sys")


def _run(*command: str) -> None:
    subprocess.run(command, check=True)  # noqa: S603 - our own command, in its own namespace


def measure(folder: Path) -> None:
    """Print the table. Runs inside the namespace."""
    tree = prepare(folder)
    rivals = [*node_exporters("infiniband", "ethtool"), *node_exporters("infiniband"), QUIET, ALL]
    figures = compare(rivals, tree, ROUNDS, SCRAPES)
    print_comparison(f"{len(NETDEVS)} mlx5 ports and {len(NETDEVS)} x {9 * QUEUES} private counters", figures)


def main() -> None:
    """Print the table, from a new namespace."""
    if os.geteuid() or not (shutil.which("unshare") and shutil.which("ip")):
        print("left out: needs root, unshare and ip (apt-get install util-linux iproute2)")
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        inside = ["unshare", "--net", "--mount", sys.executable, __file__, INSIDE, folder]
        subprocess.run(inside, check=True)  # noqa: S603 - this script again


if __name__ == "__main__":
    if INSIDE in sys.argv:
        measure(Path(sys.argv[-1]))
    else:
        main()

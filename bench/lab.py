"""The same on a real kernel: /sys of this host, where it has RDMA devices, such as eight rxe in the lab's machine."""

from __future__ import annotations

from pathlib import Path

from processes import compare
from rivals import node_exporters
from scrape import ALL
from tables import print_comparison

ROUNDS = 5
SCRAPES = 20
SYSFS = Path("/sys")


def main() -> None:
    """Print the table."""
    devices = sorted(SYSFS.glob("class/infiniband/*"))
    if not devices:
        print("left out: this host has no RDMA device; tests/lab boots a kernel that has")
        return
    figures = compare([*node_exporters("infiniband"), ALL], SYSFS, ROUNDS, SCRAPES)
    print_comparison(f"{len(devices)} RDMA devices of this host's kernel", figures)


if __name__ == "__main__":
    main()

"""The same scrapes on a real kernel, which answers RDMA netlink where a tree requires one read per file.

In the lab's guest, `ROCELAB_MODULE=~/.cache/roce-lab/rocelab-6.12.ko tests/lab/boot.sh -m 1536 -- python bench lab`
measures eight Soft-RoCE devices of Linux 6.12, and then eight mlx5 cards of rocelab. Elsewhere it measures the devices
of the host.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from processes import compare
from rivals import node_exporters, roce_exporter
from scrape import ALL
from tables import print_comparison

from roce_exporter.host import sources

ROUNDS = 5
SCRAPES = 20
SYSFS = Path("/sys")
DEVICES = 8

OF_RDMA = ("port", "rdma_netlink", "hw_counters", "counters")
RDMA = roce_exporter(
    "RDMA alone", *(f"--source.disable={name}" for name in sources.NAMES if name not in OF_RDMA)
)
"""The counters of node_exporter's infiniband collector, and no others."""


def run(command: str) -> None:
    """Run a command of the guest."""
    subprocess.run(command.split(), check=True)  # noqa: S603 - our own commands


def add_soft_roce() -> None:
    """Soft-RoCE on veth."""
    run("modprobe rdma_rxe")
    for number in range(DEVICES):
        run(f"ip link add veth{number} type veth peer name peer{number}")
        run(f"ip link set veth{number} up")
        run(f"ip link set peer{number} up")
        run(f"rdma link add rxe{number} type rxe netdev veth{number}")


def add_cards(module: str) -> None:
    """Replace Soft-RoCE by cards without hardware."""
    run("modprobe -r rdma_rxe")
    for number in range(DEVICES):
        run(f"ip link del veth{number}")
    run("modprobe -a ib_core ib_uverbs")
    run(f"insmod {module} devices={','.join(['mlx5'] * DEVICES)}")


def print_figures(what: str) -> None:
    """Print the table of the devices that are present."""
    count = len(list(SYSFS.glob("class/infiniband/*")))
    figures = compare([*node_exporters("infiniband"), RDMA, ALL], SYSFS, ROUNDS, SCRAPES)
    print_comparison(f"{count} {what}", figures)


def main() -> None:
    """Print the tables."""
    if os.environ.get("ROCE_LAB_GUEST"):
        add_soft_roce()
        print_figures("Soft-RoCE devices")
        if module := os.environ.get("ROCELAB_MODULE"):
            add_cards(module)
            print_figures("mlx5 cards of rocelab")
    elif any(SYSFS.glob("class/infiniband/*")):
        print_figures("RDMA devices of this host")
    else:
        print("left out: this host has no RDMA device; tests/lab/boot.sh boots a kernel with some")


if __name__ == "__main__":
    main()

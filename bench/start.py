"""How soon does the exporter listen and answer, and how much memory does it use, idle and after 10,000 scrapes?

As root also with a network device of this kernel (veth) behind each port, whose addresses, routes and neighbours are then read.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ethernet import INSIDE, prepare
from processes import Running, free_port, start, wait_until_scraped
from rivals import command_of, node_exporters
from scrape import ALL
from tables import MEMORY, host, print_head, print_row

if TYPE_CHECKING:
    from rivals import Rival

PORTS = 16
ROUNDS = 7
SCRAPES = 10_000
IMPORT = (
    "import time; begun = time.process_time(); import roce_exporter.cli; print(time.process_time() - begun)"
)


def begin(rival: Rival, tree: Path) -> tuple[float, float, float]:
    """Wall seconds until the exporter listens and until it has answered a scrape, and its CPU seconds by then."""
    port, begun = free_port(), time.monotonic()
    process = subprocess.Popen(command_of(rival, tree, port), stderr=subprocess.DEVNULL)  # noqa: S603 - our own command
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.001)
        listening = time.monotonic() - begun
        wait_until_scraped(running := Running(rival, process, port))
        return listening, time.monotonic() - begun, running.cpu()
    finally:
        process.kill()
        process.wait()


def held(rival: Rival, tree: Path) -> tuple[float, float]:
    """Megabytes resident after the first scrape and after many."""
    with start(rival, tree) as running:
        first = running.resident()
        for _ in range(SCRAPES):
            running.scrape()
        return first, running.resident()


def print_starts(rivals: list[Rival], tree: Path) -> None:
    """One line per exporter."""
    rounds = [[begin(rival, tree) for rival in rivals] for _ in range(ROUNDS)]
    for rival, taken in zip(rivals, zip(*rounds, strict=True), strict=True):
        figures = [statistics.median(column) * 1e3 for column in zip(*taken, strict=True)]
        print_row(rival.name, *figures, *held(rival, tree))


def main() -> None:
    """Print the tables."""
    if INSIDE in sys.argv:
        print_starts([ALL._replace(name=f"{ALL.name}, live network devices")], prepare(Path(sys.argv[-1]), 1))
        return
    print_head("start", "listening ms", "first scrape ms", "CPU ms", "RSS MB", f"RSS MB after {SCRAPES}")
    with host(PORTS) as tree:
        print_starts([*node_exporters("infiniband"), ALL], tree)
    if not os.geteuid():
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            inside = ["unshare", "--net", "--mount", sys.executable, __file__, INSIDE, folder]
            subprocess.run(inside, check=True)  # noqa: S603 - this script again
    imports = [_import_seconds() for _ in range(ROUNDS)]
    print(f"\nimports alone: {statistics.median(imports) * 1e3:.0f} ms of CPU")


def _import_seconds() -> float:
    told = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)  # noqa: S603 - our own command
    return float(told.stdout)


if __name__ == "__main__":
    main()

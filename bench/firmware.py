"""What does a scrape cost when each file takes 0.2 ms longer, as with a query to the NIC's firmware?

The same tree is read through `slow_files.c`, a FUSE file system. Real firmware answers the queries of one device one
after the other, which is also how this exporter sends them; it reads different devices at the same time.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from processes import compare
from rivals import node_exporters
from scrape import ALL, SAME_COUNTERS
from tables import host, print_comparison

if TYPE_CHECKING:
    from collections.abc import Iterator

PORTS = 16
MICROSECONDS = 200
ROUNDS = 5
SCRAPES = 8
SOURCE = Path(__file__).with_name("slow_files.c")


@contextlib.contextmanager
def delayed(tree: Path) -> Iterator[Path]:
    """The tree with a delay per read, until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        program, place = Path(folder) / "slow_files", Path(folder) / "sys"
        ask = ["pkg-config", "fuse3", "--cflags", "--libs"]
        flags = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()  # noqa: S603 - no input
        subprocess.run(["cc", "-O2", SOURCE, "-o", program, *flags], check=True)  # noqa: S603, S607 - no input
        place.mkdir()
        subprocess.run([program, tree, str(MICROSECONDS), place], check=True)  # noqa: S603 - just built
        try:
            yield place
        finally:
            subprocess.run(["fusermount3", "-u", place], check=True)  # noqa: S603, S607 - the unmount command of FUSE


def main() -> None:
    """Print the table."""
    if not (shutil.which("pkg-config") and shutil.which("fusermount3")):
        print("left out: needs a C compiler and FUSE (apt-get install gcc pkg-config libfuse3-dev fuse3)")
        return
    with host(PORTS) as tree, delayed(tree) as slow:
        figures = compare([*node_exporters("infiniband"), SAME_COUNTERS, ALL], slow, ROUNDS, SCRAPES)
    print_comparison(f"{PORTS} mlx5 ports, {MICROSECONDS / 1000} ms per read", figures)


if __name__ == "__main__":
    main()

"""Does a scrape cost more when network devices have more unmapped names? `python bench/ethtool_names.py`.

Sixteen ports, each with a network device of the same mapped counters and an increasing number of per-queue counters.
The kernel's replies are replayed into the buffers of the real ioctl code, so that decoding, normalising and rendering
are the exporter's own, without the driver's share. Figures are CPU time per scrape, and the ratio to the first line.
"""

from __future__ import annotations

import asyncio
import ctypes
import statistics
import struct
import threading
import time
from typing import TYPE_CHECKING

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.host.kernel.ethtool_ioctl import GSSET_INFO, GSTATS, GSTRINGS, EthtoolIoctl
from roce_exporter.host.recorded.recorded import Moment, RecordedKernel
from roce_exporter.host.recorded.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Sequence

PORTS = 16
ROUNDS = 40
UNMAPPED = (0, 250, 500, 1000, 2000, 4000)

MAPPED = tuple(
    f"{direction}_prio{priority}_{what}"
    for direction in ("rx", "tx")
    for priority in range(8)
    for what in ("bytes", "packets", "discards", "pause", "pause_duration")
)


class Replay:
    """An ioctl that copies prepared replies, as copy_to_user does."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._answers = {
            GSSET_INFO: struct.pack("=IIQI", GSSET_INFO, 0, 2, len(names)),
            GSTRINGS: struct.pack("=III", GSTRINGS, 1, len(names))
            + b"".join(name.encode().ljust(32, b"\0") for name in names),
            GSTATS: struct.pack(f"=II{len(names)}Q", GSTATS, len(names), *range(len(names))),
        }

    def __call__(self, _descriptor: int, _request: int, argument: bytes) -> int:
        """See `fcntl.ioctl`."""
        (place,) = struct.unpack("16xP16x", argument)
        (command,) = struct.unpack("=I", ctypes.string_at(place, 4))
        ctypes.memmove(place, self._answers[command], len(self._answers[command]))
        return 0


class Host(RecordedKernel):
    """Sixteen mlx5 ports whose replies are replayed."""

    def __init__(self, unmapped: int) -> None:
        """`unmapped` names of each network device have no row."""
        tree = Tree({f"ethtool/eth{port}.driver": b"driver: mlx5_core\n" for port in range(PORTS)})
        for path in tree.files:
            tree.add(path)
        links = tuple({"ifname": f"mlx5_{port}", "port": 1, "netdev": f"eth{port}"} for port in range(PORTS))
        super().__init__([Moment(tree, {"link": links})])
        names = (
            *MAPPED,
            *(f"rx{queue}_{what}" for queue in range(unmapped // 5) for what in ("a", "b", "c", "d", "e")),
        )
        self._names = names
        self._local = threading.local()

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], Sequence[int]]:
        """The reading of the real code."""
        # One per thread, as in `LiveKernel`: on a busy machine a collection uses several.
        found: EthtoolIoctl | None = getattr(self._local, "ioctl", None)
        if found is None:
            found = self._local.ioctl = EthtoolIoctl(Replay(self._names))
        return found.statistics(netdev)


async def scrape_seconds(unmapped: int) -> tuple[float, int]:
    """Median CPU seconds per scrape, and bytes of its body."""
    exporter = Exporter(Collector(Host(unmapped), Settings(), time.monotonic))
    taken, body = [], b""
    for _ in range(ROUNDS + 5):
        begun = time.process_time()
        body = exporter.render(await exporter.observe(10.0), Format.TEXT)
        taken.append(time.process_time() - begun)
    return statistics.median(taken[5:]), len(body)


def main() -> None:
    """Print the table."""
    print(f"{PORTS} ports, {len(MAPPED)} mapped names each; {ROUNDS} scrapes per line")
    print(f"{'unmapped names':>15} {'CPU ms':>8} {'ratio':>6} {'body kB':>8}")
    first = 0.0
    for unmapped in UNMAPPED:
        seconds, size = asyncio.run(scrape_seconds(unmapped))
        first = first or seconds
        print(f"{unmapped:>15} {seconds * 1000:>8.2f} {seconds / first:>6.2f} {size // 1000:>8}")


if __name__ == "__main__":
    main()

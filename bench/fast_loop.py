"""What does the fast loop cost? `python bench/fast_loop.py`.

mlx5 ports with 80 mapped and 2,000 unmapped names each, PFC on for one priority, moving counters. The kernel's replies
are replayed into the buffers of the real ioctl code, so the figures are the exporter's own share: decoding, detection,
counting. The driver and the firmware add theirs, which the governor keeps below 2 %. Figures are CPU time in percent of
one core, and the ratio to the cost of collecting the same network devices completely at the same rate.
"""

from __future__ import annotations

import asyncio
import ctypes
import statistics
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING

from ethtool_names import MAPPED, Replay

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.host.kernel.ethtool_ioctl import GSSET_INFO, GSTATS, NAMES_SECONDS, EthtoolIoctl
from roce_exporter.host.recorded.recorded import Moment, RecordedKernel
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.model.values import FILE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from roce_exporter.host.kernel import Files

PORTS = (1, 8, 16)
UNMAPPED = 2000
LOOKS = 200
ROUNDS = 5

NAMES = (
    *(name for name in MAPPED if "pause" not in name or "prio3" in name),
    *(f"rx{queue}_{what}" for queue in range(UNMAPPED // 5) for what in ("a", "b", "c", "d", "e")),
)
MOVING = tuple(position for position, name in enumerate(NAMES) if "prio" in name)
HEAD = 8


class Moving(Replay):
    """Counters of every priority rise from read to read."""

    def __init__(self) -> None:
        super().__init__(NAMES)
        self._statistics = bytearray(self._answers[GSTATS])
        self._answers[GSTATS] = (ctypes.c_char * len(self._statistics)).from_buffer(self._statistics)
        self._reads = 0

    def __call__(self, descriptor: int, request: int, argument: bytes) -> int:
        """See `fcntl.ioctl`."""
        (place,) = struct.unpack("16xP16x", argument)
        if int.from_bytes(ctypes.string_at(place, 4), sys.byteorder) == GSTATS:
            self._move()
        return super().__call__(descriptor, request, argument)

    def _move(self) -> None:
        self._reads += 1
        for position in MOVING:
            struct.pack_into("=Q", self._statistics, HEAD + 8 * position, self._reads)


class Still:
    """Files whose content does not change, at the price of a list: reading a recording costs several times a `pread`."""

    def __init__(self, files: Files) -> None:
        self._found = files.read()
        files.close()

    def read(self, skip: Collection[int] = ()) -> list[bytes | OSError | None]:  # noqa: ARG002 - as of `Files`
        """See `Files`."""
        return [*self._found]

    def close(self) -> None:
        """Nothing is open."""


class Host(RecordedKernel):
    """Ports of an mlx5 whose replies are replayed."""

    def __init__(self, ports: int) -> None:
        tree = Tree()
        for port in range(ports):
            for path, text in (
                (f"ethtool/eth{port}.driver", b"driver: mlx5_core\n"),
                (f"sys/class/net/eth{port}/operstate", b"up\n"),
                (f"sys/class/net/eth{port}/carrier_down_count", b"0\n"),
                (f"sys/class/net/eth{port}/speed", b"400000\n"),
            ):
                tree.files[path] = text
                tree.add(path)
        links = tuple({"ifname": f"mlx5_{port}", "port": 1, "netdev": f"eth{port}"} for port in range(ports))
        super().__init__([Moment(tree, {"link": links})])
        self._local = threading.local()
        self.replay: Callable[[], Moving] = Moving
        """What replies in place of the driver."""

    def open_files(self, paths: Sequence[str], size: int = FILE_BYTES) -> Files:
        """The files of the recording, read once."""
        return Still(super().open_files(paths, size))

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], Sequence[int]]:
        """The reading of the real code."""
        # One per thread, as in `LiveKernel`: on a busy machine a collection uses several.
        found: EthtoolIoctl | None = getattr(self._local, "ioctl", None)
        if found is None:
            found = self._local.ioctl = EthtoolIoctl(self.replay(), NAMES_SECONDS)
        return found.statistics(netdev)


class Clock:
    """Monotonic seconds that the benchmark sets."""

    now = 5000.0

    def __call__(self) -> float:
        """Now."""
        return self.now


def replay_seconds() -> float:
    """CPU seconds per read that the replay takes in place of the kernel. They are subtracted, as they are not the exporter's."""
    moving, taken = Moving(), []
    room = bytearray(1 << 17)
    request = struct.pack("16sP16x", b"", ctypes.addressof(ctypes.c_char.from_buffer(room)))
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(LOOKS):
            for command in (GSSET_INFO, GSTATS):
                struct.pack_into("=I", room, 0, command)
                moving(0, 0, request)
        taken.append((time.process_time() - begun) / LOOKS)
    return statistics.median(taken)


async def measure(ports: int) -> tuple[float, float]:
    """Median CPU seconds of one round of polls, and of one whole collection with rendering, for `ports` ports."""
    kernel, clock = Host(ports), Clock()
    sampler = Sampler(kernel, clock, clock, Pace(mode="fixed"))
    exporter = Exporter(Collector(kernel, Settings(), time.monotonic), [sampler])
    exporter.render(await exporter.observe(10.0), Format.TEXT)
    looks, scrapes = [], []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(LOOKS):
            clock.now = max(clock.now + 0.1, sampler.tick())
        looks.append((time.process_time() - begun) / LOOKS)
        begun = time.process_time()
        for _ in range(LOOKS // 10):
            exporter.render(await exporter.observe(10.0), Format.TEXT)
        scrapes.append((time.process_time() - begun) / (LOOKS // 10))
    return statistics.median(looks), statistics.median(scrapes)


def main() -> None:
    """Print the table."""
    replay = replay_seconds()
    print(
        f"{len(NAMES)} names per network device; the replay's own {replay * 1e6:.0f} us per read are subtracted"
    )
    print(f"{'ports':>6} {'us per poll':>12} {'1 Hz':>8} {'10 Hz':>8} {'to a whole collection':>22}")
    for ports in PORTS:
        look, scrape = asyncio.run(measure(ports))
        own = look - ports * replay
        whole = scrape - ports * replay
        print(f"{ports:>6} {own / ports * 1e6:>12.1f} {own:>8.2%} {own * 10:>8.2%} {own / whole:>22.3f}")


if __name__ == "__main__":
    main()

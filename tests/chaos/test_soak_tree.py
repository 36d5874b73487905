"""Random faults on a real directory tree: after them, series, descriptors, threads and memory are as before.

`ROCE_SOAK_COLLECTIONS` sets the number of collections, `ROCE_SOAK_SEED` repeats a run by its printed seed.
"""

import asyncio
import contextlib
import errno
import gc
import logging
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from host_tree import HostTree
from waiting import HUNG_SECONDS, until

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.host.kernel.live import LiveKernel

pytestmark = pytest.mark.nightly

COLLECTIONS = int(os.environ.get("ROCE_SOAK_COLLECTIONS", "10000"))
SEED = int(os.environ.get("ROCE_SOAK_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
DEVICES = 3
MEGABYTE = 1 << 20


class SickKernel(LiveKernel):
    """The live kernel on a tree, whose reads hang, fail or raise as the test says."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root), self._sick_pread, netlink=False)
        self.hung: dict[str, threading.Event] = {}
        self.held: list[int] = []
        """The threads that hang."""
        self.broken: dict[str, Exception] = {}

    def suffer(self, path: str) -> None:
        for end, gate in list(self.hung.items()):
            if path.endswith(end):
                self.held.append(threading.get_ident())
                gate.wait()
                self.held.remove(threading.get_ident())
        for end, error in list(self.broken.items()):
            if path.endswith(end):
                raise error

    def _sick_pread(self, descriptor: int, count: int, offset: int) -> bytes:
        self.suffer(os.readlink(f"/proc/self/fd/{descriptor}").removesuffix(" (deleted)"))
        return os.pread(descriptor, count, offset)

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
        self.suffer(f"{netdev}/statistics")
        return NAMES, (1, 2, 3, 4)

    def ethtool_settings(self, netdev: str) -> dict[str, int]:
        self.suffer(f"{netdev}/settings")
        return {"pfc_prevention_timeout": 100}


NAMES = ("rx_prio3_pause", "rx_prio3_pause_duration", "rx_prio3_pause_transition", "tx_prio3_packets")


HASTY = Settings(timeout=0.03, overtake=0.005, refresh=0.2)


class Host:
    """A host of a few devices with a network device each, and everything that the daemon runs over it."""

    def __init__(
        self, root: Path, settings: Settings = HASTY, clock: Callable[[], float] | None = None
    ) -> None:
        self.tree = HostTree(root, devices=0)
        self.skew = 0.0
        self.kernel = SickKernel(root)
        clock = clock or (lambda: time.monotonic() + self.skew)
        self.collector = Collector(self.kernel, settings, clock)
        self.sampler = Sampler(self.kernel, clock, time.time, Pace(mode="fixed", interval=0.05))
        self.exporter = Exporter(self.collector, [self.sampler])
        for number in range(DEVICES):
            self.plug(number)

    def plug(self, number: int) -> None:
        if self.is_plugged(number):
            return
        net = self.tree.root / f"class/net/eth{number}"
        for name, text in (("operstate", "up"), ("carrier_down_count", "0"), ("speed", "400000")):
            (net / name).parent.mkdir(parents=True, exist_ok=True)
            (net / name).write_text(f"{text}\n")
        self.tree.add(f"mlx5_{number}", netdev=f"eth{number}", guid=number)

    def unplug(self, number: int) -> None:
        if self.is_plugged(number):
            self.tree.remove(f"mlx5_{number}")
            shutil.rmtree(self.tree.root / f"class/net/eth{number}")

    def is_plugged(self, number: int) -> bool:
        return (self.tree.infiniband / f"mlx5_{number}").exists()

    async def settle(self) -> None:
        """Wait until nothing is in flight any more, and everything has been read again within its deadline."""
        self.collector._settings = Settings(timeout=HUNG_SECONDS, refresh=600.0)
        for _ in range(3):
            self.skew += 7200.0  # later than every quarantine
            await self.exporter.observe()
            while self.collector._in_flight or self.sampler._in_flight:
                self.sampler.supervise()
                await asyncio.sleep(0.002)
        for _ in range(3):
            await self.exporter.observe()
        # The fast loop runs in its own time, also after the last collection.
        await until(lambda: all(target.last for target in list(self.sampler._targets.values())))
        self.collector._settings = HASTY

    async def account(self) -> tuple[set[tuple[str, ...]], list[str], int]:
        """Series, open descriptors, and threads."""
        await self.settle()
        observation = await self.exporter.observe()
        series = {
            (one.row.name, *one.labels)
            for part in observation.samples
            for one, value in zip(part.series, part.values, strict=True)
            if value is not None and one.row.name not in PASSING
        }
        deadline = time.monotonic() + HUNG_SECONDS
        while len(os.listdir("/proc/self/task")) > LEAST_THREADS and time.monotonic() < deadline:
            await self.exporter.observe()  # every pass ends the workers that the last one did not need
        gc.collect()
        return series, open_files(), len(os.listdir("/proc/self/task"))


def open_files() -> list[str]:
    """The target of every descriptor; sockets and the like by their kind only."""
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the descriptor of this listing itself
            found.append(os.readlink(f"/proc/self/fd/{descriptor}").partition(":[")[0])
    return sorted(found)


PASSING = frozenset({"roce_pfc_storm_unknown"})
"""Metrics that report a past fault for a while."""


LEAST_THREADS = 3
"""The test's own, the fast loop, and one reader."""


def places(number: int) -> tuple[str, ...]:
    return (
        f"mlx5_{number}/ports/1/hw_counters/np_cnp_sent",
        f"mlx5_{number}/ports/1/counters/symbol_error",
        f"mlx5_{number}/fw_ver",
        f"eth{number}/statistics",
        f"eth{number}/settings",
        f"eth{number}/operstate",
    )


def disturb(host: Host, dice: random.Random) -> None:
    """Add a fault, or remove one."""
    number = dice.randrange(DEVICES)
    place = dice.choice(places(number))
    match dice.choice(
        ("unplug", "plug", "hang", "release", "release", "break", "fault", "recover", "recover")
    ):
        case "unplug":
            host.unplug(number)
        case "plug":
            host.plug(number)
        case "hang":
            host.kernel.hung.setdefault(place, threading.Event())
        case "release" if host.kernel.hung:
            host.kernel.hung.pop(dice.choice(sorted(host.kernel.hung))).set()
        case "break":
            host.kernel.broken[place] = OSError(errno.EIO, "Input/output error")
        case "fault":
            host.kernel.broken[place] = ValueError("a fault of the exporter")
        case "recover" if host.kernel.broken:
            host.kernel.broken.pop(dice.choice(sorted(host.kernel.broken)))


def heal(host: Host) -> None:
    for gate in host.kernel.hung.values():
        gate.set()
    host.kernel.hung.clear()
    host.kernel.broken.clear()
    for number in range(DEVICES):
        host.plug(number)


async def soak(root: Path) -> None:
    """The run itself; the error message lists the differences."""
    logging.disable(logging.CRITICAL)
    dice = random.Random(SEED)  # noqa: S311 - no secret
    host = Host(root)
    host.sampler.start()
    whole, *resources = await host.account()
    memory = psutil.Process().memory_info().rss
    for step in range(COLLECTIONS):
        disturb(host, dice)
        if step % 50 == 0:
            host.sampler.supervise()
            host.skew += dice.choice((0.0, 1.0, 40.0))
        await host.exporter.observe(dice.choice((None, None, 0.001)))
    heal(host)
    after, *later = await host.account()
    assert after == whole, f"series that came or went: {after ^ whole}"
    more, less = Counter(later[0]) - Counter(resources[0]), Counter(resources[0]) - Counter(later[0])
    assert not more, f"left open: {more}"
    assert not less, f"no longer open: {less}"
    assert later[1] == LEAST_THREADS
    assert psutil.Process().memory_info().rss - memory < 24 * MEGABYTE
    host.sampler.close()
    host.collector.close()


def test_after_many_faults_everything_is_as_before(tmp_path) -> None:
    """Runs in a separate process: other tests leave threads and descriptors that end meanwhile."""
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "ROCE_SOAK_SEED": str(SEED)},
    )
    assert done.returncode == 0, f"seed {SEED}: {done.stdout}{done.stderr}"


if __name__ == "__main__":
    asyncio.run(soak(Path(sys.argv[1])))

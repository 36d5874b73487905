"""Random faults of the real kernel: after them, series, descriptors, threads and memory are as before.

The exporter runs in the test's process, so that faults of the exporter itself can be injected too. `ROCELAB_SOAK` sets
the number of collections, `ROCELAB_SEED` repeats a run by its printed seed.
"""

import asyncio
import gc
import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import nic
import pytest

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.host.kernel.live import LiveKernel

COLLECTIONS = int(os.environ.get("ROCELAB_SOAK", "100"))
SEED = int(os.environ.get("ROCELAB_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
KILOBYTE = 1024
TABLES = ("rdma", "port", "state", "leg0/access", "leg0/ethtool", "leg0/dcb", "leg0/pause", "leg0/link")
FAULTS = ("EIO", "EINVAL", "ETIMEDOUT", "hang")
PASSING = ("roce_pfc_storm_unknown",)
"""Metrics that report a past fault for a while."""

LEAST_THREADS = 3
"""The test's own, the fast loop, and one reader."""
PATIENT = Settings(timeout=60.0, overtake=60.0, refresh=1e9)
HASTY = Settings(timeout=0.2, overtake=0.05, refresh=1.0)

pytestmark = pytest.mark.timeout(9900)


class Faulty(LiveKernel):
    """This kernel, with a fault of the exporter itself while `faulty` is set."""

    faulty = False

    def ethtool_statistics(self, netdev: str) -> Any:
        """The kernel's reply."""
        if self.faulty:
            raise ValueError("a fault of the exporter")
        return super().ethtool_statistics(netdev)


class Host:
    """What the daemon runs, over the cards of the lab."""

    def __init__(self) -> None:
        self.skew = 0.0
        self.kernel = Faulty()
        self.collector = Collector(self.kernel, HASTY, self._now)
        self.sampler = Sampler(self.kernel, self._now, time.time, Pace(mode="fixed", interval=0.2))
        self.exporter = Exporter(self.collector, [self.sampler])

    def _now(self) -> float:
        return time.monotonic() + self.skew

    async def account(self) -> tuple[set[tuple[str, ...]], Counter[str], int]:
        """Series, descriptors and threads, when nothing is in flight and everything was read within its deadline."""
        self.collector._settings = PATIENT
        for _ in range(3):
            self.skew += 7200.0  # later than every quarantine
            self.collector._settings = replace(PATIENT, refresh=600.0)
            await self.exporter.observe()
            while self.collector._in_flight or self.sampler._in_flight:
                self.sampler.supervise()
                await asyncio.sleep(0.01)
        self.collector._settings = PATIENT
        observation = await self.exporter.observe()
        deadline = time.monotonic() + 60
        while len(os.listdir("/proc/self/task")) > LEAST_THREADS and time.monotonic() < deadline:
            observation = await self.exporter.observe()
        self.collector._settings = HASTY
        gc.collect()
        series = {
            (one.row.name, *one.labels)
            for part in observation.samples
            for one, value in zip(part.series, part.values, strict=True)
            if value is not None and one.row.name not in PASSING
        }
        return series, descriptors(), len(os.listdir("/proc/self/task"))


def descriptors() -> Counter[str]:
    """What this process has open, and how often."""
    found: Counter[str] = Counter()
    for place in Path("/proc/self/fd").iterdir():
        # What is gone by now was open to list the folder.
        with suppress(FileNotFoundError):
            found[re.sub(r"\d+]", "]", os.readlink(place))] += 1
    return found


def counts(account: tuple[set[tuple[str, ...]], Counter[str], int]) -> str:
    """How many series, descriptors and threads."""
    series, descriptors, threads = account
    return f"{len(series)}, {descriptors.total()}, {threads}"


def memory() -> int:
    """Kilobytes of resident memory."""
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1])


@pytest.fixture
def cards() -> Iterator[None]:
    nic.load("mlx5,bnxt")
    yield
    nic.unload()


def plug() -> None:
    """Add the mlx5 card if it is missing."""
    if "mlx5_0" not in nic.nics():
        heal()  # a query that hangs under the RTNL holds up every driver that makes a network device
        nic.order("add", "mlx5")
        nic.run("ip", "link", "set", nic.nics()["mlx5_0"].netdevs[0], "up")


def tables(card: nic.Nic) -> list[nic.Table]:
    """The tables that the driver has in this kernel."""
    return [table for table in map(card.table, TABLES) if table.path.exists()]


def heal() -> None:
    for card in nic.nics().values():
        for table in tables(card):
            table.break_with("none")


def disturb(host: Host, dice: random.Random) -> None:
    """Add a fault, or remove one."""
    card = dice.choice(list(nic.nics().values()))
    match dice.choice(("unplug", "plug", "break", "fault", "heal", "heal")):
        case "unplug" if card.rdma == "mlx5_0":
            heal()  # a hung driver cannot be removed
            nic.order("remove", str(card.number))
        case "plug":
            plug()
        case "break":
            dice.choice(tables(card)).break_with(dice.choice(FAULTS))
        case "fault":
            host.kernel.faulty = not host.kernel.faulty
        case _:
            heal()
            host.kernel.faulty = False


async def soak(dice: random.Random) -> None:
    host = Host()
    host.sampler.start()
    before = await host.account()
    kilobytes, begun = memory(), time.monotonic()
    for step in range(COLLECTIONS):
        if dice.random() < 0.2:
            disturb(host, dice)
        if step % 1000 == 0:
            print(f"collection {step}, {memory()} KiB", flush=True)  # noqa: T201 - it takes long
        if step % 20 == 0:
            host.sampler.supervise()
            host.skew += dice.choice((0.0, 1.0, 40.0))
        await host.exporter.observe(dice.choice((None, None, 0.01)))
    heal()
    plug()
    host.kernel.faulty = False
    after = await host.account()
    print(  # noqa: T201 - what a long run is made for
        f"{COLLECTIONS} collections in {time.monotonic() - begun:.0f} s of the guest; series, descriptors, threads, memory"
        f" before: {counts(before)}, {kilobytes} KiB; after: {counts(after)}, {memory()} KiB"
    )
    for name, one, other in zip(("series", "descriptors", "threads"), before, after, strict=True):
        assert one == other, f"{name}, seed {SEED}: before {one}, after {other}"
    assert memory() - kilobytes < 32 * KILOBYTE
    host.sampler.close()
    host.collector.close()


@pytest.mark.usefixtures("cards")
def test_after_faults_of_the_kernel_everything_is_as_before(caplog) -> None:
    print(f"seed {SEED}")  # noqa: T201 - a failure must be repeatable
    caplog.set_level("CRITICAL")
    asyncio.run(soak(random.Random(SEED)))  # noqa: S311 - no secret

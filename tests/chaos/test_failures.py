"""One thing of one of eight devices breaks. The rest is served completely, the loss is visible, nothing becomes 0."""

import asyncio
import errno
import os
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from chaos_daemon import Key, key, parse
from host_tree import COUNTERS, HostTree, failing_pread

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.host.kernel.live import LiveKernel

BROKEN = "mlx5_3"
LOST = "roce_cnp_sent_total"
FILE = f"{BROKEN}/ports/1/hw_counters/np_cnp_sent"
FAST = Settings(timeout=120.0, overtake=0.05)
"""Nothing hangs here: test_chaos_page.py and unit/test_collect.py have that."""


class Host:
    """The exporter over a tree, collected when the test says so."""

    def __init__(self, root: Path, settings: Settings = FAST, **kernel: object) -> None:
        self.collector = Collector(LiveKernel(str(root), **kernel), settings, time.monotonic)  # type: ignore[arg-type]
        self.exporter = Exporter(self.collector)

    async def scrape(self) -> dict[Key, float]:
        observation = await self.exporter.observe()
        return parse(self.exporter.render(observation, Format.TEXT))


def own(samples: dict[Key, float]) -> dict[Key, float]:
    """Series without the exporter's own."""
    return {name: value for name, value in samples.items() if not name[0].startswith("roce_exporter_")}


def state(samples: dict[Key, float], metric: str, source: str, device: str = BROKEN) -> float | None:
    return samples.get(key(f"roce_exporter_{metric}", source=source, device=device))


@pytest.fixture
def tree(tmp_path) -> HostTree:
    return HostTree(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict[Key, float]:
    """The series of the unbroken host."""
    root = tmp_path_factory.mktemp("whole")
    HostTree(root)
    host = Host(root)
    try:
        return own(asyncio.run(host.scrape()))
    finally:
        host.collector.close()


FAULTS = {name: getattr(errno, name) for name in ("EINVAL", "EIO", "EACCES", "ENODEV", "ETIMEDOUT", "ENOENT")}


@pytest.mark.parametrize("name", FAULTS)
async def test_an_error_of_one_file_costs_one_series(tree, whole, name) -> None:
    host = Host(tree.root, pread=failing_pread({FILE: FAULTS[name]}))
    samples = await host.scrape()
    assert whole.keys() - own(samples).keys() == {key(LOST, device=BROKEN, port="1")}
    assert own(samples).items() <= whole.items()
    assert state(samples, "read_errors_total", "hw_counters") == 1
    assert state(samples, "unreadable_values", "hw_counters") == 1
    assert state(samples, "source_up", "hw_counters") == 1
    assert state(samples, "read_errors_total", "hw_counters", "mlx5_4") == 0


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("/sys/class/net/lo/speed", "EINVAL"),
        ("/proc/self/mem", "EIO"),
        ("nowhere", "ENOENT"),
        (".", "EISDIR"),
    ],
)
async def test_a_real_refusal_of_the_kernel_costs_one_series(tree, whole, link, reason) -> None:
    """These files give the named error on any Linux, from the kernel itself."""
    tree.replace(tree.hw_counter(BROKEN, "np_cnp_sent"), link=link)
    host = Host(tree.root)
    samples = await host.scrape()
    assert whole.keys() - own(samples).keys() == {key(LOST, device=BROKEN, port="1")}
    assert state(samples, "read_errors_total", "hw_counters") == 1
    (found,) = [s for s in host.collector._works[BROKEN].account.states if s.source == "hw_counters"]
    assert reason in found.error


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        (b"N/A (no PMA)\n", True),
        (b"18446744073709551615\n", True),
        (b"", False),
        (b"\n", False),
        (b"garbage\n", False),
        (b"-1\n", False),
        (b"1_000\n", False),
        (b"0x10\n", False),
        (b"\xff\xfe\x00", False),
        (b"7\nroce_evil_total 1\n", False),
        (b"9" * (1 << 20), False),
        (b"18446744073709551616\n", False),
        (b"123456789012345678901234567890\n", False),
    ],
)
async def test_a_file_that_holds_no_counter_costs_one_series(tree, whole, text, harmless) -> None:
    """A value that the driver itself calls not available is not an error; everything else is."""
    tree.replace(tree.hw_counter(BROKEN, "np_cnp_sent"), text=text)
    samples = await Host(tree.root).scrape()
    assert whole.keys() - own(samples).keys() == {key(LOST, device=BROKEN, port="1")}
    assert own(samples).items() <= whole.items()
    assert state(samples, "unreadable_values", "hw_counters") == 1
    assert state(samples, "read_errors_total", "hw_counters") == (0 if harmless else 1)


async def test_a_missing_firmware_version_costs_its_label(tree, whole) -> None:
    (tree.infiniband / BROKEN / "fw_ver").unlink()
    samples = own(await Host(tree.root).scrape())
    changed = whole.keys() ^ samples.keys()
    assert {name for name, _ in changed} == {"roce_device_info"}
    assert {dict(labels).get("firmware", "") for _, labels in changed} == {"28.39.1002", ""}


async def test_a_missing_counters_directory_is_no_failure(tree, whole) -> None:
    shutil.rmtree(tree.infiniband / BROKEN / "ports/1/counters")
    samples = await Host(tree.root).scrape()
    lost = whole.keys() - own(samples).keys()
    assert len(lost) == len(COUNTERS)
    assert {dict(labels)["device"] for _, labels in lost} == {BROKEN}
    assert state(samples, "source_up", "counters") is None
    assert state(samples, "source_up", "counters", "mlx5_4") == 1
    assert state(samples, "source_up", "hw_counters") == 1


async def test_a_device_removed_during_a_read_is_reported(tree, whole) -> None:
    """ENODEV of every file at once: the device's series disappear, the sources are down, the rest is served."""
    faults: dict[str, int] = {}
    host = Host(tree.root, pread=failing_pread(faults))
    await host.scrape()
    faults |= {
        f"{BROKEN}/ports/1/hw_counters/{path.name}": errno.ENODEV
        for path in (tree.infiniband / BROKEN / "ports/1/hw_counters").iterdir()
    }
    samples = await host.scrape()
    lost = whole.keys() - own(samples).keys()
    assert {dict(labels)["device"] for _, labels in lost} == {BROKEN}
    assert state(samples, "source_up", "hw_counters") == 0
    assert state(samples, "source_up", "counters") == 1
    faults.clear()
    assert own(await host.scrape()).keys() == whole.keys()


async def test_a_file_that_keeps_failing_is_left_alone(tree) -> None:
    faults = {FILE: errno.EIO}
    calls: list[str] = []
    real = failing_pread(faults)

    def counting(descriptor: int, count: int, offset: int) -> bytes:
        calls.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        return real(descriptor, count, offset)

    now = 1000.0
    host = Host(tree.root)
    host.collector = Collector(LiveKernel(str(tree.root), counting), FAST, lambda: now)
    host.exporter = Exporter(host.collector)
    for _ in range(5):
        samples = await host.scrape()
    assert len([path for path in calls if path.endswith(FILE)]) == 3
    assert state(samples, "quarantined_files", "hw_counters") == 1
    assert state(samples, "read_errors_total", "hw_counters") == 3
    assert state(samples, "unreadable_values", "hw_counters") == 1
    now += 31.0
    faults.clear()
    samples = await host.scrape()
    assert samples[key(LOST, device=BROKEN, port="1")] == 5
    assert state(samples, "quarantined_files", "hw_counters") == 0


async def test_an_excluded_device_is_never_opened(tree) -> None:
    opened: list[str] = []

    def watching(descriptor: int, count: int, offset: int) -> bytes:
        opened.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        return os.pread(descriptor, count, offset)

    host = Host(tree.root, replace(FAST, exclude=re.compile("mlx5_[0-3]")), pread=watching)
    samples = await host.scrape()
    assert samples[key("roce_exporter_devices")] == 4
    assert samples[key("roce_exporter_devices_excluded")] == 4
    assert not [path for path in opened if "/mlx5_3/" in path]
    assert [path for path in opened if "/mlx5_4/" in path]

"""The running daemon on a host whose files the kernel itself refuses, compared with Debian's node_exporter on the same files.

The cost of one broken file: how many series, how much time, and whether the loss is visible. `ROCE_CHAOS_REPORT=FILE`
writes the table that this run measured.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import pytest
from chaos_daemon import Namespace, Samples, exporter, key, namespace, node_exporter
from host_tree import HostTree
from servers import GENEROUS
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from chaos_daemon import Daemon

pytestmark = pytest.mark.ci


BROKEN = "mlx5_3"
PORT = f"class/infiniband/{BROKEN}/ports/1"
TIMEOUT = 3.0
"""Seconds that Prometheus allows for a scrape; whatever is missing by then is lost."""


class Fault(NamedTuple):
    """One file or folder that is covered by something broken."""

    file: str
    cover: str
    lost: frozenset[str]
    """The metrics that the device may lose."""
    source: str
    """The source whose state must report the fault; empty if no source fails."""
    up: float | None = 1.0
    """The state that the source reports."""


BYTES = frozenset({"roce_port_receive_bytes_total"})
CNP = frozenset({"roce_cnp_sent_total"})
STATE = frozenset({"roce_port_up", "roce_port_state"})
INFO = frozenset({"roce_device_info"})

FAULTS = {
    "EINVAL of a port counter": Fault(f"{PORT}/counters/port_rcv_data", "EINVAL", BYTES, "counters"),
    "EIO of a port counter": Fault(f"{PORT}/counters/port_rcv_data", "EIO", BYTES, "counters"),
    "ENXIO of a port counter": Fault(f"{PORT}/counters/port_rcv_data", "ENXIO", BYTES, "counters"),
    "EINVAL of a hardware counter": Fault(f"{PORT}/hw_counters/np_cnp_sent", "EINVAL", CNP, "hw_counters"),
    "EIO of a hardware counter": Fault(f"{PORT}/hw_counters/np_cnp_sent", "EIO", CNP, "hw_counters"),
    "garbage in a port counter": Fault(f"{PORT}/counters/port_rcv_data", "garbage", BYTES, "counters"),
    "EINVAL of the port's state": Fault(f"{PORT}/state", "EINVAL", STATE, "port"),
    "EIO of the firmware version": Fault(f"class/infiniband/{BROKEN}/fw_ver", "EIO", INFO, "inventory"),
    "a port counter that never answers": Fault(
        f"{PORT}/counters/port_rcv_data", "fifo", frozenset(), "counters", 0.0
    ),
    "a hardware counter that never answers": Fault(
        f"{PORT}/hw_counters/np_cnp_sent", "fifo", frozenset(), "hw_counters", 0.0
    ),
    "a state that never answers": Fault(f"{PORT}/state", "fifo", frozenset(), "port", 0.0),
    "a device without port counters": Fault(f"{PORT}/counters", "empty", frozenset(), ""),
}
"""The failures of one thing of one of eight devices. Where `lost` is empty, the source of the device is lost."""


NO_FAILURE = {
    "a device without port counters": "no `source_up` of counters",
}
"""How the loss is visible where no source fails."""


@dataclass(frozen=True, slots=True)
class Host:
    """Eight devices, in a mount namespace where files can be covered."""

    tree: HostTree
    inside: Namespace
    folder: Path

    def cover(self, path: str, kind: str) -> None:
        """Mount something broken over a file."""
        self.inside.mount_over(self.tree.root / path, self._broken(kind))

    def uncover(self, path: str) -> None:
        """Unmount it; the next open reaches the original file."""
        self.inside.run("umount", "--lazy", str(self.tree.root / path))

    def exporter(self, name: str) -> AbstractContextManager[Daemon]:
        """Our exporter, with its own log."""
        (self.folder / name).mkdir()
        return exporter(
            self.folder / name,
            f"--path.sysfs={self.tree.root}",
            f"--collect.timeout={TIMEOUT}",
            prefix=self.inside.enter,
        )

    def _broken(self, kind: str) -> Path | str:
        # The kernel's own errors: lo has no speed, address 0 of a process is not mapped, a socket cannot be opened.
        if kind == "EINVAL":
            return "/sys/class/net/lo/speed"
        if kind == "EIO":
            return f"/proc/{self.inside.holder.pid}/mem"
        place = self.folder / f"broken-{kind}"
        if place.exists():
            return place
        if kind == "fifo":
            os.mkfifo(place)
        elif kind == "garbage":
            place.write_text("garbage\n")
        elif kind == "ENXIO":
            with socket.socket(socket.AF_UNIX) as sock:
                sock.bind(os.path.relpath(place))
        elif kind == "empty":
            place.mkdir()
        return place


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with namespace("mount") as inside:
        yield Host(HostTree(tmp_path / "sys"), inside, tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """The series of the unbroken host."""
    folder = tmp_path_factory.mktemp("whole")
    HostTree(folder / "sys")
    with exporter(folder, f"--path.sysfs={folder / 'sys'}") as daemon:
        return own(daemon.scrape())


def own(samples: Samples) -> Samples:
    """Series without the exporter's own and without the verdict, which is about what is missing."""
    strange = (
        "roce_exporter_",
        "roce_port_health",
        "process_",
        "python_",
        "roce_config_check",
        "go_",
        "promhttp_",
        "node_scrape_",
    )
    return {name: value for name, value in samples.items() if not name[0].startswith(strange)}


def of_infiniband(samples: Samples) -> Samples:
    return {name: value for name, value in samples.items() if name[0].startswith("node_infiniband_")}


def told(samples: Samples, metric: str, source: str, device: str = BROKEN) -> float | None:
    return samples.get(key(f"roce_exporter_{metric}", source=source, device=device))


class Measured(NamedTuple):
    """The result of one scrape of a broken host; empty without a reply."""

    samples: Samples
    seconds: float


def measure(daemon: Daemon, patience: float = GENEROUS) -> Measured:
    begun = time.monotonic()
    try:
        samples = daemon.scrape(patience)
    except OSError:
        samples = {}
    return Measured(samples, time.monotonic() - begun)


def first_collection(daemon: Daemon) -> float:
    """Seconds from listening to the end of the first collection, according to the log."""
    begun, ended = (
        next(line for line in daemon.log.splitlines() if what in line) for what in ("listens on", "ready: ")
    )
    times = (datetime.fromisoformat(line.split()[0].removeprefix("ts=")) for line in (begun, ended))
    return -(next(times) - next(times)).total_seconds()


@pytest.fixture(scope="module")
def report() -> Iterator[list[str]]:
    """Rows of the table that this run measured."""
    rows: list[str] = []
    yield rows
    if place := os.environ.get("ROCE_CHAOS_REPORT"):
        titles = ("what breaks", "", "series lost", "of", "first", "next", "seen in")
        head = f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n"
        with open(place, "w", encoding="utf-8") as file:
            file.write(head + "".join(sorted(rows)))


def row(*cells: object) -> str:
    texts = (f"{cell:.2f} s" if isinstance(cell, float) else str(cell) for cell in cells)
    return f"| {' | '.join(texts)} |\n"


def check_loss(whole: Samples, broken: Samples, fault: Fault) -> set[tuple[str, str]]:
    """All lost series are of the broken device, and the others are unchanged: nothing became 0. Returns metric and device."""
    lost = {(name, dict(labels).get("device", "")) for name, labels in whole.keys() - own(broken).keys()}
    assert {device for _, device in lost} <= {BROKEN}
    if fault.lost:
        assert {name for name, _ in lost} == fault.lost
    for name, value in own(broken).items():
        assert whole.get(name, value) == value
    return lost


def check_reported(samples: Samples, fault: Fault) -> str:
    """The loss is reported for this device and for no other. Returns the series that report it."""
    if not fault.source:
        return ""
    errors, up = (told(samples, metric, fault.source) for metric in ("read_errors_total", "source_up"))
    assert errors is not None
    assert errors >= 1
    assert up == fault.up
    assert told(samples, "read_errors_total", fault.source, "mlx5_4") == 0
    assert told(samples, "source_up", fault.source, "mlx5_4") == 1
    return f"read_errors_total, source_up {up:g} of {fault.source}, {BROKEN}"


@pytest.mark.parametrize("name", FAULTS)
def test_one_broken_thing_costs_no_more_than_itself_and_is_seen(
    host: Host, whole: Samples, report: list[str], name: str
) -> None:
    fault = FAULTS[name]
    host.cover(fault.file, fault.cover)
    with host.exporter("ours") as daemon:
        found = measure(daemon)
        assert found.samples, "every scrape is answered"
        lost = check_loss(whole, found.samples, fault)
        seen = check_reported(found.samples, fault)
        assert daemon.log.count("Traceback") == 0
        times = first_collection(daemon), found.seconds
        report.append(row(name, "roce_exporter", len(lost), len(whole), *times, seen or NO_FAILURE[name]))
        assert daemon.stop() == 0


@pytest.mark.parametrize("name", [name for name in FAULTS if "hardware" not in name])
def test_node_exporter_loses_at_least_one_series_by_it_too(host: Host, report: list[str], name: str) -> None:
    """Mostly it loses those of the whole host: the report has the figures. It does not read hardware counters."""
    fault = FAULTS[name]
    (host.folder / "before").mkdir()
    with node_exporter(host.folder / "before", host.tree.root, host.inside.enter) as rival:
        before = of_infiniband(rival.scrape())
    assert {dict(labels)["device"] for _, labels in before} == {f"mlx5_{number}" for number in range(8)}
    host.cover(fault.file, fault.cover)
    with node_exporter(host.folder, host.tree.root, host.inside.enter) as rival:
        first, second = measure(rival, TIMEOUT), measure(rival, TIMEOUT)
        lost = before.keys() - of_infiniband(second.samples).keys()
        report.append(
            row(name, "node_exporter", len(lost), len(before), first.seconds, second.seconds, visible(second))
        )
        release(host)
    assert lost


def visible(rival: Measured) -> str:
    """How node_exporter shows the fault."""
    if not rival.samples:
        return "no reply: `up` 0 of the whole host"
    success = rival.samples[key("node_scrape_collector_success", collector="infiniband")]
    return "**nothing**" if success else "`node_scrape_collector_success` 0, no device named"


def release(host: Host) -> None:
    """Release a process that waits in open(2) of the FIFO, so that it can be ended."""
    try:
        os.close(os.open(host.folder / "broken-fifo", os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return


ONE_EACH = (
    "EINVAL of a port counter",
    "ENXIO of a port counter",
    "EIO of a hardware counter",
    "garbage in a port counter",
    "EINVAL of the port's state",
    "a hardware counter that never answers",
    "a state that never answers",
)


def test_every_device_broken_in_its_own_way_loses_only_its_own(host: Host, whole: Samples) -> None:
    """Seven faults on seven devices at once; the eighth is served completely."""
    faults = {f"mlx5_{number}": FAULTS[name] for number, name in enumerate(ONE_EACH)}
    for device, fault in faults.items():
        host.cover(fault.file.replace(BROKEN, device), fault.cover)
    with host.exporter("ours") as daemon:
        samples = daemon.scrape()
    lost: dict[str, set[str]] = {device: set() for device in faults}
    for name, labels in whole.keys() - own(samples).keys():
        lost[dict(labels)["device"]].add(name)  # otherwise mlx5_7 would be missing from the list
    for device, fault in faults.items():
        assert lost[device] == fault.lost if fault.lost else lost[device], device
        assert told(samples, "source_up", fault.source, device) == fault.up
    assert own(samples).items() <= whole.items()


def test_a_hung_read_adds_no_thread_with_every_scrape_and_comes_back(host: Host, whole: Samples) -> None:
    fault = FAULTS["a hardware counter that never answers"]
    host.cover(fault.file, fault.cover)
    with host.exporter("broken") as daemon:
        daemon.scrape()
        threads, descriptors = daemon.seen.num_threads(), daemon.seen.num_fds()
        for _ in range(10):
            assert told(daemon.scrape(), "source_up", "hw_counters") == 0
        assert daemon.seen.num_threads() <= threads + 1
        assert daemon.seen.num_fds() <= descriptors + 1
        host.uncover(fault.file)
        writer = os.open(host.folder / "broken-fifo", os.O_WRONLY)
        os.close(writer)
        wait_until(lambda: told(daemon.scrape(), "source_up", "hw_counters") == 1)
        # The FIFO's descriptor is still read in place of this file; every other file answers again.
        lost = {name for name, _ in whole.keys() - own(daemon.scrape()).keys()}
        assert lost <= CNP
        assert daemon.stop() == 0


def test_a_daemon_with_hung_reads_ends_on_sigterm(host: Host) -> None:
    """A thread that is blocked in the kernel delays neither the next scrape nor the end."""
    for number in range(8):
        host.cover(f"class/infiniband/mlx5_{number}/ports/1/hw_counters/np_cnp_sent", "fifo")
    with host.exporter("broken") as daemon:
        samples = daemon.scrape()
        assert [told(samples, "source_up", "hw_counters", f"mlx5_{number}") for number in range(8)] == [0] * 8
        assert len([name for name, _ in samples if name == "roce_port_up"]) == 8
        assert daemon.stop() == 0


def test_a_file_that_may_not_be_read_costs_itself(host: Host) -> None:
    """The kernel's EACCES, for a daemon without capabilities."""
    (host.tree.root / PORT / "hw_counters/np_cnp_sent").chmod(0)
    without = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--")
    with exporter(
        host.folder, f"--path.sysfs={host.tree.root}", prefix=(*host.inside.enter, *without)
    ) as daemon:
        samples = daemon.scrape()
        assert key("roce_cnp_sent_total", device=BROKEN, port="1") not in samples
        assert key("roce_cnp_sent_total", device="mlx5_4", port="1") in samples
        errors = told(samples, "read_errors_total", "hw_counters")
        assert errors is not None
        assert errors >= 1
        assert "EACCES" in daemon.log

"""The running daemon on a host whose files the kernel itself refuses: what is lost, and whether the loss is visible."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pytest
from chaos_daemon import Namespace, Samples, exporter, key, namespace
from host_tree import HostTree
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

FAULTS = (
    Fault(f"{PORT}/counters/port_rcv_data", "EINVAL", BYTES, "counters"),
    Fault(f"{PORT}/counters/port_rcv_data", "ENXIO", BYTES, "counters"),
    Fault(f"{PORT}/hw_counters/np_cnp_sent", "EIO", CNP, "hw_counters"),
    Fault(f"{PORT}/counters/port_rcv_data", "garbage", BYTES, "counters"),
    Fault(f"{PORT}/state", "EINVAL", STATE, "port"),
    Fault(f"{PORT}/hw_counters/np_cnp_sent", "fifo", frozenset(), "hw_counters", 0.0),
    Fault(f"{PORT}/state", "fifo", frozenset(), "port", 0.0),
)
"""One for each of seven devices. Where `lost` is empty, the source of the device is lost."""
HUNG = f"{PORT}/hw_counters/np_cnp_sent"


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
    strange = ("roce_exporter_", "roce_port_health", "process_", "python_", "roce_config_check")
    return {name: value for name, value in samples.items() if not name[0].startswith(strange)}


def told(samples: Samples, metric: str, source: str, device: str = BROKEN) -> float | None:
    return samples.get(key(f"roce_exporter_{metric}", source=source, device=device))


def test_every_device_broken_in_its_own_way_loses_only_its_own(host: Host, whole: Samples) -> None:
    """Seven faults on seven devices at once; the eighth is served completely."""
    faults = {f"mlx5_{number}": fault for number, fault in enumerate(FAULTS)}
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
        assert (told(samples, "read_errors_total", fault.source, device) or 0) >= 1
    assert own(samples).items() <= whole.items()
    assert told(samples, "read_errors_total", "counters", "mlx5_7") == 0
    assert "Traceback" not in daemon.log


def test_a_hung_read_adds_no_thread_with_every_scrape_and_comes_back(host: Host, whole: Samples) -> None:
    host.cover(HUNG, "fifo")
    with host.exporter("broken") as daemon:
        daemon.scrape()
        threads, descriptors = daemon.seen.num_threads(), daemon.seen.num_fds()
        for _ in range(10):
            assert told(daemon.scrape(), "source_up", "hw_counters") == 0
        assert daemon.seen.num_threads() <= threads + 1
        assert daemon.seen.num_fds() <= descriptors + 1
        host.uncover(HUNG)
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

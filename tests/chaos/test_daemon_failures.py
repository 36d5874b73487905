"""The running daemon on a host whose files the kernel itself refuses: what is lost, and whether the loss is visible."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pytest
from chaos_daemon import Namespace, Samples, exporter, key, namespace
from host_tree import HostTree

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


@dataclass(frozen=True, slots=True)
class Host:
    """Eight devices, in a mount namespace where files can be covered."""

    tree: HostTree
    inside: Namespace
    folder: Path

    def cover(self, path: str, kind: str) -> None:
        """Mount something broken over a file."""
        self.inside.mount_over(self.tree.root / path, self._broken(kind))

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

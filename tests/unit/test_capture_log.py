"""A capture of the kernel log has the messages about RDMA devices and nothing else, and replays to the same events."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pytest

from roce_exporter.kernel import Absent
from roce_exporter.kernel.kmsg import LogHiddenError, LogPart
from roce_exporter.recording.capture_log import MOST_KEPT, PART, kernel_log
from roce_exporter.recording.log_moments import RecordedLog, numbered
from roce_exporter.recording.scrub import Scrubber
from roce_exporter.simulation.kernel import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

TAGS = " SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n"
DOWN = f"6,7,1,-;mlx5_core 0000:3b:00.0 eth0: Link down\n{TAGS}"


class Host:
    """A host with these records in its log."""

    def __init__(self, records: Sequence[str], name: str = "gpu-17") -> None:
        self.records = [one.encode() for one in records]
        self.name = name
        self.closed = 0

    def open_kernel_log(self, *, oldest: bool) -> Any:
        assert oldest
        self.left = list(self.records)
        return self

    def read(self, most: int) -> LogPart:
        part, self.left = self.left[:most], self.left[most:]
        return LogPart(tuple(part), 0)

    def close(self) -> None:
        self.closed += 1

    def hostname(self) -> str:
        return self.name


def captured(host: Any) -> str:
    (text,) = kernel_log(host, Scrubber()).values()
    return text


def test_only_known_messages_of_the_kernel_are_captured() -> None:
    records = [
        "6,1,1,-;Linux version 7.3 (secret@build-host)\n",
        DOWN,
        "14,8,1,-;mlx5_core 0000:3b:00.0 eth0: Link down\n",
        "6,9,1,-;sshd[7]: accepted key of alice\n",
        "6,10,1,-;mlx5_core 0000:3b:00.0 eth0: renamed from eth9\n",
    ]
    host = Host(records)
    assert captured(host) == DOWN
    assert host.closed == 1


def test_addresses_and_the_name_of_the_host_are_replaced() -> None:
    text = "6,7,1,-;mlx5_core 0000:3b:00.0 gpu-17-rail: Link down 0c:42:a1:00:11:22\n"
    assert (
        captured(Host([text]))
        == "6,7,1,-;mlx5_core 0000:3b:00.0 host-001-rail: Link down 02:00:00:00:00:00\n"
    )


def test_the_newest_messages_are_kept() -> None:
    records = [f"6,{number},1,-;mlx5_core 0000:3b:00.0 eth0: Link up\n" for number in range(3 * PART)]
    numbers = [number for number, _ in numbered(captured(Host(records)).encode())]
    assert numbers == list(range(3 * PART - MOST_KEPT, 3 * PART))


def test_a_host_without_a_log_has_no_file() -> None:
    class Bare(Host):
        def open_kernel_log(self, *, oldest: bool) -> Any:
            raise Absent(errno.ENOENT, "no log")

    assert kernel_log(Bare([]), Scrubber()) == {}  # type: ignore[arg-type]


def test_a_log_that_may_not_be_read_is_an_error() -> None:
    class Hidden(Host):
        def open_kernel_log(self, *, oldest: bool) -> Any:
            raise LogHiddenError(errno.EPERM, "not permitted", "/dev/kmsg")

    with pytest.raises(LogHiddenError):
        kernel_log(Hidden([]), Scrubber())  # type: ignore[arg-type]


def test_what_is_captured_replays() -> None:
    """The lines of a simulated host, as its drivers write them."""
    time = [0.0]
    kernel = simulate("overheating", clock=lambda: time[0])
    time[0] = 200.0
    text = captured(kernel).encode()
    replayed = RecordedLog(lambda: text, oldest=True).read(100)
    assert replayed.records == kernel.open_kernel_log(oldest=True).read(100).records
    assert len(replayed.records) > 4
    assert replayed.thinned


def test_lines_that_are_no_record_are_skipped() -> None:
    content = b"garbage\n tag of garbage\n" + DOWN.encode() + b"\n6,8"
    assert list(numbered(content)) == [(7, DOWN.encode())]

"""`ethtool -S` by ioctl, against simulated kernels: sets that grow, wrong counts, arbitrary replies."""

import ctypes
import errno
import os
import struct

import pytest

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.ethtool_ioctl import (
    GPFLAGS,
    GSSET_INFO,
    GSTATS,
    GSTRINGS,
    GTUNABLE,
    MOST,
    SLACK,
    EthtoolIoctl,
)


class FakeKernel:
    """Answers as a kernel does that copies its current counters, whatever the caller announced."""

    def __init__(self, counters: dict[str, int]) -> None:
        self.counters = counters
        self.checks_count = False
        """Whether it returns n_stats 0 for an outdated count of the caller, as kernels do since 2026."""
        self.asked: list[int] = []
        self.then: dict[int, dict[str, int]] = {}
        """The counters after the query of this number."""

    def __call__(self, descriptor: int, request: int, argument: bytes) -> int:
        name, place = struct.unpack("16sP16x", argument)
        assert request == 0x8946
        if name.rstrip(b"\0") != b"eth0":
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        (command,) = struct.unpack("=I", ctypes.string_at(place, 4))
        answer = {GSSET_INFO: self.set_info, GSTRINGS: self.strings, GSTATS: self.statistics}[command](place)
        ctypes.memmove(place, answer, len(answer))
        self.asked.append(command)
        self.counters = self.then.pop(len(self.asked), self.counters)
        return 0

    def set_info(self, place: int) -> bytes:
        return struct.pack("=IIQI", GSSET_INFO, 0, 2 if self.counters else 0, len(self.counters))

    def strings(self, place: int) -> bytes:
        names = b"".join(name.encode().ljust(32, b"\0") for name in self.counters)
        return struct.pack("=III", GSTRINGS, 1, len(self.counters)) + names

    def statistics(self, place: int) -> bytes:
        (announced,) = struct.unpack("=4xI", ctypes.string_at(place, 8))
        if self.checks_count and announced != len(self.counters):
            return struct.pack("=II", GSTATS, 0)
        return struct.pack(f"=II{len(self.counters)}Q", GSTATS, len(self.counters), *self.counters.values())


def read(ethtool: EthtoolIoctl) -> tuple[tuple[str, ...], tuple[int, ...]]:
    names, values = ethtool.statistics("eth0")
    return names, tuple(values)


def many(count: int, prefix: str = "c") -> dict[str, int]:
    return {f"{prefix}{number}": number for number in range(count)}


def test_names_stay_the_same_object_and_values_are_those_of_their_own_reading() -> None:
    """The buffer serves the next network device; values that were read before must not change."""
    kernel = FakeKernel({"a": 1, "b": 2})
    ethtool = EthtoolIoctl(kernel)
    names, values = ethtool.statistics("eth0")
    kernel.counters = {"a": 5, "b": 6}
    again, later = ethtool.statistics("eth0")
    assert again is names
    assert (tuple(values), tuple(later)) == ((1, 2), (5, 6))


def test_names_that_change_without_changing_their_number_are_seen() -> None:
    """PFC moved from priority 3 to 4 on mlx5."""
    kernel = FakeKernel({"rx_prio3_pause": 1000})
    ethtool = EthtoolIoctl(kernel)
    assert read(ethtool) == (("rx_prio3_pause",), (1000,))
    kernel.counters = {"rx_prio4_pause": 7}
    assert read(ethtool) == (("rx_prio4_pause",), (7,))


@pytest.mark.parametrize("checks_count", [False, True])
@pytest.mark.parametrize("after", [1, 2])
@pytest.mark.parametrize("count", [3, 700, SLACK + 30])
def test_a_set_that_changes_between_two_queries_is_read_again(checks_count, after, count) -> None:
    """It may grow by as much as the slack: nothing is overwritten, and old names never pair with new values."""
    kernel = FakeKernel(many(40))
    kernel.checks_count = checks_count
    kernel.then = {after: many(count, "d")}
    names, values = EthtoolIoctl(kernel).statistics("eth0")
    assert dict(zip(names, values, strict=True)) == many(count, "d")
    assert len(kernel.asked) > 3


def test_a_set_that_always_changes_is_refused() -> None:
    kernel = FakeKernel(many(10))
    kernel.then = {number: many(10 + number) for number in range(1, 20)}
    with pytest.raises(OSError, match="changed 3 times") as caught:
        EthtoolIoctl(kernel).statistics("eth0")
    assert caught.value.errno == errno.EAGAIN


def test_a_driver_without_counters_is_absent() -> None:
    with pytest.raises(Absent):
        EthtoolIoctl(FakeKernel({})).statistics("eth0")


@pytest.mark.parametrize("name", ["eth1", "", "a" * 16, "a\0b"])
def test_a_missing_network_device_is_reported_as_such(name) -> None:
    with pytest.raises(OSError, match="No such device") as caught:
        EthtoolIoctl(FakeKernel(many(3))).statistics(name)
    assert caught.value.errno == errno.ENODEV
    assert not isinstance(caught.value, Absent)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EIO, errno.EINVAL, errno.EOPNOTSUPP])
def test_errors_of_the_kernel_are_reported_and_a_refused_question_is_absent(number) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, "whatever")

    with pytest.raises(OSError, match="eth0") as caught:
        EthtoolIoctl(refuse).statistics("eth0")
    assert isinstance(caught.value, Absent) is (number == errno.EOPNOTSUPP)
    assert caught.value.errno == number


def test_a_count_beyond_reason_is_refused() -> None:
    def mad(descriptor: int, request: int, argument: bytes) -> None:
        _, place = struct.unpack("16sP16x", argument)
        answer = struct.pack("=IIQI", GSSET_INFO, 0, 2, MOST + 1)
        ctypes.memmove(place, answer, len(answer))

    with pytest.raises(OSError, match="announces 65537 counters"):
        EthtoolIoctl(mad).statistics("eth0")


class SettingsKernel(FakeKernel):
    """Has three private flags, the first and the third on, and stops pause after 100 ms."""

    def __call__(self, descriptor: int, request: int, argument: bytes) -> int:
        _, place = struct.unpack("16sP16x", argument)
        (command,) = struct.unpack("=I", ctypes.string_at(place, 4))
        answers = {
            GSSET_INFO: struct.pack("=IIQI", GSSET_INFO, 0, 4, 3),
            GSTRINGS: struct.pack("=III", GSTRINGS, 2, 3)
            + b"".join(name.ljust(32, b"\0") for name in (b"rx_cqe_moder", b"dropless_rq", b"sniffer")),
            GPFLAGS: struct.pack("=II", GPFLAGS, 0b101),
            GTUNABLE: struct.pack("=IIIIH", GTUNABLE, 3, 2, 2, 100),
        }
        ctypes.memmove(place, answers[command], len(answers[command]))
        return 0


def test_private_flags_and_the_pfc_watchdogs_timeout() -> None:
    ethtool = EthtoolIoctl(SettingsKernel({}))
    assert ethtool.private_flags("eth0") == {"rx_cqe_moder": True, "dropless_rq": False, "sniffer": True}
    assert ethtool.pfc_prevention_timeout("eth0") == 100

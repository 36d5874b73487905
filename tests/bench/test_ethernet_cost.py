"""What a network device's private counters may cost: nothing for unmapped names, and few queries."""

import ctypes
import struct
from collections.abc import Callable

import pytest
from clock import Clock
from ethtool_names import MAPPED, Replay
from instructions import instructions

from roce_exporter.host.kernel.ethtool_ioctl import GSSET_INFO, GSTATS, GSTRINGS, NAMES_SECONDS, EthtoolIoctl
from roce_exporter.model import Device, DeviceReadings, Netdev, Port, Reading
from roce_exporter.normalise.normaliser import Normaliser

DEVICE = Device("mlx5_0", "mlx5_core", "mlx5", ports=(Port(1, "Ethernet", (Netdev("eth0", "port"),)),))


def names(unmapped: int) -> tuple[str, ...]:
    return (*MAPPED, *(f"queue{number}_thing" for number in range(unmapped)))


class Asked(Replay):
    """Counts the queries."""

    def __init__(self, told: tuple[str, ...]) -> None:
        super().__init__(told)
        self.questions: list[int] = []

    def __call__(self, descriptor: int, request: int, argument: bytes) -> int:
        (place,) = struct.unpack("16xP16x", argument)
        self.questions.append(struct.unpack("=I", ctypes.string_at(place, 4))[0])
        return super().__call__(descriptor, request, argument)


def read(unmapped: int) -> Callable[[], object]:
    """A read of a network device with `unmapped` names without a row, in a steady state."""
    ioctl, normaliser = EthtoolIoctl(Replay(names(unmapped))), Normaliser()

    def look() -> object:
        told, values = ioctl.statistics("eth0")
        reading = Reading("ethtool", "mlx5_0", 1, told, values, (), "eth0")
        return normaliser.normalise(DeviceReadings(DEVICE, (reading,)))

    look()
    return look


def test_unmapped_names_cost_no_instruction() -> None:
    assert instructions(read(4000)) == instructions(read(100))


def test_names_are_queried_at_every_read_by_default() -> None:
    asked = Asked(names(10))
    ioctl = EthtoolIoctl(asked)
    for _ in range(3):
        ioctl.statistics("eth0")
    assert asked.questions == [GSSET_INFO, GSTRINGS, GSTATS] * 3


def test_the_fast_loop_queries_names_once_a_second() -> None:
    asked, clock = Asked(names(10)), Clock()
    ioctl = EthtoolIoctl(asked, NAMES_SECONDS, clock)
    for _ in range(25):
        ioctl.statistics("eth0")
        clock.now += 0.125
    assert asked.questions.count(GSTATS) == 25
    assert asked.questions.count(GSTRINGS) == 4, "at 0, 1, 2 and 3 seconds"


def test_names_that_moved_are_seen_a_second_later() -> None:
    clock = Clock()
    ioctl = EthtoolIoctl(Replay(("rx_prio3_pause", "x")), NAMES_SECONDS, clock)
    before, _ = ioctl.statistics("eth0")
    ioctl._ioctl = Replay(("rx_prio4_pause", "x"))
    assert ioctl.statistics("eth0")[0] is before
    clock.now += NAMES_SECONDS
    assert ioctl.statistics("eth0")[0] == ("rx_prio4_pause", "x")


@pytest.mark.parametrize("told", [("a",), ("a", "b", "c")])
def test_a_changed_number_of_names_is_queried_at_once(told) -> None:
    ioctl = EthtoolIoctl(Replay(("a", "b")), NAMES_SECONDS, Clock())
    ioctl.statistics("eth0")
    ioctl._ioctl = Replay(told)
    assert ioctl.statistics("eth0")[0] == told


def test_alike_network_devices_share_their_names() -> None:
    ioctl = EthtoolIoctl(Replay(names(10)))
    assert ioctl.statistics("eth0")[0] is ioctl.statistics("eth1")[0]

"""Limits through uverbs: the requests, and what becomes of replies and refusals. tests/lab/guest/test_limits.py has a kernel."""

import ctypes
import errno
import os
import struct

import pytest
from descriptors import open_below
from netlink_dumps import FakeKernel, refusal

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.netlink import Message, encode_attribute, encode_message
from roce_exporter.host.kernel.rdma_netlink import RdmaNetlink
from roce_exporter.host.kernel.uverbs import (
    GET_CHARDEV,
    CharacterDevice,
    find_character_device,
    open_character_device,
    read_limits,
)
from roce_exporter.model import RdmaDevice

DEVICE = RdmaDevice(3, "mlx5_0", "0000:0000:0000:0001", "roce", "28.1")
MLX5, BNXT, IRDMA, HFI1, RXE, SIW, IONIC = 1, 6, 9, 15, 14, 18, 21
EVENTS = 77


class Uverbs:
    """A uverbs device as the kernel implements it: the reply is written to the address in the request."""

    def __init__(self, limits: tuple[int, int, int] = (131072, 65536, 1048576), failing: int = -1) -> None:
        self.limits = limits
        self.failing = failing
        self.requests: list[tuple[int, int, bytes]] = []
        self.closed = 0

    def write(self, request: bytes, /) -> int:
        command, words, reply_words, address = struct.unpack_from("=IHHQ", request)
        assert words * 4 == len(request)
        if command == self.failing:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self.requests.append((command, reply_words * 4, request[16:]))
        reply = bytearray(reply_words * 4)
        if command == 0:
            struct.pack_into("=II", reply, 0, EVENTS, 1)
        else:
            # struct ib_uverbs_query_device_resp: five u64, and max_qp, max_cq and max_mr among 32 u32
            numbers = [0] * 32
            numbers[3], numbers[8], numbers[10] = self.limits
            struct.pack_into("=QQQQQ32IHBB", reply, 0, *[1] * 5, *numbers, 1, 2, 3)
        ctypes.memmove(address, bytes(reply), len(reply))
        return len(request)

    def close(self) -> None:
        self.closed += 1


def limits_of(file: Uverbs, driver: int = MLX5, abi: int = 1) -> tuple[dict[str, int], list[int]]:
    ended: list[int] = []
    netlink = RdmaNetlink(FakeKernel(lambda _: [chardev(driver=driver, abi=abi)]))
    found = read_limits(netlink, DEVICE, lambda _: file, ended.append)
    return found, ended


def test_limits_are_those_of_the_device_and_the_context_is_closed() -> None:
    """The descriptor for events, which comes with the context, is closed too: nothing may be left."""
    file = Uverbs()
    assert limits_of(file) == ({"max_qp": 131072, "max_cq": 65536, "max_mr": 1048576}, [EVENTS])
    assert [(command, size) for command, size, _ in file.requests] == [(0, 512), (1, 176)]
    assert file.closed == 1
    assert limits_of(Uverbs((100, 0, 300)))[0] == {"max_qp": 100, "max_mr": 300}, "0 is left out"


@pytest.mark.parametrize(
    ("driver", "abi", "data"),
    [
        (MLX5, 1, "01000000" + "00" * 20 + "0300000000000000"),
        (BNXT, 1, ""),
        (IRDMA, 5, "00000000" + "05000000" + "0800000000000000"),
        (RXE, 2, ""),
        (SIW, 1, ""),
        (IONIC, 1, "00" * 8),
    ],
)
def test_each_driver_gets_the_request_of_its_header(driver, abi, data) -> None:
    """include/uapi/rdma: mlx5-abi.h, irdma-abi.h, ionic-abi.h; bnxt_re, rxe and siw need no data of their own."""
    file = Uverbs()
    limits_of(file, driver, abi)
    assert [request.hex() for _, _, request in file.requests] == [data, ""]


@pytest.mark.parametrize(("driver", "abi"), [(HFI1, 6), (MLX5, 2), (RXE, 1)])
def test_a_driver_whose_format_is_not_known_is_not_opened(driver, abi) -> None:
    file = Uverbs()
    with pytest.raises(Absent, match="GET_CONTEXT"):
        limits_of(file, driver, abi)
    assert (file.requests, file.closed) == ([], 0)


@pytest.mark.parametrize("command", [0, 1])
def test_a_refused_request_closes_the_device(command) -> None:
    file = Uverbs(failing=command)
    with pytest.raises(OSError, match="Invalid argument"):
        limits_of(file)
    assert file.closed == 1


def chardev(minor: int = 192, without: int = 0, driver: int = MLX5, abi: int = 1) -> bytes:
    """A reply to GET_CHARDEV (constructed from rdma_netlink.h)."""
    number = minor & 0xFF | 231 << 8 | (minor & ~0xFF) << 12
    attributes = {
        1: struct.pack("=I", 3),
        70: b"uverbs0\0",
        71: struct.pack("=Q", abi),
        73: struct.pack("=I", driver),
    }
    attributes |= {72: struct.pack("=Q", number)}
    payload = b"".join(encode_attribute(kind, value) for kind, value in attributes.items() if kind != without)
    return encode_message(Message(GET_CHARDEV, 0, 0, 0, payload))


@pytest.mark.parametrize("minor", [192, 300])
def test_netlink_names_the_device_and_its_driver(minor) -> None:
    kernel = FakeKernel(lambda _: [chardev(minor)])
    assert find_character_device(RdmaNetlink(kernel), DEVICE) == CharacterDevice(
        "uverbs0", (231, minor), 1, MLX5
    )
    (asked,) = kernel.asked
    assert asked.kind == GET_CHARDEV == 5 << 10 | 15
    assert asked.payload == encode_attribute(1, struct.pack("=I", 3)) + encode_attribute(69, b"uverbs\0")


@pytest.mark.parametrize(
    ("reply", "number", "text"),
    [
        (refusal(errno.ENOENT), None, "ib_uverbs"),
        (refusal(errno.EPERM), errno.EPERM, "Errno 1"),
        (chardev(without=73), errno.EBADMSG, "no attribute 73"),
    ],
)
def test_a_device_that_netlink_does_not_name(reply, number, text) -> None:
    kernel = FakeKernel(lambda _: [reply])
    with pytest.raises(OSError, match=text) as caught:
        find_character_device(RdmaNetlink(kernel), DEVICE)
    assert isinstance(caught.value, Absent) is (number is None)
    assert number in (None, caught.value.errno)


def test_only_the_right_device_is_opened_written_to_and_closed(tmp_path) -> None:
    """A container may have a node of that name for another device. The option is set, so a missing one is broken."""
    place = CharacterDevice("uverbs0", (231, 192), 1, MLX5)
    with pytest.raises(FileNotFoundError) as caught:
        open_character_device(place, str(tmp_path))
    assert not isinstance(caught.value, Absent)
    (tmp_path / "uverbs0").write_text("")
    with pytest.raises(OSError, match="is not the uverbs device 231:192"):
        open_character_device(place, str(tmp_path))
    assert open_below(tmp_path) == []
    number = os.stat("/dev/null").st_rdev
    null = CharacterDevice("null", (os.major(number), os.minor(number)), 1, MLX5)
    file = open_character_device(null, "/dev")
    assert file.write(b"four") == 4
    file.close()

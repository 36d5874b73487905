"""Limits through uverbs: the requests, and what becomes of replies and refusals. tests/lab/guest/test_limits.py has a kernel."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import TYPE_CHECKING, Any

import pytest
from descriptors import open_descriptors

from roce_exporter.kernel import Absent
from roce_exporter.kernel.netlink import Refused, encode_attribute
from roce_exporter.kernel.uverbs import (
    CharacterDevice,
    find_character_device,
    open_character_device,
    read_limits,
)
from roce_exporter.model import RdmaDevice

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DEVICE = RdmaDevice(3, "mlx5_0", "0000:0000:0000:0001", "roce", "28.1")
MLX5, BNXT, IRDMA, HFI1, RXE, SIW, IONIC = 1, 6, 9, 15, 14, 18, 21
EVENTS = 77


def place(driver: int, abi: int) -> CharacterDevice:
    return CharacterDevice("uverbs0", (231, 192), abi, driver)


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
    found = read_limits(DEVICE, lambda _: place(driver, abi), lambda _: file, ended.append)
    return found, ended


def test_limits_are_those_of_the_device_and_the_context_is_closed() -> None:
    """The descriptor for events, which comes with the context, is closed too: nothing may be left."""
    file = Uverbs()
    assert limits_of(file) == ({"max_qp": 131072, "max_cq": 65536, "max_mr": 1048576}, [EVENTS])
    assert [(command, size) for command, size, _ in file.requests] == [(0, 512), (1, 176)]
    assert file.closed == 1


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
def test_each_driver_gets_the_request_of_its_header(driver: int, abi: int, data: str) -> None:
    """include/uapi/rdma: mlx5-abi.h, irdma-abi.h, ionic-abi.h; bnxt_re, rxe and siw need no data of their own."""
    file = Uverbs()
    limits_of(file, driver, abi)
    assert [request.hex() for _, _, request in file.requests] == [data, ""]


@pytest.mark.parametrize(("driver", "abi"), [(HFI1, 6), (MLX5, 2), (RXE, 1)])
def test_a_driver_whose_format_is_not_known_is_not_opened(driver: int, abi: int) -> None:
    file = Uverbs()
    with pytest.raises(Absent, match="GET_CONTEXT"):
        limits_of(file, driver, abi)
    assert (file.requests, file.closed) == ([], 0)


@pytest.mark.parametrize("command", [0, 1])
def test_a_refused_request_closes_the_device(command: int) -> None:
    file = Uverbs(failing=command)
    with pytest.raises(OSError, match="Invalid argument"):
        limits_of(file)
    assert file.closed == 1


def test_a_limit_that_the_driver_reports_as_zero_is_left_out() -> None:
    assert limits_of(Uverbs((100, 0, 300)))[0] == {"max_qp": 100, "max_mr": 300}


class Answer:
    """A netlink socket with one reply."""

    def __init__(self, answer: Sequence[bytes] | OSError) -> None:
        self.answer = answer
        self.asked: list[tuple[int, bytes]] = []
        self.closed = 0

    def request(self, kind: int, payload: bytes) -> list[bytes]:
        self.asked.append((kind, payload))
        if isinstance(self.answer, OSError):
            raise self.answer
        return list(self.answer)

    def close(self) -> None:
        self.closed += 1


def chardev(minor: int = 192) -> list[tuple[int, bytes]]:
    """The attributes of a reply to GET_CHARDEV (constructed from rdma_netlink.h)."""
    number = minor & 0xFF | 231 << 8 | (minor & ~0xFF) << 12
    return [
        (1, struct.pack("=I", 3)),
        (70, b"uverbs0\0"),
        (71, struct.pack("=Q", 1)),
        (72, struct.pack("=Q", number)),
        (73, struct.pack("=I", 1)),
    ]


def found_in(answer: Any) -> CharacterDevice:
    return find_character_device(DEVICE, answer)


@pytest.mark.parametrize("minor", [192, 300])
def test_netlink_names_the_device_and_its_driver(minor: int) -> None:
    answer = Answer([b"".join(encode_attribute(*one) for one in chardev(minor))])
    assert found_in(answer) == CharacterDevice("uverbs0", (231, minor), 1, MLX5)
    assert answer.asked == [
        (5 << 10 | 15, encode_attribute(1, struct.pack("=I", 3)) + encode_attribute(69, b"uverbs\0"))
    ]
    assert answer.closed == 1


def test_without_a_uverbs_device_limits_are_absent() -> None:
    answer = Answer(Refused(errno.ENOENT, "refused"))
    with pytest.raises(Absent, match="ib_uverbs"):
        found_in(answer)
    assert answer.closed == 1


def test_a_refusal_of_another_kind_is_a_failure() -> None:
    with pytest.raises(PermissionError):
        found_in(Answer(PermissionError(errno.EPERM, "no")))


def test_a_reply_without_a_driver_is_malformed() -> None:
    answer = Answer([b"".join(encode_attribute(*one) for one in chardev()[:-1])])
    with pytest.raises(OSError, match="no attribute 73") as caught:
        found_in(answer)
    assert caught.value.errno == errno.EBADMSG


def test_a_device_that_is_another_one_is_not_used(tmp_path: Path) -> None:
    """A container may have a node of that name for another device."""
    (tmp_path / "uverbs0").write_text("")
    descriptors = open_descriptors()
    with pytest.raises(OSError, match="is not the uverbs device 231:192"):
        open_character_device(place(MLX5, 1), str(tmp_path))
    assert open_descriptors() == descriptors


def test_an_opened_device_is_written_to_and_closed() -> None:
    number = os.stat("/dev/null").st_rdev
    null = CharacterDevice("null", (os.major(number), os.minor(number)), 1, MLX5)
    descriptors = open_descriptors()
    file = open_character_device(null, "/dev")
    assert file.write(b"four") == 4
    file.close()
    assert open_descriptors() == descriptors


def test_a_missing_device_is_broken_not_absent(tmp_path: Path) -> None:
    """The option is set, so the user expects the limits."""
    with pytest.raises(FileNotFoundError) as caught:
        open_character_device(place(MLX5, 1), str(tmp_path))
    assert not isinstance(caught.value, Absent)

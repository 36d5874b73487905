"""The limits of an RDMA device through uverbs: how many queue pairs, completion queues and memory regions it can have.

Follows include/uapi/rdma/ib_user_verbs.h: GET_CONTEXT, then QUERY_DEVICE, both written to /dev/infiniband/uverbsN, as
`ibv_devinfo` does. The kernel replies to QUERY_DEVICE only in a user context. Opening one is not only a read: mlx5 allocates
a transport domain in its firmware, and a second context enables loopback on the port until it is closed. So this is done by
an option alone, once per device, and the context is closed at once.

What GET_CONTEXT expects differs by driver and is known for those in `DRIVERS` (include/uapi/rdma/*-abi.h).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable
from io import FileIO
from typing import NamedTuple, Protocol

from roce_exporter.host.kernel import Absent, netlink, rdma_netlink
from roce_exporter.host.kernel.names import decode_name
from roce_exporter.model import RdmaDevice

FOLDER = "/dev/infiniband"
GET_CHARDEV = rdma_netlink.NLDEV | 15
"""RDMA_NLDEV_CMD_GET_CHARDEV, Linux 5.1: the character device of an RDMA device, and its driver."""
CHARDEV_TYPE, CHARDEV_NAME, CHARDEV_ABI, CHARDEV, DRIVER_ID = 69, 70, 71, 72, 73
GET_CONTEXT = 0
QUERY_DEVICE = 1
_HEADER = struct.Struct("=IHH")
"""`struct ib_uverbs_cmd_hdr`: command, length of the request and of the reply in words of four bytes."""
_ADDRESS = struct.Struct("=Q")  # where the kernel writes the reply
_WORD = 4
CONTEXT_BYTES = 512  # more than any driver's reply to GET_CONTEXT
DEVICE_BYTES = 176  # size of `struct ib_uverbs_query_device_resp`
LIMITS = {"max_qp": 52, "max_cq": 72, "max_mr": 80}
"""Name as `ibv_devinfo` prints it, and offset in that structure."""


class ContextRequest(NamedTuple):
    """What a driver expects in GET_CONTEXT."""

    driver: str
    abi: int
    """The version of the driver's own format, `uverbs_abi_ver`."""
    request: bytes = b""


DRIVERS = {
    # struct mlx5_ib_alloc_ucontext_req_v2: one doorbell register, which with the capability DYN_UAR is not allocated.
    1: ContextRequest("mlx5", 1, struct.pack("=IIIIBBHIQ", 1, 0, 0, 0, 0, 0, 0, 0, 3)),
    6: ContextRequest("bnxt_re", 1),
    # struct irdma_alloc_ucontext_req: version 5; the third generation requires the bit WQE_FORMAT_V2.
    9: ContextRequest("irdma", 5, struct.pack("=IB3xQ", 0, 5, 1 << 3)),
    14: ContextRequest("rxe", 2),
    18: ContextRequest("siw", 1),
    21: ContextRequest("ionic", 1, bytes(8)),
}
"""By `enum rdma_driver_id` of include/uapi/rdma/ib_user_ioctl_verbs.h."""


class CharacterDevice(NamedTuple):
    """The uverbs device of an RDMA device, as RDMA netlink reports it."""

    name: str
    number: tuple[int, int]
    """Major and minor."""
    abi: int
    driver: int


class UverbsFile(Protocol):
    """An open uverbs device."""

    def write(self, request: bytes, /) -> int:
        """Send a request; the kernel has written the reply when this returns. OSError: the kernel or the driver refuses."""

    def close(self) -> None:
        """Close the device, which ends the context."""


def read_limits(
    rdma: rdma_netlink.RdmaNetlink,
    device: RdmaDevice,
    open_file: Callable[[CharacterDevice], UverbsFile] | None = None,
    close_events: Callable[[int], None] = os.close,
) -> dict[str, int]:
    """The limits of a device, by the names of `LIMITS`; those that the driver reports as 0 are left out.

    Raises:
        Absent: the format of the driver is not known here, or the device has no uverbs device.
        OSError: the uverbs device cannot be opened, or the driver refuses.
    """
    place = find_character_device(rdma, device)
    known = DRIVERS.get(place.driver)
    if known is None or known.abi != place.abi:
        raise Absent(errno.EOPNOTSUPP, "the format of GET_CONTEXT of this driver is not known", device.name)
    file = (open_file or open_character_device)(place)
    try:
        context = _exchange(file, GET_CONTEXT, CONTEXT_BYTES, known.request)
        close_events(struct.unpack_from("=I", context)[0])
        attributes = _exchange(file, QUERY_DEVICE, DEVICE_BYTES)
    finally:
        file.close()
    found = {name: struct.unpack_from("=I", attributes, offset)[0] for name, offset in LIMITS.items()}
    return {name: most for name, most in found.items() if most}


def _exchange(file: UverbsFile, command: int, size: int, driver_data: bytes = b"") -> bytes:
    reply = ctypes.create_string_buffer(size)
    length = _HEADER.size + _ADDRESS.size + len(driver_data)
    header = _HEADER.pack(command, length // _WORD, size // _WORD)
    file.write(header + _ADDRESS.pack(ctypes.addressof(reply)) + driver_data)
    return reply.raw


def find_character_device(rdma: rdma_netlink.RdmaNetlink, device: RdmaDevice) -> CharacterDevice:
    """The uverbs device of an RDMA device.

    Raises:
        Absent: it has none, or the kernel is older than 5.1.
        OSError: netlink fails, or the reply is malformed.
    """
    request = rdma_netlink.encode_device(device) + netlink.encode_attribute(CHARDEV_TYPE, b"uverbs\0")
    wanted = (CHARDEV_NAME, CHARDEV, CHARDEV_ABI, DRIVER_ID)

    def decode(answers: list[bytes]) -> list[bytes]:
        values = netlink.decode_values(netlink.only_payload(answers))
        return [netlink.required(values, kind) for kind in wanted]

    try:
        name, *numbers = rdma.request(GET_CHARDEV, request, decode)
    except netlink.Refused as error:
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOENT, errno.ENODEV):
            raise Absent(error.errno, "no uverbs device (is ib_uverbs loaded?)", device.name) from None
        raise
    number, abi, driver = map(netlink.decode_number, numbers)
    # The kernel's huge_encode_dev (include/linux/kdev_t.h).
    major, minor = number >> 8 & 0xFFF, number & 0xFF | number >> 12 & 0xFFF00
    return CharacterDevice(decode_name(name), (major, minor), abi, driver)


def open_character_device(place: CharacterDevice, folder: str = FOLDER) -> UverbsFile:
    """Open a uverbs device. It accepts requests only from the thread's own credentials.

    Raises:
        OSError: it is not there (a container without the device, systemd's `PrivateDevices=`), may not be opened, or is
            another one: ENXIO.
    """
    descriptor = os.open(f"{folder}/{os.path.basename(place.name)}", os.O_RDWR | os.O_CLOEXEC)
    number = os.fstat(descriptor).st_rdev
    if (os.major(number), os.minor(number)) != place.number:
        os.close(descriptor)
        raise OSError(
            errno.ENXIO, f"is not the uverbs device {place.number[0]}:{place.number[1]}", place.name
        )
    return FileIO(descriptor, "r+")

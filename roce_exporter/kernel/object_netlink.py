"""RDMA objects of one device by RDMA netlink: contexts, completion queues, memory regions, queue pairs, connections.

Follows include/uapi/rdma/rdma_netlink.h and `res_get_common_dumpit` in drivers/infiniband/core/nldev.c. Names of types
and states are those that iproute2's `rdma resource` prints. Needs no privilege.

The process ID is that of the *thread* that created the object (`rdma_restrack_attach_task` in restrack.c), in the PID
namespace of this process. It is missing if that thread ended, or if this namespace does not contain it.
"""

from __future__ import annotations

import errno
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address
from socket import AF_INET, AF_INET6
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.kernel import Absent
from roce_exporter.kernel.names import decode_name
from roce_exporter.kernel.netlink import (
    Malformed,
    NetlinkSocket,
    Refused,
    decode_attributes,
    decode_number,
    decode_values,
    open_kernel_socket,
)
from roce_exporter.kernel.paced_dump import PacedDump
from roce_exporter.kernel.rdma_netlink import (
    NETLINK_RDMA,
    NLDEV,
    PORT_INDEX,
    RdmaNetlink,
    check_device,
    encode_device,
    explain_socket_error,
)
from roce_exporter.owner_model import ObjectKind, RdmaObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from roce_exporter.model import RdmaDevice

RES_LQPN = 21
RES_RQPN = 22
RES_TYPE = 26
RES_STATE = 27
RES_PID = 28
RES_KERN_NAME = 29
RES_DST_ADDR = 34
RES_MRLEN = 45

PART_BYTES = 8192
"""Size of a part: about 90 queue pairs."""

MOST_EMPTY_PARTS = 8
"""The kernel repeats an empty part endlessly if an object does not fit into it."""

QUEUE_PAIR_TYPES = (
    "SMI",
    "GSI",
    "RC",
    "UC",
    "UD",
    "RAW_IPV6",
    "RAW_ETHERTYPE",
    "UNKNOWN",
    "RAW_PACKET",
    "XRC_INI",
    "XRC_TGT",
)
"""enum ib_qp_type of include/rdma/ib_verbs.h."""

DRIVER_TYPE = 0xFF
"""IB_QPT_DRIVER: EFA's SRD, mlx5's DCI and DCT."""

QUEUE_PAIR_STATES = ("RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR")
"""enum ib_qp_state of include/rdma/ib_verbs.h."""

CONNECTION_STATES = (
    "IDLE",
    "ADDR_QUERY",
    "ADDR_RESOLVED",
    "ROUTE_QUERY",
    "ROUTE_RESOLVED",
    "CONNECT",
    "DISCONNECT",
    "ADDR_BOUND",
    "LISTEN",
    "DEVICE_REMOVAL",
    "DESTROYING",
)
"""enum rdma_cm_state of drivers/infiniband/core/cma_priv.h."""

UNKNOWN = "UNKNOWN"

_ADDRESSES: Mapping[int, tuple[int, int]] = {AF_INET: (4, 4), AF_INET6: (8, 16)}
"""Family to offset and length of the address in its sockaddr."""


class Listing(NamedTuple):
    """The numbers of one kind of list: its command, its table, an entry of the table."""

    command: int
    table: int
    entry: int


LISTINGS = {
    ObjectKind.QUEUE_PAIR: Listing(NLDEV | 10, 19, 20),
    ObjectKind.CONNECTION: Listing(NLDEV | 11, 30, 31),
    ObjectKind.COMPLETION_QUEUE: Listing(NLDEV | 12, 35, 36),
    ObjectKind.MEMORY_REGION: Listing(NLDEV | 13, 40, 41),
    ObjectKind.CONTEXT: Listing(NLDEV | 22, 86, 87),
}

_STATES = {ObjectKind.QUEUE_PAIR: QUEUE_PAIR_STATES, ObjectKind.CONNECTION: CONNECTION_STATES}


def decode_entries(answer: bytes, listing: Listing, device: RdmaDevice) -> Iterator[dict[int, bytes]]:
    """The attributes of each entry of a message, in the kernel's order.

    Raises:
        Malformed: the message violates the format.
        OSError: ENODEV, the message is for another device.
    """
    check_device(decode_values(answer), device)
    for kind, start, end in decode_attributes(answer):
        if kind != listing.table:
            continue
        for entry, entry_start, entry_end in decode_attributes(answer, start, end):
            if entry == listing.entry:
                yield decode_values(answer, entry_start, entry_end)


def decode_object(values: Mapping[int, bytes], kind: ObjectKind) -> RdmaObject:
    """The object of one entry.

    Raises:
        Malformed: a number has an unknown width, or the address is too short.
    """
    return RdmaObject(
        kind,
        pid=_number(values, RES_PID),
        kernel=decode_name(values.get(RES_KERN_NAME, b"")),
        port=_number(values, PORT_INDEX),
        number=_number(values, RES_LQPN),
        remote=_number(values, RES_RQPN),
        type=type_name(values[RES_TYPE]) if RES_TYPE in values else "",
        state=_state_name(values[RES_STATE], _STATES.get(kind, ())) if RES_STATE in values else "",
        size=_number(values, RES_MRLEN),
        peer=decode_address(values.get(RES_DST_ADDR, b"")),
    )


def type_name(value: bytes) -> str:
    """The type of a queue pair as `rdma` prints it; UNKNOWN for one that it does not know.

    Raises:
        Malformed: the number has an unknown width.
    """
    number = decode_number(value)
    if number == DRIVER_TYPE:
        return "DRIVER"
    return QUEUE_PAIR_TYPES[number] if number < len(QUEUE_PAIR_TYPES) else UNKNOWN


def decode_address(raw: bytes) -> str:
    """The IP address in a struct sockaddr_storage; empty for other families and for the unspecified address.

    An IPv4-mapped IPv6 address is written as IPv4: a dual-stack program has the same peers as any other.

    Raises:
        Malformed: it is too short.
    """
    if not raw:
        return ""
    start, length = _ADDRESSES.get(int.from_bytes(raw[:2], sys.byteorder), (0, 0))
    found = raw[start : start + length]
    if len(found) != length:
        raise Malformed(f"an address of {len(raw)} bytes")
    return _text_of(ip_address(found)) if length else ""


def _text_of(address: IPv4Address | IPv6Address) -> str:
    if address.is_unspecified:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def _state_name(value: bytes, names: tuple[str, ...]) -> str:
    number = decode_number(value)
    return names[number] if number < len(names) else UNKNOWN


def _number(values: Mapping[int, bytes], kind: int) -> int:
    return decode_number(values[kind]) if kind in values else 0


class ObjectDump:
    """The objects of one kind and device, part by part. Not thread-safe."""

    def __init__(
        self,
        rdma: Callable[[], RdmaNetlink],
        device: RdmaDevice,
        kind: ObjectKind,
        open_socket: Callable[[int], NetlinkSocket] = open_kernel_socket,
    ) -> None:
        """Open the list and read its first part, because only the first reply shows whether the kernel has the command.

        `rdma` returns the calling thread's own connection; it explains errors.

        Raises:
            Absent: the kernel does not list this kind: queue pairs before 4.16, contexts before 5.12.
            OSError: netlink or the driver fails; ENODEV: the device was removed.
        """
        self._rdma = rdma
        self._device = device
        self._kind = kind
        self._listing = LISTINGS[kind]
        self._empty_parts = 0
        self._known = False
        self._dump = _open_dump(self._listing.command, device, open_socket)
        self._first = self._read()
        self._known = True

    def next_part(self) -> tuple[RdmaObject, ...] | None:
        first, self._first = self._first, None
        return self._read() if first is None else first

    def close(self) -> None:
        self._first = None
        self._dump.close()

    def _read(self) -> tuple[RdmaObject, ...] | None:
        try:
            payloads = self._dump.next_part()
            return None if payloads is None else self._decode(payloads)
        except Refused as error:
            raise self._explain(error) from None
        except BaseException:
            self._dump.close()
            raise

    def _decode(self, payloads: list[bytes]) -> tuple[RdmaObject, ...]:
        part = tuple(
            decode_object(values, self._kind)
            for payload in payloads
            for values in decode_entries(payload, self._listing, self._device)
        )
        self._empty_parts = 0 if part else self._empty_parts + 1
        if self._empty_parts >= MOST_EMPTY_PARTS:
            raise OSError(
                errno.EMSGSIZE, "an object is larger than a part of the kernel's list", self._device.name
            )
        return part

    def _explain(self, error: Refused) -> OSError:
        missing = f"this kernel does not list objects of kind {self._kind.value}"
        found = self._rdma().explain(error, self._device, missing)
        if isinstance(found, Absent) and self._has_command(error):
            return OSError(error.errno, "the driver failed to report an object", self._device.name)
        return found

    def _has_command(self, error: Refused) -> bool:
        # Only queue pairs make the kernel query the driver, whose EINVAL also means that the command is unknown.
        # Kernels got their list together with the count of objects.
        if self._known or error.errno != errno.EINVAL or self._kind is not ObjectKind.QUEUE_PAIR:
            return self._known
        try:
            self._rdma().resources(self._device)
        except Absent:
            return False
        return True


def _open_dump(command: int, device: RdmaDevice, open_socket: Callable[[int], NetlinkSocket]) -> PacedDump:
    try:
        return PacedDump(NETLINK_RDMA, command, encode_device(device), PART_BYTES, open_socket)
    except OSError as error:
        raise explain_socket_error(error) from None

"""RDMA objects of one device by RDMA netlink: contexts, completion queues, memory regions, queue pairs, connections, counter sets.

Follows include/uapi/rdma/rdma_netlink.h and `res_get_common_dumpit` in drivers/infiniband/core/nldev.c. Names of types
and states are those that iproute2's `rdma resource` prints. Needs no privilege.

A list is read at the pace of the caller: the kernel produces a part while the part before is received (netlink_recvmsg and
netlink_dump in net/netlink/af_netlink.c), so a caller that waits between parts decides how fast a driver is queried.

The process ID is that of the *thread* that created the object (`rdma_restrack_attach_task` in restrack.c), in the PID
namespace of this process. It is missing if that thread ended, or if this namespace does not contain it.

Counter sets are hardware counters that are bound to queue pairs, per process, per type, or by hand (`fill_res_counter_entry` and
`stat_get_doit_qp` in nldev.c, counters.c next to it). The values of a set are part of the port's own counters, too, so the
two must never be added.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from socket import AF_INET, AF_INET6
from typing import Generic, NamedTuple, TypeVar

from roce_exporter.host.kernel import Absent, netlink, rdma_netlink
from roce_exporter.host.kernel.names import decode_name
from roce_exporter.model import RdmaDevice
from roce_exporter.model.ip import unmapped
from roce_exporter.model.owner import CounterSet, ObjectKind, RdmaObject
from roce_exporter.words import word_list

ONLY_SEQUENCE = 1  # the sequence number on a socket that is used for one request
T = TypeVar("T")
MOST_EMPTY_PARTS = 8
"""The kernel repeats an empty part endlessly if an object does not fit into it."""


class Listing(NamedTuple):
    """The numbers of one kind of list: its command, its table, an entry of the table."""

    command: int
    table: int
    entry: int


def decode_entries(answer: bytes, listing: Listing, device: RdmaDevice) -> Iterator[dict[int, bytes]]:
    """The attributes of each entry of a message, in the kernel's order."""
    rdma_netlink.check_device(netlink.decode_values(answer), device)
    for kind, start, end in netlink.decode_attributes(answer):
        if kind == listing.table:
            for entry, entry_start, entry_end in netlink.decode_attributes(answer, start, end):
                if entry == listing.entry:
                    yield netlink.decode_values(answer, entry_start, entry_end)


class EntryDump(Generic[T]):
    """One list of a device, a datagram per part, on a socket of its own. Not thread-safe.

    The flag of a list that changed meanwhile is ignored. The socket is closed at the end of the list, after any error,
    and by `close`.
    """

    def __init__(
        self,
        rdma: Callable[[], rdma_netlink.RdmaNetlink],
        device: RdmaDevice,
        listing: Listing,
        *,
        selection: bytes,
        decode: Callable[[Mapping[int, bytes]], T],
        part_bytes: int,
        open_socket: netlink.OpenSocket,
    ) -> None:
        """Open the list and read its first part: only the first reply shows whether the kernel has the command.

        `rdma` returns the calling thread's own connection; it explains errors. `selection` is the request's attributes.

        Raises:
            Absent: the kernel does not have this list.
            OSError: netlink or the driver fails; ENODEV: the device was removed.
        """
        self._rdma = rdma
        self._device = device
        self._listing = listing
        self._decode = decode
        self._empty_parts = 0
        self._is_known = False
        self._first: tuple[T, ...] | None = None
        self._buffer = bytearray(part_bytes)
        self._wire: netlink.NetlinkSocket | None = None
        try:
            wire = self._wire = open_socket(rdma_netlink.NETLINK_RDMA)
            self._answer = netlink.Reply(ONLY_SEQUENCE, wire.getsockname()[0])
            flags = netlink.REQUEST | netlink.DUMP
            wire.send(
                netlink.encode_message(netlink.Message(listing.command, flags, ONLY_SEQUENCE, 0, selection))
            )
        except OSError as error:
            self.close()
            raise rdma_netlink.explain_socket_error(error) from None
        self._first = self._read()
        self._is_known = True

    def next_part(self) -> tuple[T, ...] | None:
        """See `ObjectList.next_part`."""
        first, self._first = self._first, None
        return self._read() if first is None else first

    def close(self) -> None:
        """Give up the rest. May be called again."""
        self._first = None
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def __del__(self) -> None:
        # A list that is dropped before its end must not keep its socket.
        self.close()

    def _read(self) -> tuple[T, ...] | None:
        """The next datagram, empty if another process sent it; raises what `Netlink.request` does, ENOBUFS: a part was lost."""
        wire, name = self._wire, self._device.name
        try:
            if wire is None or (payloads := self._next_payloads(wire)) is None:
                return None
            part = tuple(
                self._decode(values)
                for payload in payloads
                for values in decode_entries(payload, self._listing, self._device)
            )
        except netlink.Refused as error:
            self.close()
            missing = "this kernel does not have this list of RDMA objects"
            found = self._rdma().explain(error, self._device, missing)
            if self._is_known and isinstance(found, Absent):
                found = OSError(error.errno, "the driver failed to report an RDMA object", name)
            raise found from None
        except BaseException:
            self.close()
            raise
        self._empty_parts = 0 if part else self._empty_parts + 1
        if self._empty_parts >= MOST_EMPTY_PARTS:
            self.close()
            raise OSError(errno.EMSGSIZE, "an object is larger than a part of the kernel's list", name)
        return part

    def _next_payloads(self, wire: netlink.NetlinkSocket) -> list[bytes] | None:
        ended = self._answer.take(netlink.receive_datagram(wire, self._buffer))
        payloads, self._answer.payloads = self._answer.payloads, []
        if ended:
            self.close()
        return payloads if payloads or not ended else None


RES_LQPN = 21
RES_RQPN = 22
RES_TYPE = 26
RES_STATE = 27
RES_PID = 28
RES_KERN_NAME = 29
RES_DST_ADDR = 34
RES_MRLEN = 45
PART_BYTES = 8192  # size of a part: about 90 queue pairs
QUEUE_PAIR_TYPES = word_list("SMI GSI RC UC UD RAW_IPV6 RAW_ETHERTYPE UNKNOWN RAW_PACKET XRC_INI XRC_TGT")
"""enum ib_qp_type of include/rdma/ib_verbs.h."""
DRIVER_TYPE = 0xFF  # IB_QPT_DRIVER: EFA's SRD, mlx5's DCI and DCT
QUEUE_PAIR_STATES = ("RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR")
"""enum ib_qp_state of include/rdma/ib_verbs.h."""

CONNECTION_STATES = word_list(
    """
    IDLE ADDR_QUERY ADDR_RESOLVED ROUTE_QUERY ROUTE_RESOLVED CONNECT DISCONNECT ADDR_BOUND LISTEN
    DEVICE_REMOVAL DESTROYING
    """
)
"""enum rdma_cm_state of drivers/infiniband/core/cma_priv.h."""

UNKNOWN = "UNKNOWN"
_ADDRESSES: Mapping[int, tuple[int, int]] = {AF_INET: (4, 4), AF_INET6: (8, 16)}
"""Family to offset and length of the address in its sockaddr."""

LISTINGS = {
    ObjectKind.QUEUE_PAIR: Listing(rdma_netlink.NLDEV | 10, 19, 20),
    ObjectKind.CONNECTION: Listing(rdma_netlink.NLDEV | 11, 30, 31),
    ObjectKind.COMPLETION_QUEUE: Listing(rdma_netlink.NLDEV | 12, 35, 36),
    ObjectKind.MEMORY_REGION: Listing(rdma_netlink.NLDEV | 13, 40, 41),
    ObjectKind.CONTEXT: Listing(rdma_netlink.NLDEV | 22, 86, 87),
}

SUMMARY_MOST = rdma_netlink.Table(whole=15, name=17, number=118)
"""The most objects of each kind, where Linux reports them: 7.3 does, 6.12 does not."""
LIMITED = ("qp", "cq", "mr")
_STATES = {ObjectKind.QUEUE_PAIR: QUEUE_PAIR_STATES, ObjectKind.CONNECTION: CONNECTION_STATES}


def decode_object(values: Mapping[int, bytes], kind: ObjectKind) -> RdmaObject:
    """The object of one entry."""
    return RdmaObject(
        kind,
        pid=netlink.number_or_zero(values, RES_PID),
        kernel=decode_name(values.get(RES_KERN_NAME, b"")),
        port=netlink.number_or_zero(values, rdma_netlink.PORT_INDEX),
        number=netlink.number_or_zero(values, RES_LQPN),
        remote=netlink.number_or_zero(values, RES_RQPN),
        type=name_of(values[RES_TYPE], QUEUE_PAIR_TYPES) if RES_TYPE in values else "",
        state=name_of(values[RES_STATE], _STATES.get(kind, ())) if RES_STATE in values else "",
        size=netlink.number_or_zero(values, RES_MRLEN),
        peer=decode_address(values.get(RES_DST_ADDR, b"")),
    )


def name_of(value: bytes, names: Sequence[str]) -> str:
    """The name of a number as `rdma` prints it; UNKNOWN for one that it does not know."""
    number = netlink.decode_number(value)
    if names is QUEUE_PAIR_TYPES and number == DRIVER_TYPE:
        return "DRIVER"
    return names[number] if number < len(names) else UNKNOWN


def decode_address(raw: bytes) -> str:
    """The IP address in a struct sockaddr_storage; empty for other families and for the unspecified address.

    An IPv4-mapped IPv6 address is written as IPv4: a dual-stack program has the same peers as any other.
    """
    if not raw:
        return ""
    start, length = _ADDRESSES.get(int.from_bytes(raw[:2], sys.byteorder), (0, 0))
    found = raw[start : start + length]
    if len(found) != length:
        raise netlink.Malformed(f"an address of {len(raw)} bytes")
    if not any(found):
        return ""
    return str(unmapped(found))


def open_object_dump(
    rdma: Callable[[], rdma_netlink.RdmaNetlink],
    device: RdmaDevice,
    kind: ObjectKind,
    open_socket: netlink.OpenSocket = netlink.open_kernel_socket,
) -> EntryDump[RdmaObject]:
    """Begin to list the objects of one kind. `rdma` returns the calling thread's own connection; it explains errors.

    Raises:
        Absent: the kernel does not list this kind: queue pairs before 4.16, contexts before 5.12.
        OSError: netlink or the driver fails; ENODEV: the device was removed.
    """
    try:
        return EntryDump(
            rdma,
            device,
            LISTINGS[kind],
            selection=rdma_netlink.encode_device(device),
            decode=partial(decode_object, kind=kind),
            part_bytes=PART_BYTES,
            open_socket=open_socket,
        )
    except Absent as error:
        # Only for queue pairs the kernel queries the driver, whose EINVAL also means that the command is unknown.
        if kind is ObjectKind.QUEUE_PAIR and error.errno == errno.EINVAL:
            with suppress(Absent):
                # Kernels got both commands together.
                rdma().resources(device)
                raise OSError(errno.EINVAL, "the driver failed to report a queue pair", device.name) from None
        raise


def read_object_limits(rdma: rdma_netlink.RdmaNetlink, device: RdmaDevice) -> dict[str, int]:
    """The most queue pairs, completion queues and memory regions that a device can have; `Absent` where the kernel has no limits."""
    missing = "this kernel does not report the limits of a device"

    def limits(answers: list[bytes]) -> dict[str, int]:
        answer = netlink.only_payload(answers)
        rows = rdma_netlink.decode_table(answer, SUMMARY_MOST, device)
        most = rdma_netlink.decode_present_numbers(answer, rows)
        return {f"max_{kind}": most[kind] for kind in LIMITED if most.get(kind)}

    try:
        found = rdma.request(rdma_netlink.RES_GET, rdma_netlink.encode_device(device), limits)
    except netlink.Refused as error:
        raise rdma.explain(error, device, missing) from None
    if not found:
        raise Absent(errno.EOPNOTSUPP, missing, device.name)
    return found


STAT_RES = 75
STAT_COUNTER_ID = 79
RES_QP = 19  # the value of STAT_RES: the number of the attribute of queue pairs
LISTING = Listing(rdma_netlink.STAT_GET, table=77, entry=78)


def read_counter_sets(
    rdma: Callable[[], rdma_netlink.RdmaNetlink],
    device: RdmaDevice,
    port: int,
    open_socket: netlink.OpenSocket = netlink.open_kernel_socket,
) -> tuple[CounterSet, ...]:
    """The counter sets of one port. The driver queries its firmware for each; where that fails the values are old ones."""
    dump = EntryDump(
        rdma,
        device,
        LISTING,
        selection=rdma_netlink.encode_port(device, port) + netlink.encode_u32(STAT_RES, RES_QP),
        decode=decode_counter_set,
        part_bytes=netlink.BUFFER_BYTES,
        open_socket=open_socket,
    )
    sets: list[CounterSet] = []
    while (part := dump.next_part()) is not None:
        sets += part
    return tuple(sets)


def decode_counter_set(values: Mapping[int, bytes]) -> CounterSet:
    """One counter set of a list."""
    table = values.get(rdma_netlink.COUNTERS.whole, b"")
    return CounterSet(
        port=netlink.decode_number(netlink.required(values, rdma_netlink.PORT_INDEX)),
        number=netlink.decode_number(netlink.required(values, STAT_COUNTER_ID)),
        pid=netlink.number_or_zero(values, RES_PID),
        type=name_of(values[RES_TYPE], QUEUE_PAIR_TYPES) if RES_TYPE in values else "",
        values=rdma_netlink.decode_numbers(
            table, rdma_netlink.decode_rows(table, 0, len(table), rdma_netlink.COUNTERS)
        ),
    )

"""Counter sets: hardware counters that are bound to queue pairs, per process, per type, or by hand.

Follows `fill_res_counter_entry` and `stat_get_doit_qp` in drivers/infiniband/core/nldev.c, and counters.c next to it.
The values of a set are part of the port's own counters, too, so the two must never be added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.kernel.entry_dump import EntryDump, Listing, number_or_zero
from roce_exporter.host.kernel.netlink import (
    BUFFER_BYTES,
    NetlinkSocket,
    decode_number,
    decode_values,
    encode_u32,
    only_payload,
    open_kernel_socket,
)
from roce_exporter.host.kernel.object_netlink import RES_PID, RES_TYPE, type_name
from roce_exporter.host.kernel.rdma_netlink import (
    COUNTERS,
    PORT_INDEX,
    STAT_GET,
    RdmaNetlink,
    check_device,
    decode_numbers,
    decode_rows,
    encode_port,
    required,
)
from roce_exporter.model.owner import CounterSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roce_exporter.model import RdmaDevice

STAT_MODE = 74
STAT_RES = 75
STAT_AUTO_MODE_MASK = 76
STAT_COUNTER_ID = 79
STAT_OPTIONAL = 104
"""RDMA_NLDEV_ATTR_STAT_OPCOUNTER_ENABLED, Linux 6.15: a byte. Older kernels ignore it and do not report it."""

RES_QP = 19
"""The value of STAT_RES: the number of the attribute of queue pairs."""

MODE_NONE, MODE_AUTO, MODE_MANUAL = 0, 1, 2
"""enum rdma_nl_counter_mode."""

BY_TYPE, BY_PID = 1, 2
"""enum rdma_nl_counter_mask."""

LISTING = Listing(STAT_GET, table=77, entry=78)


class CounterMode(NamedTuple):
    """How the kernel makes counter sets on a port."""

    mode: int
    mask: int
    """Criteria of the automatic mode: `BY_TYPE`, `BY_PID`."""
    optional: bool = False
    """Whether sets also have the optional counters that are enabled on the port when a queue pair is bound."""


def read_counter_sets(
    rdma: Callable[[], RdmaNetlink],
    device: RdmaDevice,
    port: int,
    open_socket: Callable[[int], NetlinkSocket] = open_kernel_socket,
) -> tuple[CounterSet, ...]:
    """The counter sets of one port. The driver queries its firmware for each; where that fails the values are old ones.

    Raises:
        Absent: the kernel is older than 5.3.
        OSError: netlink fails; ENODEV: the device was removed.
    """
    dump = EntryDump(
        rdma,
        device,
        LISTING,
        selection=encode_question(device, port),
        decode=decode_counter_set,
        part_bytes=BUFFER_BYTES,
        open_socket=open_socket,
    )
    sets: list[CounterSet] = []
    while (part := dump.next_part()) is not None:
        sets += part
    return tuple(sets)


def read_counter_mode(rdma: RdmaNetlink, device: RdmaDevice, port: int) -> CounterMode:
    """How the kernel makes counter sets on one port.

    Raises:
        OSError: the kernel refuses; EINVAL: it is older than 5.3, or the device or port does not exist.
    """
    question = encode_question(device, port) + encode_u32(STAT_MODE, MODE_NONE)
    return rdma.request(
        STAT_GET, question, lambda answers: decode_counter_mode(only_payload(answers), device)
    )


def encode_question(device: RdmaDevice, port: int) -> bytes:
    """The attributes that select the counter sets of queue pairs of one port."""
    return encode_port(device, port) + encode_u32(STAT_RES, RES_QP)


def decode_counter_mode(answer: bytes, device: RdmaDevice) -> CounterMode:
    """One reply about the mode.

    Raises:
        Malformed: the message violates the format or has no mode.
        OSError: ENODEV, the reply is for another device.
    """
    values = decode_values(answer)
    check_device(values, device)
    return CounterMode(
        decode_number(required(values, STAT_MODE)),
        number_or_zero(values, STAT_AUTO_MODE_MASK),
        bool(number_or_zero(values, STAT_OPTIONAL)),
    )


def decode_counter_set(values: Mapping[int, bytes]) -> CounterSet:
    """One counter set of a list.

    Raises:
        Malformed: the entry violates the format, or has no number or port.
    """
    table = values.get(COUNTERS.whole, b"")
    return CounterSet(
        port=decode_number(required(values, PORT_INDEX)),
        number=decode_number(required(values, STAT_COUNTER_ID)),
        pid=number_or_zero(values, RES_PID),
        type=type_name(values[RES_TYPE]) if RES_TYPE in values else "",
        values=decode_numbers(table, decode_rows(table, 0, len(table), COUNTERS)),
    )

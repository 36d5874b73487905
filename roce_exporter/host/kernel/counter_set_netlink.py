"""Counter sets: hardware counters that are bound to queue pairs, per process, per type, or by hand.

Follows `fill_res_counter_entry` and `stat_get_doit_qp` in drivers/infiniband/core/nldev.c, and counters.c next to it.
The values of a set are part of the port's own counters, too, so the two must never be added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.kernel.netlink import (
    BUFFER_BYTES,
    NetlinkSocket,
    decode_number,
    encode_u32,
    open_kernel_socket,
)
from roce_exporter.host.kernel.object_netlink import (
    RES_PID,
    RES_TYPE,
    EntryDump,
    Listing,
    number_or_zero,
    type_name,
)
from roce_exporter.host.kernel.rdma_netlink import (
    COUNTERS,
    PORT_INDEX,
    STAT_GET,
    RdmaNetlink,
    decode_numbers,
    decode_rows,
    encode_port,
    required,
)
from roce_exporter.model.owner import CounterSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roce_exporter.model import RdmaDevice

STAT_RES = 75
STAT_COUNTER_ID = 79

RES_QP = 19
"""The value of STAT_RES: the number of the attribute of queue pairs."""

LISTING = Listing(STAT_GET, table=77, entry=78)


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


def encode_question(device: RdmaDevice, port: int) -> bytes:
    """The attributes that select the counter sets of queue pairs of one port."""
    return encode_port(device, port) + encode_u32(STAT_RES, RES_QP)


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

"""Lists of RDMA netlink: a table per message, an entry per object, at the pace of the caller.

Follows `res_get_common_dumpit` in drivers/infiniband/core/nldev.c.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.netlink import (
    NetlinkSocket,
    Refused,
    decode_attributes,
    decode_number,
    decode_values,
)
from roce_exporter.host.kernel.paced_dump import PacedDump
from roce_exporter.host.kernel.rdma_netlink import (
    NETLINK_RDMA,
    RdmaNetlink,
    check_device,
    explain_socket_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from roce_exporter.model import RdmaDevice

T = TypeVar("T")

MOST_EMPTY_PARTS = 8
"""The kernel repeats an empty part endlessly if an object does not fit into it."""


class Listing(NamedTuple):
    """The numbers of one kind of list: its command, its table, an entry of the table."""

    command: int
    table: int
    entry: int


def decode_entries(answer: bytes, listing: Listing, device: RdmaDevice) -> Iterator[dict[int, bytes]]:
    """The attributes of each entry of a message, in the kernel's order.

    Raises:
        Malformed: the message violates the format.
        OSError: ENODEV, the message is for another device.
    """
    check_device(decode_values(answer), device)
    for kind, start, end in decode_attributes(answer):
        if kind == listing.table:
            for entry, entry_start, entry_end in decode_attributes(answer, start, end):
                if entry == listing.entry:
                    yield decode_values(answer, entry_start, entry_end)


def number_or_zero(values: Mapping[int, bytes], kind: int) -> int:
    """The number in an attribute; 0 without it.

    Raises:
        Malformed: it has an unknown width.
    """
    return decode_number(values[kind]) if kind in values else 0


class EntryDump(Generic[T]):
    """One list of a device, part by part. Not thread-safe."""

    def __init__(
        self,
        rdma: Callable[[], RdmaNetlink],
        device: RdmaDevice,
        listing: Listing,
        *,
        selection: bytes,
        decode: Callable[[Mapping[int, bytes]], T],
        part_bytes: int,
        open_socket: Callable[[int], NetlinkSocket],
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
        try:
            self._dump = PacedDump(NETLINK_RDMA, listing.command, selection, part_bytes, open_socket)
        except OSError as error:
            raise explain_socket_error(error) from None
        self._first = self._read()
        self._is_known = True

    def next_part(self) -> tuple[T, ...] | None:
        """See `ObjectList.next_part`."""
        first, self._first = self._first, None
        return self._read() if first is None else first

    def close(self) -> None:
        """Give up the rest. May be called again."""
        self._first = None
        self._dump.close()

    def _read(self) -> tuple[T, ...] | None:
        try:
            payloads = self._dump.next_part()
            return None if payloads is None else self._decode_part(payloads)
        except Refused as error:
            raise self._explain(error) from None
        except BaseException:
            self._dump.close()
            raise

    def _decode_part(self, payloads: list[bytes]) -> tuple[T, ...]:
        part = tuple(
            self._decode(values)
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
        found = self._rdma().explain(
            error, self._device, "this kernel does not have this list of RDMA objects"
        )
        if self._is_known and isinstance(found, Absent):
            return OSError(error.errno, "the driver failed to report an RDMA object", self._device.name)
        return found

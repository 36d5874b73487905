"""RDMA netlink: devices, ports, hardware counters and objects in use, without any privilege.

Follows include/uapi/rdma/rdma_netlink.h and drivers/infiniband/core/nldev.c. The numbers are repeated here because the
headers of older distributions lack some of them. What decodes a reply about a device raises OSError with ENODEV where it is for
another device.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from struct import Struct
from typing import NamedTuple, TypeVar

from roce_exporter.host.kernel import Absent, netlink
from roce_exporter.host.kernel.names import decode_name, keep
from roce_exporter.model import RdmaDevice, RdmaPort

_VALUE_BYTES = 8
Spans = dict[str, tuple[int, int] | None]
"""Per name, start and end of its number in the reply; None if the row has no number."""


class Layout(NamedTuple):
    """The positions of values in a reply whose other bytes are known: `fixed` parts and values alternate in `shape`."""

    shape: Struct
    fixed: tuple[bytes, ...]
    names: tuple[str, ...]


def decode_present_numbers(answer: bytes, rows: Spans) -> dict[str, int]:
    """Name to number, for the rows with a number."""
    return {name: netlink.decode_number(answer[span[0] : span[1]]) for name, span in rows.items() if span}


def learn_layout(answer: bytes, rows: Spans) -> Layout | None:
    """The layout of this reply; None if a value is not 64 bits wide, or a name occurs twice."""
    formats, fixed, position = ["="], [], 0
    for span in rows.values():
        if span is None or span[1] - span[0] != _VALUE_BYTES:
            return None
        start, end = span
        if start < position:
            return None
        formats.append(f"{start - position}sQ")
        fixed.append(answer[position:start])
        position = end
    formats.append(f"{len(answer) - position}s")
    fixed.append(answer[position:])
    return Layout(Struct("".join(formats)), tuple(fixed), tuple(rows))


def read_by_layout(answer: bytes, layout: Layout) -> dict[str, int] | None:
    """Name to number; None if anything but the values differs from the reply that the layout was learnt from."""
    if len(answer) != layout.shape.size:
        return None
    parts = layout.shape.unpack(answer)
    return dict(zip(layout.names, parts[1::2], strict=True)) if parts[::2] == layout.fixed else None


T = TypeVar("T")
NETLINK_RDMA = 20
NLDEV = 5 << 10
"""RDMA_NLNLDEV, in the upper bits of every message type."""
GET = NLDEV | 1
PORT_GET = NLDEV | 5
RES_GET = NLDEV | 9
STAT_GET = NLDEV | 17
STAT_GET_STATUS = NLDEV | 24
SYS_GET = NLDEV | 6
DEV_INDEX = 1
DEV_NAME = 2
PORT_INDEX = 3
FW_VERSION = 5
NODE_GUID = 6
NDEV_NAME = 51
NETNS_MODE = 66  # RDMA_NLDEV_SYS_ATTR_NETNS_MODE: 1 shared, 0 exclusive
DEV_PROTOCOL = 67
_NO_SUCH_COMMAND = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOENT, errno.ENOSYS)
"""How kernels and drivers report an unknown command. EINVAL may mean other things as well."""


class Table(NamedTuple):
    """The attribute numbers of a table of names and numbers: the whole table, a row's name, a row's number."""

    whole: int
    name: int
    number: int


COUNTERS = Table(whole=80, name=82, number=83)
COUNTERS_ON = Table(whole=80, name=82, number=95)
OBJECTS = Table(whole=15, name=17, number=18)


def encode_device(device: RdmaDevice) -> bytes:
    """The attribute that selects one device."""
    return netlink.encode_u32(DEV_INDEX, device.index)


def encode_port(device: RdmaDevice, port: int) -> bytes:
    """The attributes that select one port of a device."""
    return encode_device(device) + netlink.encode_u32(PORT_INDEX, port)


def decode_device(answer: bytes) -> RdmaDevice:
    """One message of a GET."""
    values = netlink.decode_values(answer)
    guid = f"{netlink.decode_number(values[NODE_GUID]):016x}" if NODE_GUID in values else ""
    return RdmaDevice(
        index=netlink.decode_number(netlink.required(values, DEV_INDEX)),
        name=decode_name(netlink.required(values, DEV_NAME)),
        node_guid=":".join(guid[start : start + 4] for start in range(0, len(guid), 4)),
        protocol=decode_name(values.get(DEV_PROTOCOL, b"")),
        firmware=decode_name(values.get(FW_VERSION, b"")),
    )


def decode_port(answer: bytes, device: RdmaDevice) -> RdmaPort:
    """One message of a PORT_GET for this device."""
    values = netlink.decode_values(answer)
    check_device(values, device)
    return RdmaPort(
        number=netlink.decode_number(netlink.required(values, PORT_INDEX)),
        netdev=decode_name(values.get(NDEV_NAME, b"")),
    )


def decode_table(answer: bytes, table: Table, device: RdmaDevice) -> Spans:
    """The rows of one table, in the kernel's order."""
    check_device(netlink.decode_values(answer), device)
    for kind, start, end in netlink.decode_attributes(answer):
        if kind == table.whole:
            return decode_rows(answer, start, end, table)
    raise netlink.Malformed(f"no attribute {table.whole}")


def decode_numbers(answer: bytes, rows: Spans) -> dict[str, int]:
    """Name to number."""
    for name, span in rows.items():
        if span is None:
            raise netlink.Malformed(f"no value for {name!r}")
    return decode_present_numbers(answer, rows)


@netlink.remembered
def decode_objects(answer: bytes, device: RdmaDevice) -> Mapping[str, int]:
    """Kind of object to number in use."""
    return decode_numbers(answer, decode_table(answer, OBJECTS, device))


@netlink.remembered
def decode_switches(answer: bytes, device: RdmaDevice) -> Mapping[str, bool]:
    """Optional counter to whether it is on."""
    reported = decode_present_numbers(answer, decode_table(answer, COUNTERS_ON, device))
    return {name: number != 0 for name, number in reported.items()}


class RdmaNetlink:
    """One RDMA netlink socket. Not thread-safe: make one per thread, it is cheap.

    The first request opens the socket. No timeout ends a request while the driver works on it.
    Every request may raise, in addition to what its method documents:
        Absent: this kernel, or this network namespace, has no RDMA netlink.
        TimeoutError: no reply.
        Malformed: an OSError with EBADMSG, the reply violates the format.
        OSError: ENODEV, the device was removed, or another has its index now; any other errno is the kernel's.
    """

    def __init__(self, open_socket: netlink.OpenSocket = netlink.open_kernel_socket) -> None:
        self._netlink = netlink.Netlink(NETLINK_RDMA, open_socket)
        self._layouts: dict[tuple[str, int], Layout] = {}

    def devices(self) -> tuple[RdmaDevice, ...]:
        """Every RDMA device of this network namespace, or of all namespaces if the kernel shares them (its default).

        Absent: the kernel is older than 4.14.
        """
        try:
            return self.request(GET, b"", lambda answers: tuple(map(decode_device, answers)), dump=True)
        except netlink.Refused as error:
            if error.errno in _NO_SUCH_COMMAND:
                raise Absent(error.errno, "this kernel does not list RDMA devices") from None
            raise

    def ports(self, device: RdmaDevice) -> tuple[RdmaPort, ...]:
        """The ports of one device. The kernel ends the list where a driver fails to report a port's state.

        Absent: the kernel is older than 4.14.
        """
        try:
            return self.request(
                PORT_GET,
                encode_device(device),
                lambda answers: tuple(decode_port(answer, device) for answer in answers),
                dump=True,
            )
        except netlink.Refused as error:
            raise self.explain(error, device, "this kernel does not list RDMA ports") from None

    def statistics(self, device: RdmaDevice, port: int) -> dict[str, int]:
        """Every enabled hardware counter of one port, in one snapshot and in the driver's own units.

        Raises:
            Absent: the driver has no port statistics, the port does not exist, or the kernel is older than 5.3.
                Before 5.16 also if the driver has them and fails: those kernels do not distinguish the two cases.
            OSError: EINVAL, the driver has them and failed to read them. The kernel does not report the reason.
        """
        try:
            return self.request(
                STAT_GET, encode_port(device, port), lambda answers: self._read(answers, device, port)
            )
        except netlink.Refused as error:
            if error.errno == errno.EINVAL and self._has_statistics(device, port):
                raise OSError(
                    errno.EINVAL, "the driver failed to read its statistics", f"{device.name}/{port}"
                ) from None
            raise self.explain(error, device, f"no statistics of port {port}") from None

    def optional_counters(self, device: RdmaDevice, port: int) -> Mapping[str, bool]:
        """The optional counters of one port and whether each is on; empty if the driver has none.

        Absent: the driver has no port statistics, the port does not exist, or the kernel is older than 5.16.
        """
        try:
            return self._request_status(device, port)
        except netlink.Refused as error:
            raise self.explain(error, device, f"no status of the counters of port {port}") from None

    def resources(self, device: RdmaDevice) -> Mapping[str, int]:
        """Objects in use by kind: `pd`, `cq`, `qp`, `cm_id`, `mr`, and on newer kernels `ctx` and `srq`.

        Absent: the kernel does not know the command, which came with 4.16 or 4.17.
        """
        try:
            return self.request(
                RES_GET,
                encode_device(device),
                lambda answers: decode_objects(netlink.only_payload(answers), device),
            )
        except netlink.Refused as error:
            raise self.explain(error, device, "this kernel does not count RDMA objects") from None

    def is_shared(self) -> bool:
        """Whether all network namespaces see all devices. Absent: the kernel is older than 5.2."""

        def mode(answers: list[bytes]) -> bytes:
            return netlink.required(netlink.decode_values(netlink.only_payload(answers)), NETNS_MODE)

        try:
            return netlink.decode_number(self.request(SYS_GET, b"", mode)) == 1
        except netlink.Refused as error:
            if error.errno in _NO_SUCH_COMMAND:
                raise Absent(error.errno, "this kernel does not report the mode of RDMA namespaces") from None
            raise

    def explain(self, error: netlink.Refused, device: RdmaDevice, missing: str) -> OSError:
        """The error of a refused request for a device: ENODEV if it was removed, `Absent` if the command is unknown."""
        if error.errno not in _NO_SUCH_COMMAND:
            return error
        # The kernel also returns EINVAL for the index of a removed device.
        if not any(_is_same(device, found.index, found.name) for found in self.devices()):
            return _gone(device)
        return Absent(error.errno, missing, device.name)

    def close(self) -> None:
        self._netlink.close()

    def request(
        self, kind: int, payload: bytes, decode: Callable[[list[bytes]], T], *, dump: bool = False
    ) -> T:
        """The decoded reply to one request; `decode` gets the payload of each message.

        Raises:
            Refused: the kernel replies with an error.
            OSError: as the other methods.
        """
        try:
            return decode(self._netlink.request(kind, payload, dump=dump))
        except netlink.Malformed:
            self.close()
            raise
        except OSError as error:
            raise explain_socket_error(error) from None

    def _read(self, answers: list[bytes], device: RdmaDevice, port: int) -> dict[str, int]:
        answer = netlink.only_payload(answers)
        layout = self._layouts.get((device.name, port))
        # The fixed bytes of a layout include the device's name, its index and the port.
        if layout and (known := read_by_layout(answer, layout)) is not None:
            return known
        rows = decode_table(answer, COUNTERS, device)
        numbers = decode_numbers(answer, rows)
        layout = learn_layout(answer, rows)
        if layout:
            keep(self._layouts, (device.name, port), layout)
        return numbers

    def _request_status(self, device: RdmaDevice, port: int) -> Mapping[str, bool]:
        return self.request(
            STAT_GET_STATUS,
            encode_port(device, port),
            lambda answers: decode_switches(netlink.only_payload(answers), device),
        )

    def _has_statistics(self, device: RdmaDevice, port: int) -> bool:
        # nldev.c turns every error of a driver's get_hw_stats into EINVAL, which also means that there are no statistics.
        # The status request does not involve the driver, so it succeeds if there are statistics.
        try:
            self._request_status(device, port)
        except netlink.Refused as error:
            if error.errno in _NO_SUCH_COMMAND:
                return False
            raise
        return True


def explain_socket_error(error: OSError) -> OSError:
    """The same error, or `Absent` if it means that there is no RDMA netlink."""
    # Kernels that restrict RDMA netlink to the initial network namespace refuse the connection elsewhere.
    if error.errno in (errno.EPROTONOSUPPORT, errno.ECONNREFUSED):
        return Absent(error.errno, "no RDMA netlink here (is ib_core loaded?)")
    return error


def decode_rows(answer: bytes, start: int, end: int, table: Table) -> Spans:
    """The rows of the table in a part of a message, in the kernel's order."""
    rows: Spans = {}
    for _, row_start, row_end in netlink.decode_attributes(answer, start, end):
        spans = {
            kind: (begin, stop) for kind, begin, stop in netlink.decode_attributes(answer, row_start, row_end)
        }
        if table.name not in spans:
            raise netlink.Malformed(f"a row without attribute {table.name}")
        begin, stop = spans[table.name]
        name = decode_name(answer[begin:stop])
        if name in rows:
            raise netlink.Malformed(f"{name!r} occurs twice")
        rows[name] = spans.get(table.number)
    return rows


def check_device(values: Mapping[int, bytes], device: RdmaDevice) -> None:
    """Check the device's attributes in a reply."""
    # A device can be renamed, and older kernels reuse indexes: the reply may be for another device.
    index = netlink.decode_number(netlink.required(values, DEV_INDEX))
    if not _is_same(device, index, decode_name(netlink.required(values, DEV_NAME))):
        raise _gone(device)


def _is_same(device: RdmaDevice, index: int, name: str) -> bool:
    return (device.index, device.name) == (index, name)


def _gone(device: RdmaDevice) -> OSError:
    return OSError(errno.ENODEV, "the RDMA device was removed", device.name)

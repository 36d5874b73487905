"""DCB netlink: priority flow control, scheduling and priority mapping of a network device, without any privilege.

Follows include/uapi/linux/dcbnl.h; what the kernel answers is in net/dcb/dcbnl.c, what it means in IEEE 802.1Q, clauses
36 (PFC), 37 (ETS) and 38 (DCBX). The numbers are written down here because the headers of older distributions lack
some of them.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from roce_exporter.kernel import Absent
from roce_exporter.kernel.names import encode_netdev
from roce_exporter.kernel.netlink import (
    Malformed,
    Netlink,
    NetlinkSocket,
    Refused,
    decode_attributes,
    decode_number,
    decode_values,
    encode_attribute,
    open_kernel_socket,
    remembered,
)

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

NETLINK_ROUTE = 0
RTM_GETDCB = 78

IEEE_GET = 21
GDCBX = 22

IFNAME = 1
IEEE = 13
DCBX = 14

ETS = 1
PFC = 2
APP_TABLE = 3
PEER_ETS = 4
PEER_PFC = 5
PEER_APP = 6
MAXRATE = 7
BUFFER = 10
TRUST_TABLE = 11
REWRITE_TABLE = 12

IEEE_APP, DCB_APP = 1, 2
"""The two kinds of a table's rows: of selectors that IEEE 802.1Q knows, and of the kernel's own (PCP)."""

SELECTOR_DSCP = 5
SELECTOR_PCP = 255

DCBX_HOST = 0x01
DCBX_LLD_MANAGED = 0x02
DCBX_VER_CEE = 0x04
DCBX_VER_IEEE = 0x08
DCBX_STATIC = 0x10

KILOBIT = 125
"""Bytes per second in one kbit/s."""

_MESSAGE = Struct("=BBH")
_PFC = Struct("=BBBxHxx16Q")
_ETS = Struct("=3B32B24x")
_MAXRATE = Struct("=8Q")
_BUFFER = Struct("=8B8II")
_APP = Struct("=BBH")


@dataclass(frozen=True, slots=True)
class Pfc:
    """Priority flow control (struct ieee_pfc, IEEE 802.1Q clause 36).

    The direction is told by dcbnl.h ("requests: count of the sent pfc frames, indications: count of the received") and
    by the standard's names: a PFC request is one that this station makes, an indication is one that it is given. ice and
    i40e count the frames that stop (XOFF), not those that let go. Nobody counts for a peer: zeros.
    """

    capacity: int
    """How many traffic classes may have PFC at the same time."""
    enabled: tuple[bool, ...]
    """Of each of the eight priorities. mlx5 tells what it would send for, not what it obeys."""
    mbc: bool
    """MACsec bypass capability."""
    delay: int
    """Allowance for the round trip, in bits; on mlx5 the length of the cable in metres. 0: not told."""
    requests: tuple[int, ...]
    """Pause frames SENT for each of the eight priorities; empty in a recording that does not tell."""
    indications: tuple[int, ...]
    """Pause frames RECEIVED for each of the eight priorities; empty in a recording that does not tell."""


@dataclass(frozen=True, slots=True)
class Ets:
    """Enhanced transmission selection (struct ieee_ets, IEEE 802.1Q clause 37). Eight of everything."""

    willing: bool
    """Takes over what the other end of the link recommends."""
    capacity: int
    """Traffic classes that may have a share of the bandwidth."""
    cbs: bool
    """Has the credit-based shaper."""
    transmit_bandwidth: tuple[int, ...]
    """Percent, per traffic class."""
    receive_bandwidth: tuple[int, ...]
    """Percent, per traffic class."""
    algorithm: tuple[int, ...]
    """Per traffic class: 0 strict priority, 1 credit-based shaper, 2 ETS, 255 the vendor's own."""
    traffic_class: tuple[int, ...]
    """Per priority."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Receive buffers (struct dcbnl_buffer). No standard; mlx5 has them."""

    of_priority: tuple[int, ...]
    """Number of the buffer, per priority."""
    size: tuple[int, ...]
    """Bytes, per buffer."""
    total: int
    """Bytes."""


class App(NamedTuple):
    """One row of an application priority table (struct dcb_app, IEEE 802.1Q annex D)."""

    selector: int
    """What `protocol` is: 1 EtherType, 2 TCP or SCTP port, 3 UDP or DCCP port, 4 any of these ports, 5 DSCP, 255 PCP."""
    protocol: int
    priority: int
    """In a row that CEE negotiated, for which the kernel has no other table: a bit mask of priorities."""


@dataclass(frozen=True, slots=True)
class Dcb:
    """What a driver tells of data centre bridging.

    None: it does not tell, or it failed to, which the kernel does not tell apart. An empty table is an answer.
    """

    pfc: Pfc | None = None
    ets: Ets | None = None
    max_rate: tuple[int, ...] | None = None
    """Bytes per second, per traffic class; 0: no limit."""
    app: tuple[App, ...] | None = None
    """Which priority a packet gets."""
    trust: tuple[int, ...] | None = None
    """The selectors of `app` that count, the strongest first. Linux 6.2."""
    rewrite: tuple[App, ...] | None = None
    """Which value (`protocol`) a packet leaves with, by its priority. Linux 6.3."""
    buffer: Buffer | None = None
    peer_ets: Ets | None = None
    peer_pfc: Pfc | None = None
    peer_app: tuple[App, ...] | None = None
    dcbx: int | None = None
    """Who negotiates: a bit mask of DCBX_HOST, DCBX_LLD_MANAGED, DCBX_VER_CEE, DCBX_VER_IEEE, DCBX_STATIC."""


@remembered
def encode_request(command: int, netdev: str) -> bytes:
    """What asks one thing of one network device.

    Raises:
        OSError: ENODEV, no network device can have this name.
    """
    return _MESSAGE.pack(0, command, 0) + encode_attribute(IFNAME, encode_netdev(netdev) + b"\0")


@remembered
def decode_ieee(answer: bytes) -> Dcb:
    """The answer to DCB_CMD_IEEE_GET. Attributes and ends of structs that newer kernels add are passed over.

    Raises:
        Malformed: it breaks the format, or a struct is shorter than it has ever been.
    """
    whole = decode_values(answer, _MESSAGE.size)
    if IEEE not in whole:
        raise Malformed(f"no attribute {IEEE}")
    parts = decode_values(whole[IEEE])

    def part(kind: int, decode: Callable[[bytes], T]) -> T | None:
        return decode(parts[kind]) if kind in parts else None

    return Dcb(
        pfc=part(PFC, decode_pfc),
        ets=part(ETS, decode_ets),
        max_rate=part(MAXRATE, decode_max_rate),
        app=part(APP_TABLE, decode_app_table),
        trust=part(TRUST_TABLE, decode_trust_table),
        rewrite=part(REWRITE_TABLE, decode_app_table),
        buffer=part(BUFFER, decode_buffer),
        peer_ets=part(PEER_ETS, decode_ets),
        peer_pfc=part(PEER_PFC, decode_pfc),
        peer_app=part(PEER_APP, decode_app_table),
        dcbx=decode_dcbx_mode(answer),
    )


def decode_dcbx_mode(answer: bytes) -> int | None:
    """The DCBX mode in the answer to DCB_CMD_GDCBX or DCB_CMD_IEEE_GET; None where it is not told.

    Raises:
        Malformed: the answer breaks the format.
    """
    mode = decode_values(answer, _MESSAGE.size).get(DCBX)
    return None if mode is None else decode_number(mode)


def decode_pfc(value: bytes) -> Pfc:
    """A struct ieee_pfc.

    Raises:
        Malformed: it is too short.
    """
    capacity, enabled, mbc, delay, *frames = _unpack(_PFC, value, "ieee_pfc")
    return Pfc(
        capacity=capacity,
        enabled=tuple(bool(enabled >> priority & 1) for priority in range(8)),
        mbc=bool(mbc),
        delay=delay,
        requests=tuple(frames[:8]),
        indications=tuple(frames[8:]),
    )


def decode_ets(value: bytes) -> Ets:
    """A struct ieee_ets. What it recommends to the other end is left out.

    Raises:
        Malformed: it is too short.
    """
    willing, capacity, cbs, *tables = _unpack(_ETS, value, "ieee_ets")
    return Ets(
        willing=bool(willing),
        capacity=capacity,
        cbs=bool(cbs),
        transmit_bandwidth=tuple(tables[:8]),
        receive_bandwidth=tuple(tables[8:16]),
        algorithm=tuple(tables[16:24]),
        traffic_class=tuple(tables[24:]),
    )


def decode_max_rate(value: bytes) -> tuple[int, ...]:
    """A struct ieee_maxrate, in bytes per second.

    Raises:
        Malformed: it is too short.
    """
    return tuple(KILOBIT * rate for rate in _unpack(_MAXRATE, value, "ieee_maxrate"))


def decode_buffer(value: bytes) -> Buffer:
    """A struct dcbnl_buffer.

    Raises:
        Malformed: it is too short.
    """
    *tables, total = _unpack(_BUFFER, value, "dcbnl_buffer")
    return Buffer(of_priority=tuple(tables[:8]), size=tuple(tables[8:]), total=total)


def decode_app_table(value: bytes) -> tuple[App, ...]:
    """The struct dcb_app of one table, in the kernel's order.

    Raises:
        Malformed: the table breaks the format, or a row is too short.
    """
    rows = (_unpack(_APP, row, "dcb_app") for row in _rows(value))
    return tuple(App(selector, protocol, priority) for selector, priority, protocol in rows)


def decode_trust_table(value: bytes) -> tuple[int, ...]:
    """The selectors of a trust table, in order.

    Raises:
        Malformed: the table breaks the format.
    """
    return tuple(decode_number(row) for row in _rows(value))


class DcbNetlink:
    """One conversation about DCB. Not to be shared between threads: make one per thread, it is cheap.

    The first question opens the socket. The kernel holds its RTNL lock while a driver answers, and no timeout ends
    that. Every question may raise:
        Absent: the driver (of a VF, of ionic, of mana, of veth) or this kernel has no DCB.
        TimeoutError: no answer.
        Malformed: an OSError with EBADMSG, the answer breaks the format.
        OSError: ENODEV, there is no such network device in this namespace; any other errno is the kernel's.
    """

    def __init__(self, open_socket: Callable[[int], NetlinkSocket] = open_kernel_socket) -> None:
        self._netlink = Netlink(NETLINK_ROUTE, open_socket)

    def ieee(self, netdev: str) -> Dcb:
        """Everything that DCB_CMD_IEEE_GET tells.

        Two drivers tell it badly. bnxt_en says zeros where its firmware did not answer. In mlx5 the requests and
        indications of PFC are what the last `ethtool -S` of anybody has left behind, so read that first.
        """
        return self._request(netdev, IEEE_GET, decode_ieee)

    def dcbx_mode(self, netdev: str) -> int | None:
        """Who negotiates, see `Dcb.dcbx`; None where a kernel answers without saying so.

        Raises:
            Absent: also of a driver that has DCB and no DCBX. The kernel says the same to both.
        """
        return self._request(netdev, GDCBX, decode_dcbx_mode)

    def close(self) -> None:
        """Close the socket. The next question opens another."""
        self._netlink.close()

    def _request(self, netdev: str, command: int, decode: Callable[[bytes], T]) -> T:
        try:
            return decode(_only(self._netlink.request(RTM_GETDCB, encode_request(command, netdev))))
        except Malformed:
            self.close()
            raise
        except Refused as error:
            if error.errno == errno.EOPNOTSUPP:
                raise Absent(errno.EOPNOTSUPP, "the driver has no DCB", netdev) from None
            raise OSError(error.errno, error.strerror, netdev) from None


def _rows(table: bytes) -> list[bytes]:
    return [table[start:end] for kind, start, end in decode_attributes(table) if kind in (IEEE_APP, DCB_APP)]


def _unpack(shape: Struct, value: bytes, what: str) -> tuple[int, ...]:
    if len(value) < shape.size:
        raise Malformed(f"a struct {what} of {len(value)} bytes instead of {shape.size}")
    return shape.unpack_from(value)


def _only(answers: list[bytes]) -> bytes:
    if len(answers) != 1:
        raise Malformed(f"{len(answers)} messages instead of one")
    return answers[0]

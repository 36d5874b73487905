"""DCB netlink: priority flow control, scheduling and priority mapping of a network device, without any privilege.

Follows include/uapi/linux/dcbnl.h; net/dcb/dcbnl.c shows the replies, and IEEE 802.1Q, clauses 36 (PFC), 37 (ETS) and
38 (DCBX), defines their meaning. The numbers are repeated here because the headers of older distributions lack some of
them.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from roce_exporter.host.kernel import Absent, netlink
from roce_exporter.host.kernel.names import encode_netdev

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
RTM_GETDCB = 78
IEEE_GET = 21
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
"""The two kinds of table rows: with a selector of IEEE 802.1Q, and with the kernel's own (PCP)."""
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

    The directions follow from dcbnl.h ("requests: count of the sent pfc frames, indications: count of the received") and
    from the standard's names: this station sends PFC requests and receives indications. ice and i40e count XOFF frames,
    not XON frames. The counts of a peer are always zero.
    """

    capacity: int
    """Maximum number of traffic classes with PFC."""
    enabled: tuple[bool, ...]
    """For each of the eight priorities. mlx5 reports for which it sends pause, not which it obeys."""
    mbc: bool
    """MACsec bypass capability."""
    delay: int
    """Allowance for the round trip, in bits; on mlx5 the length of the cable in metres. 0: not reported."""
    requests: tuple[int, ...]
    """Pause frames SENT for each of the eight priorities; empty in a recording without them."""
    indications: tuple[int, ...]
    """Pause frames RECEIVED for each of the eight priorities; empty in a recording without them."""


@dataclass(frozen=True, slots=True)
class Ets:
    """Enhanced transmission selection (struct ieee_ets, IEEE 802.1Q clause 37). Eight of everything."""

    willing: bool
    """Accepts the recommendation of the other end of the link."""
    capacity: int
    """Maximum number of traffic classes with a share of the bandwidth."""
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
    """Receive buffers (struct dcbnl_buffer). Not standardised; mlx5 has them."""

    of_priority: tuple[int, ...]
    """Number of the buffer, per priority."""
    size: tuple[int, ...]
    """Bytes, per buffer."""
    total: int
    """Bytes."""


class App(NamedTuple):
    """One row of an application priority table (struct dcb_app, IEEE 802.1Q annex D)."""

    selector: int
    """The kind of `protocol`: 1 EtherType, 2 TCP or SCTP port, 3 UDP or DCCP port, 4 any of these ports, 5 DSCP, 255 PCP."""
    protocol: int
    priority: int
    """A bit mask of priorities in a row negotiated by CEE, which shares this table."""


@dataclass(frozen=True, slots=True)
class Dcb:
    """A driver's data centre bridging settings.

    None: not reported, or failed: the kernel does not distinguish them. An empty table is a valid value.
    """

    pfc: Pfc | None = None
    ets: Ets | None = None
    max_rate: tuple[int, ...] | None = None
    """Bytes per second, per traffic class; 0: no limit."""
    app: tuple[App, ...] | None = None
    """Which priority a packet gets."""
    trust: tuple[int, ...] | None = None
    """The selectors of `app` that are in effect, the strongest first. Linux 6.2."""
    rewrite: tuple[App, ...] | None = None
    """The value (`protocol`) that a packet is sent with, by its priority. Linux 6.3."""
    buffer: Buffer | None = None
    peer_ets: Ets | None = None
    peer_pfc: Pfc | None = None
    peer_app: tuple[App, ...] | None = None
    dcbx: int | None = None
    """Who negotiates: a bit mask of DCBX_HOST, DCBX_LLD_MANAGED, DCBX_VER_CEE, DCBX_VER_IEEE, DCBX_STATIC."""


@netlink.remembered
def encode_request(command: int, netdev: str) -> bytes:
    """The payload of a request about one network device."""
    return _MESSAGE.pack(0, command, 0) + netlink.encode_attribute(IFNAME, encode_netdev(netdev) + b"\0")


@netlink.remembered
def decode_ieee(answer: bytes) -> Dcb:
    """The reply to DCB_CMD_IEEE_GET. Attributes and struct members that newer kernels add are ignored."""
    whole = netlink.decode_values(answer, _MESSAGE.size)
    if IEEE not in whole:
        raise netlink.Malformed(f"no attribute {IEEE}")
    parts = netlink.decode_values(whole[IEEE])

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
        dcbx=netlink.decode_number(whole[DCBX]) if DCBX in whole else None,
    )


def decode_pfc(value: bytes) -> Pfc:
    """A struct ieee_pfc."""
    capacity, enabled, mbc, delay, *frames = netlink.decode_struct(_PFC, value, "ieee_pfc")
    return Pfc(
        capacity=capacity,
        enabled=tuple(bool(enabled >> priority & 1) for priority in range(8)),
        mbc=bool(mbc),
        delay=delay,
        requests=tuple(frames[:8]),
        indications=tuple(frames[8:]),
    )


def decode_ets(value: bytes) -> Ets:
    """A struct ieee_ets, without the recommendations to the other end."""
    willing, capacity, cbs, *tables = netlink.decode_struct(_ETS, value, "ieee_ets")
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
    """A struct ieee_maxrate, in bytes per second."""
    return tuple(KILOBIT * rate for rate in netlink.decode_struct(_MAXRATE, value, "ieee_maxrate"))


def decode_buffer(value: bytes) -> Buffer:
    """A struct dcbnl_buffer."""
    *tables, total = netlink.decode_struct(_BUFFER, value, "dcbnl_buffer")
    return Buffer(of_priority=tuple(tables[:8]), size=tuple(tables[8:]), total=total)


def decode_app_table(value: bytes) -> tuple[App, ...]:
    """The struct dcb_app of one table, in the kernel's order."""
    rows = (netlink.decode_struct(_APP, row, "dcb_app") for row in _rows(value))
    return tuple(App(selector, protocol, priority) for selector, priority, protocol in rows)


def decode_trust_table(value: bytes) -> tuple[int, ...]:
    """The selectors of a trust table, in order."""
    return tuple(netlink.decode_number(row) for row in _rows(value))


class DcbNetlink:
    """One DCB socket. Not thread-safe: make one per thread, it is cheap.

    The first request opens the socket. The kernel holds its RTNL lock while the driver works, without a timeout.
    Every request may raise:
        Absent: the driver (of a VF, of ionic, of mana, of veth) or this kernel has no DCB.
        TimeoutError: no reply.
        Malformed: an OSError with EBADMSG, the reply violates the format.
        OSError: ENODEV, there is no such network device in this namespace; any other errno is the kernel's.
    """

    def __init__(
        self, open_socket: Callable[[int], netlink.NetlinkSocket] = netlink.open_kernel_socket
    ) -> None:
        self._netlink = netlink.Netlink(netlink.NETLINK_ROUTE, open_socket)

    def ieee(self, netdev: str) -> Dcb:
        """Everything that DCB_CMD_IEEE_GET reports.

        Two drivers have quirks. bnxt_en reports zeros if its firmware did not respond. mlx5 reports the PFC requests and
        indications of the last `ethtool -S` of any process, so read that first.
        """
        try:
            request = encode_request(IEEE_GET, netdev)
            return decode_ieee(netlink.only_payload(self._netlink.request(RTM_GETDCB, request)))
        except netlink.Malformed:
            self.close()
            raise
        except netlink.Refused as error:
            if error.errno == errno.EOPNOTSUPP:
                raise Absent(errno.EOPNOTSUPP, "the driver has no DCB", netdev) from None
            raise OSError(error.errno, error.strerror, netdev) from None

    def close(self) -> None:
        self._netlink.close()


def _rows(table: bytes) -> list[bytes]:
    return [
        table[start:end]
        for kind, start, end in netlink.decode_attributes(table)
        if kind in (IEEE_APP, DCB_APP)
    ]

"""DCB netlink: priority flow control, scheduling and priority mapping of a network device, without any privilege.

Follows include/uapi/linux/dcbnl.h; net/dcb/dcbnl.c shows the replies, and IEEE 802.1Q, clauses 36 (PFC), 37 (ETS) and
38 (DCBX), defines their meaning. The numbers are repeated here because the headers of older distributions lack some of
them.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any

from roce_exporter.host.kernel import Absent, netlink
from roce_exporter.host.kernel.names import encode_netdev

Dcb = dict[str, Any]
"""A driver's data centre bridging settings: the documents of `dcb -j` by their kind, with tuples in place of lists.

    pfc      pfc_cap macsec_bypass delay prio_pfc requests indications
    ets      willing ets_cap cbs tc_bw pg_bw tc_tsa prio_tc
    app      dscp_prio and the other names of `SELECTORS`: pairs of a value and a priority; default_prio: priorities
    buffer   prio_buffer buffer_size total_size: receive buffers; not standardised, mlx5 has them
    dcbx     who negotiates, by the names of `MODES`

dcb prints no such documents of `max_rate` (bytes per second and traffic class, 0 without a limit), `trust` (selectors of `app`
that are in effect, the strongest first; Linux 6.2), and `peer_pfc`, `peer_ets` and `peer_app`, which have the form of the own ones.

A kind is missing where it is not reported or failed: the kernel does not distinguish them. An empty table is a valid value.

The directions of pause follow from dcbnl.h ("requests: count of the sent pfc frames, indications: count of the received") and
from the standard's names: this station sends PFC requests and receives indications. ice and i40e count XOFF frames, not XON
frames. The counts of a peer are always zero. mlx5 reports as `prio_pfc` for which priorities it sends pause, not which it obeys,
and as `delay`, which is the allowance for the round trip in bits, the length of the cable in metres.
"""

RTM_GETDCB = 78
IEEE_GET = 21
IFNAME, IEEE, DCBX = 1, 13, 14
IEEE_APP, DCB_APP = 1, 2
"""The two kinds of table rows: with a selector of IEEE 802.1Q, and with the kernel's own (PCP)."""
SELECTOR_DSCP, SELECTOR_PCP = 5, 255
SELECTORS = {
    "ethtype_prio": 1,
    "stream_port_prio": 2,
    "dgram_port_prio": 3,
    "port_prio": 4,
    "dscp_prio": SELECTOR_DSCP,
    "pcp_prio": SELECTOR_PCP,
}
ALGORITHMS = {"strict": 0, "cbs": 1, "ets": 2, "vendor": 255}
MODES = {"host": 0x01, "lld_managed": 0x02, "cee": 0x04, "ieee": 0x08, "static": 0x10}
"""What the keys of `app`, the values of `tc_tsa` and the keys of `dcbx` are in the kernel."""
KILOBIT = 125  # bytes per second in one kbit/s
_MESSAGE = Struct("=BBH")
_PFC = Struct("=BBBxHxx16Q")
_ETS = Struct("=3B32B24x")
_MAXRATE = Struct("=8Q")
_BUFFER = Struct("=8B8II")
_APP = Struct("=BBH")


@netlink.remembered
def encode_request(command: int, netdev: str) -> bytes:
    """The payload of a request about one network device."""
    return _MESSAGE.pack(0, command, 0) + netlink.encode_attribute(IFNAME, encode_netdev(netdev) + b"\0")


@netlink.remembered
def decode_ieee(answer: bytes) -> Dcb:
    """The reply to DCB_CMD_IEEE_GET. Attributes and struct members that newer kernels add are ignored."""
    whole = netlink.decode_values(answer, _MESSAGE.size)
    parts = netlink.decode_values(netlink.required(whole, IEEE))
    found = {name: decode(parts[kind]) for kind, (name, decode) in _PARTS.items() if kind in parts}
    if DCBX in whole:
        bits = netlink.decode_number(whole[DCBX])
        found["dcbx"] = {name: True for name, bit in MODES.items() if bits & bit}
    return found


def decode_pfc(value: bytes) -> Dcb:
    """A struct ieee_pfc."""
    capacity, enabled, mbc, delay, *frames = netlink.decode_struct(_PFC, value, "ieee_pfc")
    return {
        "pfc_cap": capacity,
        "macsec_bypass": bool(mbc),
        "delay": delay,
        "prio_pfc": tuple(bool(enabled >> priority & 1) for priority in range(8)),
        "requests": tuple(frames[:8]),
        "indications": tuple(frames[8:]),
    }


def decode_ets(value: bytes) -> Dcb:
    """A struct ieee_ets, without the recommendations to the other end."""
    willing, capacity, cbs, *tables = netlink.decode_struct(_ETS, value, "ieee_ets")
    names = {number: name for name, number in ALGORITHMS.items()}
    return {
        "willing": bool(willing),
        "ets_cap": capacity,
        "cbs": bool(cbs),
        "tc_bw": tuple(tables[:8]),
        "pg_bw": tuple(tables[8:16]),
        "tc_tsa": tuple(names.get(number, number) for number in tables[16:24]),
        "prio_tc": tuple(tables[24:]),
    }


def decode_max_rate(value: bytes) -> tuple[int, ...]:
    """A struct ieee_maxrate, in bytes per second."""
    return tuple(KILOBIT * rate for rate in netlink.decode_struct(_MAXRATE, value, "ieee_maxrate"))


def decode_buffer(value: bytes) -> Dcb:
    """A struct dcbnl_buffer."""
    *tables, total = netlink.decode_struct(_BUFFER, value, "dcbnl_buffer")
    return {"prio_buffer": tuple(tables[:8]), "buffer_size": tuple(tables[8:]), "total_size": total}


def decode_app_table(value: bytes) -> Dcb:
    """The struct dcb_app of one table, in the kernel's order; a port's default priority is that of EtherType 0."""
    names = {number: name for name, number in SELECTORS.items()}
    found: dict[str, tuple[object, ...]] = {}
    for row in _rows(value):
        selector, priority, protocol = netlink.decode_struct(_APP, row, "dcb_app")
        if (selector, protocol) == (SELECTORS["ethtype_prio"], 0):
            found["default_prio"] = (*found.get("default_prio", ()), priority)
        elif name := names.get(selector):
            found[name] = (*found.get(name, ()), (protocol, priority))
    return found


def decode_trust_table(value: bytes) -> tuple[int, ...]:
    """The selectors of a trust table, in order."""
    return tuple(netlink.decode_number(row) for row in _rows(value))


def _rows(table: bytes) -> Iterator[bytes]:
    for kind, start, end in netlink.decode_attributes(table):
        if kind in (IEEE_APP, DCB_APP):
            yield table[start:end]


_PARTS: dict[int, tuple[str, Callable[[bytes], Any]]] = {
    1: ("ets", decode_ets),
    2: ("pfc", decode_pfc),
    3: ("app", decode_app_table),
    4: ("peer_ets", decode_ets),
    5: ("peer_pfc", decode_pfc),
    6: ("peer_app", decode_app_table),
    7: ("max_rate", decode_max_rate),
    10: ("buffer", decode_buffer),
    11: ("trust", decode_trust_table),
}
"""Attributes within IEEE, and what they are."""


class DcbNetlink:
    """One DCB socket. Not thread-safe: make one per thread, it is cheap.

    The first request opens the socket. The kernel holds its RTNL lock while the driver works, without a timeout.
    Every request may raise:
        Absent: the driver (of a VF, of ionic, of mana, of veth) or this kernel has no DCB.
        TimeoutError: no reply.
        Malformed: an OSError with EBADMSG, the reply violates the format.
        OSError: ENODEV, there is no such network device in this namespace; any other errno is the kernel's.
    """

    def __init__(self, open_socket: netlink.OpenSocket = netlink.open_kernel_socket) -> None:
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

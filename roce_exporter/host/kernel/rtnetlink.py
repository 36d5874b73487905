"""A network device by rtnetlink: the address that identifies it on its link, and its virtual functions (VFs).

RTM_GETLINK, with RTEXT_FILTER_VF for VFs (include/uapi/linux/rtnetlink.h, if_link.h). Needs no privilege. One request per network device instead of a list of all: a host may have hundreds of virtual ones, and a list may change while
it is read. For VFs the kernel queries the driver for each while it holds the lock of all network configuration, on mlx5
with two firmware commands each. So this is only called by sources of the slow chain.

The address is the one that LLDP frames carry, and so the switch's table. The kernel reports up to three. The permanent one
is best: it does not change when an operator, a bond or a hypervisor sets another. A driver that reports none has no hardware
(veth, dummy), leaves the choice to the hypervisor, or runs on a kernel before 5.6. Then the current address is right, except
for the member of a bond or team: it uses the address of its master, which all members share. A bond keeps the address that
the member had before; a team does not, so such a member has no address of its own.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from contextlib import closing
from struct import Struct
from typing import NamedTuple

from roce_exporter.host.kernel import Absent, netlink
from roce_exporter.host.kernel.names import decode_name, encode_netdev

_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
_UNSET = "00:00:00:00:00:00"


class LinkAddresses(NamedTuple):
    """The addresses of one network device, as hexadecimal digits with colons; empty if not reported."""

    permanent: str
    """IFLA_PERM_ADDRESS: what the driver read from the hardware."""
    before_bond: str
    """IFLA_BOND_SLAVE_PERM_HWADDR: the address that a member of a bond had before."""
    current: str
    """IFLA_ADDRESS."""
    borrowed: bool
    """Whether the current address is that of a bond or team."""


def choose_mac_address(found: LinkAddresses, netdev: str) -> str:
    """The address of the network device itself: six octets in lower case, with colons.

    Raises:
        Absent: it has no Ethernet address of its own. The 20 octets of IP over InfiniBand are none.
    """
    for address in (found.permanent, found.before_bond, "" if found.borrowed else found.current):
        mac = address.lower()
        if _MAC.fullmatch(mac) and mac != _UNSET:
            return mac
    raise Absent(errno.EADDRNOTAVAIL, "no Ethernet address of its own", netdev)


_SHARES_ADDRESS = ("bond", "team")
"""Kinds of masters that give their own address to their members. A bridge and a VRF do not."""

RTM_GETLINK = 18
ADDRESS, NAME, LINK_INFO, PERMANENT_ADDRESS = 1, 3, 18, 54
MEMBER_KIND, MEMBER_DATA = 4, 5
BEFORE_BOND = 4

_LINK = Struct("=BxHiII")


def read_link_addresses(
    netdev: str, open_socket: netlink.OpenSocket = netlink.open_kernel_socket
) -> LinkAddresses:
    """The addresses of one network device of this network namespace; `Absent` if it does not exist, also when it was removed just now."""
    return decode_link_addresses(_link(netdev, open_socket))


def _link(netdev: str, open_socket: netlink.OpenSocket, more: bytes = b"") -> bytes:
    request = _LINK.pack(0, 0, 0, 0, 0) + netlink.encode_attribute(NAME, encode_netdev(netdev) + b"\0") + more
    with (
        netlink.about(netdev, absent=(errno.ENODEV,)),
        closing(netlink.Netlink(netlink.NETLINK_ROUTE, open_socket)) as query,
    ):
        return netlink.only_payload(query.request(RTM_GETLINK, request))


def decode_link_addresses(answer: bytes) -> LinkAddresses:
    """The addresses in a reply to RTM_GETLINK."""
    netlink.decode_struct(_LINK, answer, "ifinfomsg")
    values = netlink.decode_values(answer, _LINK.size)
    member = netlink.decode_values(values.get(LINK_INFO, b""))
    kind = decode_name(member.get(MEMBER_KIND, b""))
    bonded = netlink.decode_values(member.get(MEMBER_DATA, b"")) if kind == "bond" else {}
    return LinkAddresses(
        values.get(PERMANENT_ADDRESS, b"").hex(":"),
        bonded.get(BEFORE_BOND, b"").hex(":"),
        values.get(ADDRESS, b"").hex(":"),
        kind in _SHARES_ADDRESS,
    )


EXT_MASK, RTEXT_FILTER_VF = 29, 1
VF_LIST, VF_INFO, VF_MAC, VF_STATS = 22, 1, 1, 8

MOST_VFS = 256
"""VFs of one network device that are read. The kernel's reply has room for about 230 with their counters."""

COUNTS = {
    "rx_bytes": 2,
    "tx_bytes": 3,
    "rx_packets": 0,
    "tx_packets": 1,
    "rx_dropped": 7,
    "tx_dropped": 8,
    "rx_multicast": 5,
    "rx_broadcast": 4,
}
"""Name of a count, and its attribute in IFLA_VF_STATS."""

_FIRST, _SECOND, _THIRD = Struct("=I"), Struct("=4xI"), Struct("=8xI")
SETTINGS = {
    "link_state": (5, _SECOND),
    "spoof_check": (4, _SECOND),
    "trusted": (9, _SECOND),
    "vlan": (2, _SECOND),
    "max_rate": (6, _THIRD),
}
"""Name of a setting, its attribute in IFLA_VF_INFO, and which number of that is its value; the first is the number of the VF."""

UNSUPPORTED = 0xFFFFFFFF
"""What the kernel reports of a setting that the driver does not have (-1)."""


class VirtualFunction(NamedTuple):
    """What the physical function knows of one VF."""

    number: int
    mac: str
    """Six groups of two hexadecimal digits."""
    settings: Mapping[str, int]
    """`link_state` 0 follows the port, 1 always up, 2 always down; `spoof_check` and `trusted` 1 or 0; `vlan`, 0 without one;
    `max_rate` in Mbit/s, 0 without a limit. Those that the driver does not have are left out."""
    counts: Mapping[str, int]
    """By the names of `COUNTS`. The kernel reports 0 for all of them if the driver does not count."""


def read_virtual_functions(
    netdev: str, open_socket: netlink.OpenSocket = netlink.open_kernel_socket
) -> tuple[VirtualFunction, ...]:
    """The VFs of one network device of this network namespace, at most `MOST_VFS`, in the kernel's order; `Absent` without any.

    Raises:
        OSError: the kernel refuses (EMSGSIZE: too many VFs for one reply), or (EBADMSG) its reply is malformed.
    """
    answer = _link(netdev, open_socket, netlink.encode_u32(EXT_MASK, RTEXT_FILTER_VF))
    netlink.decode_struct(_LINK, answer, "ifinfomsg")
    listed = netlink.decode_values(answer, _LINK.size).get(VF_LIST, b"")
    found = tuple(
        decode_virtual_function(netlink.decode_values(listed, start, end))
        for kind, start, end in netlink.decode_attributes(listed)
        if kind == VF_INFO
    )
    if not found:
        raise Absent(errno.EOPNOTSUPP, "no virtual functions", netdev)
    return found[:MOST_VFS]


def decode_virtual_function(values: Mapping[int, bytes]) -> VirtualFunction:
    """The VF in an IFLA_VF_INFO."""
    address = netlink.required(values, VF_MAC)
    (number,) = netlink.decode_struct(_FIRST, address, "ifla_vf_mac")
    settings = {
        name: value
        for name, (kind, shape) in SETTINGS.items()
        if kind in values
        and (value := netlink.decode_struct(shape, values[kind], "of a VF")[0]) != UNSUPPORTED
    }
    counted = netlink.decode_values(values.get(VF_STATS, b""))
    counts = {name: netlink.decode_number(counted[kind]) for name, kind in COUNTS.items() if kind in counted}
    return VirtualFunction(number, address[_FIRST.size : _FIRST.size + 6].hex(":"), settings, counts)

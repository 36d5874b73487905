"""A network device by rtnetlink: the address that identifies it on its link, and its virtual functions (VFs).

RTM_GETLINK, with RTEXT_FILTER_VF for VFs (include/uapi/linux/rtnetlink.h, if_link.h). Needs no privilege. VFs are read through
pyroute2, whose import takes a tenth of a second and 11 MB: only on hosts that have VFs, by the first read of them.
One request per network device instead of a list of all: a host may have hundreds of virtual ones, and a list may change while
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
import os
import re
from contextlib import closing
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.names import decode_name, encode_netdev
from roce_exporter.host.kernel.netlink import (
    NETLINK_ROUTE,
    Netlink,
    NetlinkSocket,
    about,
    decode_struct,
    decode_values,
    encode_attribute,
    only_payload,
    open_kernel_socket,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager


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
    netdev: str, open_socket: Callable[[int], NetlinkSocket] = open_kernel_socket
) -> LinkAddresses:
    """The addresses of one network device of this network namespace; `Absent` if it does not exist, also when it was removed just now."""
    request = _LINK.pack(0, 0, 0, 0, 0) + encode_attribute(NAME, encode_netdev(netdev) + b"\0")
    with about(netdev, absent=(errno.ENODEV,)), closing(Netlink(NETLINK_ROUTE, open_socket)) as query:
        return decode_link_addresses(only_payload(query.request(RTM_GETLINK, request)))


def decode_link_addresses(answer: bytes) -> LinkAddresses:
    """The addresses in a reply to RTM_GETLINK."""
    decode_struct(_LINK, answer, "ifinfomsg")
    values = decode_values(answer, _LINK.size)
    member = decode_values(values.get(LINK_INFO, b""))
    kind = decode_name(member.get(MEMBER_KIND, b""))
    bonded = decode_values(member.get(MEMBER_DATA, b"")) if kind == "bond" else {}
    return LinkAddresses(
        values.get(PERMANENT_ADDRESS, b"").hex(":"),
        bonded.get(BEFORE_BOND, b"").hex(":"),
        values.get(ADDRESS, b"").hex(":"),
        kind in _SHARES_ADDRESS,
    )


RTEXT_FILTER_VF = 1

MOST_VFS = 256
"""VFs of one network device that are read. The kernel's reply has room for about 230 with their counters."""

COUNTS = {
    "rx_bytes": "IFLA_VF_STATS_RX_BYTES",
    "tx_bytes": "IFLA_VF_STATS_TX_BYTES",
    "rx_packets": "IFLA_VF_STATS_RX_PACKETS",
    "tx_packets": "IFLA_VF_STATS_TX_PACKETS",
    "rx_dropped": "IFLA_VF_STATS_RX_DROPPED",
    "tx_dropped": "IFLA_VF_STATS_TX_DROPPED",
    "rx_multicast": "IFLA_VF_STATS_MULTICAST",
    "rx_broadcast": "IFLA_VF_STATS_BROADCAST",
}
"""Name of a count here and in pyroute2."""

SETTINGS = {
    "link_state": ("IFLA_VF_LINK_STATE", "link_state"),
    "spoof_check": ("IFLA_VF_SPOOFCHK", "spoofchk"),
    "trusted": ("IFLA_VF_TRUST", "trust"),
    "vlan": ("IFLA_VF_VLAN", "vlan"),
    "max_rate": ("IFLA_VF_RATE", "max_tx_rate"),
}
"""Name of a setting here, and attribute and field in pyroute2."""

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


def open_route() -> AbstractContextManager[Any]:
    """A blocking socket of rtnetlink. OSError: no such socket, or pyroute2 cannot be imported."""
    try:
        from pyroute2 import IPRoute  # type: ignore[import-untyped]  # noqa: PLC0415 - see the module
    except (ImportError, MemoryError) as error:
        # MemoryError: the ctypes module where a security policy forbids writable and executable memory.
        why = f"pyroute2 cannot be imported ({str(error) or 'no memory'}); reinstall it or use --source.disable=virtual_functions"
        raise OSError(errno.ELIBACC, why) from None
    return IPRoute()  # type: ignore[no-any-return]


def read_virtual_functions(
    netdev: str, open_query: Callable[[], AbstractContextManager[Any]] = open_route
) -> tuple[VirtualFunction, ...]:
    """The VFs of one network device of this network namespace, at most `MOST_VFS`, in the kernel's order; `Absent` without any.

    Raises:
        OSError: the kernel refuses (EMSGSIZE: too many VFs for one reply), or (EBADMSG) its reply is malformed.
    """
    name = encode_netdev(netdev)
    try:
        with open_query() as query:
            (message,) = query.link("get", ifname=name, ext_mask=RTEXT_FILTER_VF)
            listed = message.get_attr("IFLA_VFINFO_LIST")
            found = tuple(map(_virtual_function, listed.get_attrs("IFLA_VF_INFO") if listed else ()))
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - pyroute2's errors have no common class, and none is an OSError
        code = getattr(error, "code", -1)
        if code not in errno.errorcode:
            raise OSError(errno.EBADMSG, f"malformed reply to RTM_GETLINK: {error!r}", netdev) from None
        raise (Absent if code == errno.ENODEV else OSError)(code, os.strerror(code), netdev) from None
    if not found:
        raise Absent(errno.EOPNOTSUPP, "no virtual functions", netdev)
    return found[:MOST_VFS]


def _virtual_function(one: Any) -> VirtualFunction:
    mac, counted = one.get_attr("IFLA_VF_MAC"), one.get_attr("IFLA_VF_STATS")
    settings = {
        name: found[field]
        for name, (attribute, field) in SETTINGS.items()
        if (found := one.get_attr(attribute)) is not None and found[field] != UNSUPPORTED
    }
    counts = {
        name: value
        for name, attribute in (COUNTS if counted else {}).items()
        if (value := counted.get_attr(attribute)) is not None
    }
    return VirtualFunction(mac["vf"], mac["mac"], settings, counts)

"""The virtual functions (VFs) of a network device by rtnetlink: RTM_GETLINK with RTEXT_FILTER_VF, through pyroute2.

Follows include/uapi/linux/if_link.h. Needs no privilege. The kernel queries the driver for each VF while it holds the lock
of all network configuration, on mlx5 with two firmware commands each. So this is only called by a source of the slow chain,
for network devices that have VFs.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.names import encode_netdev
from roce_exporter.host.kernel.rtnetlink import LinkMessage, open_route

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

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


class VfQuery(Protocol):
    """The method of pyroute2's `IPRoute` that is used here."""

    def link(self, command: str, *, ifname: bytes, ext_mask: int) -> Sequence[LinkMessage]:
        """The kernel's reply to RTM_GETLINK.

        Raises:
            NetlinkError: the kernel replied with an error, its `code`.
        """


def read_virtual_functions(
    netdev: str, open_query: Callable[[], AbstractContextManager[Any]] = open_route
) -> tuple[VirtualFunction, ...]:
    """The VFs of one network device of this network namespace, at most `MOST_VFS`, in the kernel's order.

    Raises:
        Absent: there is no such network device, or it has no VFs.
        OSError: the kernel refuses (EMSGSIZE: too many VFs for one reply), or its reply is malformed.
    """
    name = encode_netdev(netdev)
    try:
        with open_query() as query:
            (message,) = query.link("get", ifname=name, ext_mask=RTEXT_FILTER_VF)
            found = tuple(_virtual_functions(message))
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


def _virtual_functions(message: LinkMessage) -> Iterator[VirtualFunction]:
    listed = message.get_attr("IFLA_VFINFO_LIST")
    for one in listed.get_attrs("IFLA_VF_INFO") if listed else ():
        mac = one.get_attr("IFLA_VF_MAC")
        yield VirtualFunction(mac["vf"], mac["mac"], dict(_settings(one)), dict(_counts(one)))


def _settings(one: LinkMessage) -> Iterator[tuple[str, int]]:
    for name, (attribute, field) in SETTINGS.items():
        found = one.get_attr(attribute)
        if found is not None and found[field] != UNSUPPORTED:
            yield name, found[field]


def _counts(one: LinkMessage) -> Iterator[tuple[str, int]]:
    counted = one.get_attr("IFLA_VF_STATS")
    for name, attribute in COUNTS.items() if counted else ():
        value = counted.get_attr(attribute)
        if value is not None:
            yield name, value

"""Which address identifies a network device on its link: the one that its LLDP frames carry, and so the switch's table.

The kernel reports up to three (include/uapi/linux/if_link.h). The permanent one is best: it does not change when an
operator, a bond or a hypervisor sets another. A driver that reports none has no hardware (veth, dummy), leaves the
choice to the hypervisor, or runs on a kernel before 5.6. Then the current address is right, except for the member of a
bond or team: it uses the address of its master, which all members share. A bond keeps the address that the member had
before; a team does not, so such a member has no address of its own.
"""

from __future__ import annotations

import errno
import re
from typing import NamedTuple

from roce_exporter.host.kernel import Absent

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

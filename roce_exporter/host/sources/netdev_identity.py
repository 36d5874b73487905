"""What identifies a network device to the switch at the other end of its link: MAC address and host name.

Both are text, and a reading has names and numbers. So they are one name with the value 1, which the catalogue's row takes
apart into labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent

if TYPE_CHECKING:
    from roce_exporter.host.kernel import Kernel


def read_netdev_identity(kernel: Kernel, netdev: str) -> dict[str, int]:
    """`MAC HOSTNAME` and 1. The name of a host that has none is empty.

    Raises:
        Absent: no such network device in this network namespace, or it has no address of its own.
        OSError: as raised by the kernel.
    """
    mac = kernel.mac_address(netdev)
    try:
        hostname = kernel.hostname()
    except Absent:
        hostname = ""
    return {f"{mac} {hostname}": 1}

"""Whether network namespaces share RDMA devices: RDMA_NLDEV_CMD_SYS_GET (Linux 5.2), without any privilege.

In the mode `shared`, the kernel's default, every network namespace sees all devices. In the mode `exclusive`
(`rdma system set netns exclusive`) a device is visible in its own namespace only.
"""

from __future__ import annotations

import errno

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.netlink import (
    Malformed,
    Netlink,
    Refused,
    decode_number,
    decode_values,
    only_payload,
)

NETLINK_RDMA = 20
SYS_GET = 5 << 10 | 6
NETNS_MODE = 66
"""RDMA_NLDEV_SYS_ATTR_NETNS_MODE: 1 shared, 0 exclusive."""


def read_shared_mode(netlink: Netlink | None = None) -> bool:
    """Whether all network namespaces see all devices.

    Raises:
        Absent: there is no RDMA netlink here, or the kernel is older than 5.2.
        OSError: netlink fails, or the reply is malformed.
    """
    socket = netlink or Netlink(NETLINK_RDMA)
    try:
        values = decode_values(only_payload(socket.request(SYS_GET, b"")))
    except Refused as error:
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):
            raise Absent(error.errno, "this kernel does not report the mode of RDMA namespaces") from None
        raise
    except OSError as error:
        if error.errno in (errno.EPROTONOSUPPORT, errno.ECONNREFUSED):
            raise Absent(error.errno, "no RDMA netlink here (is ib_core loaded?)") from None
        raise
    finally:
        socket.close()
    if NETNS_MODE not in values:
        raise Malformed(f"no attribute {NETNS_MODE}")
    return decode_number(values[NETNS_MODE]) == 1

"""Simulated faults of a port: files that fail, files with garbage, interfaces that fail."""

from __future__ import annotations

import errno
import os

FILES, ETHTOOL, NETLINK = "files", "ethtool", "netlink"

FAULTS = (FILES, ETHTOOL, NETLINK)
"""Files of sysfs fail or contain garbage; every ethtool request fails; RDMA netlink has no statistics."""

_FAILING = {
    "counters/port_rcv_errors": errno.EIO,
    "hw_counters/out_of_buffer": errno.EINVAL,
    "statistics/rx_dropped": errno.EIO,
}

_GARBAGE = ("carrier_changes", "counters/port_xmit_discards", "ports/1/rate")


def spoil(faults: frozenset[str], path: str, content: bytes) -> bytes:
    """The content of a file of the port, given that it should be `content`.

    Raises:
        OSError: it cannot be read.
    """
    if FILES not in faults:
        return content
    for ending, number in _FAILING.items():
        if path.endswith(ending):
            raise OSError(number, os.strerror(number), path)
    return b"\xff\xfe?\n" if path.endswith(_GARBAGE) else content


def refuse(faults: frozenset[str], fault: str, what: str) -> None:
    """Fail if the port has this fault.

    Raises:
        OSError: EIO.
    """
    if fault in faults:
        raise OSError(errno.EIO, os.strerror(errno.EIO), what)

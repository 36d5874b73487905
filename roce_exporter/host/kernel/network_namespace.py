"""Read another network namespace: which RDMA devices it has, and how many objects each of them has.

setns(2) with CLONE_NEWNET needs CAP_SYS_ADMIN and moves the calling thread alone. A thread that has entered a namespace
must end afterwards: it is never moved back. The file system and everything else of the thread stay those of this process.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import read_or
from roce_exporter.host.kernel.names import decode_name, encode_name
from roce_exporter.host.kernel.rdma_netlink import RdmaNetlink

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = "/run/netns"
"""Where `ip netns` and the CNI plugins of container runtimes keep namespaces by name."""

CLONE_NEWNET = 0x40000000

MOST_NAMESPACES = 512

Objects = dict[str, dict[str, int]]
"""Kind of object to number in use, by device."""


def list_namespaces(folder: str = FOLDER) -> tuple[str, ...]:
    """The names of the network namespaces in a folder, at most `MOST_NAMESPACES`; empty without the folder.

    OSError: the folder cannot be read.
    """
    try:
        return tuple(sorted(map(decode_name, os.listdir(os.fsencode(folder))))[:MOST_NAMESPACES])
    except FileNotFoundError:
        return ()


def read_namespace(name: str, folder: str = FOLDER, enter: Callable[[int], None] | None = None) -> Objects:
    """The objects of each RDMA device of a namespace. The thread stays there: call this in a thread of its own.

    OSError: the namespace may not be entered (EPERM: without CAP_SYS_ADMIN), was removed, or RDMA netlink fails.
    """
    place = os.path.join(os.fsencode(folder), encode_name(os.path.basename(name)))
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        (enter or _enter)(descriptor)
    finally:
        os.close(descriptor)
    netlink = RdmaNetlink()
    try:
        # A device that was moved meanwhile exists, and nothing more is known of it.
        return {device.name: dict(read_or({}, netlink.resources, device)) for device in netlink.devices()}
    finally:
        netlink.close()


def _enter(descriptor: int) -> None:
    # Python has os.setns since 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "setns")

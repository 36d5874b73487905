"""The kernel log as the exporter follows it, and /dev/kmsg of the live host.

Follows Documentation/ABI/testing/dev-kmsg. Reading needs no privilege where the sysctl `kernel.dmesg_restrict` is 0, else
CAP_SYSLOG. The descriptor is open with O_NONBLOCK: no read waits for a message.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import NamedTuple, Protocol

from roce_exporter.model import MOST_BYTES

PATH = "/dev/kmsg"
READ_BYTES = 4 << 20
"""After which a read ends: 20,000 usual records."""
_HIDDEN = (errno.EPERM, errno.EACCES, errno.ENOENT)
"""Errors of open that mean that this process may not follow the log: `dmesg_restrict`, file mode, a /dev without the node."""


class LogHiddenError(OSError):
    """The host has a kernel log that this process may not read: a missing privilege, not a fault."""


class LogPart(NamedTuple):
    """What one read of the log has returned."""

    records: tuple[bytes, ...]
    """Raw records in their order; empty if there are no new ones."""
    overruns: int
    """How often records were overwritten before they could be read."""
    thinned: bool = False
    """Whether records were left out on purpose: a missing sequence number is no loss then."""


class KernelLog(Protocol):
    """A position in the kernel log."""

    def read(self, most: int) -> LogPart:
        """The next records, at most `most`, which this position then has passed. Does not wait for one.

        OSError: the log cannot be read any more; close it.
        """

    def close(self) -> None:
        """Close the descriptor."""


class LiveKernelLog:
    """/dev/kmsg. Every system call is an argument for tests."""

    def __init__(self, descriptor: int, read: Callable[[int, int], bytes] = os.read) -> None:
        """`descriptor` must be open with O_NONBLOCK."""
        self._descriptor = descriptor
        self._read = read

    def read(self, most: int) -> LogPart:
        records: list[bytes] = []
        overruns = size = 0
        while len(records) < most and overruns < most and size < READ_BYTES:
            try:
                record = self._read(self._descriptor, MOST_BYTES)
            except BlockingIOError:
                break
            except BrokenPipeError:
                # The position is now at the oldest record that is left.
                overruns += 1
                continue
            if not record:
                raise OSError(errno.ENODEV, "ends, although a kernel log has no end", PATH)
            records.append(record)
            size += len(record)
        return LogPart(tuple(records), overruns)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def open_live_log(*, oldest: bool, path: str = PATH) -> LiveKernelLog:
    """The log of this host: see `Kernel.open_kernel_log`.

    Raises:
        LogHiddenError: no permission, or no such device node in this /dev.
        OSError: it is broken.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _HIDDEN:
            raise LogHiddenError(error.errno, error.strerror, path) from None
        raise
    try:
        # Other offsets are refused: see the ABI.
        os.lseek(descriptor, 0, os.SEEK_SET if oldest else os.SEEK_END)
    except OSError:
        os.close(descriptor)
        raise
    return LiveKernelLog(descriptor)

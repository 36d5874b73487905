"""Whether the kernel's clock is kept in time: adjtimex(2) with `modes` 0, which only reads and needs no privilege.

NTP, PTP (phc2sys) and chrony all steer the clock through the same call, so its state does not depend on which of them runs.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import NamedTuple

from roce_exporter.host.kernel import Absent

TIMEX_BYTES = 208
"""Size of `struct timex` (include/uapi/linux/timex.h) on 64-bit machines."""

STA_UNSYNC = 0x40

_MAX_ERROR, _STATUS = 24, 40
"""Offsets of `maxerror` (microseconds) and `status`."""


class ClockState(NamedTuple):
    """The state of the clock."""

    is_synchronised: bool
    most_error: float
    """Bound of the error in seconds, as the program that steers the clock has set it. It grows while none does."""


def read_clock_state() -> ClockState:
    """The state of this host's clock. Absent: this is not a 64-bit Linux. OSError: the kernel refuses."""
    if ctypes.sizeof(ctypes.c_void_p) != 8:  # noqa: PLR2004 - bytes of a pointer
        raise Absent(errno.ENOSYS, "the layout of struct timex is not known on this machine")
    buffer = ctypes.create_string_buffer(TIMEX_BYTES)
    try:
        adjust = ctypes.CDLL(None, use_errno=True).adjtimex
    except AttributeError:
        raise Absent(errno.ENOSYS, "no adjtimex in the C library") from None
    if adjust(buffer) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "adjtimex")
    return decode_clock_state(buffer.raw)


def decode_clock_state(timex: bytes) -> ClockState:
    """The state in a `struct timex` of a 64-bit machine."""
    error = ctypes.c_long.from_buffer_copy(timex, _MAX_ERROR).value
    status = ctypes.c_int.from_buffer_copy(timex, _STATUS).value
    return ClockState(not status & STA_UNSYNC, error / 1e6)

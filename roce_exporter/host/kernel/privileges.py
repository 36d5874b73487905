"""What this process may read of its host: capabilities, other users' processes, debugfs, the kernel log, uverbs; and its clock.

Only reads: /proc/self/status (capabilities(7)), /proc/self/mountinfo (`hidepid`, Documentation/filesystems/proc.rst), /proc/sys,
and the permissions of files; for the clock adjtimex(2) with `modes` 0, which needs no privilege. NTP, PTP (phc2sys) and chrony all
steer the clock through this call, so its state does not depend on which of them runs.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
from pathlib import Path
from typing import NamedTuple

from roce_exporter.host.kernel import Absent, read_or

CAPABILITIES = {
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYSLOG": 34,
}
"""Those that add something to the exporter, and their numbers (include/uapi/linux/capability.h)."""

HOST_PID_NAMESPACE = 0xEFFFFFFC  # inode number of the first PID namespace (include/linux/proc_ns.h)
_HIDING = re.compile("hidepid=(?:1|2|4|noaccess|invisible|ptraceable)")


class Privileges(NamedTuple):
    """What this process may read."""

    user: int
    capabilities: frozenset[str]
    """Effective ones, of those in `CAPABILITIES`."""
    hidden_processes: bool
    """Whether /proc hides processes of other users (`hidepid`)."""
    host_processes: bool
    """Whether this is the host's PID namespace."""
    kernel_log: bool
    debugfs: bool
    uverbs: bool | None
    """Whether all /dev/infiniband/uverbs* can be opened; None without any."""


def read_privileges(root: Path = Path("/")) -> Privileges:
    """The privileges of this process. `root` is the folder that has `proc`, `sys` and `dev`."""

    def text(path: str) -> str:
        return read_or("", (root / path).read_text, errors="replace")

    capabilities = effective_capabilities(text("proc/self/status"))
    restricted = text("proc/sys/kernel/dmesg_restrict").strip() == "1"
    namespace = read_or(0, lambda: (root / "proc/self/ns/pid").stat().st_ino)
    devices = sorted((root / "dev/infiniband").glob("uverbs*"))
    return Privileges(
        os.geteuid(),
        capabilities,
        hides_processes(text("proc/self/mountinfo")) and "CAP_SYS_PTRACE" not in capabilities,
        namespace == HOST_PID_NAMESPACE,
        not restricted or "CAP_SYSLOG" in capabilities,
        os.access(root / "sys/kernel/debug", os.R_OK | os.X_OK),
        all(os.access(device, os.R_OK | os.W_OK) for device in devices) if devices else None,
    )


def effective_capabilities(status: str) -> frozenset[str]:
    """The effective capabilities in a text of /proc/PID/status."""
    found = re.search(r"^CapEff:\s*([0-9a-f]{1,16})$", status, re.MULTILINE)
    mask = int(found[1], 16) if found else 0
    return frozenset(name for name, number in CAPABILITIES.items() if mask >> number & 1)


def hides_processes(mountinfo: str) -> bool:
    """Whether /proc is mounted so that processes of other users are hidden. The last mount over a place counts."""
    options = ""
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.split(" ")[4:5] == ["/proc"] and rest.startswith("proc "):
            options = rest.split(" ")[-1]
    return any(_HIDING.fullmatch(one) for one in options.split(","))


TIMEX_BYTES = 208  # size of `struct timex` (include/uapi/linux/timex.h) on 64-bit machines
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

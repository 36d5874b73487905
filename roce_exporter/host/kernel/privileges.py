"""What this process may read of its host: capabilities, other users' processes, debugfs, the kernel log, uverbs.

Only reads: /proc/self/status (capabilities(7)), /proc/self/mountinfo (`hidepid`, Documentation/filesystems/proc.rst), /proc/sys,
and the permissions of files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from roce_exporter.host.kernel import read_or

CAPABILITIES = {
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYSLOG": 34,
}
"""Those that add something to the exporter, and their numbers (include/uapi/linux/capability.h)."""

HOST_PID_NAMESPACE = 0xEFFFFFFC
"""Inode number of the first PID namespace (include/linux/proc_ns.h)."""

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

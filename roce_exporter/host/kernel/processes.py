"""What /proc reports of the process that created an RDMA object.

See Documentation/filesystems/proc.rst and cgroups(7). RDMA netlink reports the thread that created an object. Its number
works in /proc like a process ID, but its name is its own ("NCCL Service 0"), so the name is read from its process.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.names import decode_name
from roce_exporter.model.owner import ProcessFacts

if TYPE_CHECKING:
    from psutil import Process

FILE_MOST_BYTES = 16_384
"""A path of a cgroup has at most 4,095 bytes. With cgroup v1 there are a dozen, all of them short in practice."""
PROC = "/proc"
AFTER_COMMAND = 19  # position of `starttime` among the fields after the command


def read_process(pid: int) -> ProcessFacts:
    """What /proc reports of a process, or of the process of a thread. The creation time is that of `pid` itself.

    Raises:
        Absent: there is no such process any more, or too little is left of it.
        PermissionError: /proc hides it from this process (`hidepid=`, `ProtectProc=`).
        OSError: /proc cannot be read.
    """
    # Imported here: a host without RDMA objects does not pay for it.
    import psutil  # noqa: PLC0415

    try:
        return _read_facts(psutil.Process(pid), psutil.Process)
    except (psutil.AccessDenied, PermissionError):
        raise _hidden(pid) from None
    except psutil.ZombieProcess:
        raise _missing(pid) from None
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        raise _hidden(pid) if _exists(pid) else _missing(pid) from None


def read_process_start(pid: int) -> float:
    """When a process or thread began, in clock ticks since boot: field 22 of /proc/PID/stat; errors as of `read_process`."""
    try:
        content = _content(pid, "stat")
    except PermissionError:
        raise _hidden(pid) from None
    except (FileNotFoundError, ProcessLookupError):
        raise _hidden(pid) if _exists(pid) else _missing(pid) from None
    try:
        # Field 2 is the command in parentheses, which can contain spaces and parentheses.
        return int(content[content.rindex(b")") + 2 :].split(maxsplit=AFTER_COMMAND + 1)[AFTER_COMMAND])
    except (ValueError, IndexError):
        raise OSError(errno.EPROTO, "not a stat file of proc", f"{PROC}/{pid}/stat") from None


def _read_facts(found: Process, process: Callable[[int], Process]) -> ProcessFacts:
    leader = _leader(_content(found.pid, "status"), found.pid)
    with found.oneshot():
        created, user = found.create_time(), found.username()
    return ProcessFacts(
        pid=leader,
        created=created,
        command=_text((found if leader == found.pid else process(leader)).name()),
        user=_text(user),
        cgroups=_content(found.pid, "cgroup").decode("utf-8", "replace"),
    )


def _leader(status: bytes, pid: int) -> int:
    """The process of a thread: `Tgid` of /proc/PID/status."""
    for line in status.splitlines():
        name, _, value = line.partition(b":")
        if name == b"Tgid" and value.strip().isdigit():
            return int(value)
    return pid


def _content(pid: int, name: str) -> bytes:
    with open(f"{PROC}/{pid}/{name}", "rb") as file:
        return file.read(FILE_MOST_BYTES)


def _text(name: str) -> str:
    # psutil keeps undecodable bytes as lone surrogates, which no output can encode.
    return decode_name(os.fsencode(name))


def _exists(pid: int) -> bool:
    # Succeeds for processes that /proc hides, and needs no privilege.
    try:
        os.getsid(pid)
    except (OSError, OverflowError):
        return False
    return True


def _hidden(pid: int) -> PermissionError:
    return PermissionError(errno.EACCES, "/proc hides the process", f"{PROC}/{pid}")


def _missing(pid: int) -> Absent:
    return Absent(errno.ESRCH, os.strerror(errno.ESRCH), f"{PROC}/{pid}")

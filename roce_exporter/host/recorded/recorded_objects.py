"""RDMA objects and their owners in a recording, at one moment: an `ObjectKernel` without its other parts.

Processes are the files of /proc/PID (proc(5)), with the boot time in /proc/stat and names in /etc/passwd.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.host.recorded.rdma_text import (
    COUNTER_SET_FILE,
    OBJECT_FILES,
    read_counter_sets,
    read_objects,
)
from roce_exporter.host.recorded.tree import RecordingError
from roce_exporter.model.owner import ProcessFacts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roce_exporter.host.recorded.tree import Tree
    from roce_exporter.model.owner import CounterSet, ObjectKind, RdmaObject


TICKS = 100
"""USER_HZ: start times are counted in it on every architecture with RDMA drivers."""

_START = 19
"""Position of `starttime` after the name of the command, which may contain spaces and parentheses."""

_LEADER = re.compile(r"^Tgid:\s+(\d{1,10})\b", re.MULTILINE | re.ASCII)
"""RDMA netlink reports the thread that made an object; this is its process."""
_UID = re.compile(r"^Uid:\s+(\d{1,10})\b", re.MULTILINE | re.ASCII)
_BOOT = re.compile(r"^btime (\d{1,12})$", re.MULTILINE | re.ASCII)
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)

MAX_PID = 1 << 22
"""PID_MAX_LIMIT of include/linux/threads.h."""


FIRST_UID = 60_001
"""Of the users that are not root: above those of people and below those of systemd's containers."""


def read_processes(tree: Tree, path: str) -> dict[int, ProcessFacts]:
    """The recorded processes by their process ID: those with a file `stat`. Without a boot time they begin at 1970."""
    text = _text(tree, "proc/stat")
    booted = _BOOT.search(text)
    if text and not booted:
        raise RecordingError(f"recording {path}: proc/stat: no line `btime`; copy it from /proc/stat")
    boot = int(booted[1]) if booted else 0
    names = _user_names(_text(tree, "etc/passwd"))
    return {
        pid: _process(tree, path, pid, boot, names) for pid in _pids(tree) if f"proc/{pid}/stat" in tree.files
    }


def print_processes(processes: Mapping[int, ProcessFacts]) -> dict[str, str]:
    """The files of these processes and threads, by their ID. Each user that is not a number gets one of its own."""
    if not processes:
        return {}
    boot = int(min(one.created for one in processes.values()))
    given = {one.user for one in processes.values()}
    free = (number for number in count(FIRST_UID) if str(number) not in given)
    named = sorted(user for user in given if user and not user.isdecimal())
    uids = {user: 0 if user == "root" else next(free) for user in named}
    found = {
        "proc/stat": f"btime {boot}\n",
        "etc/passwd": "".join(f"{user}:x:{uid}:{uid}::/:/bin/false\n" for user, uid in uids.items()),
    }
    for pid, one in sorted(processes.items()):
        found |= _files(pid, one, round((one.created - boot) * TICKS), uids)
    return found


def _files(pid: int, one: ProcessFacts, start: int, uids: Mapping[str, int]) -> dict[str, str]:
    uid = uids.get(one.user, one.user)
    # The fields between the name of the command and the start time, which are not read.
    before = " ".join(["S", *"0" * (_START - 1)])
    return {
        f"proc/{pid}/comm": f"{one.command}\n",
        f"proc/{pid}/cgroup": one.cgroups,
        f"proc/{pid}/stat": f"{pid} ({one.command}) {before} {start}\n",
        f"proc/{pid}/status": f"Name:\t{one.command}\nTgid:\t{one.pid}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n",
    }


def _pids(tree: Tree) -> list[int]:
    names = tree.folders.get("proc", ())
    return sorted(
        int(name)
        for name in names
        if _DIGITS.fullmatch(name) and 0 < int(name) <= MAX_PID and str(int(name)) == name
    )


def _process(tree: Tree, path: str, pid: int, boot: int, names: Mapping[int, str]) -> ProcessFacts:
    before, _, after = _text(tree, f"proc/{pid}/stat").rpartition(")")
    fields = after.split()
    if len(fields) <= _START or not _DIGITS.fullmatch(fields[_START]):
        raise RecordingError(
            f"recording {path}: proc/{pid}/stat: no start time in field 22; copy it from /proc"
        )
    status = _text(tree, f"proc/{pid}/status")
    uid = _UID.search(status)
    if status and not uid:
        raise RecordingError(f"recording {path}: proc/{pid}/status: no line `Uid:`; copy it from /proc/{pid}")
    found = _LEADER.search(status)
    leader = int(found[1]) if found else pid
    return ProcessFacts(
        pid=leader,
        created=boot + int(fields[_START]) / TICKS,
        command=_comm(tree, leader) or _comm(tree, pid) or before.partition("(")[2],
        user=names.get(int(uid[1]), uid[1]) if uid else "",
        cgroups=_text(tree, f"proc/{pid}/cgroup"),
    )


def _comm(tree: Tree, pid: int) -> str:
    return _text(tree, f"proc/{pid}/comm").removesuffix("\n")


def _user_names(passwd: str) -> dict[int, str]:
    """The first name of each number, as getpwuid(3) returns it."""
    found: dict[int, str] = {}
    for line in passwd.splitlines():
        name, _, rest = line.partition(":")
        uid = rest.split(":")[1:2]
        if name and uid and _DIGITS.fullmatch(uid[0]):
            found.setdefault(int(uid[0]), name)
    return found


def _text(tree: Tree, place: str) -> str:
    return tree.files.get(place, b"").decode("utf-8", "replace")


PART = 50
"""Objects of one part, about as many as fit in a reply of the kernel."""


class HeldObjects:
    """A list of objects in memory, in parts."""

    def __init__(self, objects: Sequence[RdmaObject], part: int = PART) -> None:
        self._left = tuple(objects)
        self._part = part

    def next_part(self) -> tuple[RdmaObject, ...] | None:
        part, self._left = self._left[: self._part], self._left[self._part :]
        return part or None

    def close(self) -> None:
        self._left = ()


@dataclass(frozen=True, slots=True)
class RecordedObjects:
    """Objects, counter sets and processes of a host at one moment."""

    objects: Mapping[tuple[str, ObjectKind], tuple[RdmaObject, ...]] = field(default_factory=dict)
    """By device and kind; ("", kind) says that the kind was recorded."""
    counter_sets: Mapping[str, tuple[CounterSet, ...]] | None = None
    """By device; None: not recorded."""
    processes: Mapping[int, ProcessFacts] = field(default_factory=dict)

    def open_objects(self, device: str, kind: ObjectKind) -> HeldObjects:
        """See `ObjectKernel.open_objects`."""
        if ("", kind) not in self.objects:
            raise Absent(errno.EOPNOTSUPP, f"no {OBJECT_FILES[kind]} in this recording")
        return HeldObjects(self.objects.get((device, kind), ()))

    def sets_of(self, device: str, port: int) -> tuple[CounterSet, ...]:
        """See `ObjectKernel.counter_sets`."""
        if self.counter_sets is None:
            raise Absent(errno.EOPNOTSUPP, f"no {COUNTER_SET_FILE} in this recording")
        return tuple(one for one in self.counter_sets.get(device, ()) if one.port == port)

    def process(self, pid: int) -> ProcessFacts:
        """See `ObjectKernel.process`."""
        try:
            return self.processes[pid]
        except KeyError:
            raise Absent(errno.ESRCH, os.strerror(errno.ESRCH), f"proc/{pid}") from None


def read_recorded_objects(tree: Tree, path: str) -> RecordedObjects:
    """Read the files about objects and processes; `path` names the recording in errors."""
    return RecordedObjects(
        read_objects(tree, path), read_counter_sets(tree, path), read_processes(tree, path)
    )

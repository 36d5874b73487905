"""What `rdma -j` and `ibv_devinfo -v` print, and what /proc has of processes: read, checked when the recording is opened, and printed by a capture.

Keys as in rdma/res-*.c and rdma/stat.c of iproute2. Keys of memory regions (`rkey`, `lkey`) are never printed: with one of
them a peer can read and write that memory.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from roce_exporter.host.kernel.processes import FILE_MOST_BYTES
from roce_exporter.host.kernel.uverbs import LIMITS
from roce_exporter.host.recorded.dcb_text import is_count, shown
from roce_exporter.host.recorded.tree import RecordingError, Tree
from roce_exporter.model.owner import CounterSet, ObjectKind, ProcessFacts, RdmaObject

Row = dict[str, Any]

Rows = tuple[Row, ...]
RDMA_FILES = ("dev", "link", "statistic", "mode", "mode_supported", "resource")
ON = "optional-counters"
SUPPORTED = "supported optional-counters"


def read_rdma(tree: Tree, path: str) -> dict[str, Rows]:
    """The rows of each recorded file of `RDMA_FILES`; `path` names the recording in errors."""
    found: dict[str, Rows] = {}
    for kind in RDMA_FILES:
        name = f"rdma/{kind}.json"
        if name in tree.files:
            what = f"recording {path}: {name}"
            rows = read_rows(tree.files[name], what)
            for row in rows:
                for key, value in row.items():
                    if kind in ("statistic", "resource") and key != "ifname":
                        _number(row, key, what)
                    named = isinstance(value, list) and all(isinstance(name, str) for name in value)
                    if key in (ON, SUPPORTED) and not named:
                        raise RecordingError(
                            f"{what}: {key} of {row['ifname']} is {shown(value)}, not a list of names"
                        )
            found[kind] = rows
    return found


def read_json(text: bytes, what: str, tool: str) -> object:
    """The document that `tool` printed; `what` names the file."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise RecordingError(f"{what}: not JSON ({error}); record it with `{tool}`") from None
    except RecursionError:
        raise RecordingError(f"{what}: not JSON (nested too deeply); record it with `{tool}`") from None


def read_rows(text: bytes, what: str) -> Rows:
    """The rows in the output of one `rdma -j` command, which prints nothing if it has no row."""
    rows = read_json(text.strip() or b"[]", what, "rdma -j")
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and isinstance(row.get("ifname"), str) for row in rows
    ):
        raise RecordingError(f"{what}: not a list of objects with an ifname; record it with `rdma -j`")
    for row in rows:
        for key in ("port", "ifindex"):
            if key in row:
                _number(row, key, what)
    return tuple(rows)


_LINE = re.compile(rf"^[ \t]*({'|'.join(LIMITS)}):[ \t]+([0-9]{{1,20}})[ \t]*$", re.MULTILINE)


def parse_limits(text: str) -> dict[str, int]:
    """The limits by name; empty if the text has none. A limit of 0 is one that the driver does not report."""
    return {name: int(most) for name, most in _LINE.findall(text) if int(most)}


def print_limits(device: str, limits: Mapping[str, int]) -> str:
    """The lines that `parse_limits` reads, below the name of the device."""
    return f"hca_id:\t{device}\n" + "".join(f"\t{name}:\t\t\t{most}\n" for name, most in limits.items())


OBJECT_FILES = {kind: f"rdma/resource-{kind.value}.json" for kind in ObjectKind}
COUNTER_SET_FILE = "rdma/statistic-qp.json"

_NUMBERS = {
    ObjectKind.QUEUE_PAIR: {"port": "port", "lqpn": "number", "rqpn": "remote"},
    ObjectKind.CONNECTION: {"port": "port", "lqpn": "number"},
    ObjectKind.MEMORY_REGION: {"mrlen": "size"},
}
"""Keys with a number, and the field of the object."""

_TEXTS = {
    ObjectKind.QUEUE_PAIR: {"type": "type", "state": "state"},
    ObjectKind.CONNECTION: {"qp-type": "type", "state": "state"},
}
"""Keys with a text, and the field of the object."""

_NO_COUNTERS = frozenset({"ifindex", "ifname", "port", "cntn", "qp-type", "pid", "comm", "lqpn"})
"""Keys of a counter set that are not the name of a counter."""


def read_objects(tree: Tree, path: str) -> dict[tuple[str, ObjectKind], tuple[RdmaObject, ...]]:
    """The recorded objects by device and kind. A recorded kind without objects of a device is in it, too, as ("", kind)."""
    found: dict[tuple[str, ObjectKind], list[RdmaObject]] = {}
    for kind, name in OBJECT_FILES.items():
        if name in tree.files:
            found["", kind] = []
            what = f"recording {path}: {name}"
            for row in read_rows(tree.files[name], what):
                found.setdefault((row["ifname"], kind), []).append(_object(kind, row, what))
    return {key: tuple(objects) for key, objects in found.items()}


def read_counter_sets(tree: Tree, path: str) -> dict[str, tuple[CounterSet, ...]] | None:
    """The recorded counter sets by device; None if there is no such file."""
    text = tree.files.get(COUNTER_SET_FILE)
    if text is None:
        return None
    what = f"recording {path}: {COUNTER_SET_FILE}"
    found: dict[str, list[CounterSet]] = {}
    for row in read_rows(text, what):
        one = CounterSet(
            port=_number(row, "port", what),
            number=_number(row, "cntn", what),
            pid=_number(row, "pid", what) if "pid" in row else 0,
            type=_text(row, "qp-type", what),
            values={key: _number(row, key, what) for key in row if key not in _NO_COUNTERS},
        )
        found.setdefault(row["ifname"], []).append(one)
    return {device: tuple(sets) for device, sets in found.items()}


def print_object(one: RdmaObject, comm: str) -> Row:
    """The row of an object, without its device. `comm` is the command of its process, where it is known."""
    keys = {**_NUMBERS.get(one.kind, {}), **_TEXTS.get(one.kind, {})}
    row: Row = {key: value for key, field in keys.items() if (value := getattr(one, field))}
    if one.pid:
        row["pid"] = one.pid
    if name := comm if one.pid else one.kernel:
        row["comm"] = name
    if one.peer:
        # No object has the port number, which is not read.
        row["dst-addr"] = f"{one.peer}:0"
    return row


def print_counter_set(counted: CounterSet, comm: str) -> Row:
    """The row of a counter set, without its device."""
    row: Row = {"port": counted.port, "cntn": counted.number}
    if counted.type:
        row["qp-type"] = counted.type
    if counted.pid:
        row |= {"pid": counted.pid} | ({"comm": comm} if comm else {})
    return row | dict(counted.values)


def _object(kind: ObjectKind, row: Row, what: str) -> RdmaObject:
    numbers = {"pid": "pid", **_NUMBERS.get(kind, {})}
    fields: dict[str, Any] = {field: _number(row, key, what) for key, field in numbers.items() if key in row}
    fields |= {field: _text(row, key, what) for key, field in _TEXTS.get(kind, {}).items()}
    name = _text(row, "comm", what)
    if not fields.get("pid"):
        fields["kernel"] = name
    if kind is ObjectKind.CONNECTION and "dst-addr" in row:
        fields["peer"] = _peer(row, what)
    return RdmaObject(kind, **fields)


def _number(row: Mapping[str, Any], key: str, what: str) -> int:
    value = row.get(key)
    if not is_count(value):
        raise RecordingError(f"{what}: {key} of {row['ifname']} is {shown(value)}, not a whole number")
    return value


def _text(row: Mapping[str, Any], key: str, what: str) -> str:
    """The text of a key; empty if it is missing or null, which rdma prints for a process that has ended."""
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RecordingError(f"{what}: {key} of {row['ifname']} is {shown(value)}, not a text")
    return value


def _peer(row: Mapping[str, Any], what: str) -> str:
    """The address of `ADDRESS:PORT`; rdma prints IPv6 addresses without brackets."""
    text = _text(row, "dst-addr", what)
    try:
        return str(ipaddress.ip_address(text.rpartition(":")[0]))
    except ValueError:
        raise RecordingError(
            f"{what}: dst-addr of {row['ifname']} is {shown(text)}, not an address and a port number"
        ) from None


TICKS = 100  # USER_HZ: start times are counted in it on every architecture with RDMA drivers
_START = 19  # position of `starttime` after the name of the command, which may contain spaces and parentheses
_LEADER = re.compile(r"^Tgid:\s+(\d{1,10})\b", re.MULTILINE | re.ASCII)
"""RDMA netlink reports the thread that made an object; this is its process."""
_UID = re.compile(r"^Uid:\s+(\d{1,10})\b", re.MULTILINE | re.ASCII)
_BOOT = re.compile(r"^btime (\d{1,12})$", re.MULTILINE | re.ASCII)
_DIGITS = re.compile(r"\d{1,18}", re.ASCII)
MAX_PID = 1 << 22  # PID_MAX_LIMIT of include/linux/threads.h
FIRST_UID = 60_001
"""Of the users that are not root: above those of people and below those of systemd's containers."""


def read_processes(tree: Tree, path: str) -> dict[int, ProcessFacts]:
    """The recorded processes by their process ID: those with a file `stat`. Without a boot time they begin at 1970."""
    text = _file_text(tree, "proc/stat")
    booted = _BOOT.search(text)
    if text and not booted:
        raise RecordingError(f"recording {path}: proc/stat: no line `btime`; copy it from /proc/stat")
    boot = int(booted[1]) if booted else 0
    names = _user_names(_file_text(tree, "etc/passwd"))
    numbers = {int(name) for name in tree.folders.get("proc", ()) if _DIGITS.fullmatch(name)}
    return {
        pid: _process(tree, path, pid, boot, names)
        for pid in sorted(numbers)
        if 0 < pid <= MAX_PID and f"proc/{pid}/stat" in tree.files
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


def _process(tree: Tree, path: str, pid: int, boot: int, names: Mapping[int, str]) -> ProcessFacts:
    before, _, after = _file_text(tree, f"proc/{pid}/stat").rpartition(")")
    fields = after.split()
    if len(fields) <= _START or not _DIGITS.fullmatch(fields[_START]):
        raise RecordingError(
            f"recording {path}: proc/{pid}/stat: no start time in field 22; copy it from /proc"
        )
    status = _file_text(tree, f"proc/{pid}/status")
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
        cgroups=_file_text(tree, f"proc/{pid}/cgroup")[:FILE_MOST_BYTES],
    )


def _comm(tree: Tree, pid: int) -> str:
    return _file_text(tree, f"proc/{pid}/comm").removesuffix("\n")


def _user_names(passwd: str) -> dict[int, str]:
    """The first name of each number, as getpwuid(3) returns it."""
    found: dict[int, str] = {}
    for line in passwd.splitlines():
        name, _, rest = line.partition(":")
        uid = rest.split(":")[1:2]
        if name and uid and _DIGITS.fullmatch(uid[0]):
            found.setdefault(int(uid[0]), name)
    return found


def _file_text(tree: Tree, place: str) -> str:
    return tree.files.get(place, b"").decode("utf-8", "replace")


PART = 50  # objects of one part, about as many as fit in a reply of the kernel


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

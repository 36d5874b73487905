"""What `rdma -j` and `ibv_devinfo -v` print: read, checked when the recording is opened, and printed by a capture.

Keys as in rdma/res-*.c and rdma/stat.c of iproute2. Keys of memory regions (`rkey`, `lkey`) are never printed: with one of
them a peer can read and write that memory.
"""

from __future__ import annotations

import ipaddress
import json
import re
from typing import TYPE_CHECKING, Any

from roce_exporter.host.kernel.uverbs import LIMITS
from roce_exporter.host.recorded.dcb_text import is_count, shown
from roce_exporter.host.recorded.tree import RecordingError
from roce_exporter.model.owner import CounterSet, ObjectKind, RdmaObject

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.host.recorded.tree import Tree

    Row = dict[str, Any]


Rows = tuple[dict[str, Any], ...]

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


_LINE = re.compile(rf"^\s*({'|'.join(LIMITS)}):\s+(\d+)\s*$", re.MULTILINE)


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
        found.setdefault(row["ifname"], []).append(_counter_set(row, what))
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


def _counter_set(row: Row, what: str) -> CounterSet:
    return CounterSet(
        port=_number(row, "port", what),
        number=_number(row, "cntn", what),
        pid=_number(row, "pid", what) if "pid" in row else 0,
        type=_text(row, "qp-type", what),
        values={key: _number(row, key, what) for key in row if key not in _NO_COUNTERS},
    )


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

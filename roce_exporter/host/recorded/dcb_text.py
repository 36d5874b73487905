"""The JSON of iproute2's dcb in a recorded host: a capture prints it, and a recording is read from it.

`dcb -s -j pfc show dev DEV` (.pfc.json; without `-s` it prints no pause frames), and `dcb -j` for ets, app, buffer and
dcbx. Not maxrate: older versions of dcb print kbit/s as received from the kernel, versions since the end of 2025 bytes per
second, and the document does not name the unit. dcb does not print the peer's parts: its PFC is a document of our own,
.peer_pfc.json, in the format of .pfc.json.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeGuard, TypeVar

from roce_exporter.host.kernel.dcb_netlink import ALGORITHMS, MODES, SELECTORS, Dcb
from roce_exporter.host.recorded.tree import RecordingError
from roce_exporter.words import word_map

T = TypeVar("T")
KINDS = ("pfc", "ets", "app", "buffer", "dcbx", "peer_pfc")
"""The documents of one network device in a recording: DEV.pfc.json, DEV.ets.json, ..."""
LARGEST = (1 << 64) - 1  # the kernel has no wider counter
EIGHT = 8  # priorities, traffic classes and buffers


class _DocumentError(Exception):
    """An invalid document; the text says why."""


def is_count(value: object) -> TypeGuard[int]:
    """Whether a value of a JSON document is a possible value of a kernel counter."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


def shown(value: object) -> str:
    """A value of a JSON document for an error message, cut to 60 characters."""
    return f"{reprlib.repr(value):.60}"


def _number(value: object, name: str) -> int:
    if not is_count(value):
        raise _DocumentError(f"{name} holds {shown(value)}, not a whole number")
    return value


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise _DocumentError(f"{name} holds {shown(value)}, neither true nor false")
    return value


def _algorithm(value: object, name: str) -> object:
    if (not isinstance(value, str) or value not in ALGORITHMS) and not is_count(value):
        raise _DocumentError(f"{name} holds {shown(value)}, none of {', '.join(ALGORITHMS)}")
    return value


def _list(value: object, name: str) -> list[object]:
    if not isinstance(value, list):
        raise _DocumentError(f"{name} is {shown(value)}, not a list")
    return value


def _eight(read: Callable[[object, str], T], value: object, name: str) -> tuple[T, ...]:
    values = _list(value, name)
    if len(values) != EIGHT:
        raise _DocumentError(f"{name} holds {len(values)} values, not {EIGHT}")
    return tuple(read(one, name) for one in values)


_FRAMES = ("requests", "indications")  # without -s dcb does not print them
_READERS: dict[str, Callable[[object, str], object]] = {
    "number": _number,
    "flag": _flag,
    "numbers": partial(_eight, _number),
    "flags": partial(_eight, _flag),
    "algorithms": partial(_eight, _algorithm),
}
_PFC = word_map(
    "pfc_cap=number macsec_bypass=flag delay=number prio_pfc=flags requests=numbers indications=numbers"
)
_SHAPES = {
    "pfc": _PFC,
    "ets": word_map(
        "willing=flag ets_cap=number cbs=flag tc_bw=numbers pg_bw=numbers tc_tsa=algorithms prio_tc=numbers"
    ),
    "buffer": word_map("prio_buffer=numbers buffer_size=numbers total_size=number"),
    "peer_pfc": _PFC,
}
"""The documents with a fixed set of keys, and what reads the value of each."""


def read_dcb(documents: Mapping[str, object], netdev: str, recording: str) -> Dcb:
    """The DCB settings of one network device; `documents` has the JSON of its files by kind (`KINDS`). Unknown keys are left out."""
    found: dict[str, Any] = {}
    for kind, document in documents.items():
        try:
            if not isinstance(document, dict):
                raise _DocumentError("not an object")  # noqa: TRY301 - as the others
            found[kind] = _read(kind, document)
        except _DocumentError as error:
            raise RecordingError(
                f"recording {recording}: dcb/{netdev}.{kind}.json: {error}; "
                f"record it with `dcb -s -j {kind} show dev {netdev}`"
            ) from None
    return found


def _read(kind: str, document: Mapping[str, object]) -> Dcb:
    if kind == "dcbx":
        return {name: True for name in MODES if _flag(document.get(name, False), name)}
    if kind != "app":
        return {
            key: _READERS[shape](document.get(key), key)
            for key, shape in _SHAPES[kind].items()
            if key in document or key not in _FRAMES
        }
    found: Dcb = {
        name: tuple(_row(row, name) for row in _list(document[name], name))
        for name in SELECTORS
        if name in document
    }
    if "default_prio" in document:
        priorities = _list(document["default_prio"], "default_prio")
        found["default_prio"] = tuple(_number(one, "default_prio") for one in priorities)
    return found


def _row(row: object, name: str) -> tuple[int | str, int]:
    match row:
        case [str(protocol), priority] if name == "pcp_prio":  # `5de`: of priority 5, eligible to be dropped
            return protocol, _number(priority, name)
        case [protocol, priority]:
            return _number(protocol, name), _number(priority, name)
    raise _DocumentError(f"{name} holds {shown(row)}, not a pair")

"""The JSON of iproute2's dcb in a recorded host: a capture prints it, and a recording is read from it.

`dcb -s -j pfc show dev DEV` (.pfc.json; without `-s` it prints no pause frames), and `dcb -j` for ets, app, buffer and
dcbx. Not maxrate: older versions of dcb print kbit/s as received from the kernel, versions since the end of 2025 bytes per
second, and the document does not name the unit. dcb does not print the peer's parts: its PFC is a document of our own,
.peer_pfc.json, in the format of .pfc.json.
"""

from __future__ import annotations

import reprlib
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from roce_exporter.host.kernel import dcb_netlink
from roce_exporter.host.recorded.tree import RecordingError
from roce_exporter.words import word_map

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")
KINDS = ("pfc", "ets", "app", "buffer", "dcbx")
"""The documents of one network device in a recording: DEV.pfc.json, DEV.ets.json, ..."""
PEER_PFC = "peer_pfc"  # our own DEV.peer_pfc.json
LARGEST = (1 << 64) - 1  # the kernel has no wider counter
EIGHT = 8  # priorities, traffic classes and buffers

SELECTORS = {
    "ethtype_prio": 1,
    "stream_port_prio": 2,
    "dgram_port_prio": 3,
    "port_prio": 4,
    "dscp_prio": dcb_netlink.SELECTOR_DSCP,
    "pcp_prio": dcb_netlink.SELECTOR_PCP,
}

PCP = {f"{priority}{drop}": priority + 8 * (drop == "de") for priority in range(8) for drop in ("nd", "de")}
"""Priority code point and drop eligible indicator, as dcb writes them."""
ALGORITHMS = {"strict": 0, "cbs": 1, "ets": 2, "vendor": 255}

MODES = {
    "host": dcb_netlink.DCBX_HOST,
    "lld_managed": dcb_netlink.DCBX_LLD_MANAGED,
    "cee": dcb_netlink.DCBX_VER_CEE,
    "ieee": dcb_netlink.DCBX_VER_IEEE,
    "static": dcb_netlink.DCBX_STATIC,
}


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


def _keyword(known: Mapping[str, int], value: object, name: str) -> int:
    if not isinstance(value, str) or value not in known:
        raise _DocumentError(f"{name} holds {shown(value)}, none of {', '.join(known)}")
    return known[value]


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

_PFC = word_map(
    "pfc_cap=capacity macsec_bypass=mbc delay=delay prio_pfc=enabled requests=requests indications=indications"
)
_ETS = word_map(
    """
    willing=willing ets_cap=capacity cbs=cbs tc_bw=transmit_bandwidth pg_bw=receive_bandwidth tc_tsa=algorithm
    prio_tc=traffic_class
    """
)
_STRUCTS: dict[str, tuple[Any, dict[str, str]]] = {
    "pfc": (dcb_netlink.Pfc, _PFC),
    "ets": (dcb_netlink.Ets, _ETS),
    "buffer": (dcb_netlink.Buffer, word_map("prio_buffer=of_priority buffer_size=size total_size=total")),
    PEER_PFC: (dcb_netlink.Pfc, _PFC),
}
"""The documents with a fixed set of keys, and the field of the struct that each key is."""

_READERS: dict[str, Callable[[object, str], object]] = {
    "int": _number,
    "bool": _flag,
    "tuple[int, ...]": partial(_eight, _number),
    "tuple[bool, ...]": partial(_eight, _flag),
}
"""By the type of the field."""


def read_dcb(documents: Mapping[str, object], netdev: str, recording: str) -> dcb_netlink.Dcb:
    """The DCB settings of one network device; `documents` has the JSON of its files by kind (`KINDS` or `PEER_PFC`).

    A kind without a document is None in the result, as is everything that no document contains.
    """
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
    return dcb_netlink.Dcb(**found)


def _read(kind: str, document: Mapping[str, object]) -> object:
    if kind == "app":
        return _read_app(document)
    if kind == "dcbx":
        return sum(bit for name, bit in MODES.items() if _flag(document.get(name, False), name))
    struct, keys = _STRUCTS[kind]
    readers = {field.name: _READERS[str(field.type)] for field in fields(struct)}
    found: dict[str, object] = {}
    for key, name in keys.items():
        read = partial(_eight, partial(_keyword, ALGORITHMS)) if key == "tc_tsa" else readers[name]
        found[name] = () if key in _FRAMES and key not in document else read(document.get(key), key)
    return struct(**found)


def _read_app(document: Mapping[str, object]) -> tuple[dcb_netlink.App, ...]:
    rows = [
        _row(row, name, selector)
        for name, selector in SELECTORS.items()
        for row in _list(document.get(name, []), name)
    ]
    # The kernel stores a port's default priority as that of EtherType 0.
    priorities = _list(document.get("default_prio", []), "default_prio")
    return (*rows, *(dcb_netlink.App(1, 0, _number(priority, "default_prio")) for priority in priorities))


def _row(row: object, name: str, selector: int) -> dcb_netlink.App:
    match row:
        case [str(protocol), priority] if selector == dcb_netlink.SELECTOR_PCP:
            return dcb_netlink.App(selector, _keyword(PCP, protocol, name), _number(priority, name))
        case [protocol, priority]:
            return dcb_netlink.App(selector, _number(protocol, name), _number(priority, name))
    raise _DocumentError(f"{name} holds {shown(row)}, not a pair")


def print_dcb(dcb: dcb_netlink.Dcb) -> dict[str, dict[str, Any]]:
    """A document for each reported part, by its kind. Rates, and the peer's parts except PFC, are not printed."""
    algorithms = {number: name for name, number in ALGORITHMS.items()}
    found: dict[str, dict[str, Any]] = {}
    for kind, (_, keys) in _STRUCTS.items():
        if part := getattr(dcb, kind):
            values = {key: getattr(part, name) for key, name in keys.items()}
            if kind == "ets":
                values["tc_tsa"] = tuple(algorithms.get(number, "vendor") for number in part.algorithm)
            # An empty list would not be valid.
            found[kind] = {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in values.items()
                if value != ()
            }
    if dcb.app is not None:
        found["app"] = _app(dcb.app)
    if dcb.dcbx is not None:
        found["dcbx"] = {name: True for name, bit in MODES.items() if dcb.dcbx & bit}
    return found


def _app(table: tuple[dcb_netlink.App, ...]) -> dict[str, Any]:
    names = {number: name for name, number in SELECTORS.items()}
    points = {number: name for name, number in PCP.items()}
    found: dict[str, Any] = {}
    for app in table:
        if app.selector == SELECTORS["ethtype_prio"] and app.protocol == 0:
            found.setdefault("default_prio", []).append(app.priority)
        elif name := names.get(app.selector):
            value = points.get(app.protocol, app.protocol) if name == "pcp_prio" else app.protocol
            found.setdefault(name, []).append([value, app.priority])
    return found

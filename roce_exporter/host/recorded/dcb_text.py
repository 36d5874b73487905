"""The JSON of iproute2's dcb in a recorded host: a capture prints it, and a recording is read from it.

`dcb -s -j pfc show dev DEV` (.pfc.json; without `-s` it prints no pause frames), and `dcb -j` for ets, app, buffer and
dcbx. Not maxrate: older versions of dcb print kbit/s as received from the kernel, versions since the end of 2025 bytes per
second, and the document does not name the unit. dcb does not print the peer's parts: its PFC is a document of our own,
.peer_pfc.json, in the format of .pfc.json.
"""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from roce_exporter.host.kernel import dcb_netlink
from roce_exporter.host.recorded.tree import RecordingError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


T = TypeVar("T")

Document = dict[str, object]

KINDS = ("pfc", "ets", "app", "buffer", "dcbx")
"""The documents of one network device in a recording: DEV.pfc.json, DEV.ets.json, ..."""

PEER_PFC = "peer_pfc"
"""Our own DEV.peer_pfc.json."""

LARGEST = (1 << 64) - 1
"""The kernel has no wider counter."""

EIGHT = 8
"""Priorities, traffic classes and buffers."""

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


def read_dcb(documents: Mapping[str, object], netdev: str, recording: str) -> dcb_netlink.Dcb:
    """The DCB settings of one network device; `documents` has the JSON of its files by kind (`KINDS` or `PEER_PFC`).

    A kind without a document is None in the result, as is everything that no document contains.
    """

    def part(kind: str, read: Callable[[Document], T]) -> T | None:
        if kind not in documents:
            return None
        try:
            return read(_object(documents[kind]))
        except _DocumentError as error:
            raise RecordingError(
                f"recording {recording}: dcb/{netdev}.{kind}.json: {error}; "
                f"record it with `dcb -s -j {kind} show dev {netdev}`"
            ) from None

    return dcb_netlink.Dcb(
        pfc=part("pfc", _read_pfc),
        ets=part("ets", _read_ets),
        app=part("app", _read_app),
        buffer=part("buffer", _read_buffer),
        dcbx=part(
            "dcbx",
            lambda found: sum(bit for name, bit in MODES.items() if _flag(found.get(name, False), name)),
        ),
        peer_pfc=part(PEER_PFC, _read_pfc),
    )


def _read_pfc(document: Document) -> dcb_netlink.Pfc:
    return dcb_netlink.Pfc(
        capacity=_number(document.get("pfc_cap"), "pfc_cap"),
        enabled=tuple(_flag(value, "prio_pfc") for value in _eight(document, "prio_pfc")),
        mbc=_flag(document.get("macsec_bypass"), "macsec_bypass"),
        delay=_number(document.get("delay"), "delay"),
        requests=_frames(document, "requests"),
        indications=_frames(document, "indications"),
    )


def _frames(document: Document, name: str) -> tuple[int, ...]:
    # Without -s dcb does not print them.
    return _numbers(document, name) if name in document else ()


def _read_ets(document: Document) -> dcb_netlink.Ets:
    return dcb_netlink.Ets(
        willing=_flag(document.get("willing"), "willing"),
        capacity=_number(document.get("ets_cap"), "ets_cap"),
        cbs=_flag(document.get("cbs"), "cbs"),
        transmit_bandwidth=_numbers(document, "tc_bw"),
        receive_bandwidth=_numbers(document, "pg_bw"),
        algorithm=tuple(_keyword(value, "tc_tsa", ALGORITHMS) for value in _eight(document, "tc_tsa")),
        traffic_class=_numbers(document, "prio_tc"),
    )


def _read_app(document: Document) -> tuple[dcb_netlink.App, ...]:
    rows = [
        _row(row, name, selector)
        for name, selector in SELECTORS.items()
        for row in _list(document.get(name, []), name)
    ]
    # The kernel stores a port's default priority as that of EtherType 0.
    rows += [
        dcb_netlink.App(1, 0, _number(priority, "default_prio"))
        for priority in _list(document.get("default_prio", []), "default_prio")
    ]
    return tuple(rows)


def _read_buffer(document: Document) -> dcb_netlink.Buffer:
    return dcb_netlink.Buffer(
        of_priority=_numbers(document, "prio_buffer"),
        size=_numbers(document, "buffer_size"),
        total=_number(document.get("total_size"), "total_size"),
    )


def _row(row: object, name: str, selector: int) -> dcb_netlink.App:
    match row:
        case [str(protocol), priority] if selector == dcb_netlink.SELECTOR_PCP:
            return dcb_netlink.App(selector, _keyword(protocol, name, PCP), _number(priority, name))
        case [protocol, priority]:
            return dcb_netlink.App(selector, _number(protocol, name), _number(priority, name))
    raise _DocumentError(f"{name} holds {shown(row)}, not a pair")


def _object(document: object) -> Document:
    if not isinstance(document, dict):
        raise _DocumentError("not an object")
    return document


def _list(value: object, name: str) -> list[object]:
    if not isinstance(value, list):
        raise _DocumentError(f"{name} is {shown(value)}, not a list")
    return value


def _eight(document: Document, name: str) -> list[object]:
    values = _list(document.get(name), name)
    if len(values) != EIGHT:
        raise _DocumentError(f"{name} holds {len(values)} values, not {EIGHT}")
    return values


def _numbers(document: Document, name: str) -> tuple[int, ...]:
    return tuple(_number(value, name) for value in _eight(document, name))


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


def _keyword(value: object, name: str, known: Mapping[str, int]) -> int:
    if not isinstance(value, str) or value not in known:
        raise _DocumentError(f"{name} holds {shown(value)}, none of {', '.join(known)}")
    return known[value]


def print_dcb(dcb: dcb_netlink.Dcb) -> dict[str, dict[str, Any]]:
    """A document for each reported part, by its kind. Rates, and the peer's parts except PFC, are not printed."""
    found: dict[str, dict[str, Any]] = {}
    if dcb.pfc:
        found["pfc"] = _pfc(dcb.pfc)
    if dcb.ets:
        found["ets"] = _ets(dcb.ets)
    if dcb.app is not None:
        found["app"] = _app(dcb.app)
    if dcb.buffer:
        found["buffer"] = {
            "prio_buffer": list(dcb.buffer.of_priority),
            "buffer_size": list(dcb.buffer.size),
            "total_size": dcb.buffer.total,
        }
    if dcb.dcbx is not None:
        found["dcbx"] = {name: True for name, bit in MODES.items() if dcb.dcbx & bit}
    if dcb.peer_pfc:
        found[PEER_PFC] = _pfc(dcb.peer_pfc)
    return found


def _pfc(pfc: dcb_netlink.Pfc) -> dict[str, Any]:
    counts = {"requests": list(pfc.requests), "indications": list(pfc.indications)}
    return {
        "pfc_cap": pfc.capacity,
        "macsec_bypass": pfc.mbc,
        "delay": pfc.delay,
        "prio_pfc": list(pfc.enabled),
        # Without -s dcb prints no counts, and an empty list would not be valid.
        **{name: frames for name, frames in counts.items() if frames},
    }


def _ets(ets: dcb_netlink.Ets) -> dict[str, Any]:
    names = {number: name for name, number in ALGORITHMS.items()}
    return {
        "willing": ets.willing,
        "ets_cap": ets.capacity,
        "cbs": ets.cbs,
        "tc_bw": list(ets.transmit_bandwidth),
        "pg_bw": list(ets.receive_bandwidth),
        "tc_tsa": [names.get(number, "vendor") for number in ets.algorithm],
        "prio_tc": list(ets.traffic_class),
    }


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

"""Print a `Dcb` as JSON in the format of iproute2's dcb: a capture writes it, and `dcb_recorded` reads it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_exporter.host.recorded.dcb_recorded import ALGORITHMS, MODES, PCP, PEER_PFC, SELECTORS

if TYPE_CHECKING:
    from roce_exporter.host.kernel.dcb_netlink import App, Buffer, Dcb, Ets, Pfc

Document = dict[str, Any]


def print_dcb(dcb: Dcb) -> dict[str, Document]:
    """A document for each reported part, by its kind. Rates, and the peer's parts except PFC, are not printed."""
    found: dict[str, Document] = {}
    if dcb.pfc:
        found["pfc"] = _pfc(dcb.pfc)
    if dcb.ets:
        found["ets"] = _ets(dcb.ets)
    if dcb.app is not None:
        found["app"] = _app(dcb.app)
    if dcb.buffer:
        found["buffer"] = _buffer(dcb.buffer)
    if dcb.dcbx is not None:
        found["dcbx"] = {name: True for name, bit in MODES.items() if dcb.dcbx & bit}
    if dcb.peer_pfc:
        found[PEER_PFC] = _pfc(dcb.peer_pfc)
    return found


def _pfc(pfc: Pfc) -> Document:
    counts = {"requests": list(pfc.requests), "indications": list(pfc.indications)}
    return {
        "pfc_cap": pfc.capacity,
        "macsec_bypass": pfc.mbc,
        "delay": pfc.delay,
        "prio_pfc": list(pfc.enabled),
        # Without -s dcb prints no counts, and an empty list would not be valid.
        **{name: frames for name, frames in counts.items() if frames},
    }


def _ets(ets: Ets) -> Document:
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


def _app(table: tuple[App, ...]) -> Document:
    names = {number: name for name, number in SELECTORS.items()}
    points = {number: name for name, number in PCP.items()}
    found: Document = {}
    for app in table:
        if app.selector == SELECTORS["ethtype_prio"] and app.protocol == 0:
            found.setdefault("default_prio", []).append(app.priority)
        elif name := names.get(app.selector):
            value = points.get(app.protocol, app.protocol) if name == "pcp_prio" else app.protocol
            found.setdefault(name, []).append([value, app.priority])
    return found


def _buffer(buffer: Buffer) -> Document:
    return {
        "prio_buffer": list(buffer.of_priority),
        "buffer_size": list(buffer.size),
        "total_size": buffer.total,
    }

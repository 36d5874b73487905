"""Data centre bridging from DCB netlink, flattened to names and numbers.

Read after `ethtool -S`, because mlx5 returns the values cached by it. `kernel.dcb_netlink` explains each part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.kernel.dcb_netlink import SELECTOR_DSCP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roce_exporter.host.kernel.dcb_netlink import App, Dcb, Ets, Pfc

DCB = "dcb"


def flatten(dcb: Dcb) -> dict[str, int]:
    """Every number, with a name that ends in its priority, traffic class, buffer or DSCP.

    Parts that the driver does not report are left out.
    """
    found: dict[str, int] = {}
    if dcb.pfc:
        found |= _pfc(dcb.pfc)
    if dcb.ets:
        found |= _ets(dcb.ets)
    if dcb.max_rate is not None:
        found |= _numbered("max_rate", dcb.max_rate)
    if dcb.app is not None:
        mapped = _dscp_priority(dcb.app)
        found |= {"dscp_mappings": len(mapped)} | mapped
    if dcb.trust is not None:
        found["trust_dscp"] = int(dcb.trust[:1] == (SELECTOR_DSCP,))
    if dcb.buffer:
        found |= _numbered("priority_buffer", dcb.buffer.of_priority)
        found |= _numbered("buffer_bytes", dcb.buffer.size)
        found["buffer_total"] = dcb.buffer.total
    if dcb.dcbx is not None:
        found["dcbx_mode"] = dcb.dcbx
    return found | _peer(dcb)


def _peer(dcb: Dcb) -> dict[str, int]:
    """The settings that the other end of the link sent by DCBX."""
    found: dict[str, int] = {}
    if dcb.peer_pfc:
        found |= _numbered("pfc_enabled", map(int, dcb.peer_pfc.enabled))
    if dcb.peer_ets:
        found |= {name: value for name, value in _ets(dcb.peer_ets).items() if "receive" not in name}
    found |= _dscp_priority(dcb.peer_app or ())
    return {f"peer_{name}": value for name, value in found.items()}


def _dscp_priority(table: Iterable[App]) -> dict[str, int]:
    return {f"dscp_priority_{app.protocol}": app.priority for app in table if app.selector == SELECTOR_DSCP}


def _pfc(pfc: Pfc) -> dict[str, int]:
    # A delay of 0 means that the driver does not report it.
    return (
        {"pfc_capacity": pfc.capacity}
        | ({"pfc_delay": pfc.delay} if pfc.delay else {})
        | _numbered("pfc_enabled", map(int, pfc.enabled))
        | _numbered("pfc_requests", pfc.requests)
        | _numbered("pfc_indications", pfc.indications)
    )


def _ets(ets: Ets) -> dict[str, int]:
    return (
        {"ets_willing": int(ets.willing)}
        | _numbered("ets_transmit_bandwidth", ets.transmit_bandwidth)
        | _numbered("ets_receive_bandwidth", ets.receive_bandwidth)
        | _numbered("ets_algorithm", ets.algorithm)
        | _numbered("priority_traffic_class", ets.traffic_class)
    )


def _numbered(name: str, values: Iterable[int]) -> dict[str, int]:
    return {f"{name}_{number}": value for number, value in enumerate(values)}

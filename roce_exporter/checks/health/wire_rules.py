"""Rules about the wire view, where its series are part of the history: what a capture saw of the addresses of this port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.finding import Side
from roce_exporter.checks.health import traffic_causes
from roce_exporter.checks.health.sign import MEDIUM, Sign
from roce_exporter.words import number, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.health.sign import Rule
    from roce_exporter.view.host_view import PortView


def _addresses(port: PortView) -> set[str]:
    return {track.labels["address"] for track in port.tracks("roce_gid_info")}


def _sum(port: PortView, name: str, end: str, **match: str) -> dict[str, float]:
    """By the other end of each pair, the rate of this counter where this port is the `end` (source or destination)."""
    mine, other = _addresses(port), "destination" if end == "source" else "source"
    rates: dict[str, float] = {}
    for track in port.host.tracks(name):
        rise = port.rise_of(name, track, MEDIUM)
        if track.labels[end] in mine and rise and match.items() <= track.labels.items():
            rates[track.labels[other]] = rates.get(track.labels[other], 0.0) + rise.rate
    return rates


def _retransmitted(port: PortView) -> Iterator[Sign]:
    again = _sum(port, "roce_wire_retransmitted_packets_total", "source")
    packets = _sum(port, "roce_wire_packets_total", "source")
    for peer, rate in again.items():
        if packets.get(peer, 0.0) <= port.limit("RoceWireRetransmissions", "packets_per_second"):
            continue
        if rate / packets[peer] > port.limit("RoceWireRetransmissions", "ratio"):
            yield Sign(
                traffic_causes.PACKET_LOSS,
                (f"a capture saw {share(rate / packets[peer])} of the packets to {peer} again",),
            )


def _incast(port: PortView) -> Iterator[Sign]:
    cnps = _sum(port, "roce_wire_cnps_total", "source")
    slowed = [
        peer
        for peer, rate in cnps.items()
        if rate > port.limit("RoceWireReceiverCongested", "cnps_per_second")
    ]
    if len(slowed) >= port.limit("RoceWireReceiverCongested", "senders"):
        yield Sign(
            traffic_causes.INCAST, (f"a capture saw CNPs of this port to {number(len(slowed))} senders",)
        )


def _corrupted(port: PortView) -> Iterator[Sign]:
    bad = _sum(port, "roce_wire_bad_icrc_packets_total", "source")
    for peer, rate in bad.items():
        if rate:
            said = f"a capture saw corrupted packets of this port to {peer}"
            yield Sign(traffic_causes.CORRUPTION, (said,), side=Side.UNKNOWN)


def _outside(port: PortView) -> Iterator[Sign]:
    name, alert = "roce_wire_outside_lossless_packets_total", "RoceWireOutsideLosslessPriority"
    outside, packets = _sum(port, name, "source"), _sum(port, "roce_wire_packets_total", "source")
    total = sum(packets.values())
    if total > port.limit(alert, "packets_per_second") and sum(outside.values()) / total > port.limit(
        alert, "ratio"
    ):
        said = f"a capture saw {share(sum(outside.values()) / total)} of this port's packets outside the lossless priority"
        yield Sign(traffic_causes.OUTSIDE_LOSSLESS, (said,))


WIRE_RULES: tuple[Rule, ...] = (_retransmitted, _incast, _corrupted, _outside)
"""Rules of one port."""

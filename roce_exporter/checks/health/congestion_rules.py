"""Rules about congestion control (DCQCN: IEEE 802.1Qau, RoCEv2 annex A17.9), lossless priorities, and what packets on the wire show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.drivers import dialect_of
from roce_exporter.checks.finding import Side
from roce_exporter.checks.health.causes import MEDIUM, NAMED, Symptom, rose, texts
from roce_exporter.checks.health.pause_rules import RECEIVE, paused_priorities
from roce_exporter.words import duration, number, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.health.causes import Rule
    from roce_exporter.view.host_view import PortView, Rise


def _sum(port: PortView, name: str, end: str, **match: str) -> dict[str, float]:
    """By the other end of each pair, the rate of this counter where this port is the `end` (source or destination)."""
    mine = {track.labels["address"] for track in port.tracks("roce_gid_info")}
    other = "destination" if end == "source" else "source"
    rates: dict[str, float] = {}
    for track in port.host.tracks(name):
        rise = port.rise_of(name, track, MEDIUM)
        if track.labels[end] in mine and rise and match.items() <= track.labels.items():
            rates[track.labels[other]] = rates.get(track.labels[other], 0.0) + rise.rate
    return rates


def _retransmitted(port: PortView) -> Iterator[Symptom]:
    again = _sum(port, "roce_wire_retransmitted_packets_total", "source")
    packets = _sum(port, "roce_wire_packets_total", "source")
    for peer, rate in again.items():
        if packets.get(peer, 0.0) <= port.limit("wire_retransmissions", "packets_per_second"):
            continue
        if rate / packets[peer] > port.limit("wire_retransmissions", "ratio"):
            said = f"a capture saw {share(rate / packets[peer])} of the packets to {peer} again"
            yield Symptom("packet_loss", (said,))


def _wire_incast(port: PortView) -> Iterator[Symptom]:
    cnps = _sum(port, "roce_wire_cnps_total", "source")
    slowed = [peer for peer, rate in cnps.items() if rate > port.limit("wire_cnps", "cnps_per_second")]
    if len(slowed) >= port.limit("wire_cnps", "senders"):
        yield Symptom("incast", (f"a capture saw CNPs of this port to {number(len(slowed))} senders",))


def _corrupted(port: PortView) -> Iterator[Symptom]:
    bad = _sum(port, "roce_wire_bad_icrc_packets_total", "source")
    for peer, rate in bad.items():
        if rate:
            said = f"a capture saw corrupted packets of this port to {peer}"
            yield Symptom("corruption", (said,), side=Side.UNKNOWN)


def _wire_outside(port: PortView) -> Iterator[Symptom]:
    name, limit = "roce_wire_outside_lossless_packets_total", "wire_outside_lossless"
    outside, packets = _sum(port, name, "source"), _sum(port, "roce_wire_packets_total", "source")
    total, beyond = sum(packets.values()), sum(outside.values())
    if total > port.limit(limit, "packets_per_second") and beyond / total > port.limit(limit, "ratio"):
        said = f"a capture saw {share(beyond / total)} of this port's packets outside the lossless priority"
        yield Symptom("outside_lossless_priority", (said,))


MARKS, SENT = "roce_ecn_marked_packets_total", "roce_cnp_sent_total"
HANDLED, IGNORED = "roce_cnp_handled_total", "roce_cnp_ignored_total"
UNKEPT = frozenset({"irdma"})
"""Drivers whose firmware sends CNPs and may not count them: `cnpSent` of an E810 stays 0 (Lumina, SIGCOMM 2023)."""
PAUSED_RATIO = 0.01
"""Share of marked packets that means congestion where the switch pauses this host, too."""
DROPS = (
    ("roce_buffer_discards_total", "packets of priority {} dropped because the port's buffer was full"),
    (
        "roce_host_buffer_discards_total",
        "packets of priority {} dropped because this host's share of the buffer was full",
    ),
)


def _cnps_sent(port: PortView) -> Rise | None:
    """CNPs that this port sent; None if they are not counted, or if a counter that was never seen to move proves nothing."""
    driver = dialect_of(port.label("roce_device_info", "driver"))
    kept = driver not in UNKEPT or port.rose(SENT, port.host.end - port.host.begin)
    return port.rise(SENT, MEDIUM) if kept else None


def _unanswered(port: PortView) -> Iterator[Symptom]:
    marks, sent = port.rise(MARKS, MEDIUM), _cnps_sent(port)
    off = [
        track.labels["priority"]
        for track, value in port.current("roce_config_notification_point_enabled")
        if value == 0
    ]
    if marks is None or (sent.amount if sent else not off):
        return
    if marks.rate > port.limit("marks_without_cnps", "marks_per_second"):
        setting = off and f"the notification point is off for priority {', '.join(off)}"
        yield Symptom(
            "marks_without_cnps", texts(rose(marks, "marked packets, and no CNP was sent"), setting)
        )


def _ignored(port: PortView) -> Iterator[Symptom]:
    ignored, handled = port.rise(IGNORED, MEDIUM), port.rise(HANDLED, MEDIUM)
    if ignored is None or handled is None or ignored.rate <= port.limit("cnps_ignored", "per_second"):
        return
    ratio = ignored.amount / (ignored.amount + handled.amount)
    if ratio > port.limit("cnps_ignored", "ratio"):
        said = (
            f"{number(ignored.amount)} CNPs ignored within {duration(ignored.seconds)}, {share(ratio)} of all"
        )
        yield Symptom("cnps_ignored", (said,), weight=ratio)


def _incast(port: PortView) -> Iterator[Symptom]:
    marks, sent = port.rise(MARKS, MEDIUM), _cnps_sent(port)
    # RDMA packets received, or at least those over UDP, which Intel counts apart.
    packets = port.rise("roce_port_receive_packets_total", MEDIUM) or port.rise(
        "roce_port_receive_udp_packets_total", MEDIUM
    )
    if marks is None or packets is None or packets.rate <= port.limit("marked_packets", "packets_per_second"):
        return
    ratio = marks.amount / packets.amount
    # Where the fabric pauses, too, fewer marks are sufficient to name the kind of its congestion.
    paused = paused_priorities(port, RECEIVE)
    most = PAUSED_RATIO if paused else port.limit("marked_packets", "ratio")
    if ratio > most and (sent is None or sent.amount > 0):
        said = f"{share(ratio)} of the packets received were marked within {duration(marks.seconds)}"
        yield Symptom("incast", texts(said, sent and rose(sent, "CNPs sent")), weight=ratio)


def _lossless_drops(port: PortView) -> Iterator[Symptom]:
    window = port.limit("lossless_drops", "window")
    sees_pfc = bool(port.current("roce_pfc_enabled"))
    for name, what in DROPS:
        for track in port.tracks(name):
            match = {label: track.labels[label] for label in ("netdev", "priority")}
            # Packets that a lost link left behind are discarded.
            if port.rose("roce_netdev_carrier_down_total", window, netdev=match["netdev"]):
                continue
            rise = port.rise_of(name, track, window)
            if not rise or rise.amount <= port.limit("lossless_drops", "packets"):
                continue
            said = rose(rise, what.format(match["priority"]))
            cause = "lossless_drops" if port.highest("roce_pfc_enabled", **match) else "port_drops"
            if cause == "lossless_drops" or not sees_pfc:
                yield Symptom(cause, (said,), note=NAMED[cause].begins.is_few(rise.amount, 0.0))


def _outside(port: PortView) -> Iterator[Symptom]:
    rdma = port.rise("roce_port_transmit_bytes_total", MEDIUM)
    enabled = [track.labels for track, value in port.current("roce_pfc_enabled") if value]
    if rdma is None or not enabled or rdma.rate <= port.limit("lossless_traffic", "bytes_per_second"):
        return
    rises = [
        port.rise(
            "roce_priority_transmit_bytes_total", MEDIUM, netdev=labels["netdev"], priority=labels["priority"]
        )
        for labels in enabled
    ]
    known = [rise.amount for rise in rises if rise is not None]
    if known and sum(known) / rdma.amount < port.limit("lossless_traffic", "ratio"):
        said = f"{share(sum(known) / rdma.amount)} of the RDMA bytes left on lossless priorities within {duration(rdma.seconds)}"
        yield Symptom("outside_lossless_priority", (said,), weight=1 - sum(known) / rdma.amount)


CONGESTION_RULES: tuple[Rule, ...] = (_unanswered, _ignored, _incast, _lossless_drops, _outside)
WIRE_RULES: tuple[Rule, ...] = (_retransmitted, _wire_incast, _corrupted, _wire_outside)
"""Rules of one port."""

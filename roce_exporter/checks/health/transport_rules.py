"""Rules about the RDMA transport (InfiniBand Architecture Specification, chapter 9): loss, silence, refusals, and programs that err.

The counters of a requester and of a responder name the two ends of a connection, so most of these causes have a side: what this
host's requests met is the matter of the path or the peer, what the peer's requests met here is the matter of this host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.finding import Side
from roce_exporter.checks.health import traffic_causes
from roce_exporter.checks.health.link_rules import losses
from roce_exporter.checks.health.sign import MEDIUM, Sign, rose, texts
from roce_exporter.words import duration, number, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.health.sign import Rule
    from roce_exporter.view.host_view import PortView, Rise

WINDOW = 600.0
"""Seconds in which errors of connections are looked for."""

TIMEOUTS = "roce_transport_ack_timeouts_total"
EXCEEDED = "roce_transport_retries_exceeded_total"
RNR_EXCEEDED = "roce_transport_rnr_retries_exceeded_total"
OUT_OF_SEQUENCE = "roce_transport_out_of_sequence_total"
LOST = (
    ("roce_transport_packet_sequence_errors_total", "NAKs for lost packets"),
    ("roce_transport_implied_naks_total", "lost responses"),
    (OUT_OF_SEQUENCE, "packets out of sequence"),
)
FEW = 10.0
"""Lost packets that mean something where few packets pass."""


def _silence(port: PortView) -> Iterator[Sign]:
    """Retries that were used up, or timeouts alone: a peer that does not answer, unless packets are seen to get lost."""
    exceeded, timeouts = port.rise(EXCEEDED, WINDOW), port.rise(TIMEOUTS, WINDOW)
    gave_up = exceeded is not None and exceeded.amount > 0
    late = timeouts is not None and timeouts.amount > port.limit("RoceAckTimeouts", "events")
    if not gave_up and not late:
        return
    lost = _lost(port)
    waited = timeouts.amount if timeouts else 0.0
    side = _side_of_silence(port, sum(rise.amount for rise, _ in lost), waited)
    evidence = texts(
        [
            rose(exceeded, "queue pairs gave up") if exceeded and gave_up else None,
            rose(timeouts, "acknowledgement timeouts") if timeouts and waited else None,
            *(rose(rise, what) for rise, what in lost),
        ]
    )
    clean = not lost and any(port.rise(name, WINDOW) for name, _ in LOST)
    if clean:
        evidence = (*evidence, "no packet is seen to get lost: what arrives at the peer is in order")
    against = {
        Side.PEER: "a path that is cut completely looks the same from here",
        Side.FABRIC: "a peer that restarts loses packets, too",
    }
    cause = traffic_causes.RETRIES_EXCEEDED if gave_up else traffic_causes.ACK_TIMEOUTS
    yield Sign(cause, evidence, texts([against.get(side)]), side)


def _side_of_silence(port: PortView, lost: float, timeouts: float) -> Side:
    link = losses(port, WINDOW)
    if link and link.amount:
        return Side.LINK
    if not lost or lost < timeouts:
        return Side.PEER
    return _side_of_loss(port, lost)[0] or Side.FABRIC


def _lost(port: PortView) -> list[tuple[Rise, str]]:
    rises = ((port.rise(name, WINDOW), what) for name, what in LOST)
    return [(rise, what) for rise, what in rises if rise is not None and rise.amount > 0]


def _loss(port: PortView) -> Iterator[Sign]:
    for names, packets, what in (
        ((OUT_OF_SEQUENCE,), "roce_port_receive_packets_total", "received packets were out of sequence"),
        (
            tuple(name for name, _ in LOST[:2]),
            "roce_port_transmit_packets_total",
            "sent packets or their responses were lost",
        ),
    ):
        rises = [rise for name in names if (rise := port.rise(name, MEDIUM)) is not None]
        amount = sum(rise.amount for rise in rises)
        passed = port.rise(packets, MEDIUM)
        if not amount or not _is_much(port, amount, passed):
            continue
        ratio = share(amount / passed.amount) if passed and passed.amount else "an unknown share"
        side, why = _side_of_loss(port, amount)
        said = f"{number(amount)} {what} within {duration(rises[0].seconds)} ({ratio})"
        spray = (
            "switches that spray packets reorder them without loss" if names[0] == OUT_OF_SEQUENCE else None
        )
        weight = min(1.0, amount / passed.amount * 100) if passed and passed.amount else 0.0
        yield Sign(traffic_causes.PACKET_LOSS, texts([said, why]), texts([spray]), side, weight)


def _is_much(port: PortView, amount: float, packets: Rise | None) -> bool:
    """A ratio of many packets, or at least some losses among few."""
    if packets is None or not packets.amount:
        return amount >= FEW
    ratio = amount / packets.amount
    if packets.rate > port.limit("RoceEcnMarkRatioHigh", "packets_per_second"):
        return ratio > port.limit("RocePacketLossHigh", "ratio")
    return amount >= FEW and ratio > port.limit("RocePacketLossCritical", "ratio")


def _side_of_loss(port: PortView, lost: float) -> tuple[Side | None, str | None]:
    """Loss at this port is not loss in the fabric."""
    for name, side, what in (
        ("roce_phy_receive_crc_errors_total", Side.LINK, "packets arrived here corrupted"),
        ("roce_phy_symbol_errors_total", Side.LINK, "symbol errors of this link"),
        ("roce_phy_fec_uncorrectable_blocks_total", Side.LINK, "blocks of this link could not be corrected"),
        ("roce_phy_receive_discards_total", Side.HOST, "packets were dropped by this port's own buffer"),
    ):
        rise = port.rise(name, MEDIUM)
        if rise and rise.amount >= lost / 4:
            return side, f"{number(rise.amount)} {what}"
    return None, None


def _not_ready(port: PortView) -> Iterator[Sign]:
    gave_up = port.rise(RNR_EXCEEDED, WINDOW)
    naks = port.rise("roce_transport_rnr_naks_received_total", MEDIUM)
    many = naks is not None and naks.rate > port.limit("RoceReceiverNotReady", "per_second")
    if (gave_up and gave_up.amount) or many:
        yield Sign(
            traffic_causes.RECEIVER_NOT_READY,
            texts(
                [
                    rose(gave_up, "queue pairs gave up on a receiver that was never ready")
                    if gave_up and gave_up.amount
                    else None,
                    rose(naks, "NAKs of peers that were not ready") if naks and naks.amount else None,
                ]
            ),
        )


def _empty(port: PortView) -> Iterator[Sign]:
    for name, what in (
        ("roce_transport_rnr_naks_sent_total", "times this host was not ready"),
        ("roce_out_of_buffer_total", "packets dropped for lack of a receive request"),
    ):
        rise = port.rise(name, MEDIUM)
        packets = port.rise("roce_port_receive_packets_total", MEDIUM)
        if rise is None or not rise.amount:
            continue
        known = packets is not None and packets.amount > 0
        relative = not known or (
            packets is not None
            and rise.amount / packets.amount > port.limit("RocePacketLossCritical", "ratio")
        )
        if rise.rate > port.limit("RoceReceiverNotReady", "per_second") or relative:
            yield Sign(traffic_causes.RECEIVE_QUEUE_EMPTY, (rose(rise, what),))


REFUSED = (
    ("roce_transport_requester_remote_access_errors_total", "remote access errors"),
    ("roce_transport_requester_remote_invalid_requests_total", "invalid request errors"),
    ("roce_transport_requester_remote_operation_errors_total", "remote operation errors"),
    ("roce_transport_requester_invalid_reads_total", "invalid read errors"),
)
REFUSING = (
    ("roce_transport_responder_remote_access_errors_total", "requests without permission"),
    ("roce_transport_responder_invalid_requests_total", "invalid requests"),
    ("roce_transport_responder_invalid_request_naks_total", "requests refused as invalid"),
    ("roce_transport_responder_receive_invalid_keys_total", "requests with an invalid key"),
    (
        "roce_transport_responder_receive_domain_errors_total",
        "requests for memory of another protection domain",
    ),
    ("roce_transport_responder_receive_permission_errors_total", "requests for memory without permission"),
    ("roce_transport_responder_receive_range_errors_total", "requests beyond a memory region"),
    ("roce_transport_responder_unsupported_opcodes_total", "requests with an unsupported opcode"),
)
LOCAL = (
    ("roce_transport_requester_local_length_errors_total", "requests of a wrong length"),
    ("roce_transport_requester_local_operation_errors_total", "errors of a requester's own queue pair"),
    (
        "roce_transport_requester_local_protection_errors_total",
        "requests with a local key without permission",
    ),
    ("roce_transport_requester_memory_management_errors_total", "failed memory operations"),
    ("roce_transport_requester_memory_window_errors_total", "failed memory window binds"),
    ("roce_transport_requester_scatter_list_errors_total", "requests with an invalid list of buffers"),
    ("roce_transport_responder_local_length_errors_total", "messages longer than their receive request"),
    ("roce_transport_responder_local_operation_errors_total", "errors of a responder's own queue pair"),
    ("roce_transport_responder_local_protection_errors_total", "receive requests without permission"),
    (
        "roce_transport_responder_scatter_list_errors_total",
        "receive requests with an invalid list of buffers",
    ),
    ("roce_transport_responder_malformed_requests_total", "malformed receive requests"),
    ("roce_completion_queue_overflows_total", "overflows of completion queues"),
)


def _counted(port: PortView, counters: tuple[tuple[str, str], ...]) -> list[str]:
    rises = ((port.rise(name, WINDOW), what) for name, what in counters)
    return [rose(rise, what) for rise, what in rises if rise is not None and rise.amount]


def _refusals(port: PortView) -> Iterator[Sign]:
    if refused := _counted(port, REFUSED):
        yield Sign(traffic_causes.REQUESTS_REFUSED, tuple(refused))
    if refusing := _counted(port, REFUSING):
        yield Sign(traffic_causes.PEER_REQUESTS_REFUSED, tuple(refusing))


def _local(port: PortView) -> Iterator[Sign]:
    if local := _counted(port, LOCAL):
        yield Sign(traffic_causes.LOCAL_ERRORS, tuple(local))
        return
    failed = port.rise("roce_transport_requester_completion_errors_total", WINDOW)
    if failed is None:
        return
    explained = ("roce_transport_requester_flushed_completions_total", EXCEEDED, RNR_EXCEEDED)
    rest = failed.amount - sum(
        port.rose(name, WINDOW) for name in (*explained, *(name for name, _ in REFUSED))
    )
    if rest >= 1:
        said = f"{number(rest)} work requests failed within {duration(failed.seconds)} that no NAK and no retry explains"
        yield Sign(traffic_causes.LOCAL_ERRORS, (said,))


def _corruption(port: PortView) -> Iterator[Sign]:
    rise = port.rise("roce_transport_icrc_errors_total", port.limit("RoceIcrcErrors", "window"))
    if rise and rise.amount:
        own = port.rose("roce_phy_receive_crc_errors_total", port.limit("RoceIcrcErrors", "window"))
        clean = (
            "the link's own checksum is clean"
            if not own and port.current("roce_phy_receive_crc_errors_total")
            else None
        )
        crc = (
            f"{number(own)} packets failed the link's checksum, too: the cable can be the culprit"
            if own
            else None
        )
        yield Sign(
            traffic_causes.CORRUPTION,
            texts([rose(rise, "packets with a wrong invariant CRC"), clean]),
            texts([crc]),
        )


TRANSPORT_RULES: tuple[Rule, ...] = (_silence, _loss, _not_ready, _empty, _refusals, _local, _corruption)
"""Rules of one port."""

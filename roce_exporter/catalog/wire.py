"""The wire view: RoCE packets seen in a capture or on a mirror port, per pair of addresses.

`roce-exporter wire --serve` exports these. Pairs are bounded (`--top`): all others are counted with source and destination
`other`. Counts are of what was captured, which is less than what was sent where frames were dropped on the way
(`roce_wire_capture_dropped_frames_total`, and drops of the mirror itself, which only the switch counts).
"""

from __future__ import annotations

from roce_exporter.catalog.row import COUNTER, GAUGE, HISTOGRAM, LEAN, Row

PAIR = ("source", "destination")


def _pair(name: str, unit: str, meaning: str, *labels: str) -> Row:
    return Row(name, COUNTER, unit, meaning, labels=(*PAIR, *labels), metric_set=LEAN)


PACKETS = _pair(
    "roce_wire_packets_total",
    "packets",
    "RoCE packets from source to destination, by operation: send, write, read_request, read_response, acknowledge, atomic, "
    "cnp, other.",
    "operation",
)
BYTES = _pair(
    "roce_wire_bytes_total",
    "bytes",
    "Bytes of the frames with RoCE packets, by operation; mirrored frames with the tunnel of the mirror.",
    "operation",
)
ECN = _pair(
    "roce_wire_ecn_packets_total",
    "packets",
    "RoCE packets by the ECN codepoint of their IP header: not_ect, ect0, ect1, ce. A switch marks a packet ce when its "
    "queue is long.",
    "codepoint",
)
CNPS = _pair(
    "roce_wire_cnps_total",
    "packets",
    "Congestion notification packets from source to destination: the destination congests the source.",
)
NAKS = _pair("roce_wire_naks_total", "packets", "NAKs from source to destination, by reason.", "reason")
RNR_NAKS = _pair(
    "roce_wire_rnr_naks_total",
    "packets",
    "Receiver not ready NAKs: the source had no receive buffer for what the destination sent.",
)
RETRANSMISSIONS = _pair(
    "roce_wire_retransmitted_packets_total",
    "packets",
    "Packets whose PSN is below the highest of their flow: sent again, duplicated, or reordered by the network.",
)
GAPS = _pair(
    "roce_wire_sequence_gaps_total",
    "events",
    "Times that PSNs were skipped: packets were lost or delayed before the place of the capture.",
)
DUPLICATE_ACKS = _pair(
    "roce_wire_duplicate_acks_total", "packets", "ACKs for a PSN that was acknowledged before."
)
OUTSIDE_LOSSLESS = _pair(
    "roce_wire_outside_lossless_packets_total",
    "packets",
    "RoCE packets, except CNPs, whose DSCP (RoCE v2) or VLAN priority (RoCE v1) is not one of the lossless ones "
    "(--lossless.dscp, --lossless.priority). Switches may drop them.",
)
BAD_ICRC = _pair(
    "roce_wire_bad_icrc_packets_total",
    "packets",
    "Packets whose invariant CRC is wrong: corrupted by a device between the two NICs. Packets that the capture cut off "
    "are not checked.",
)
ROUND_TRIP = Row(
    "roce_wire_acknowledge_seconds",
    HISTOGRAM,
    "seconds",
    "Time at the place of the capture from a request of source to the reply of destination. Requests that were sent again "
    "are left out.",
    labels=(*PAIR, "le"),
    metric_set=LEAN,
)
PFC_FRAMES = Row(
    "roce_wire_pfc_frames_total",
    COUNTER,
    "frames",
    "PFC frames on the mirrored link that pause a priority, by MAC address of the sender. Most switches do not mirror them.",
    labels=("sender", "priority"),
    metric_set=LEAN,
)
PAUSE_FRAMES = Row(
    "roce_wire_global_pause_frames_total",
    COUNTER,
    "frames",
    "Global pause frames (IEEE 802.3x) on the mirrored link, by MAC address of the sender.",
    labels=("sender",),
    metric_set=LEAN,
)
NEIGHBOR = Row(
    "roce_wire_neighbor_info",
    GAUGE,
    "info",
    "Who sends LLDP on the mirrored link; always 1.",
    labels=("sender", "chassis", "port", "neighbor"),
    metric_set=LEAN,
)
FRAMES = Row(
    "roce_wire_capture_frames_total",
    COUNTER,
    "frames",
    "Frames captured, with those that are not RoCE.",
    labels=(),
    metric_set=LEAN,
)
DROPPED = Row(
    "roce_wire_capture_dropped_frames_total",
    COUNTER,
    "frames",
    "Frames that the kernel dropped because the ring buffer of the capture was full. All other counts are too low by them.",
    labels=(),
    metric_set=LEAN,
)
PAIRS = Row(
    "roce_wire_pairs",
    GAUGE,
    "pairs",
    "Pairs of addresses that are counted, shown or as part of `other`.",
    labels=(),
    metric_set=LEAN,
)

ROWS = (
    PACKETS,
    BYTES,
    ECN,
    CNPS,
    NAKS,
    RNR_NAKS,
    RETRANSMISSIONS,
    GAPS,
    DUPLICATE_ACKS,
    OUTSIDE_LOSSLESS,
    BAD_ICRC,
    ROUND_TRIP,
    PFC_FRAMES,
    PAUSE_FRAMES,
    NEIGHBOR,
    FRAMES,
    DROPPED,
    PAIRS,
)

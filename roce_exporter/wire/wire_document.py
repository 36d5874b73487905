"""The JSON of `roce-exporter wire`: counts only, no value that is not in the packets. docs/wire.md describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_exporter.wire.decode.columns import address_text
from roce_exporter.wire.tally.pair_counts import SEQUENCE_COUNTS
from roce_exporter.wire.wire_text import sentences

if TYPE_CHECKING:
    from roce_exporter.wire.wire_summary import PairSummary, WireSummary

VERSION = 1
"""Grows when a key changes its meaning or disappears; new keys do not change it."""
QUEUE_KEYS = ("packets", "bytes", *SEQUENCE_COUNTS)


def wire_document(summary: WireSummary, top: int, dropped: int | None = None) -> dict[str, Any]:
    """The document; `dropped` frames are known for a live capture only."""
    pairs = [_pair(pair, summary.queues.get((pair.source, pair.destination))) for pair in summary.pairs[:top]]
    return {
        "version": VERSION,
        "packets": summary.frames,
        "roce_packets": summary.roce,
        "dropped": dropped,
        "captured_again": summary.copies,
        "other_frames": summary.others,
        "from": summary.first / 1e9 if summary.first else None,
        "to": summary.last / 1e9 if summary.last else None,
        "pairs": pairs,
        "pairs_left_out": max(0, len(summary.pairs) - top),
        "incasts": [
            {
                "receiver": address_text(one.receiver),
                "senders": sorted(map(address_text, one.senders)),
                "from": one.first / 1e9,
                "to": one.last / 1e9,
                "packets": one.packets,
                "ce": one.marked,
                "retransmissions": one.retransmissions,
            }
            for one in summary.incasts
        ],
        "intervals": [one._asdict() for one in summary.intervals],
        "pfc": [
            {
                "source": one.sender,
                "priority": one.priority,
                "frames": one.counts.frames,
                "pauses": one.counts.xoff,
                "quanta": one.counts.quanta,
            }
            for one in summary.pauses
        ],
        "neighbors": [one._asdict() for one in summary.neighbours],
        "sentences": list(sentences(summary, top)),
    }


def _pair(pair: PairSummary, queues: dict[int, list[int]] | None) -> dict[str, Any]:
    counts = pair.counts
    ecn, icrc, buckets = counts.named("ecn"), counts.named("icrc"), counts.named("round_trips")
    found: dict[str, Any] = {
        "source": pair.source,
        "destination": pair.destination,
        "packets": counts.packets,
        "bytes": counts.wire_bytes,
        "operations": {
            name: {"packets": packets, "bytes": size}
            for name, (packets, size) in counts.operations().items()
            if packets
        },
        "not_ect": ecn["not_ect"],
        "ect0": ecn["ect0"],
        "ect1": ecn["ect1"],
        "ce": ecn["ce"],
        "cnps": counts.cnps,
        "naks": _present(counts.named("naks")),
        "rnr_naks": counts.one("rnr_naks"),
        **counts.sequences(),
        "duplicate_acks": counts.one("duplicate_acks"),
        "bad_icrc": icrc["bad"],
        "unverified_icrc": icrc["unverified"],
        "outside_lossless": pair.outside,
        "dscp": {str(value): count for value, count in counts.dscp().items()},
        "cnp_dscp": {str(value): count for value, count in counts.dscp("cnp_dscp").items()},
        "vlan_priority": counts.vlan_priorities(),
        "round_trips": {
            "count": sum(buckets.values()),
            "seconds": counts.one("round_trip_nanoseconds") / 1e9,
            "buckets": _present(buckets),  # by upper bound in seconds, not cumulative
        },
    }
    if queues is not None:
        found["queue_pairs"] = {
            str(queue): dict(zip(QUEUE_KEYS, row, strict=True)) for queue, row in sorted(queues.items())
        }
    return found


def _present(counts: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}

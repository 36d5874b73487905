"""The JSON of `roce-exporter wire`: counts, or with `--format=packets` every packet with all its headers. docs/wire.md describes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from roce_exporter.wire.decode import infiniband
from roce_exporter.wire.decode.columns import Columns, address_text, read_columns
from roce_exporter.wire.decode.invariant_crc import CORRECT, UNKNOWN
from roce_exporter.wire.decode.locate import TYPE_AT, UDP_BYTES, Located, locate
from roce_exporter.wire.frames import ETHERNET, Frames
from roce_exporter.wire.tally.pair_counts import SEQUENCE_COUNTS
from roce_exporter.wire.wire_text import sentences, unseen

if TYPE_CHECKING:
    from roce_exporter.wire.wire_summary import PairSummary, WireSummary

VERSION = 1  # grows when a key changes its meaning or disappears; new keys do not change it
QUEUE_KEYS = ("packets", "bytes", *SEQUENCE_COUNTS)


def wire_document(
    summary: WireSummary, top: int, dropped: int | None = None, fault: str = ""
) -> dict[str, Any]:
    """The document; `dropped` frames are known for a live capture only, `fault` is why the input ended early."""
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
            {"receiver": address_text(one.receiver), "senders": sorted(map(address_text, one.senders))}
            | {"from": one.first / 1e9, "to": one.last / 1e9, "packets": one.packets}
            | {"ce": one.marked, "retransmissions": one.retransmissions}
            for one in summary.incasts
        ],
        "intervals": [one._asdict() for one in summary.intervals],
        "pfc": [
            {"source": one.sender, "priority": one.priority}
            | dict(zip(("frames", "pauses", "quanta"), astuple(one.counts), strict=True))
            for one in summary.pauses
        ],
        "neighbors": [one._asdict() for one in summary.neighbours],
        "sentences": list(sentences(summary, top, dropped)),
        "not_checked": [{"what": what, "needed": True} for what in unseen(summary, dropped, fault)],
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
        **{name: ecn[name] for name in ("not_ect", "ect0", "ect1", "ce")},
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


def packets(frames: Frames) -> Iterator[dict[str, Any]]:
    """The RoCE packets of a batch with all their headers, in the order of the capture."""
    roce = locate(frames).roce
    columns = read_columns(frames, roce)
    return (_packet(frames, roce, columns, row) for row in range(len(roce.rows)))


def _packet(frames: Frames, roce: Located, columns: Columns, row: int) -> dict[str, Any]:
    begin, end = int(roce.bth[row]), int(roce.end[row])
    captured = frames.data[begin : min(end, int(roce.limits[row]))].tobytes()
    bth = infiniband.read_header("bth", captured)
    addresses = columns.addresses[row].astype(">u8").tobytes()
    version, valid = int(columns.versions[row]), int(columns.icrc[row])
    port = frames.data[begin - UDP_BYTES : begin - UDP_BYTES + 2].tobytes()
    tags = _tags(frames, roce, row)
    headers = infiniband.read_extensions(
        bth["opcode"], captured[infiniband.BTH_BYTES : end - begin - infiniband.ICRC_BYTES]
    )
    aeth = headers.get("aeth", {})
    if aeth.get("kind") == infiniband.RNR:
        aeth["rnr_milliseconds"] = infiniband.RNR_MILLISECONDS[aeth["value"]]
    elif aeth.get("kind") == infiniband.NAK:
        aeth["nak"] = dict(enumerate(infiniband.NAK_CODES)).get(aeth["value"], "reserved")
    return {
        "time": int(columns.times[row]) / 1e9,
        "version": version,
        "vlan": [tag & 0xFFF for tag in tags],
        "vlan_priority": [tag >> 13 for tag in tags],
        "source": address_text(addresses[:16]),
        "destination": address_text(addresses[16:]),
        "dscp": int(columns.dscp[row]),
        "ecn": int(columns.ecn[row]),
        "source_port": int.from_bytes(port) if version == 2 else None,  # noqa: PLR2004 - RoCE v2
        "transport": infiniband.TRANSPORTS[bth["opcode"] >> 5],
        "operation": infiniband.operation_of(bth["opcode"]),
        "bth": bth,
        **headers,
        "icrc": None if valid == UNKNOWN else int.from_bytes(captured[-infiniband.ICRC_BYTES :], "little"),
        "icrc_valid": None if valid == UNKNOWN else valid == CORRECT,
    }


def _tags(frames: Frames, roce: Located, row: int) -> list[int]:
    """TCI of each VLAN tag, the outer first: all that is between the addresses and the EtherType."""
    link, network = int(roce.links[row]), int(roce.network[row])
    kind = frames.link if link == frames.starts[roce.rows[row]] else ETHERNET
    if kind not in TYPE_AT:
        return []
    places = range(link + TYPE_AT[kind] + 2, network - 2, 4)
    return [int.from_bytes(frames.data[at : at + 2].tobytes()) for at in places]

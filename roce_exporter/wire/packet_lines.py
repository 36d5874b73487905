"""Every RoCE packet with all its headers, one JSON object per line: `roce-exporter wire --format=packets`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from roce_exporter.wire.decode import opcodes
from roce_exporter.wire.decode.infiniband import NAK, RNR, RNR_MILLISECONDS, Aeth, nak_reason
from roce_exporter.wire.decode.internet import address_text
from roce_exporter.wire.decode.roce_packet import read_packet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.wire.decode.roce_packet import RocePacket
    from roce_exporter.wire.frames import Frames


def packet_lines(frames: Frames) -> Iterator[str]:
    """A line for each RoCE packet of a batch."""
    parts = zip(frames.starts.tolist(), frames.captured.tolist(), frames.times.tolist(), strict=True)
    for start, captured, time in parts:
        packet = read_packet(frames.data[start : start + captured].tobytes(), frames.link)
        if packet is not None:
            yield json.dumps({"time": time / 1e9} | _fields(packet))


def _fields(packet: RocePacket) -> dict[str, Any]:
    network, bth = packet.network, packet.bth
    return {
        "version": packet.place.version,
        "vlan": [tag & 0xFFF for tag in packet.place.tags],
        "vlan_priority": [tag >> 13 for tag in packet.place.tags],
        "source": address_text(network.source),
        "destination": address_text(network.destination),
        "dscp": network.traffic_class >> 2,
        "ecn": network.traffic_class & 3,
        "source_port": packet.source_port,
        "transport": opcodes.TRANSPORTS[opcodes.transport_of(bth.opcode)],
        "operation": opcodes.operation_of(bth.opcode),
        "bth": bth._asdict(),
        **_extensions(packet),
        "icrc": packet.icrc,
        "icrc_valid": packet.icrc_valid,
    }


def _extensions(packet: RocePacket) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, header in packet.extensions._asdict().items():
        if isinstance(header, Aeth):
            found[name] = header._asdict() | _syndrome(header)
        elif header is not None:
            found[name] = header if isinstance(header, int) else header._asdict()
    return found


def _syndrome(aeth: Aeth) -> dict[str, Any]:
    """The syndrome in words."""
    if aeth.kind == RNR:
        return {"rnr_milliseconds": RNR_MILLISECONDS[aeth.value]}
    return {"nak": nak_reason(aeth.value)} if aeth.kind == NAK else {}

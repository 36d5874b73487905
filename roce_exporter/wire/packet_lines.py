"""Every RoCE packet with all its headers, one JSON object per line: `roce-exporter wire --format=packets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_exporter.wire.decode import opcodes
from roce_exporter.wire.decode.columns import address_text, read_columns
from roce_exporter.wire.decode.infiniband import (
    BTH_BYTES,
    ICRC_BYTES,
    NAK,
    NAK_CODES,
    RNR,
    RNR_MILLISECONDS,
    read_extensions,
    read_header,
)
from roce_exporter.wire.decode.invariant_crc import CORRECT, UNKNOWN
from roce_exporter.wire.decode.locate import TYPE_AT, UDP_BYTES, locate
from roce_exporter.wire.frames import ETHERNET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.wire.decode.columns import Columns
    from roce_exporter.wire.decode.locate import Located
    from roce_exporter.wire.frames import Frames


def packets(frames: Frames) -> Iterator[dict[str, Any]]:
    """The RoCE packets of a batch with all their headers, in the order of the capture."""
    roce = locate(frames).roce
    columns = read_columns(frames, roce)
    return (_packet(frames, roce, columns, row) for row in range(len(roce.rows)))


def _packet(frames: Frames, roce: Located, columns: Columns, row: int) -> dict[str, Any]:
    begin, end = int(roce.bth[row]), int(roce.end[row])
    captured = frames.data[begin : min(end, int(roce.limits[row]))].tobytes()
    bth = read_header("bth", captured)
    addresses = columns.addresses[row].astype(">u8").tobytes()
    version, valid = int(columns.versions[row]), int(columns.icrc[row])
    port = frames.data[begin - UDP_BYTES : begin - UDP_BYTES + 2].tobytes()
    tags = _tags(frames, roce, row)
    headers = read_extensions(bth["opcode"], captured[BTH_BYTES : end - begin - ICRC_BYTES])
    aeth = headers.get("aeth", {})
    if aeth.get("kind") == RNR:
        aeth["rnr_milliseconds"] = RNR_MILLISECONDS[aeth["value"]]
    elif aeth.get("kind") == NAK:
        aeth["nak"] = dict(enumerate(NAK_CODES)).get(aeth["value"], "reserved")
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
        "transport": opcodes.TRANSPORTS[bth["opcode"] >> 5],
        "operation": opcodes.operation_of(bth["opcode"]),
        "bth": bth,
        **headers,
        "icrc": None if valid == UNKNOWN else int.from_bytes(captured[-ICRC_BYTES:], "little"),
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

"""The invariant CRCs of a batch: `invariant_crc` with the headers of all packets masked at once.

The masked headers, with the dummy LRH before them, are written into the buffer over the original ones, so that one call of
zlib per packet computes its CRC; then the original bytes are restored. (Two calls, for headers and for the rest, take half
as long again.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

try:
    from isal.isal_zlib import crc32  # nine times as fast as zlib's on a frame of 4 KB
except ImportError:  # pragma: no cover - a platform without it
    from zlib import crc32

from roce_exporter.wire.decode.infiniband import BTH_BYTES, ICRC_BYTES
from roce_exporter.wire.decode.internet import IPV4_BYTES, IPV6_BYTES, UDP_BYTES
from roce_exporter.wire.decode.invariant_crc import LRH, invariant_crc
from roce_exporter.wire.decode.link_layer import IPV4, IPV6, ROCE_V1
from roce_exporter.wire.decode.windows import window

if TYPE_CHECKING:
    from roce_exporter.wire.decode.locate_batch import Located
    from roce_exporter.wire.decode.windows import Bytes, Flags, Integers

UNKNOWN, WRONG, CORRECT = -1, 0, 1
ONES = 0xFF
MASKED = {
    IPV4: (1, 8, 10, 11, 26, 27, 32),
    IPV6: (1, 2, 3, 7, 46, 47, 52),
    ROCE_V1: (1, 2, 3, 7, 44),
}
"""Bytes that are ones, from the network header on: those of `invariant_crc`."""
HEAD = {
    IPV4: IPV4_BYTES + UDP_BYTES + BTH_BYTES,
    IPV6: IPV6_BYTES + UDP_BYTES + BTH_BYTES,
    ROCE_V1: IPV6_BYTES + BTH_BYTES,
}


def check_crcs(data: Bytes, roce: Located) -> Integers:
    """Per packet: 1 for a correct CRC, 0 for a wrong one, -1 where the capture is cut off before it."""
    found = np.full(len(roce.rows), UNKNOWN, np.int64)
    complete = roce.end <= roce.limits
    if not data.flags.writeable:
        data = data.copy()
    for kind, head in HEAD.items():
        mine = complete & (roce.kinds == kind)
        if mine.any():
            plain = mine & (roce.bth + BTH_BYTES - roce.network == head) & (roce.network >= len(LRH))
            found[plain] = _check_plain(data, roce, plain, kind)
            for row in np.flatnonzero(mine & ~plain):
                found[row] = _check_one(data, roce, int(row))
    return found


def _check_plain(data: Bytes, roce: Located, chosen: Flags, kind: int) -> Integers:
    """The packets whose network header has no options."""
    size = HEAD[kind] + len(LRH)
    starts, ends = roce.network[chosen] - len(LRH), roce.end[chosen] - ICRC_BYTES
    sent = window(data, ends, ICRC_BYTES).view("<u4")[:, 0]
    heads = np.lib.stride_tricks.sliding_window_view(data, size, writeable=True)
    original = heads[starts]
    masked = original.copy()
    masked[:, : len(LRH)] = ONES
    masked[:, [len(LRH) + at for at in MASKED[kind]]] = ONES
    if kind != IPV4:
        masked[:, len(LRH)] |= 0x0F
    heads[starts] = masked
    with memoryview(data) as view:  # type: ignore[arg-type] # numpy arrays are buffers; Python 3.11 has no type for them
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        made = np.array([crc32(view[start:end]) for start, end in pairs], np.uint32)
    heads[starts] = original
    return np.where(made == sent, CORRECT, WRONG)


def _check_one(data: Bytes, roce: Located, row: int) -> int:
    version = 1 if roce.kinds[row] == ROCE_V1 else 2
    transport = int(roce.bth[row]) - (UDP_BYTES if version == 2 else 0)  # noqa: PLR2004 - RoCE v2
    end = int(roce.end[row]) - ICRC_BYTES
    made = invariant_crc(
        data[roce.network[row] : transport].tobytes(), data[transport:end].tobytes(), version=version
    )
    return int(made == int.from_bytes(data[end : end + ICRC_BYTES].tobytes(), "little"))

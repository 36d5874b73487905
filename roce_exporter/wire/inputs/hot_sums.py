"""CRCs that are computed as soon as bytes are read, while they are in the processor's cache; and small batches as one.

Headers are decoded in large batches, because each batch has a cost. By then the payload has left the cache of a core, and reading
it again from memory takes longer than its CRC. `decode.batch_crc` uses these sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from roce_exporter.wire.decode.batch_crc import plain_crcs
from roce_exporter.wire.decode.infiniband import ICRC_BYTES
from roce_exporter.wire.decode.roce_packet import locate
from roce_exporter.wire.frames import Frames, Sums

if TYPE_CHECKING:
    from collections.abc import Iterable

SAMPLES = 4
"""Frames that are decoded to find where the CRC of a packet begins; what differs from the first is computed later."""
HEADERS = 512
"""Bytes that hold all headers before the BTH, also behind two tunnels."""
NO_SUM = -1


def with_sums(frames: Frames) -> Frames:
    """The frames with a CRC of each, if a sample of them holds a RoCE packet."""
    offset = _network_offset(frames)
    if offset is None:
        return frames
    begins = frames.starts + offset
    ends = frames.starts + frames.captured - ICRC_BYTES
    return frames._replace(sums=Sums(begins, plain_crcs(frames.data, begins, np.maximum(begins, ends))))


def _network_offset(frames: Frames) -> int | None:
    """Bytes before the network header of the first packet of the sample."""
    count = len(frames.starts)
    for row in range(0, count, -(-count // SAMPLES)):
        start = int(frames.starts[row])
        size = min(int(frames.captured[row]), HEADERS)
        if place := locate(frames.data[start : start + size].tobytes(), frames.link):
            return place.network
    return None


def merged(parts: Iterable[Frames]) -> list[Frames]:
    """The same frames in as few batches as possible: those of one link type that follow each other."""
    found: list[list[Frames]] = []
    for part in parts:
        if found and found[-1][0].link == part.link:
            found[-1].append(part)
        else:
            found.append([part])
    return [_as_one(group) for group in found]


def _as_one(parts: list[Frames]) -> Frames:
    """Frames of one buffer."""
    if len(parts) == 1:
        return parts[0]
    sums = None
    if any(part.sums for part in parts):
        known = [part.sums or _no_sums(len(part.starts)) for part in parts]
        sums = Sums(
            np.concatenate([one.begins for one in known]), np.concatenate([one.values for one in known])
        )
    return Frames(
        data=parts[0].data,
        starts=np.concatenate([part.starts for part in parts]),
        captured=np.concatenate([part.captured for part in parts]),
        lengths=np.concatenate([part.lengths for part in parts]),
        times=np.concatenate([part.times for part in parts]),
        tags=np.concatenate([part.tags for part in parts]),
        link=parts[0].link,
        sums=sums,
    )


def _no_sums(count: int) -> Sums:
    return Sums(np.full(count, NO_SUM, np.int64), np.zeros(count, np.uint32))

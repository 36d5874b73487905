"""A capture of the links of a simulated host: the series of `roce-exporter serve --wire.interface`, constructed.

Each port of the host sends to peers and receives from them. In the middle of the history one peer is congested and one path
loses packets. The proportions are simple: enough for queries to have a result, no model of a network.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESS = re.compile(r'^roce_gid_info\{.*address="([0-9.]+)"', re.MULTILINE)
CAPTURED = frozenset({"lossy"})
"""The clusters with a capture. Hosts of a simulated cluster share their addresses, so it has one host."""
PEERS = tuple(f"198.51.100.{number}" for number in range(1, 5))
BUSY = 40_000
"""Packets per second of a pair."""


class Capture:
    """The pairs of one host, and the ring of the capture."""

    instance = "probe1:10125"

    def __init__(self) -> None:
        self._counted: defaultdict[str, float] = defaultdict(float)
        self._seconds = 0.0

    def scrape(self, text: str, seconds: float) -> Iterator[str]:
        """Samples without labels of the target, for the host's exposition of the same moment."""
        self._seconds += seconds
        incident = 300 < self._seconds % 1200 <= 800
        addresses = sorted(set(ADDRESS.findall(text)))
        for place, address in enumerate(addresses):
            for number, peer in enumerate(PEERS):
                bad = incident and number == 0
                yield from self._data(f'source="{address}",destination="{peer}"', number, seconds, bad=bad)
                yield from self._replies(f'source="{peer}",destination="{address}"', place, seconds, bad=bad)
        yield self._add("roce_wire_capture_frames_total{}", 8 * BUSY * seconds)
        yield self._add("roce_wire_capture_dropped_frames_total{}", incident * 0.002 * BUSY * seconds)

    def _data(self, pair: str, number: int, seconds: float, *, bad: bool) -> Iterator[str]:
        sent = BUSY * seconds / (1 + number)
        marked = (0.3 if bad else 0.01) * sent
        yield self._add(f'roce_wire_packets_total{{{pair},operation="write"}}', sent)
        yield self._add(f'roce_wire_ecn_packets_total{{{pair},codepoint="ce"}}', marked)
        yield self._add(f'roce_wire_ecn_packets_total{{{pair},codepoint="ect0"}}', sent - marked)
        yield self._add(f"roce_wire_retransmitted_packets_total{{{pair}}}", 0.004 * sent * bad)
        yield self._add(f"roce_wire_outside_lossless_packets_total{{{pair}}}", 0.5 * sent * (number == 3))
        yield self._add(f"roce_wire_cnps_total{{{pair}}}", 0)

    def _replies(self, pair: str, place: int, seconds: float, *, bad: bool) -> Iterator[str]:
        cnps = (2000 if bad else 20) * seconds
        yield self._add(f'roce_wire_packets_total{{{pair},operation="acknowledge"}}', BUSY / 16 * seconds)
        yield self._add(f'roce_wire_packets_total{{{pair},operation="cnp"}}', cnps)
        yield self._add(f"roce_wire_cnps_total{{{pair}}}", cnps)
        yield self._add(f"roce_wire_retransmitted_packets_total{{{pair}}}", 0)
        yield self._add(
            f'roce_wire_naks_total{{{pair},reason="psn_sequence_error"}}', (1 + place) * 3 * seconds * bad
        )

    def _add(self, series: str, more: float) -> str:
        self._counted[series] += more
        return f"{series} {self._counted[series]}"

"""A capture of the links of a simulated host: the series of `roce-exporter serve --wire.interface`, constructed.

Each port of the host sends to peers and receives from them. In the middle of the history one peer is congested and one path
loses packets. The proportions are simple: enough for queries to have a result, no model of a network.
"""

import re
from collections import defaultdict
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


class Probers:
    """The probers of a host with two devices and of another, which both lose probes to five others: a path."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def scrape(self, seconds: float) -> Iterator[str]:
        """Samples without labels of the target."""
        self._seconds += seconds
        yield "roce_probe_targets{} 4"
        for device in ("mlx5_0", "mlx5_1"):
            port = f'device="{device}",port="1"'
            yield f'roce_probe_port_info{{{port},address="198.51.100.1",host="gpu-1",rack="r1",rail="{device}"}} 1'
            yield f'roce_probe_port_info{{{port},address="fd00::1",host="gpu-1",rack="r1",rail="{device}"}} 1'
            for number in range(5):
                yield f'roce_probe_pair_lost_total{{{port},peer="gpu-{number}",source_port="50001"}} {self._seconds / 150}'
            for scope in ("rack", "fabric"):
                at = f'{port},scope="{scope}"'
                yield f'roce_probe_sent_total{{{at},class="roce"}} {2 * self._seconds}'
                yield f'roce_probe_lost_total{{{at},class="roce"}} {self._seconds / 30}'
                for name in ("marked", "remarked"):
                    yield f"roce_probe_{name}_total{{{at}}} {self._seconds / 50}"
                for name in ("network", "responder"):
                    yield f'roce_probe_{name}_seconds_sum{{{at},le=""}} {self._seconds / 1000}'
                    yield f'roce_probe_{name}_seconds_count{{{at},le=""}} {2 * self._seconds}'

"""What the probes of all hosts say together: the counts that each host exports, as paths for the vote.

A host exports its lossy pairs only. The rest of what a port sent passed that port and its ToR without a loss, to peers that do not matter
here. A path between racks has no known links, so the vote names ports and ToRs, and says what it cannot tell apart.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import probe as rows
from roce_exporter.probe.vote import HOST, TOR, Component, PathCount, vote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from roce_exporter.normalise.series import Samples
    from roce_exporter.probe.vote import Blamed

QUEUE = "queue"


class ProbedPort(NamedTuple):
    """A port that sends probes."""

    host: str
    rack: str
    rail: str

    @property
    def component(self) -> Component:
        """The port itself, with its NIC and cable."""
        return Component(HOST, _named(self.host, self.rail))

    @property
    def components(self) -> tuple[Component, ...]:
        """What every probe of it passes: itself, and its ToR if its rack is known."""
        return (
            (self.component, Component(TOR, _named(self.rack, self.rail))) if self.rack else (self.component,)
        )


class PortReport(NamedTuple):
    """What one port sent and lost in some time."""

    port: ProbedPort
    sent: float
    pairs: tuple[tuple[str, float, float], ...]
    """Peer, probes sent and lost, per source port."""
    dropped: float
    """Packets that the queues of the host's sockets dropped."""


def _named(name: str, rail: str) -> str:
    return f"{name} rail {rail}" if rail else name


def port_reports(before: Samples | None, now: Samples) -> tuple[PortReport, ...]:
    """What the ports of one host did between two scrapes; `before` None: since the start of the process."""
    rises = _rises(before, now)
    sent: defaultdict[tuple[str, ...], float] = defaultdict(float)
    pairs: defaultdict[tuple[str, ...], dict[tuple[str, str], list[float]]] = defaultdict(dict)
    dropped = 0.0
    ports: dict[tuple[str, ...], ProbedPort] = {}
    for (name, labels), rise in rises.items():
        if name == rows.SENT.name:
            sent[labels[:2]] += rise
        elif name in (rows.PAIR_SENT.name, rows.PAIR_LOST.name):
            counts = pairs[labels[:2]].setdefault((labels[2], labels[3]), [0.0, 0.0])
            counts[name == rows.PAIR_LOST.name] = rise
        elif name in (rows.REPLIES_DROPPED.name, rows.REQUESTS_DROPPED.name) and labels == (QUEUE,):
            dropped += rise
    for series in now.series:
        if series.row is rows.PORT_INFO:
            device, port, _, host, rack, rail = series.labels
            ports[device, port] = ProbedPort(host, rack, rail)
    return tuple(
        PortReport(
            place,
            sent[key],
            tuple((peer, one[0], one[1]) for (peer, _), one in sorted(pairs[key].items())),
            dropped,
        )
        for key, place in ports.items()
    )


def _rises(before: Samples | None, now: Samples) -> dict[tuple[str, tuple[str, ...]], float]:
    """How much each counter of probes has risen; a counter that fell began again."""
    old = {}
    if before is not None:
        old = {
            (one.row.name, one.labels): value for one, value in zip(before.series, before.values, strict=True)
        }
    found = {}
    for series, value in zip(now.series, now.values, strict=True):
        key = (series.row.name, series.labels)
        if value is not None and key[0].endswith("_total"):
            last = old.get(key) or 0
            found[key] = value - last if value >= last else value
    return found


def blame(reports: Sequence[PortReport]) -> tuple[Blamed, ...]:
    """The components that lose probes, by the reports of all hosts."""
    known = {(one.port.host, one.port.rail): one.port for one in reports}
    paths = [path for one in reports for path in _paths(one, known)]
    return vote(paths, _dropped(reports))


def _paths(report: PortReport, known: Mapping[tuple[str, str], ProbedPort]) -> Iterable[PathCount]:
    own = report.port
    rest = report.sent
    for peer, sent, lost in report.pairs:
        rest -= sent
        other = known.get((peer, own.rail), ProbedPort(peer, "", own.rail))
        yield PathCount((*own.components, *other.components), round(sent), round(lost))
    yield PathCount(own.components, max(0, round(rest)), 0)


def _dropped(reports: Iterable[PortReport]) -> dict[str, int]:
    """A host counts what its queues dropped for all its ports together, so each may have lost it."""
    return {one.port.component.name: round(one.dropped) for one in reports if one.dropped}

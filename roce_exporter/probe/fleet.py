"""What the probes of all hosts say together: the counts that each host exports, as paths for the vote.

A host exports its lossy pairs only. The rest of what a port sent passed that port and its ToR without a loss, to peers that do not matter
here. Of a path between racks the switches above the ToR are not known: all uplinks of a ToR are one component, and all that is above the
ToRs of a rail is another, so a vote names the rack whose uplinks lose, and not which of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import probe as rows
from roce_exporter.probe.plan import FABRIC, RACK, SendRate
from roce_exporter.probe.vote import HOST, LINK, PATH, SPINE, TOR, Blamed, Component, PathCount, vote

if TYPE_CHECKING:
    from roce_exporter.view.host_view import TimedSamples

QUEUE = "queue"
SUM, COUNT = "_sum", "_count"
SLOW_RATIO, SLOW_SECONDS = 3.0, 5e-5
"""Means of the network time of a port that are both so many times and so much above the median of its rail are not noise: software
timestamps vary by 20 us, and the ports of a rail have alike paths."""
LEAST_MEASURED = 10
MOST_RACKS = 16  # that share what a port sent without a loss: more would cost time, and say no more
LEAST_PORTS = 3  # with fewer ports in a rack, its ToR and a port look the same
INTERVAL = SendRate().interval


class ProbedPort(NamedTuple):
    """A port that sends probes."""

    host: str
    rack: str
    rail: str

    @property
    def component(self) -> Component:
        """The port itself, with its NIC and cable."""
        return Component(HOST, _named(self.host, self.rail))

    def components(self, scope: str) -> tuple[Component, ...]:
        """What every probe of it in this scope passes: itself, its ToR, and between racks the uplinks and all above them."""
        if not self.rack:
            return (self.component,)
        name = _named(self.rack, self.rail)
        inside = (self.component, Component(TOR, name))
        above = (Component(LINK, name), Component(SPINE, _named("fabric", self.rail)))
        return (*inside, *above) if scope == FABRIC else inside


class LossyPair(NamedTuple):
    """What one source port lost to one peer."""

    peer: str
    source_port: str
    sent: float
    lost: float


class PortReport(NamedTuple):
    """What one port measured in some time; the mappings are by scope."""

    port: ProbedPort
    sent: Mapping[str, float]
    pairs: tuple[LossyPair, ...] = ()
    dropped: float = 0.0
    """Packets that the queues of the host's sockets dropped."""
    late: float = 0.0
    marked: Mapping[str, float] = {}
    remarked: Mapping[str, float] = {}
    network: Mapping[str, float] = {}
    """Mean seconds in the network."""
    answer: float | None = None
    """Mean seconds for which this host held the probes of others; None: it answered too few."""
    lost: Mapping[str, float] = {}
    """By class."""


def _named(name: str, rail: str) -> str:
    return f"{name} rail {rail}" if rail else name


class _Rises:
    """How much the counters of one host have risen between two moments; a counter that fell began again."""

    def __init__(self, before: TimedSamples | None, now: TimedSamples) -> None:
        self._before = before
        self._now = now
        self._most_of_pair = math.inf if before is None else (now.time - before.time) // INTERVAL + 1

    def of(self, name: str) -> dict[tuple[str, ...], float]:
        found = {}
        for labels, value in self._now.values.get(name, {}).items():
            last = (self._before and self._before.value(name, labels)) or 0.0
            found[labels] = value - last if value >= last else value
        return found

    def by_label(self, name: str, place: tuple[str, ...], position: int = 2) -> dict[str, float]:
        """The sums of a port by the value of one label."""
        found: defaultdict[str, float] = defaultdict(float)
        for labels, rise in self.of(name).items():
            if labels[:2] == place:
                found[labels[position]] += rise
        return dict(found)

    def mean(self, row: str, labels: tuple[str, ...]) -> float | None:
        """Of a histogram; None if it has too few values."""
        count = self.of(row + COUNT).get(labels, 0.0)
        return self.of(row + SUM).get(labels, 0.0) / count if count >= LEAST_MEASURED else None

    def pairs(self, place: tuple[str, ...]) -> Iterable[LossyPair]:
        sent_by = self.of(rows.PAIR_SENT.name)
        for labels, lost in self.of(rows.PAIR_LOST.name).items():
            if labels[:2] == place:
                sent = sent_by.get(labels, 0.0)
                if self._before is None or self._before.value(rows.PAIR_SENT.name, labels) is None:
                    # Not shown before its first loss: what it had sent until then is not of this time.
                    sent = min(sent, max(lost, self._most_of_pair))
                _, _, peer, source_port = labels
                yield LossyPair(peer, source_port, sent, lost)


def port_reports(before: TimedSamples | None, now: TimedSamples) -> tuple[PortReport, ...]:
    """What the ports of one host did between two moments; `before` None: since the start of the process."""
    rises = _Rises(before, now)
    dropped = sum(
        rises.of(row.name).get((QUEUE,), 0.0) for row in (rows.REPLIES_DROPPED, rows.REQUESTS_DROPPED)
    )
    found = []
    for device, port, _, host, rack, rail in now.values.get(rows.PORT_INFO.name, {}):
        place = (device, port)
        network = {scope: rises.mean(rows.NETWORK.name, (*place, scope)) for scope in (RACK, FABRIC)}
        found.append(
            PortReport(
                ProbedPort(host, rack, rail),
                rises.by_label(rows.SENT.name, place),
                tuple(sorted(rises.pairs(place))),
                dropped,
                sum(rises.by_label(rows.LATE.name, place).values()),
                rises.by_label(rows.MARKED.name, place),
                rises.by_label(rows.REMARKED.name, place),
                {scope: value for scope, value in network.items() if value is not None},
                rises.mean(rows.ANSWER.name, ()),
                rises.by_label(rows.LOST.name, place, 3),
            )
        )
    return tuple(found)


def blame(reports: Sequence[PortReport]) -> tuple[Blamed, ...]:
    """The components that lose probes, by the reports of all hosts."""
    known = {(one.port.host, one.port.rail): one.port for one in reports}
    racks: defaultdict[str, defaultdict[str, list[ProbedPort]]] = defaultdict(lambda: defaultdict(list))
    for port in known.values():
        racks[port.rail][port.rack].append(port)
    paths: list[PathCount] = []
    for number, one in enumerate(reports):
        others = [ports for rack, ports in racks[one.port.rail].items() if rack != one.port.rack]
        first = number % max(1, len(others))
        there = (others[first:] + others[:first])[:MOST_RACKS]
        paths += _paths(one, known, [ports[number % len(ports)] for ports in there])
    # A host counts what its queues dropped for all its ports together, so each may have lost it.
    return vote(paths, {one.port.component.name: round(one.dropped) for one in reports if one.dropped})


def _paths(
    report: PortReport, known: Mapping[tuple[str, str], ProbedPort], partners: Sequence[ProbedPort]
) -> Iterable[PathCount]:
    """`partners`: a port of each of some other racks of the rail. They share what went there without a loss, because partners are spread evenly.

    Over all reports each port of a rack is one as often: without it the ports of a rack whose uplinks lose some paths would seem to lose
    more than the uplinks, which also carry the probes of others that arrive.
    """
    own = report.port
    rest = dict(report.sent)
    for pair in report.pairs:
        other = known.get((pair.peer, own.rail), ProbedPort(pair.peer, "", own.rail))
        scope = RACK if own.rack and other.rack == own.rack else FABRIC
        rest[scope] = rest.get(scope, 0.0) - pair.sent
        path = Component(PATH, f"{own.component.name} source port {pair.source_port}")
        components = dict.fromkeys((*own.components(scope), *other.components(scope), path))
        yield PathCount(tuple(components), round(pair.sent), round(pair.lost))
    for scope, sent in rest.items():
        there = [other.components(FABRIC) for other in partners] if scope != RACK else []
        for one in there or [()]:
            components = dict.fromkeys((*own.components(scope), *one))
            yield PathCount(tuple(components), max(0, round(sent / max(1, len(there)))), 0)


class SlowPart(NamedTuple):
    """A component through which probes take longer than through others."""

    component: Component
    seconds: float
    usual: float
    """The median of its rail."""


def slow_parts(reports: Sequence[PortReport]) -> tuple[SlowPart, ...]:
    """The port, or the ToR if most of its ports are, whose time in the network is far above that of the rail.

    A slow port slows some probes of its peers too, so only what is more than half as slow as the slowest is named.
    """
    found: list[SlowPart] = []
    for rail in sorted({one.port.rail for one in reports}):
        ports = [one for one in reports if one.port.rail == rail]
        for scope in (RACK, FABRIC):
            times = {one.port: one.network[scope] for one in ports if scope in one.network}
            usual = median(times.values()) if times else 0.0
            slow = {
                port: time
                for port, time in times.items()
                if time > usual * SLOW_RATIO and time - usual > SLOW_SECONDS
            }
            worst = {port: time for port, time in slow.items() if time > max(slow.values()) / 2}
            for rack in sorted({port.rack for port in worst}):
                below = [port for port in times if port.rack == rack]
                here = [port for port in worst if port.rack == rack]
                if rack and len(below) >= LEAST_PORTS and len(here) * 2 > len(below):
                    mean = sum(worst[port] for port in here) / len(here)
                    found.append(SlowPart(Component(TOR, _named(rack, rail)), mean, usual))
                else:
                    found += [SlowPart(port.component, worst[port], usual) for port in here]
    worst_of: dict[Component, SlowPart] = {}
    for one in sorted(found, key=lambda part: part.seconds):
        worst_of[one.component] = one
    return tuple(worst_of.values())

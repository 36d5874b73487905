"""Counts the outcomes of probes, and gives them as samples of the catalogue's rows."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import probe as rows
from roce_exporter.normalise.series import Histogram, Samples, Series, Value, histogram_series
from roce_exporter.probe.guard import REASONS
from roce_exporter.probe.plan import FABRIC, RACK, Probe, ProbeTarget
from roce_exporter.probe.udp import CE

if TYPE_CHECKING:
    from roce_exporter.catalog.row import Row
    from roce_exporter.probe.sender import TrafficClass

    Sample = tuple[Series, Value]

SCOPES = (RACK, FABRIC)
BOUNDS = (2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2, 1e-1)
"""Seconds; from the noise of software timestamps to a buffer that is full."""
PAIRS = 50  # pairs with losses that are shown
PAIRS_COUNTED = 512
"""Of one port: more than the source ports and peers of ten minutes, also in a full mesh whose source ports change in between."""
SHOWN_SECONDS = 600.0  # a pair is shown for this time after its last loss
MAX_SECONDS = 60.0
REPLY_REASONS = ("queue", "unknown", "short", "long", "malformed", "authentication")
REQUEST_REASONS = ("queue", *REASONS)


def _histogram(found: Histogram, row: Row, labels: tuple[str, ...], *, whole: bool) -> Sequence[Sample]:
    """All samples of a histogram; without `whole` only its last bucket, which Prometheus wants."""
    every = list(zip(histogram_series(row, labels, BOUNDS), found.values(), strict=True))
    return every[0 if whole else -3 :]


@dataclass(slots=True)
class Pair:
    """One peer and one source port."""

    sent: int = 0
    lost: int = 0
    last_loss: float = 0.0


class PortTally:
    """The outcomes of the probes of one own port. A probe's `path` is the UDP source port that it was sent from."""

    def __init__(
        self, device: str, port: str, classes: Sequence[TrafficClass], clock: Callable[[], float]
    ) -> None:
        """`clock` returns monotonic seconds."""
        self.labels = (device, port)
        self.target: ProbeTarget | None = None
        """The port's own entry in the list of targets; None: the list has none."""
        self.replies_dropped: Counter[str] = Counter()
        self.pairs: OrderedDict[tuple[str, int], Pair] = OrderedDict()
        self._clock = clock
        self._classes = [one.name for one in classes]
        self._counts: Counter[tuple[Row, str, str]] = Counter()
        self._refused = 0
        self._network = {scope: Histogram(BOUNDS) for scope in SCOPES}
        self._responder = {scope: Histogram(BOUNDS) for scope in SCOPES}
        self._longest: dict[str, tuple[float, float]] = {}
        """Per scope: the longest time in the network, and when it was seen."""

    def sent(self, probe: Probe, kind: TrafficClass) -> None:
        """It was sent."""
        self._counts[rows.SENT, probe.scope, kind.name] += 1
        self._pair(probe).sent += 1

    def refused(self) -> None:
        """The own kernel did not take a probe: no route, or a full queue. It says nothing about the network."""
        self._refused += 1

    def answered(self, probe: Probe, kind: TrafficClass, there: int | None, back: int | None) -> None:
        """A reply came in time; the TOS octets are those of the request and of the reply as they arrived, None if unknown."""
        arrived = [one for one in (there, back) if one is not None]
        if any(one & 3 == CE for one in arrived):
            self._counts[rows.MARKED, probe.scope, ""] += 1
        if any(one >> 2 != kind.dscp for one in arrived):
            self._counts[rows.REMARKED, probe.scope, ""] += 1

    def late(self, probe: Probe) -> None:
        """A reply came after `LATE` seconds."""
        self._counts[rows.LATE, probe.scope, ""] += 1

    def lost(self, probe: Probe, kind: TrafficClass) -> None:
        """No reply came for `LOST` seconds."""
        self._counts[rows.LOST, probe.scope, kind.name] += 1
        pair = self._pair(probe)
        pair.lost += 1
        pair.last_loss = self._clock()

    def measured(self, probe: Probe, network: float, responder: float) -> None:
        """Seconds in the network, there and back, and at the responder."""
        self._network[probe.scope].observe(network)
        self._responder[probe.scope].observe(responder)
        longest, when = self._longest.get(probe.scope, (0.0, 0.0))
        now = self._clock()
        if network >= longest or now - when > MAX_SECONDS:
            self._longest[probe.scope] = network, now

    def dropped(self, reason: str, count: int) -> None:
        """Replies that were not used: `malformed`, `short`, `unknown` (to no probe), `queue` (the socket's was full)."""
        self.replies_dropped[reason] += count

    def _pair(self, probe: Probe) -> Pair:
        key = probe.target.name, probe.path
        pair = self.pairs.get(key)
        if pair is None:
            if len(self.pairs) >= PAIRS_COUNTED:
                self.pairs.popitem(last=False)
            pair = self.pairs[key] = Pair()
        else:
            self.pairs.move_to_end(key)
        return pair

    def samples(self, *, whole: bool) -> Iterator[Sample]:
        """All but the pairs, from 0 on; `whole`: with all buckets."""
        for scope in SCOPES:
            labels = (*self.labels, scope)
            for name in self._classes:
                for row in (rows.SENT, rows.LOST):
                    yield Series(row, (*labels, name)), self._counts[row, scope, name]
            for row in (rows.LATE, rows.MARKED, rows.REMARKED):
                yield Series(row, labels), self._counts[row, scope, ""]
            yield from _histogram(self._network[scope], rows.NETWORK, labels, whole=whole)
            yield from _histogram(self._responder[scope], rows.RESPONDER, labels, whole=whole)
            if scope in self._longest:
                yield Series(rows.NETWORK_MAX, labels), self._longest[scope][0]
        yield Series(rows.REFUSED, self.labels), self._refused
        if (own := self.target) is not None:
            yield Series(rows.PORT_INFO, (*self.labels, str(own.address), own.name, own.rack, own.rail)), 1

    def lossy(self) -> Iterator[tuple[tuple[str, int], Pair]]:
        """The pairs that have lost a probe recently."""
        since = self._clock() - SHOWN_SECONDS
        return ((key, pair) for key, pair in self.pairs.items() if pair.lost and pair.last_loss >= since)


class ProcessCounts(NamedTuple):
    """What is counted once per process."""

    requests_dropped: Counter[str]
    answered: int
    targets: int
    plan_changes: int
    answers: Histogram
    """How long the probes of others were held."""


def probe_samples(ports: Sequence[PortTally], counts: ProcessCounts, *, whole: bool) -> Samples:
    """All samples of the probes; `whole`: with all buckets of histograms."""
    found: list[Sample] = [one for port in ports for one in port.samples(whole=whole)]
    lossy = sorted(
        ((pair.last_loss, port.labels, key, pair) for port in ports for key, pair in port.lossy()),
        key=lambda one: (-one[0], one[1:3]),
    )
    for _, labels, (peer, source_port), pair in lossy[:PAIRS]:
        of_pair = (*labels, peer, str(source_port))
        found += [(Series(rows.PAIR_SENT, of_pair), pair.sent), (Series(rows.PAIR_LOST, of_pair), pair.lost)]
    found.append((Series(rows.PAIRS_HIDDEN, ()), max(0, len(lossy) - PAIRS)))
    replies: Counter[str] = Counter()
    for port in ports:
        replies.update(port.replies_dropped)
    found += [(Series(rows.REPLIES_DROPPED, (reason,)), replies[reason]) for reason in REPLY_REASONS]
    found += [
        (Series(rows.REQUESTS_DROPPED, (reason,)), counts.requests_dropped[reason])
        for reason in REQUEST_REASONS
    ]
    found += _histogram(counts.answers, rows.ANSWER, (), whole=whole)
    found += [
        (Series(rows.ANSWERED, ()), counts.answered),
        (Series(rows.TARGETS, ()), counts.targets),
        (Series(rows.PLAN_CHANGES, ()), counts.plan_changes),
    ]
    return Samples(tuple(series for series, _ in found), tuple(value for _, value in found))

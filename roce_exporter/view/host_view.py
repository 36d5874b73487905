"""The samples of one host or switch at several times, and how rules read those of a port.

A series that is absent is not seen: every question about it returns None or nothing, never 0. Counters may start again (a driver
was loaded, the exporter restarted) and narrow ones wrap at the width that their row's spellings give.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import ROWS
from roce_exporter.normalise.series import Samples, step

if TYPE_CHECKING:
    from roce_exporter.fastloop import Sampler

LabelValues = tuple[str, ...]
"""The values of a row's labels, in the order of `Row.labels`."""

SPACINGS = ((0.0, 0.0), (330.0, 60.0), (960.0, 300.0))
"""From this age on, in seconds, kept moments are at least this far apart. Rules have windows of 5 minutes, 15 minutes and an hour."""
MOST_AGE = 3660.0  # seconds for which a moment is kept


class TimedSamples(NamedTuple):
    """The samples at one time. Absent series are missing, never 0."""

    time: float
    """Seconds since 1970, or of another clock that all moments of a history have."""
    values: Mapping[str, Mapping[LabelValues, float]]
    """By name of the metric, then by label values. Histograms are left out."""

    def value(self, name: str, labels: LabelValues) -> float | None:
        """The value of one series; None if it is absent."""
        return self.values.get(name, {}).get(labels)


History = tuple[TimedSamples, ...]
"""From oldest to newest. Counters are cumulative and may start again at a reset."""


def timed_samples(
    parts: Iterable[Samples], time: float, wanted: Collection[str] | None = None
) -> TimedSamples:
    """The samples of one collection, without histograms and without missing values; of the wanted metrics, or of all."""
    values: dict[str, dict[LabelValues, float]] = {}
    for part in parts:
        for series, value in zip(part.series, part.values, strict=True):
            if value is not None and not series.suffix:
                name = series.row.name
                if wanted is None or name in wanted:
                    values.setdefault(name, {})[series.labels] = value
    return TimedSamples(time, values)


def kept(history: History, newest: TimedSamples) -> History:
    """The history with its newest moment, thinned out so that memory stays small: all of the last minutes, fewer of the last hour.

    A clock that was set back makes every difference meaningless, so the history begins again.
    """
    if history and newest.time <= history[-1].time:
        return (newest,)
    result = [newest]
    for moment in reversed(history):
        age = newest.time - moment.time
        if age > MOST_AGE:
            break
        # Measured from a fixed origin, so that a moment that is kept once is kept until it enters the next spacing.
        spacing = max(apart for begin, apart in SPACINGS if age >= begin)
        if not spacing or moment.time // spacing != result[-1].time // spacing:
            result.append(moment)
    return tuple(reversed(result))


class HostClock:
    """The clock of a host that is not this one, in seconds."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Seconds on this clock."""
        return self.now

    async def play(self, sampler: Sampler | None, time: float) -> None:
        """Let time pass up to this one; the fast loop of a simulated host polls as often as it would meanwhile."""
        while sampler is not None and (due := sampler.tick()) is not None and due < time:
            self.now = due
        self.now = time


Point = tuple[float, float]
"""Time and value."""

WHOLE = ""
"""The port of a view of a whole device."""

EVERY_PORT = "all"
"""What the label `port` says of a counter that the device keeps for all of its ports together."""

FULL_BITS = 64
GOES_ON = 120.0  # seconds without a rise after which the next one is another event


class SeriesTrack(NamedTuple):
    """One series over time. Moments without a sample are left out."""

    labels: Mapping[str, str]
    points: tuple[Point, ...]
    now: float | None
    """The value at the newest moment; None if it is absent then."""


class Rise(NamedTuple):
    """By how much counters rose, and the seconds in which they did."""

    amount: float
    seconds: float

    @property
    def rate(self) -> float:
        """Per second."""
        return self.amount / self.seconds


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """All series of a history by name of their row; tracks are made when a rule first asks for them."""

    history: History
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The limits of rules, by alert and key."""
    moved: list[tuple[float, float]] = field(default_factory=list)
    """First and last time at which each of the counters of faults rose that were asked for since this was emptied; gauges that changed, once."""
    _tracks: dict[str, tuple[SeriesTrack, ...]] = field(default_factory=dict)
    _of: dict[tuple[str, str, str], tuple[SeriesTrack, ...]] = field(default_factory=dict)
    _of_devices: dict[str, dict[str, list[SeriesTrack]]] = field(default_factory=dict)
    """By row and device, so that the cost of a round does not grow with the square of the ports."""

    def lasts(self, last: float) -> bool:
        """Whether what was last seen at this time goes on: that is in the newest interval, which has two ends."""
        return len(self.history) < 3 or last >= self.history[-2].time  # noqa: PLR2004 - fewer moments have one interval

    @property
    def begin(self) -> float:
        """Time of the oldest moment."""
        return self.history[0].time

    @property
    def end(self) -> float:
        """Time of the newest moment."""
        return self.history[-1].time

    def tracks(self, name: str) -> tuple[SeriesTrack, ...]:
        """Every series of this row. A row that the catalogue does not have is not seen."""
        found = self._tracks.get(name)
        if found is None:
            row, newest = ROWS.get(name), self.history[-1].values.get(name, {})
            found = self._tracks[name] = tuple(
                SeriesTrack(dict(zip(row.labels, labels, strict=True)), points, newest.get(labels))
                for labels, points in _points(self.history, name)
                if row
            )
        return found

    def current(self, name: str) -> list[tuple[Mapping[str, str], float]]:
        """Labels and value of every series of this row that has a value now."""
        return [(track.labels, track.now) for track in self.tracks(name) if track.now is not None]

    def value(self, name: str, **match: str) -> float | None:
        """The value now of the last series of this row with these labels; None if it is not seen."""
        found = [value for labels, value in self.current(name) if match.items() <= labels.items()]
        return found[-1] if found else None

    def of(self, device: str, port: str, name: str) -> tuple[SeriesTrack, ...]:
        """The series of this row that belong to the device, and to the port if it is not `WHOLE`."""
        found = self._of.get((device, port, name))
        if found is None:
            if name not in self._of_devices:
                devices = self._of_devices[name] = {}
                for track in self.tracks(name):
                    devices.setdefault(track.labels.get("device", ""), []).append(track)
            tracks = self._of_devices[name].get(device, ())
            found = tuple([track for track in tracks if belongs(track.labels, device, port)])
            self._of[device, port, name] = found
        return found

    def devices(self) -> list[str]:
        """Names of all devices seen at any moment."""
        return sorted({track.labels["device"] for row in _PRESENCE for track in self.tracks(row)})

    def ports(self) -> list[PortView]:
        """A view of each port seen at any moment."""
        labels = (track.labels for row in _PORT_PRESENCE for track in self.tracks(row))
        return [PortView(self, *key) for key in sorted({(one["device"], one["port"]) for one in labels})]


_PORT_PRESENCE = ("roce_port_up", "roce_port_info")
_PRESENCE = (*_PORT_PRESENCE, "roce_device_info")


@dataclass(frozen=True, slots=True, eq=False)
class PortView:
    """The series of one port, or with the port `WHOLE` those of one device and all its ports."""

    host: View
    device: str
    port: str = WHOLE

    def limit(self, name: str, key: str) -> float:
        """A limit by what is measured, which alerts and boards share."""
        return self.host.limits[name][key]

    def tracks(self, name: str, **match: str) -> tuple[SeriesTrack, ...]:
        """The series of this row that belong to the port and have these labels."""
        tracks = self.host.of(self.device, self.port, name)
        if not match:
            return tracks
        return tuple(track for track in tracks if match.items() <= track.labels.items())

    def current(self, name: str, **match: str) -> list[tuple[SeriesTrack, float]]:
        """The series that have a value now, with that value."""
        found = [(track, track.now) for track in self.tracks(name, **match) if track.now is not None]
        if name in STATES:
            for track, _ in found:
                self.changed(track)
        return found

    def changed(self, track: SeriesTrack, is_wrong: Callable[[float], bool] | None = None) -> None:
        """Take the last change of this series, or the last time at which it became wrong, as the begin of a rule's finding."""
        values = [(time, is_wrong(value) if is_wrong else value) for time, value in track.points]
        changes = (after for (_, one), (after, other) in pairwise(values) if one != other)
        self.host.moved.extend((time, self.host.end) for time in [*changes][-1:])

    def highest(self, name: str, **match: str) -> float | None:
        """The largest value now."""
        return max((value for _, value in self.current(name, **match)), default=None)

    def label(self, name: str, label: str) -> str:
        """The value of this label of the row's first series; empty if it is not seen."""
        return next((track.labels.get(label, "") for track in self.tracks(name)), "")

    def rise(self, name: str, window: float, **match: str) -> Rise | None:
        """How much the counters rose together in the last `window` seconds, or in as much of them as there is.

        None if no series has two samples in that time.
        """
        tracks = self.tracks(name, **match)
        known = [one for track in tracks if (one := self.rise_of(name, track, window))]
        if not known:
            return None
        return Rise(sum(one.amount for one in known), max(one.seconds for one in known))

    def rose(self, name: str, window: float, **match: str) -> float:
        """The amount of `rise`; 0 if it is not seen. For rules that only need what was seen."""
        rise = self.rise(name, window, **match)
        return rise.amount if rise else 0.0

    def rise_of(self, name: str, track: SeriesTrack, window: float) -> Rise | None:
        """How much one series rose in the last `window` seconds."""
        since = self.host.end - window
        rise = rise_between(track.points, since, self.host.end, moduli(name))
        if rise and rise.amount and _tells_time(name):
            times = [after[0] for before, after in pairwise(track.points) if after[1] != before[1]]
            first = next(number for number, time in enumerate(times) if time > since)
            while first and times[first] - times[first - 1] <= GOES_ON:
                first -= 1  # it began before the window
            self.host.moved.append((times[first], times[-1]))
        return rise

    def between(self, name: str, begin: float, end: float, **match: str) -> float:
        """How much the counters rose together from `begin` to `end`; 0 if it is not seen."""
        rises = (rise_between(track.points, begin, end, moduli(name)) for track in self.tracks(name, **match))
        return sum(rise.amount for rise in rises if rise)

    def stretches(
        self, name: str, seconds: float, window: float, **match: str
    ) -> list[tuple[float, float, float]]:
        """Begin, end and rise of each stretch of the last `window` seconds that is at most `seconds` long, or one interval.

        So that what happened long ago, or between two samples far apart, is judged like what happens now.
        """
        since = self.host.end - window
        times = [moment.time for moment in self.host.history if moment.time >= since]
        found = []
        for number, end in enumerate(times[1:]):
            begin = min(times[number], next(time for time in times if time >= end - seconds))
            found.append((begin, end, self.between(name, begin, end, **match)))
        return found

    def events(self, name: str, window: float, **match: str) -> float:
        """Like `rose`, for series that appear with their first event: what they show then happened since the moment before."""
        total = 0.0
        for track in self.tracks(name, **match):
            rise = self.rise_of(name, track, window)
            total += rise.amount if rise else 0.0
            first_time, first = track.points[0]
            if first_time > max(self.host.begin, self.host.end - window):
                total += first
                self.host.moved.append((first_time, first_time))
        return total

    @property
    def netdev(self) -> str:
        """The network device of the port; empty if it is not seen."""
        roles = {
            track.labels["role"]: track.labels["netdev"] for track in self.tracks("roce_port_netdev_info")
        }
        return roles.get("bond") or roles.get("port") or self.label("roce_port_info", "netdev")

    @property
    def place(self) -> str:
        """Rail and rack of the port, where the list of targets of the probes has it, and its switch port, where a switch reports its neighbours."""
        rails = [track.labels for track in self.tracks("roce_probe_port_info")]
        parts = [
            f"{name} {labels[name]}" for labels in rails[:1] for name in ("rail", "rack") if labels[name]
        ]
        own = [track.labels for track in self.tracks("roce_netdev_info")]
        macs = {labels["mac"] for labels in own} - {""}
        names = {(labels["hostname"], labels["netdev"]) for labels in own}
        for labels, _ in self.host.current("roce_switch_lldp_neighbor_info"):
            if labels["neighbor_mac"] in macs or (labels["neighbor"], labels["neighbor_port"]) in names:
                parts.append(f"switch {labels['device']} {labels['port']}")
        return ", ".join(dict.fromkeys(parts))


STATES = frozenset(
    {
        "roce_port_up",
        "roce_link_up",
        "roce_link_speed_bytes_per_second",
        "roce_port_set_up",
        "roce_pcie_link_width_lanes",
    }
)
"""Gauges whose change is the begin of what a rule says of them."""


_TELLING = ("roce_pfc_", "roce_cnp_", "roce_ecn_", "roce_netdev_carrier_down_")


@cache
def _tells_time(name: str) -> bool:
    """Whether a rise of this counter is an event, and no traffic."""
    row = ROWS.get(name)
    return row is not None and (row.usual == 0 or name.startswith(_TELLING))


def belongs(labels: Mapping[str, str], device: str, port: str) -> bool:
    """Whether a series belongs to the device, and to the port if that is not `WHOLE`."""
    if labels.get("device") != device:
        return False
    return port == WHOLE or labels.get("port", EVERY_PORT) in (port, EVERY_PORT)


def rise_between(points: Sequence[Point], begin: float, end: float, wraps: Sequence[float]) -> Rise | None:
    """How much a counter rose from `begin` to `end`, with resets and wraps; None without two samples in that time."""
    inside = [point for point in points if begin <= point[0] <= end]
    if len(inside) < 2 or inside[-1][0] <= inside[0][0]:  # noqa: PLR2004 - a difference has two ends
        return None
    amount = sum(step(before, after, wraps) for (_, before), (_, after) in pairwise(inside))
    return Rise(amount, inside[-1][0] - inside[0][0])


@cache
def moduli(name: str) -> tuple[float, ...]:
    """The values at which a row's counter can wrap, in the row's unit; ascending."""
    row = ROWS.get(name)
    if row is None:
        return ()
    return tuple(
        sorted(
            {
                2**spelling.bits * spelling.times / spelling.per
                for spelling in row.spellings
                if spelling.bits < FULL_BITS
            }
        )
    )


def _points(history: History, name: str) -> Iterator[tuple[LabelValues, tuple[Point, ...]]]:
    """The points of each series. The same series at all moments, which is the rule, take a tenth of the time of the general case."""
    values = [moment.values.get(name, {}) for moment in history]
    same = tuple(values[0])
    if all(tuple(one) == same for one in values):
        times = [moment.time for moment in history]
        columns = zip(*(one.values() for one in values), strict=True)
        for labels, column in zip(same, columns, strict=True):
            yield labels, tuple(zip(times, column, strict=True))
        return
    points: dict[LabelValues, list[Point]] = {}
    for moment, one in zip(history, values, strict=True):
        for labels, value in one.items():
            points.setdefault(labels, []).append((moment.time, value))
    for labels, found in points.items():
        yield labels, tuple(found)

"""One network device in the fast loop: when it is polled, its counters, its detectors, and statistics of its reads."""

from __future__ import annotations

import errno
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from roce_exporter.catalog import CATALOG, check
from roce_exporter.catalog.row import ETHTOOL
from roce_exporter.fastloop.episodes import Counts, Longest, RecentMedian
from roce_exporter.fastloop.pfc_storm import StormLimits
from roce_exporter.fastloop.watch import Change, CounterSample, PauseKey, Watch
from roce_exporter.host.kernel import BYTES_PER_MEGABIT, Absent, Kernel
from roce_exporter.model import Device, DeviceReadings
from roce_exporter.model.values import check_counters, make_reading
from roce_exporter.normalise.normaliser import Normaliser
from roce_exporter.normalise.series import Histogram, Series, Value

PAUSED = "paused"
XOFF, FRAMES = "xoff", "frames"
XON, TRANSITIONS = "xon", "transitions"
PACKETS = "packets"

MEANING = {
    "roce_pfc_receive_pause_seconds_total": (PAUSED, "receive"),
    "roce_pfc_transmit_pause_seconds_total": (PAUSED, "transmit"),
    "roce_pfc_receive_xoff_frames_total": (XOFF, "receive"),
    "roce_pfc_transmit_xoff_frames_total": (XOFF, "transmit"),
    "roce_pfc_receive_xon_frames_total": (XON, "receive"),
    "roce_pfc_transmit_xon_frames_total": (XON, "transmit"),
    "roce_pfc_receive_frames_total": (FRAMES, "receive"),
    "roce_pfc_transmit_frames_total": (FRAMES, "transmit"),
    "roce_pfc_receive_transitions_total": (TRANSITIONS, "receive"),
    "roce_pfc_transmit_transitions_total": (TRANSITIONS, "transmit"),
    # Received pause blocks what this host sends, and the other way round.
    "roce_priority_transmit_packets_total": (PACKETS, "receive"),
    "roce_priority_receive_packets_total": (PACKETS, "transmit"),
}
"""The role of each row of the hot set in a detector, and the direction of pause."""

STALLED = "roce_pcie_write_stalled_seconds_total"
STALLING = "roce_pcie_write_stalled_ratio"
"""Not used for detection, but reported with a storm: the host may be slow to accept received data."""
RECEIVED = "roce_priority_receive_packets_total"
INDEX = check(row for row in CATALOG if row.name in MEANING or row.name in (STALLED, STALLING))


class Hot(NamedTuple):
    """The hot set of one read."""

    begin: float
    end: float
    """Begin and end of the kernel call in monotonic seconds, without our own processing."""
    counts: Mapping[PauseKey, Counts]
    shape: object
    """The same object as long as the driver has the same counters."""
    stalled: Value
    """Seconds in which PCIe stalled writes to memory; None: not counted."""
    stalling: Value
    """Share of the last second in which PCIe stalled; None: not reported."""
    received: Value
    """Packets received, all priorities together; None: not counted."""


class HotCounters:
    """The hot set of one network device."""

    def __init__(self, kernel: Kernel, device: Device, port: int, netdev: str) -> None:
        self._kernel = kernel
        self._device = device
        self._port = port
        self._netdev = netdev
        self._normaliser = Normaliser(INDEX)
        self._series: tuple[Series, ...] = ()
        self._picks: dict[PauseKey, itemgetter[tuple[Value, ...]]] = {}
        """Picks the `Counts` of each priority and direction from the values followed by a None."""
        self._sums: list[list[int]] = []
        """The positions whose values add up to `stalled`, `stalling` and `received`."""

    def read(self, clock: Callable[[], float]) -> Hot:
        """The current hot set; `clock` returns monotonic seconds.

        Raises:
            Absent: the driver has no private counters.
            OSError: as raised by the kernel.
        """
        begin = clock()
        names, values = self._kernel.ethtool_statistics(self._netdev)
        end = clock()
        checked = check_counters(values)
        reading = make_reading(ETHTOOL, self._device.name, self._port, names, checked, netdev=self._netdev)
        samples = self._normaliser.normalise(DeviceReadings(self._device, (reading,)))
        if samples.series is not self._series:
            self._series = tuple(samples.series)
            self._picks = _picks(samples.series)
            self._sums = [
                [position for position, one in enumerate(samples.series) if one.row.name == name]
                for name in (STALLED, STALLING, RECEIVED)
            ]
        now = (*samples.values, None)
        counts = {key: Counts._make(pick(now)) for key, pick in self._picks.items()}
        sums = [
            sum([now[position] or 0 for position in positions]) if positions else None
            for positions in self._sums
        ]
        return Hot(begin, end, counts, self._series, *sums)


def _picks(series: Sequence[Series]) -> dict[PauseKey, itemgetter[tuple[Value, ...]]]:
    places: dict[PauseKey, dict[str, int]] = {}
    for position, one in enumerate(series):
        if one.row.name in MEANING:
            quantity, direction = MEANING[one.row.name]
            places.setdefault(PauseKey(one.labels[-1], direction), {})[quantity] = position
    nowhere = len(series)
    # Packets are counted for every priority, but a priority without pause counters is not watched.
    return {
        key: itemgetter(
            found.get(PAUSED, nowhere),
            found.get(XOFF if XOFF in found else FRAMES, nowhere),
            found.get(TRANSITIONS if PAUSED in found else XON, nowhere),
            found.get(PACKETS, nowhere),
        )
        for key, found in sorted(places.items())
        if found.keys() != {PACKETS}
    }


LINK_FILES = ("operstate", "carrier_down_count")

# Seconds between two reads of the speed, which the kernel gets from the driver under its configuration lock.
SPEED_EVERY = 30.0


class LinkState(NamedTuple):
    """The link below a network device."""

    up: bool
    downs: int
    speed: float | None
    """Bytes per second; None: not known."""


class LinkFiles:
    """The state of one link, from sysfs. A link whose state cannot be read counts as up."""

    def __init__(self, kernel: Kernel, netdev: str) -> None:
        below = f"class/net/{netdev}"
        self._often = kernel.open_files([f"{below}/{name}" for name in LINK_FILES])
        self._rarely = kernel.open_files([f"{below}/speed"])
        self._texts: list[bytes | OSError | None] = []
        self._state = ""
        self._count = 0
        self._speed: float | None = None
        self._downs = -1
        self._speed_read = -SPEED_EVERY

    def read(self, now: float) -> LinkState:
        """The current link state; the speed may be up to `SPEED_EVERY` seconds old unless the link went down since."""
        texts = self._often.read()
        if texts != self._texts:
            self._texts, (self._state, downs) = texts, map(_text, texts)
            self._count = int(downs) if downs.isdecimal() else 0
        if self._count != self._downs or now - self._speed_read >= SPEED_EVERY:
            self._downs, self._speed_read = self._count, now
            (speed,) = map(_text, self._rarely.read())
            self._speed = int(speed) * BYTES_PER_MEGABIT if speed.isdecimal() and int(speed) else None
        is_up = self._state not in ("down", "lowerlayerdown", "notpresent")
        return LinkState(is_up, self._count, self._speed)

    def close(self) -> None:
        self._often.close()
        self._rarely.close()


def read_cross_check(kernel: Kernel, device: str, port: int) -> int | None:
    """The RDMA port's own byte counters of both directions, in its own unit; None if it has none.

    Read only while all other counters are unchanged: those of `ethtool -S` may be frozen while this one increases.
    """
    below = f"class/infiniband/{device}/ports/{port}/counters"
    try:
        return sum(int(kernel.text(f"{below}/{name}")) for name in ("port_rcv_data", "port_xmit_data"))
    except (OSError, ValueError):
        return None


def _text(content: bytes | OSError | None) -> str:
    return content.decode("ascii", "replace").strip() if isinstance(content, bytes) else ""


ADAPTIVE, FIXED, OFF = "adaptive", "fixed", "off"
MODES = (ADAPTIVE, FIXED, OFF)


@dataclass(frozen=True, slots=True)
class Pace:
    """Times in seconds."""

    mode: str = ADAPTIVE
    interval: float = 0.1
    """Fast polling interval; at most half of the shortest storm."""
    idle: float = 1.0
    """Polling interval of a device without pause, in adaptive mode."""
    linger: float = 60.0
    """How long after any pause the fast interval is used, in adaptive mode."""
    cost_ratio: float = 50.0
    """Minimum ratio of interval to read time: no NIC spends more than 2 % of its time on our reads."""

    def seconds(self, now: float, paused_at: float, cost: float) -> float:
        """Seconds until the next poll of a device that last paused at `paused_at` and whose reads take `cost` seconds."""
        fast = self.mode == FIXED or now - paused_at < self.linger
        return max(self.interval if fast else self.idle, self.cost_ratio * cost)


READS, NEEDED_READS = 9, 3
"""Read times whose median is the cost. The very first read is slower, with cold caches."""
LOG = logging.getLogger(__name__)
FAULT = "fault"
"""The error of a read that failed in the exporter itself."""
RATIOS = (0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.8, 0.95, 0.99, 1.0)
DURATIONS = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25)


class TargetKey(NamedTuple):
    """One network device of one incarnation of an RDMA device."""

    device: str
    incarnation: int
    netdev: str


class ReadResult(NamedTuple):
    """The result of one read, before it is judged. `error` is an errno's name or `FAULT` if it failed."""

    begin: float
    end: float
    hot: Hot | None
    link: LinkState | None
    cross_check: int | None
    error: str = ""


class Target:
    """One network device. `read` may block and is called without a lock; all other methods are quick and need the lock."""

    def __init__(self, kernel: Kernel, device: Device, port: int, netdev: str, limits: StormLimits) -> None:
        self.device = device
        self.port = port
        self.netdev = netdev
        self.watch = Watch(limits)
        self.scope: frozenset[str] | None = None
        self.due = 0.0
        self.interval = 0.0
        self.paused_at = -math.inf
        self.stuck = False
        self.absent = False
        """Whether the driver has no private counters, so that there is nothing to poll."""
        self.ticks = self.late = self.missed = self.errors = 0
        self.cost = RecentMedian(READS, NEEDED_READS)
        self.reads = Histogram(DURATIONS)
        self.ratios: dict[PauseKey, Histogram] = {}
        self.longest: dict[PauseKey, Longest] = {}
        self.starts: dict[PauseKey, float] = {}
        """Start of the last storm in Unix seconds. Fixed at detection: a later change of the clock does not move it."""
        self.last: Hot | None = None
        self._kernel = kernel
        self._hot = HotCounters(kernel, device, port, netdev)
        self._link: LinkFiles | None = None

    @property
    def key(self) -> TargetKey:
        """Identifies this network device: at most one read per key is in flight."""
        return TargetKey(self.device.name, self.device.incarnation, self.netdev)

    def read(self, clock: Callable[[], float]) -> ReadResult:
        """Read the counters. Never raises: a failure is part of the result."""
        begin = clock()
        try:
            hot = self._hot.read(clock)
            self._link = self._link or LinkFiles(self._kernel, self.netdev)
            link = self._link.read(hot.end)
            cross_check = None
            if self.watch.wants_cross_check:
                cross_check = read_cross_check(self._kernel, self.device.name, self.port)
        except OSError as error:
            self.absent = isinstance(error, Absent)
            return ReadResult(begin, clock(), None, None, None, errno.errorcode.get(error.errno or 0, "EIO"))
        except Exception:
            LOG.exception("%s: a read of the fast loop failed", self.netdev)
            return ReadResult(begin, clock(), None, None, None, FAULT)
        return ReadResult(hot.begin, hot.end, hot, link, cross_check)

    def note_lateness(self, now: float) -> None:
        """Count a poll, and whether it begins late."""
        self.ticks += 1
        late = now - self.due
        if self.interval and late > self.interval / 2:
            self.late += 1
            self.missed += int(late / self.interval)

    def judge(self, seen: ReadResult) -> list[Change]:
        """Pass the result of a read to the detectors; returns the storms that began or ended."""
        seconds = seen.end - seen.begin
        self.cost.note(seconds)
        self.reads.observe(seconds)
        if seen.hot is None or seen.link is None:
            self.errors += not self.absent
            return self.watch.miss(seen.end, seen.error)
        self.absent = False
        sample = CounterSample(
            time=(seen.begin + seen.end) / 2,
            counts=seen.hot.counts,
            poll=self.interval,
            seconds=seconds,
            up=seen.link.up,
            downs=seen.link.downs,
            speed=seen.link.speed,
            scope=self.scope,
            shape=seen.hot.shape,
            cross_check=seen.cross_check,
        )
        changes = self.watch.see(sample)
        if self.watch.active:
            self.paused_at = sample.time
        for key, share in self.watch.shares:
            self.ratios.setdefault(key, Histogram(RATIOS)).observe(share)
        for key, track in self.watch.tracks.items():
            self.longest.setdefault(key, Longest()).note(sample.time, track.unbroken_pause)
        return changes

    def plan(self, now: float, pace: Pace, cost: float) -> None:
        """Schedule the next poll. `cost` is the read time of all network devices of the RDMA device, in seconds."""
        self.interval = pace.seconds(now, self.paused_at, cost)
        # Relative to the planned time, so that lateness does not add up; missed polls are not repeated.
        self.due = max(self.due + self.interval, now + self.interval / 2)

    def close(self) -> None:
        if self._link is not None:
            self._link.close()

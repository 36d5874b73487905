"""One network device in the fast loop: when it is polled, its counters, its detectors, and statistics of its reads."""

from __future__ import annotations

import errno
import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.fastloop.episodes import Histogram, Longest, RecentMedian
from roce_exporter.fastloop.hot import HotCounters, LinkFiles, read_cross_check
from roce_exporter.fastloop.watch import CounterSample, PauseKey, Watch
from roce_exporter.host.kernel import Absent

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.fastloop.hot import Hot, LinkState
    from roce_exporter.fastloop.pfc_storm import StormLimits
    from roce_exporter.fastloop.watch import Change
    from roce_exporter.host.kernel import Kernel
    from roce_exporter.model import Device


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

"""The parts of the fast loop, each alone: histogram, pace, link, hot set, events, one target, the loop itself."""

import errno
import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from clock import EPOCH, Clock

from roce_exporter.catalog import storm
from roce_exporter.fastloop import OFF, Pace, Sampler
from roce_exporter.fastloop.episodes import Counts, Longest, RecentMedian
from roce_exporter.fastloop.events import (
    KEPT,
    PER_TARGET,
    PER_TRACK,
    STALLS,
    Events,
    SamplerSamples,
    StormPlace,
    guess,
)
from roce_exporter.fastloop.pfc_storm import Begun, Ended, Method, StormLimits, StormState, Track
from roce_exporter.fastloop.target import (
    FAULT,
    FIXED,
    RATIOS,
    SPEED_EVERY,
    Hot,
    HotCounters,
    LinkFiles,
    LinkState,
    ReadResult,
    Target,
    read_cross_check,
)
from roce_exporter.fastloop.watch import Change, PauseKey
from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.sources.netdev import DCB
from roce_exporter.model import Device, DeviceReadings, Netdev, Port, Reading
from roce_exporter.normalise.series import Histogram

RECEIVE, TRANSMIT = PauseKey("3", "receive"), PauseKey("3", "transmit")
DEVICE = Device("mlx5_0", "mlx5_core", "mlx5", incarnation=4, ports=(Port(1, "Ethernet"),))


# Histogram, pace and cost.


def test_a_histogram_counts_up_to_each_bound_and_all() -> None:
    histogram = Histogram((0.1, 1.0))
    assert histogram.values() == (0, 0, 0, 0.0, 0)
    for value in (0.05, 0.1, 0.5, 2.0, 4.0):
        histogram.observe(value)
    assert histogram.values() == (2, 3, 5, 6.65, 5)


@pytest.mark.parametrize(
    ("mode", "since_pause", "cost", "seconds"),
    [
        ("adaptive", math.inf, 0.0, 1.0),
        ("adaptive", 60.0, 0.0, 1.0),
        ("adaptive", 59.9, 0.0, 0.1),
        ("fixed", math.inf, 0.0, 0.1),
        ("fixed", math.inf, 0.004, 0.2),
        ("adaptive", math.inf, 0.004, 1.0),
        ("adaptive", math.inf, 0.04, 2.0),
    ],
)
def test_the_pace_follows_pause_and_cost(mode, since_pause, cost, seconds) -> None:
    assert Pace(mode).seconds(100.0, 100.0 - since_pause, cost) == pytest.approx(seconds)


def test_a_cost_is_the_median_of_the_last_nine_and_0_before_the_third() -> None:
    cost, seen = RecentMedian(9, 3), []
    assert cost.seconds == 0.0
    for seconds in (9, 1, 5, 3, 7, 2, 8, 4, 6, 1, 1, 1):
        cost.note(seconds)
        seen.append(cost.seconds)
    assert seen == [0.0, 0.0, 5, 3, 5, 3, 5, 4, 5, 4, 4, 3]
    for _ in range(5):
        cost.note(20)
    assert cost.seconds == 20


# The link.


class Tree:
    """The files of one network device and one RDMA port below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kernel = LiveKernel(str(root), netlink=False)
        self.write(operstate="up", carrier_down_count="2", speed="100000")

    def write(self, **texts: str | bytes | None) -> None:
        folder = self.root / "class/net/eth0"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            if text is None:
                (folder / name).unlink()
            else:
                (folder / name).write_bytes((text if isinstance(text, bytes) else text.encode()) + b"\n")

    def counters(self, **texts: str) -> None:
        folder = self.root / "class/infiniband/mlx5_0/ports/1/counters"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text)


@pytest.fixture
def tree(tmp_path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize(
    ("state", "up"),
    [("up", True), ("unknown", True), ("down", False), ("lowerlayerdown", False), ("notpresent", False)],
)
def test_the_link_is_up_unless_reported_otherwise(tree, state, up) -> None:
    tree.write(operstate=state)
    files = LinkFiles(tree.kernel, "eth0")
    assert files.read(0.0) == LinkState(up, 2, 12_500_000_000)
    files.close()


def test_the_speed_is_read_occasionally_and_after_each_loss_of_the_link(tree) -> None:
    files = LinkFiles(tree.kernel, "eth0")
    assert files.read(1000.0).speed == 12_500_000_000
    tree.write(speed="200000")
    assert files.read(1000.0 + SPEED_EVERY - 0.1).speed == 12_500_000_000
    assert files.read(1000.0 + SPEED_EVERY).speed == 25_000_000_000
    tree.write(speed="100000")
    assert files.read(1000.0 + 2 * SPEED_EVERY - 0.1).speed == 25_000_000_000
    tree.write(carrier_down_count="3")
    assert files.read(1000.0 + 2 * SPEED_EVERY - 0.1) == LinkState(up=True, downs=3, speed=12_500_000_000)
    tree.write(operstate="down")
    assert files.read(1000.0 + 2 * SPEED_EVERY) == LinkState(up=False, downs=3, speed=12_500_000_000)
    files.close()


@pytest.mark.parametrize(
    ("operstate", "downs", "speed", "found"),
    [
        (None, None, None, None),
        *((b"\xff\xfe", b"\xff", speed, None) for speed in (b"\xff", b"-1", b"0", b"", b"fast")),
        (b"up", b"0", b"1", 125_000),
        # without a count of losses the speed is read at once, too, right after the start of the host
        (b"up", None, b"100000", 12_500_000_000),
    ],
)
def test_unreadable_link_files_count_as_unchanged(tree, operstate, downs, speed, found) -> None:
    tree.write(operstate=operstate, carrier_down_count=downs, speed=speed)
    files = LinkFiles(tree.kernel, "eth0")
    assert files.read(0.0) == LinkState(up=True, downs=0, speed=found)
    files.close()


def test_the_cross_check_is_the_rdma_port_count_of_both_directions(tree) -> None:
    assert read_cross_check(tree.kernel, "mlx5_0", 1) is None
    tree.counters(port_rcv_data="40\n", port_xmit_data="2\n", other="1")
    assert read_cross_check(tree.kernel, "mlx5_0", 1) == 42
    tree.counters(port_rcv_data="N/A\n")
    assert read_cross_check(tree.kernel, "mlx5_0", 1) is None
    assert read_cross_check(tree.kernel, "mlx5_0", 2) is None


# The hot set.


class Kernel(LiveKernel):
    """A folder for the link, and private counters that the test sets. Each read takes `takes` seconds."""

    def __init__(self, root: Path, clock: Clock, **counters: int) -> None:
        super().__init__(str(root), netlink=False)
        self.clock = clock
        self.takes = 0.0
        self.counters = counters
        self.names: tuple[str, ...] = ()
        self.failure: Exception | None = None
        self.asked: list[tuple[str, float]] = []

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], Sequence[int]]:
        self.asked.append((netdev, self.clock.now))
        self.clock.now += self.takes
        if self.failure:
            raise self.failure
        if self.names != tuple(self.counters):
            self.names = tuple(self.counters)
        return self.names, tuple(self.counters.values())


MLX5 = {
    "rx_prio3_pause": 5,
    "rx_prio3_pause_duration": 2_000_000,
    "rx_prio3_pause_transition": 6,
    "tx_prio3_pause": 7,
    "tx_prio3_pause_duration": 3_000_000,
    "rx_prio3_packets": 100,
    "tx_prio3_packets": 200,
    "rx_prio0_packets": 50,
    "tx_prio0_packets": 60,
}


def test_the_hot_set_holds_each_priority_in_both_directions(tmp_path) -> None:
    clock = Clock(100.0)
    kernel = Kernel(tmp_path, clock, **MLX5)
    kernel.takes = 0.5
    hot = HotCounters(kernel, DEVICE, 1, "eth0")
    first = hot.read(clock)
    assert (first.begin, first.end) == (100.0, 100.5)
    assert kernel.asked == [("eth0", 100.0)]
    assert first.counts == {
        RECEIVE: Counts(paused=2.0, stops=5, resumes=6, packets=200),
        TRANSMIT: Counts(paused=3.0, stops=7, packets=100),
    }
    assert list(first.counts) == [RECEIVE, TRANSMIT]
    assert (first.stalled, first.stalling, first.received) == (None, None, 150)
    kernel.counters["rx_prio3_packets"] = 101
    second = hot.read(clock)
    assert second.shape is first.shape
    assert second.received == 151
    kernel.counters["rx_prio4_pause"] = 1
    third = hot.read(clock)
    assert third.shape is not first.shape
    assert third.counts[PauseKey("4", "receive")] == Counts(stops=1)


def test_the_hot_set_holds_how_long_pcie_stalled(tmp_path) -> None:
    clock = Clock(100.0)
    kernel = Kernel(tmp_path, clock, **MLX5, outbound_pci_stalled_wr=30, outbound_pci_stalled_wr_events=7)
    found = HotCounters(kernel, DEVICE, 1, "eth0").read(clock)
    assert (found.stalling, found.stalled) == (0.3, 7)


# Events and hints.


def hot(
    counts: Mapping[PauseKey, Counts] | None = None,
    stalled: float | None = None,
    stalling: float | None = None,
    received: float | None = None,
) -> Hot:
    return Hot(0.0, 0.0, counts or {}, None, stalled, stalling, received)


PLACE = StormPlace("mlx5_0", 1, "eth0", "3", "receive")


def test_an_event_holds_what_was_counted_while_the_storm_lasted(caplog) -> None:
    events = Events(lambda: EPOCH)
    events.begin(
        PLACE,
        EPOCH + 10.0,
        "duration",
        "paused_by_fabric",
        hot({RECEIVE: Counts(1.0, 10, 3, 100), TRANSMIT: Counts(9.0, 90, 0, 900)}, stalled=1.0),
    )
    assert events.hint(PLACE) == "paused_by_fabric"
    assert events.hint(PLACE._replace(netdev="eth1")) == ""
    events.follow(PLACE, hot({RECEIVE: Counts(3.5, 30, 3, 100)}, stalled=1.25))
    events.follow(PLACE._replace(netdev="eth1"), hot())
    events.end(PLACE._replace(netdev="eth1"), Ended(0.0, 1.0, "restored"))
    events.end(PLACE, Ended(10.0, 13.5, "restored"))
    events.end(PLACE, Ended(10.0, 99.0, "restored"))
    assert events.hint(PLACE) == ""
    (document,) = events.documents()
    assert document == {
        "device": "mlx5_0",
        "port": 1,
        "netdev": "eth0",
        "priority": "3",
        "direction": "receive",
        "method": "duration",
        "hint": "paused_by_fabric",
        "start": "2023-11-14T22:13:30.000+00:00",
        "end": "2023-11-14T22:13:33.500+00:00",
        "duration": 3.5,
        "reason": "restored",
        "pause_frames": 20,
        "paused_seconds": 2.5,
        "packets": 0,
        "pcie_stalled_seconds": 0.25,
    }
    began, ended = caplog.records
    assert (began.levelno, began.message) == (logging.WARNING, "PFC storm begins")
    assert (ended.levelno, ended.message) == (logging.WARNING, "PFC storm ends")
    names = ("device", "port", "netdev", "priority", "direction", "method", "hint", "start")
    assert began.fields == {name: str(document[name]) for name in names}  # type: ignore[attr-defined]
    assert ended.fields["paused_seconds"] == "2.500"  # type: ignore[attr-defined]
    assert ended.fields["pause_frames"] == "20"  # type: ignore[attr-defined]


def test_values_that_were_missing_meanwhile_are_not_part_of_an_event() -> None:
    events = Events(lambda: EPOCH)
    for first, last in (
        (hot({}), hot({RECEIVE: Counts(1.0)})),
        (hot({RECEIVE: Counts(1.0)}), hot({})),
        (hot({RECEIVE: Counts()}, stalled=1.0), hot({RECEIVE: Counts(2.0)})),
        (hot({RECEIVE: Counts(2.0)}), hot({RECEIVE: Counts()}, stalled=1.0)),
    ):
        events.begin(PLACE, EPOCH, "duration", "hint", first)
        events.follow(PLACE, last)
        events.end(PLACE, Ended(0.0, 1.0, "restored"))
    for document in events.documents():
        assert [document[name] for name in ("paused_seconds", "pause_frames", "packets")] == [None] * 3
        assert document["pcie_stalled_seconds"] is None


def test_the_last_events_are_kept_newest_first_and_an_active_one_has_no_end() -> None:
    events = Events(lambda: EPOCH)
    for number in range(KEPT + 1):
        events.begin(PLACE._replace(priority=str(number)), EPOCH, "duration", "", hot())
    documents = events.documents()
    assert len(documents) == KEPT
    assert [document["priority"] for document in documents[:2]] == [str(KEPT), str(KEPT - 1)]
    assert (documents[0]["end"], documents[0]["duration"]) == (None, None)


@pytest.mark.parametrize(
    ("key", "before", "now", "held", "ports", "hint"),
    [
        (RECEIVE, None, hot(), {"eth0"}, {"eth0"}, "paused_by_fabric"),
        (RECEIVE, None, hot(), {"eth0"}, {"eth0", "eth1"}, "paused_by_fabric"),
        (RECEIVE, None, hot(), {"eth0", "eth1"}, {"eth0", "eth1"}, "all_ports_paused"),
        (RECEIVE, None, hot(), {"eth0", "eth1", "eth2"}, {"eth0", "eth1"}, "all_ports_paused"),
        (TRANSMIT, None, hot(stalling=STALLS), set(), set(), "slow_receiver"),
        (TRANSMIT, None, hot(stalling=STALLS - 0.01), set(), set(), "receiver_overwhelmed"),
        (TRANSMIT, hot(stalled=1.0), hot(stalled=1.5), set(), set(), "slow_receiver"),
        (TRANSMIT, hot(stalled=1.0), hot(stalled=1.0), set(), set(), "receiver_overwhelmed"),
        (TRANSMIT, None, hot(stalled=1.0), set(), set(), "receiver_overwhelmed"),
        (TRANSMIT, hot(received=5), hot(received=5), set(), set(), "host_stopped"),
        (TRANSMIT, hot(received=5), hot(received=6), set(), set(), "receiver_overwhelmed"),
        (TRANSMIT, hot(), hot(), set(), set(), "receiver_overwhelmed"),
        (TRANSMIT, None, hot(received=5), set(), set(), "receiver_overwhelmed"),
    ],
)
def test_the_hint_of_a_storm(  # noqa: PLR0917 - one argument per column of the table
    key, before, now, held, ports, hint
) -> None:
    assert guess(key, before, now, held, ports) == hint


# One target.


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


@pytest.fixture
def kernel(tree, clock) -> Kernel:
    return Kernel(tree.root, clock, **MLX5)


@pytest.fixture
def target(kernel) -> Iterator[Target]:
    made = Target(kernel, DEVICE, 1, "eth0", StormLimits())
    yield made
    made.close()


def test_a_read_has_counters_link_and_a_cross_check_only_when_requested(kernel, clock, tree, target) -> None:
    tree.counters(port_rcv_data="40", port_xmit_data="2")
    kernel.takes = 0.25
    seen = target.read(clock)
    assert (seen.begin, seen.end, seen.error, seen.cross_check) == (100.0, 100.25, "", None)
    assert seen.hot is not None
    assert seen.link == LinkState(up=True, downs=2, speed=12_500_000_000)
    target.watch.wants_cross_check = True
    link = target._link
    assert target.read(clock).cross_check == 42
    assert target._link is link
    target.close()
    assert link is not None
    assert [*link._often._descriptors, *link._rarely._descriptors] == [-1] * 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (OSError(errno.EIO, "firmware"), "EIO"),
        (OSError("without a number"), "EIO"),
        (OSError(99_999, "unheard of"), "EIO"),
        (Absent(errno.ENOENT, "none"), "ENOENT"),
        (ValueError("bug"), FAULT),
    ],
)
def test_a_read_that_fails_is_a_result(  # noqa: PLR0917 - fixtures
    kernel, clock, target, failure, error, caplog
) -> None:
    kernel.failure, kernel.takes = failure, 0.5
    assert target.read(clock) == ReadResult(100.0, 100.5, None, None, None, error)
    assert target.absent is isinstance(failure, Absent)
    assert [(record.message, bool(record.exc_info)) for record in caplog.records] == (
        [("eth0: a read of the fast loop failed", True)] if error == FAULT else []
    )


@pytest.mark.parametrize(
    ("interval", "now", "counted"),
    [
        (0.1, 5.05, (1, 0, 0)),
        (0.1, 5.06, (1, 1, 0)),
        (0.1, 5.1001, (1, 1, 1)),
        (0.1, 5.35, (1, 1, 3)),
        (0.0, 9.0, (1, 0, 0)),
    ],
)
def test_lateness_is_counted_from_half_an_interval(target, interval, now, counted) -> None:
    target.due, target.interval = 5.0, interval
    target.note_lateness(now)
    assert (target.ticks, target.late, target.missed) == counted
    target.note_lateness(now)
    assert (target.ticks, target.late, target.missed) == tuple(2 * count for count in counted)


def test_each_read_is_evaluated_and_timed(kernel, clock, target) -> None:
    kernel.takes = 0.02
    target.interval = 0.1
    for _ in range(3):
        assert target.judge(target.read(clock)) == []
        clock.now += 0.08
        kernel.counters["rx_prio3_pause_duration"] += 50_000
        kernel.counters["tx_prio3_packets"] += 1
    assert target.cost.seconds == pytest.approx(0.02)
    *_, total, count = target.reads.values()
    assert (total, count) == (pytest.approx(0.06), 3)
    assert target.watch.active
    assert target.paused_at == pytest.approx(clock.now - 0.1 + 0.01)
    assert set(target.ratios) == {RECEIVE, TRANSMIT}
    assert target.ratios[RECEIVE].values()[-1] == 2
    assert len(target.ratios[RECEIVE].values()) == len(RATIOS) + 3
    assert set(target.longest) == {RECEIVE, TRANSMIT}


def test_a_failed_read_is_an_error_and_an_absent_one_is_not(target) -> None:
    target.judge(ReadResult(0.0, 1.0, None, None, None, "EIO"))
    assert target.errors == 1
    target.absent = True
    target.judge(ReadResult(0.0, 1.0, None, None, None, "EOPNOTSUPP"))
    assert target.errors == 1
    target.judge(ReadResult(0.0, 1.0, hot({RECEIVE: Counts(1.0)}), None, None, "EIO"))
    assert target.errors == 1
    target.judge(ReadResult(0.0, 1.0, hot({RECEIVE: Counts(1.0)}), LinkState(True, 0, None), None))
    assert target.absent is False
    assert target.watch.tracks[RECEIVE].method is Method.DURATION


@pytest.mark.parametrize(
    ("due", "now", "planned"),
    [(10.0, 10.01, 10.1), (10.0, 10.04, 10.1), (10.0, 10.07, 10.12), (0.0, 99.0, 99.05)],
)
def test_the_next_poll_keeps_its_schedule_and_skips_missed_ones(target, due, now, planned) -> None:
    target.due = due
    target.plan(now, Pace(FIXED), 0.0)
    assert target.interval == pytest.approx(0.1)
    assert target.due == pytest.approx(planned)
    target.plan(now, Pace(), 0.0)
    assert target.interval == pytest.approx(1.0)
    target.paused_at = now
    target.plan(now, Pace(), 0.01)
    assert target.interval == pytest.approx(0.5)


# Samples.


def test_the_samples_of_a_target_and_its_tracks(target) -> None:
    target.ticks, target.late, target.missed, target.errors, target.interval = 1, 2, 3, 4, 0.5
    target.stuck = True
    target.watch.tracks[RECEIVE] = Track(
        Method.DURATION,
        StormState.STORM,
        storms=1,
        restored=2,
        storm_seconds=3.0,
        near_misses=4,
        faults=5,
        congested_seconds=6.0,
        estimated_seconds=7.0,
    )
    target.watch.tracks[TRANSMIT] = Track(
        Method.FRAMES, StormState.UNKNOWN, "EIO", congested_seconds=6.0, estimated_seconds=7.0
    )
    target.starts[RECEIVE] = EPOCH
    events = Events(lambda: EPOCH)
    events.begin(PLACE, EPOCH, "duration", "paused_by_fabric", hot())
    maker = SamplerSamples()
    samples = maker.samples([target], events, 100.0)
    found = {
        (series.row.name + series.suffix, series.labels): value
        for series, value in zip(samples.series, samples.values, strict=True)
    }
    assert len(found) == len(samples.series)
    own = ("mlx5_0", "1", "eth0")
    assert [found[row.name, own] for row in PER_TARGET] == [1, 2, 3, 4, 0.5, 1, None]
    received, sent = (*own, "3", "receive"), (*own, "3", "transmit")
    assert [found[row.name, received] for row in PER_TRACK] == [
        1, 2, 3.0, 4, 5, 1, int(StormState.STORM), 0.0, EPOCH, 6.0, None,
    ]  # fmt: skip
    assert [found[row.name, sent] for row in PER_TRACK] == [
        0, 0, 0.0, 0, 0, 0, int(StormState.UNKNOWN), 0.0, None, None, 7.0,
    ]  # fmt: skip
    assert found[storm.INFO.name, (*received, "duration")] == 1
    assert found[storm.INFO.name, (*sent, "frames")] == 1
    assert found[storm.UNKNOWN.name, (*sent, "EIO")] == 1
    assert found[storm.HINT.name, (*received, "paused_by_fabric")] == 1
    assert found[f"{storm.READ_DURATION.name}_bucket", (*own, "0.25")] == 0
    assert found[f"{storm.READ_DURATION.name}_bucket", (*own, "+Inf")] == 0
    assert found[f"{storm.READ_DURATION.name}_sum", (*own, "")] == 0
    assert found[f"{storm.READ_DURATION.name}_count", (*own, "")] == 0
    assert found[f"{storm.RATIO.name}_count", (*received, "")] == 0
    assert (f"{storm.RATIO.name}_count", (*sent, "")) not in found
    ones = {name for name, _ in found} & {storm.UNKNOWN.name, storm.HINT.name}
    assert len([name for name, _ in found if name in ones]) == 2
    assert maker.samples([target], events, 100.0).series is samples.series
    target.longest[RECEIVE] = Longest()
    target.longest[RECEIVE].note(99.0, 2.5)
    target.ratios[RECEIVE] = Histogram(RATIOS)
    target.ratios[RECEIVE].observe(0.5)
    target.watch.tracks[RECEIVE].state = StormState.RECOVERING
    again = maker.samples([target], events, 100.0)
    assert again.series is samples.series
    values = dict(zip(found, again.values, strict=True))
    assert values[storm.LONGEST.name, received] == 2.5
    assert values[f"{storm.RATIO.name}_count", (*received[:5], "")] == 1
    assert values[storm.ACTIVE.name, received] == 1
    events.end(PLACE, Ended(0.0, 1.0, "restored"))
    assert len(maker.samples([target], events, 100.0).series) == len(samples.series) - 1


# The loop.


def device(*netdevs: str, incarnation: int = 4) -> Device:
    port = Port(1, "Ethernet", netdevs=tuple(Netdev(name, "") for name in netdevs))
    return Device("mlx5_0", "mlx5_core", "mlx5", incarnation=incarnation, ports=(port,))


TENTH = Pace(FIXED)


def following(kernel: Kernel, clock: Clock, *netdevs: str, pace: Pace = TENTH) -> Sampler:
    sampler = Sampler(kernel, clock, clock.wall, pace)
    sampler.follow([DeviceReadings(device(*netdevs), ())])
    return sampler


@pytest.fixture
def sampler(kernel, clock) -> Iterator[Sampler]:
    made = following(kernel, clock, "eth0")
    yield made
    made.close()


def test_the_first_reads_are_spread_over_an_interval(kernel, clock) -> None:
    sampler = following(kernel, clock, "eth0", "eth1", "eth2", "eth3")
    assert [round(target.due - 100.0, 6) for target in sampler._targets.values()] == [0.0, 0.025, 0.05, 0.075]
    assert {target.interval for target in sampler._targets.values()} == {0.1}
    assert sampler.tick() == pytest.approx(100.025)
    assert [netdev for netdev, _ in kernel.asked] == ["eth0"]
    clock.now += 0.05
    assert sampler.tick() == pytest.approx(100.075)
    assert [netdev for netdev, _ in kernel.asked] == ["eth0", "eth1", "eth2"]
    sampler.close()


def test_an_absent_device_is_read_again_after_a_minute_and_has_no_series(sampler, kernel, clock) -> None:
    kernel.failure = Absent(errno.EOPNOTSUPP, "none")
    assert sampler.tick() == 160.0
    assert sampler.samples()[0].series == ()
    kernel.failure, clock.now = None, 160.0
    assert sampler.tick() == pytest.approx(160.1)
    assert sampler.samples()[0].series


@pytest.mark.parametrize(
    "end", [lambda sampler: sampler.follow([]), lambda sampler: sampler.close()], ids=["removed", "closed"]
)
def test_what_is_removed_during_a_read_is_closed_by_the_reading_thread(sampler, clock, end) -> None:
    sampler.tick()
    clock.now += 0.2
    claimed = sampler._claim()
    assert claimed
    link = claimed[0]._link
    assert link is not None
    end(sampler)
    assert link._often._descriptors != [-1, -1]  # type: ignore[attr-defined]
    assert sampler._poll(*claimed) is True
    assert link._often._descriptors == [-1, -1]  # type: ignore[attr-defined]
    assert sampler.tick() == clock.now + 1.0


def test_a_device_followed_again_waits_for_the_read_of_its_predecessor(sampler, clock) -> None:
    claimed = sampler._claim()
    assert claimed
    sampler.follow([])
    sampler.follow([DeviceReadings(device("eth0"), ())])
    (new,) = sampler._targets.values()
    assert new is not claimed[0]
    assert sampler._claim() is None
    assert new.due == clock.now + 1.0
    new.stuck = True
    assert sampler._poll(*claimed) is True
    assert new.stuck is False
    assert new.reads.values()[-1] == 0


def test_the_scope_comes_from_dcb(kernel, clock) -> None:
    sampler = following(kernel, clock, "eth0", "eth1")
    names = ("pfc_enabled_0", "pfc_enabled_3", "other_4")
    readings = (
        Reading(DCB, "mlx5_0", 1, names, (0, 1, 1), netdev="eth0"),
        Reading(DCB, "mlx5_0", 1, ("other",), (1,), netdev="eth1"),
        Reading("else", "mlx5_0", 1, names, (1, 1, 1), netdev="eth1"),
    )
    other = replace(device("eth2"), name="mlx5_1")
    of_other = Reading(DCB, "mlx5_1", 1, ("pfc_enabled_4",), (1,), netdev="eth2")
    sampler.follow([DeviceReadings(device("eth0", "eth1"), readings), DeviceReadings(other, (of_other,))])
    scopes = {target.netdev: target.scope for target in sampler._targets.values()}
    assert scopes == {"eth0": frozenset({"3"}), "eth1": None, "eth2": frozenset({"4"})}
    sampler.follow([DeviceReadings(device("eth0", "eth1"), ()), DeviceReadings(other, ())])
    assert {target.netdev: target.scope for target in sampler._targets.values()} == scopes, (
        "as it was last read"
    )
    sampler.close()


def test_a_loop_that_is_off_follows_and_starts_nothing(kernel, clock) -> None:
    sampler = following(kernel, clock, "eth0", pace=Pace(OFF))
    sampler.start()
    assert sampler._targets == {}
    assert sampler._worker is None
    sampler.supervise()
    sampler.close()


def test_the_loop_that_failed_is_raised_by_its_supervisor(sampler) -> None:
    sampler.tick = lambda: int("bug")  # type: ignore[method-assign, assignment, return-value]
    sampler.start()
    worker = sampler._worker
    assert worker is not None
    while worker.error is None:
        pass
    with pytest.raises(RuntimeError, match=r"^the fast loop has failed$") as caught:
        sampler.supervise()
    assert isinstance(caught.value.__cause__, ValueError)
    while not worker.has_ended:
        pass
    assert sampler._worker is None
    sampler.supervise()
    sampler.close()


def storming(sampler: Sampler, kernel: Kernel, clock: Clock) -> Target:
    """The only target, with a received storm on priority 3 that started 2 seconds ago."""
    sampler.tick()
    (target,) = sampler._targets.values()
    track = target.watch.tracks[RECEIVE]
    track.state, track.began, track.seen = StormState.STORM, clock.now - 2.0, clock.now
    sampler._report(target, [Change(RECEIVE, Begun(clock.now - 2.0))])
    return target


def hang(sampler: Sampler, kernel: Kernel, clock: Clock, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sampler, "start", lambda: None)
    read = kernel.ethtool_statistics

    def hanging(netdev: str) -> tuple[tuple[str, ...], Sequence[int]]:
        clock.now += 1.5
        sampler.supervise()
        return read(netdev)

    patch.setattr(kernel, "ethtool_statistics", hanging)
    assert sampler.tick() is None, "the thread was given up meanwhile"


def break_judge(sampler: Sampler, kernel: Kernel, clock: Clock, patch: pytest.MonkeyPatch) -> None:
    (target,) = sampler._targets.values()
    patch.setattr(target, "judge", lambda _: int("bug"))
    assert sampler.tick() == pytest.approx(clock.now + 0.05)
    assert target.errors == 1
    assert target.watch.tracks[RECEIVE].reason == FAULT
    clock.now += 0.2
    sampler.tick()
    assert target.errors == 2


def break_reads(sampler: Sampler, kernel: Kernel, clock: Clock, patch: pytest.MonkeyPatch) -> None:
    kernel.failure = OSError(errno.EIO, "firmware")
    sampler.tick()


def remove(sampler: Sampler, kernel: Kernel, clock: Clock, patch: pytest.MonkeyPatch) -> None:
    (link,) = (target._link for target in sampler._targets.values())
    sampler.follow([])
    assert link._often._descriptors == [-1, -1]  # type: ignore[attr-defined, union-attr]


@pytest.mark.parametrize(
    ("fault", "reason", "duration", "logged"),
    [
        (remove, "device_gone", 2.2, None),
        (break_reads, "EIO", 2.2, None),
        (hang, "stuck", 3.7, "eth0: no answer for 1.5 s, PFC storms are not detected there"),
        (break_judge, FAULT, 2.2, "eth0: the read counters could not be judged"),
    ],
)
def test_a_storm_ends_with_the_fault_of_its_device(  # noqa: PLR0917 - fixtures
    sampler, kernel, clock, monkeypatch, caplog, fault, reason, duration, logged
) -> None:
    storming(sampler, kernel, clock)
    clock.now += 0.2
    fault(sampler, kernel, clock, monkeypatch)
    (event,) = sampler.events()
    assert (event["reason"], event["duration"]) == (reason, pytest.approx(duration))
    faults = [record for record in caplog.records if "PFC storm " not in record.message]
    assert {record.message for record in faults} == ({logged} if logged else set())
    assert all(bool(record.exc_info) == (reason == FAULT) for record in faults)


@pytest.mark.parametrize("incarnation", [0, 5])
def test_a_hung_read_of_a_removed_device_does_not_affect_its_successor(
    sampler, clock, monkeypatch, incarnation
) -> None:
    monkeypatch.setattr(sampler, "start", lambda: None)
    claimed = sampler._claim()
    assert claimed
    sampler.follow([DeviceReadings(device("eth0", incarnation=incarnation), ())] if incarnation else [])
    clock.now += 1.5
    sampler.supervise()
    assert [target.stuck for target in sampler._targets.values()] == ([False] if incarnation else [])
    assert sampler._poll(*claimed) is False


def test_a_closed_loop_ends_its_thread_and_closes_its_descriptors(kernel, clock, worker_threads) -> None:
    sampler = following(kernel, clock, "eth0", pace=Pace(FIXED, interval=1000.0))
    sampler.start()
    assert worker_threads.running() == ["roce-sampler"]
    (target,) = sampler._targets.values()
    while target.ticks == 0 or sampler._in_flight:
        time.sleep(0.001)
    link = target._link
    assert link is not None
    sampler.close()
    worker_threads.wait_until(0)
    assert link._often._descriptors == [-1, -1]  # type: ignore[attr-defined]

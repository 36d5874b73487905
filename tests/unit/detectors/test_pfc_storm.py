"""The storm detector on the cases where deployed watchdogs failed, one test per lesson.

The lessons are the bugs of SONiC's pfcwd and the reports of Guo et al. (SIGCOMM 2016); each test names its own.
"""

import pytest
from nic import PACKETS, RECEIVE, TRANSMIT, Nic

from roce_exporter.fastloop.episodes import Counts
from roce_exporter.fastloop.pfc_storm import Method, StormState, method_of
from roce_exporter.fastloop.watch import PauseKey


class OnceASecond(Nic):
    """A driver that shows the values copied at the last full second, as bnxt does."""

    period = 1.0

    def look(self, took: float = 0.001) -> None:
        number = (self.now + 1e-6) // self.period
        self.frozen = number == getattr(self, "number", -1)
        self.number = number
        super().look(took)


EVERY_KIND = ["duration", "duration and transitions", "xoff_xon", "frames"]


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_storm_and_its_end_are_detected_and_counted_once(kind) -> None:
    nic = Nic(kind)
    nic.run(2.0)
    nic.storm(2.0)
    assert (nic.state, nic.told) == (StormState.STORM, ["begun"])
    nic.run(2.0)
    assert (nic.state, nic.told) == (StormState.OK, ["begun", "restored"])
    assert (nic.track.storms, nic.track.restored) == (1, 1)
    assert nic.track.storm_seconds == pytest.approx(2.0, abs=0.11)
    (_, _, begun), (_, _, ended) = nic.changes
    assert begun.begin == pytest.approx(1002.0, abs=0.11)
    assert nic.changes[0][0] - begun.begin <= 0.5 + 1e-9
    assert ended.end - ended.begin == pytest.approx(2.0, abs=0.11)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_pause_below_the_detection_time_is_not_a_storm(kind) -> None:
    nic = Nic(kind)
    for _ in range(50):
        nic.run(0.3)
        nic.storm(0.3)
    assert nic.told == []
    assert nic.track.near_misses >= 49


def test_a_pause_below_half_the_detection_time_is_not_a_near_miss() -> None:
    nic = Nic()
    for _ in range(10):
        nic.run(0.5)
        nic.storm(0.1)
    nic.run(0.5)
    assert (nic.told, nic.track.near_misses) == ([], 0)


@pytest.mark.parametrize(
    ("make", "nic", "runs"),
    [
        *((Nic, {"kind": kind}, [(60.0, 0.9, None, 200)]) for kind in EVERY_KIND),
        # Many short pauses between two rare polls.
        (Nic, {"kind": "duration and transitions", "poll": 1.0}, [(60.0, 0.9, None, 20)]),
        # One second that frames might have filled.
        *(
            (Nic, {"kind": kind, "poll": 1.0}, [(3.0, 0, 0), (1.0, 1.0), (3.0, 0, 0)])
            for kind in ("xoff_xon", "frames")
        ),
        # 3,000 frames a second: at 400 Gb/s no more than a quarter of the time.
        (Nic, {"kind": "xoff_xon", "speed": 50e9}, [(10.0, 1.0)]),
        # Behind a copy of a second. Evaluated as if it were current, the tenth poll would count ten times too much pause.
        *((OnceASecond, {"kind": kind}, [(60.0, 0.3, None, 30)]) for kind in EVERY_KIND),
        # A copy that is not recognised yet.
        (OnceASecond, {}, [(1.5,), (2.0, 0.3)]),
    ],
)
def test_congestion_is_no_storm_however_long_it_lasts(make, nic, runs) -> None:
    played = make(**nic)
    for run in runs:
        played.run(*run)
    assert (played.told, played.track.storms, played.track.faults) == ([], 0, 0)


def test_a_priority_that_is_held_while_packets_pass_is_congested_and_not_stormed() -> None:
    nic = Nic()
    nic.run(5.0, 0.99, packets=PACKETS)
    assert nic.told == []
    assert nic.track.congested_seconds == pytest.approx(5.0)


def test_late_polls_neither_invent_nor_hide_a_storm() -> None:
    """Watchdogs that used the planned interval instead of the real one counted a late poll as 100 % paused."""
    nic = Nic()
    nic.run(1.0)
    for _ in range(20):
        nic.pass_time(0.5, 0.5, ends=5)  # five intervals late, half of the time paused
        nic.look()
    assert nic.told == []
    nic.pass_time(0.5, 1.0)
    nic.look()
    assert (
        nic.state is StormState.STORM
    )  # all of the half second was paused: that was measured, although late


def test_a_link_that_flaps_ends_the_storm_for_that_reason() -> None:
    """A flap makes a NIC's pause counters jump; swss#1523 reported storms for that."""
    nic = Nic()
    nic.run(1.0)
    nic.storm(1.0)
    nic.up, nic.downs, nic.speed = False, 1, None
    nic.run(0.3)
    nic.up, nic.speed = True, 12.5e9
    nic.pass_time(0.1, 1.0)  # counted while the state of the link was unknown
    nic.look()
    assert nic.told == ["begun", "link_down"]
    nic.run(0.3)
    assert nic.state is StormState.OK
    assert (nic.track.storms, nic.track.restored) == (1, 0)


def test_a_flap_between_two_polls_is_detected_by_its_count() -> None:
    nic = Nic()
    nic.storm(1.0)
    nic.downs += 1
    nic.run(0.1, 1.0)
    assert nic.told == ["begun", "link_down"]


def test_counter_resets_neither_start_nor_end_a_storm() -> None:
    nic = Nic()
    nic.storm(1.0)
    nic.counts = {RECEIVE: Counts(0.0, 0.0, 0.0, 0.0)}
    nic.run(0.5, 1.0)
    assert (nic.state, nic.told) == (StormState.STORM, ["begun"])
    nic.run(2.0)
    assert (nic.told, nic.track.storms, nic.track.restored) == (["begun", "restored"], 1, 1)


def test_pfc_switched_off_in_a_storm_is_unknown_and_not_recovered() -> None:
    """buildimage#29203: 170 storms and restorations in 20 minutes, because the counter stops when PFC is off."""
    nic = Nic(keys=(RECEIVE, TRANSMIT))
    nic.storm(1.0)
    gone = nic.counts.pop(RECEIVE)
    nic.run(3.0)
    assert (nic.state, nic.track.reason) == (StormState.UNKNOWN, "counters_vanished")
    assert nic.track.restored == 0
    assert [what for _, key, what in nic.changes if key == RECEIVE][-1].reason == "counters_vanished"
    nic.counts[RECEIVE] = gone
    nic.run(1.0)
    assert (nic.state, nic.track.reason) == (StormState.OK, "")


def test_a_driver_that_lists_every_priority_determines_which_are_on() -> None:
    nic = Nic("duration and transitions", keys=(RECEIVE, PauseKey("4", "receive")), scope=frozenset({"3"}))
    assert set(nic.watch.tracks) == {RECEIVE}
    nic.run(1.0, 1.0)
    nic.scope = frozenset({"4"})
    nic.run(1.0, 1.0)
    assert (nic.state, nic.track.reason) == (StormState.UNKNOWN, "pfc_disabled")
    assert nic.watch.tracks[PauseKey("4", "receive")].storms == 1


def test_counters_that_freeze_in_a_storm_are_unknown_and_not_recovered() -> None:
    nic = Nic()
    nic.run(1.0)
    nic.run(1.0, 1.0)
    nic.frozen = True
    nic.run(0.8)
    assert nic.state is StormState.STORM  # its end has not been observed
    nic.run(2.0)
    assert (nic.state, nic.track.reason, nic.told) == (StormState.UNKNOWN, "stale", ["begun", "stale"])
    assert nic.track.restored == 0
    nic.frozen = False
    nic.run(2.0)
    assert nic.state is StormState.OK


def test_counters_that_freeze_under_traffic_are_detected_by_a_cross_check() -> None:
    nic = Nic()
    nic.run(1.0)
    nic.frozen, nic.cross_check = True, 5
    nic.run(2.0)
    assert nic.watch.wants_cross_check
    nic.cross_check = 6
    nic.run(0.2)
    assert (nic.state, nic.track.reason) == (StormState.UNKNOWN, "stale")


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_choppy_storm_counts_once(kind) -> None:
    """mgmt#27589: a rule that tolerates no transition misses a storm that releases the priority for 50 ms every second."""
    nic = Nic(kind)
    nic.run(1.0)
    for _ in range(10):
        nic.run(0.9, 1.0)
        nic.pass_time(0.1, 0.5, packets=PACKETS, ends=1)
        nic.look()
    assert (nic.state, nic.track.storms) == (StormState.RECOVERING, 1)
    nic.run(2.0)
    assert (nic.track.storms, nic.track.restored) == (1, 1)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_suspended_sampler_invents_no_storm(kind) -> None:
    """Suspended for a minute in which half of the time was paused, with a thousand pauses: no single one was a storm."""
    nic = Nic(kind)
    nic.run(1.0)
    nic.pass_time(60.0, 0.5, ends=1000)
    nic.look()
    nic.run(0.3)
    assert nic.told == []
    assert nic.state is StormState.OK


def test_an_unpolled_minute_that_was_paused_throughout_is_a_storm() -> None:
    nic = Nic()
    nic.run(1.0)
    nic.pass_time(60.0, 1.0)
    nic.look()
    assert nic.state is StormState.STORM
    assert nic.track.storm_seconds == pytest.approx(60.0)


def test_a_storm_is_kept_over_a_short_gap_and_not_over_a_long_one() -> None:
    for seconds, told in ((5.0, ["begun"]), (15.0, ["begun", "gap"])):
        nic = Nic("xoff_xon")
        nic.run(1.0, 1.0)
        nic.pass_time(seconds, 0.5, packets=0)
        nic.look()
        assert nic.told == told


def test_frames_are_not_evaluated_at_an_unknown_speed() -> None:
    nic = Nic("xoff_xon", speed=None)
    nic.run(1.0)
    assert nic.state is StormState.OK  # no frames: nothing to evaluate
    nic.run(1.0, 1.0)
    assert (nic.state, nic.track.reason) == (StormState.UNKNOWN, "speed_unknown")


@pytest.mark.parametrize("kind", ["xoff_xon", "frames"])
def test_frames_that_all_come_in_the_last_moment_are_no_storm(kind) -> None:
    """swss#3036: as many frames as would pause the priority for the whole interval, all within its last millisecond."""
    nic = Nic(kind)
    nic.run(1.0, packets=0)
    for _ in range(5):
        nic.run(0.3, packets=0)
        nic.pass_time(0.1, 1.0)
        nic.look()
    assert nic.told == []


@pytest.mark.parametrize("kind", ["duration", "duration and transitions"])
def test_a_driver_that_refreshes_once_a_second_is_evaluated_per_second(kind) -> None:
    nic = OnceASecond(kind)
    nic.run(10.0)
    assert nic.watch.refresh.seconds == pytest.approx(1.0)
    nic.storm(3.0)
    nic.run(5.0)
    assert nic.told == ["begun", "restored"]
    assert nic.track.storm_seconds == pytest.approx(3.0, abs=1.2)


def test_a_counter_in_another_unit_is_detected_and_no_longer_used() -> None:
    """swss#1586: quanta interpreted as microseconds."""
    nic = Nic()
    nic.run(1.0)
    nic.run(5.0, 12.0)
    assert (nic.state, nic.track.reason) == (StormState.UNKNOWN, "implausible")
    assert (nic.told, nic.track.faults) == ([], 3)
    nic.run(5.0)
    assert nic.state is StormState.UNKNOWN


def test_one_impossible_interval_is_tolerated() -> None:
    nic = Nic()
    nic.run(1.0)
    nic.run(0.1, 6.0)
    nic.run(1.0)
    assert (nic.state, nic.track.storms) == (StormState.OK, 0)


def test_a_read_that_took_much_of_the_interval_is_not_evaluated() -> None:
    nic = Nic()
    nic.run(1.0)
    for _ in range(10):
        nic.pass_time(0.1, 1.0)
        nic.look(took=0.05)
    assert nic.told == []


def test_a_long_pause_between_two_rare_polls_is_found_by_the_ended_pauses() -> None:
    """A quiet device is polled once a second: a storm of half a second lies between two polls."""
    nic = Nic("duration and transitions", poll=1.0)
    nic.run(3.0, packets=0)
    nic.pass_time(1.0, 0.85, packets=0, ends=1)
    nic.look()
    assert (nic.state, nic.told) == (StormState.RECOVERING, ["begun"])
    nic.poll = 0.1
    nic.run(1.0)
    assert (nic.told, nic.track.storms) == (["begun", "restored"], 1)
    assert nic.track.storm_seconds == pytest.approx(0.85)


def test_a_storm_found_that_way_that_goes_on_is_the_same_storm() -> None:
    nic = Nic("duration and transitions", poll=1.0)
    nic.run(3.0)
    nic.pass_time(1.0, 0.9, ends=0)
    nic.look()
    nic.poll = 0.1
    nic.storm(2.0)
    nic.run(2.0)
    assert (nic.track.storms, nic.track.restored) == (1, 1)
    assert nic.track.storm_seconds == pytest.approx(2.9, abs=0.1)


def test_a_device_that_cannot_be_read_is_unknown_for_that_reason_until_it_can() -> None:
    nic = Nic()
    nic.storm(1.0)
    (ended,) = nic.watch.miss(nic.now, "EIO")
    assert ended.what.reason == "EIO"
    assert (nic.state, nic.track.reason) == (StormState.UNKNOWN, "EIO")
    nic.run(1.0)
    assert (nic.state, nic.track.reason) == (StormState.OK, "")


def test_the_longest_single_pause_is_followed() -> None:
    nic = Nic()
    nic.run(0.3, 1.0)
    assert nic.track.unbroken_pause == pytest.approx(0.3)
    nic.run(0.1)
    assert nic.track.unbroken_pause == 0.0


@pytest.mark.parametrize(
    ("counts", "method"),
    [
        (Counts(0.0, 0, 0, 0), Method.DURATION),
        (Counts(0.0), Method.DURATION),
        (Counts(None, 0, 0), Method.XOFF_XON),
        (Counts(None, 0, None, 0), Method.FRAMES),
        (Counts(None, 0), None),
        (Counts(None, None, 0, 0), None),
        (Counts(), None),
    ],
)
def test_each_driver_is_evaluated_by_its_best_counter(counts, method) -> None:
    assert method_of(counts) is method


def test_a_storm_ends_with_its_pause_even_without_traffic() -> None:
    nic = Nic()
    nic.storm(1.0)
    nic.run(2.0, 0.3, packets=0)
    assert nic.told == ["begun", "restored"]


@pytest.mark.parametrize("lump", [0.01, 0.03, 0.05])
def test_bursty_pause_counters_are_evaluated_over_several_polls(lump) -> None:
    """Observed on the real kernel with counters moved every 30 ms: one poll sees 0.09 s paused of 0.1, the next one 0.12."""
    nic = Nic()
    nic.run(1.0)
    truth = shown = 0.0
    for _ in range(20):
        nic.pass_time(0.1, 0.0, packets=0)
        truth += 0.1
        step = (truth - shown) // lump * lump
        shown += step
        nic.counts = {key: counts._replace(paused=counts.paused + step) for key, counts in nic.counts.items()}
        nic.look()
    assert (nic.told, nic.track.faults) == (["begun"], 0)
    nic.run(2.0)
    assert nic.told == ["begun", "restored"]


def test_the_jump_of_frozen_counters_is_not_evaluated() -> None:
    nic = Nic()
    nic.run(1.0, 1.0)
    nic.frozen = True
    nic.run(5.0, 1.0)
    nic.frozen = False
    nic.run(0.1, 1.0)
    assert (nic.state, nic.track.faults) == (StormState.OK, 0)
    nic.run(1.0, 1.0)
    assert nic.told == ["begun", "stale", "begun"]


def test_a_driver_that_counts_nothing_but_pause_frames_shows_the_end_of_a_storm_by_their_absence() -> None:
    """Ice has no packets per priority, so after a storm no counter moves."""
    nic = Nic("xoff_xon alone")
    nic.run(1.0)
    nic.storm(2.0)
    nic.run(3.0)
    assert (nic.told, nic.state) == (["begun", "restored"], StormState.OK)

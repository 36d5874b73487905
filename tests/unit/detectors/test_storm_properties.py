"""Invariants for all counter values: no order of events counts a storm twice or invents one."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nic import RECEIVE, TRANSMIT, Nic

from roce_exporter.fastloop.episodes import SLICE, WINDOW, Counts, Longest
from roce_exporter.fastloop.pfc_storm import StormState
from roce_exporter.fastloop.watch import Refresh

KINDS = st.sampled_from(["duration", "duration and transitions", "xoff_xon", "frames"])

POLLS = st.sampled_from([0.05, 0.1, 0.25, 1.0])


def reset(nic: Nic) -> None:
    nic.counts = {key: Counts(0.0, 0.0, 0.0, 0.0) for key in nic.counts}


def flap(nic: Nic) -> None:
    nic.up, nic.speed = not nic.up, None if nic.up else 12.5e9
    nic.downs += not nic.up


def vanish(nic: Nic) -> None:
    if RECEIVE in nic.counts:
        del nic.counts[RECEIVE]
    else:
        nic.counts[RECEIVE] = Counts(5.0, 5.0, 5.0, 5.0)


def freeze(nic: Nic) -> None:
    nic.frozen = not nic.frozen


def fail(nic: Nic) -> None:
    nic.changes += [(nic.now, change.key, change.what) for change in nic.watch.miss(nic.now, "EIO")]


def slow_down(nic: Nic) -> None:
    nic.speed = 3.125e9 if nic.speed == 12.5e9 else 12.5e9


def switch_pfc(nic: Nic) -> None:
    nic.scope = None if nic.scope is not None else frozenset({"5"})


def let_go(nic: Nic) -> None:
    nic.end_pause()


EVENTS = st.sampled_from([reset, flap, vanish, freeze, fail, slow_down, switch_pfc, let_go])

SPANS = st.tuples(
    st.floats(0.0, 20.0) | st.floats(0.0, 0.3),
    st.floats(0.0, 1.0) | st.just(1.0),
    st.sampled_from([0.0, 1000.0, 1e6]),
)

STORY = st.lists(st.one_of(EVENTS, SPANS), max_size=60)


@given(KINDS, POLLS, STORY)
def test_storms_alternate_with_their_ends_and_take_no_longer_than_the_time(kind, poll, story) -> None:
    nic = Nic(kind, keys=(RECEIVE, TRANSMIT), poll=poll)
    begin = nic.now
    for step in story:
        if callable(step):
            step(nic)
        else:
            nic.pass_time(*step)
        nic.look()
    for key, track in nic.watch.tracks.items():
        told = [what for _, where, what in nic.changes if where == key]
        kinds = [type(what).__name__ for what in told]
        assert kinds == (["Begun", "Ended"] * len(kinds))[: len(kinds)]
        assert kinds.count("Begun") == track.storms
        assert kinds.count("Ended") == track.storms - (
            track.state in (StormState.STORM, StormState.RECOVERING)
        )
        assert sum(getattr(what, "reason", "") == "restored" for what in told) == track.restored
        assert track.storm_seconds <= nic.now - begin + 1e-6
        assert all(what.end >= what.begin for what in told[1::2])


@given(KINDS, POLLS, STORY)
def test_without_a_pause_long_enough_no_order_of_resets_and_flaps_makes_a_storm(kind, poll, story) -> None:
    nic = Nic(kind, keys=(RECEIVE, TRANSMIT), poll=poll)
    for step in story:
        if callable(step):
            step(nic)
        else:
            seconds, share, _ = step
            # Every pause ends within 30 ms, and packets pass in between.
            nic.pass_time(seconds, min(share, 0.9), packets=1000.0, ends=max(1, seconds / 0.03))
        nic.look()
    assert not [what for _, _, what in nic.changes]


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 10)), min_size=1, max_size=60))
def test_the_longest_is_the_largest_of_the_window_to_one_slice(steps) -> None:
    longest, now, seen = Longest(), 0.0, []
    for wait, value in steps:
        now += wait
        longest.note(now, value)
        seen.append((now, value))
    recent = max((value for at, value in seen if at > now - WINDOW + SLICE), default=0.0)
    older = max((value for at, value in seen if at > now - WINDOW - SLICE), default=0.0)
    assert recent <= longest.value(now) <= older


def test_a_refresh_is_learnt_from_short_intervals_only() -> None:
    refresh = Refresh()
    for _ in range(10):
        refresh.changed(1.0, poll=1.0)
    assert refresh.seconds == 0.0
    assert not refresh.is_cached(0.1)
    for _ in range(4):
        refresh.changed(1.0, poll=0.1)
    assert refresh.seconds == 1.0
    assert refresh.is_cached(0.1)
    assert not refresh.is_cached(1.0)


sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
import storm_detection as bench  # noqa: E402 - benchmarks are no package

TRIALS = 12


@pytest.mark.nightly
@pytest.mark.parametrize("case", bench.CASES, ids="-".join)
def test_long_storms_are_found_without_false_alarms(case) -> None:
    """The benchmark of the storm detector on a small scale: the same hosts and seeds, so the result is deterministic."""
    storms = [bench.play(case, seed, with_storm=True) for seed in range(TRIALS)]
    controls = [bench.play(case, seed, with_storm=False) for seed in range(TRIALS)]
    ours = bench.score(case, storms, controls, "roce_exporter")
    assert ours.long >= 3
    assert ours.found == ours.long
    assert ours.false_alarms == 0
    scrapes = bench.score(case, storms, controls, "15 s scrape")
    assert scrapes.found < ours.found

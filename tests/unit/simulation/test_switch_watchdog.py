"""The watchdog of the simulated switch: when it trips and when it restores, to the poll."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.host.simulated.conditions import RECEIVE, TRANSMIT, Conditions, Pause, Setup, Span
from roce_exporter.host.simulated.rates import hold
from roce_exporter.host.simulated.simulated_switch_port import SwitchWatchdog, watched

START = 50.0
DETECTION, RESTORATION, POLL = 0.4, 0.6, 0.2
WATCHDOG = SwitchWatchdog(detection=DETECTION, restoration=RESTORATION, poll=POLL)

CALM = Conditions()
STORM = Conditions(pauses=(Pause(3, TRANSMIT, 1.0),))
BUSY_STORM = Conditions(load=0.9, pauses=(Pause(3, TRANSMIT, 1.0),))
SOME = Conditions(pauses=(Pause(3, TRANSMIT, 0.9),))
VICTIM = Conditions(pauses=(Pause(3, RECEIVE, 1.0),))


def play(*spans: tuple[float, Conditions], watchdog: SwitchWatchdog | None = WATCHDOG):
    timed = hold(
        [*(Span(*span) for span in spans), Span(math.inf, CALM)], START, Setup(lossless=(3, 4)), 400 * 10**9
    )
    return list(watched(timed, watchdog, START))


def changes(*spans: tuple[float, Conditions], watchdog: SwitchWatchdog | None = WATCHDOG) -> list[float]:
    """Seconds from the start at which the watchdog trips, restores, trips, ..."""
    played = play(*spans, watchdog=watchdog)
    return [
        round(new.start - START, 6)
        for old, new in pairwise(played)
        if (3 in old.stormed) != (3 in new.stormed)
    ]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        # It trips after the detection time since a poll, and restores after the pause is gone.
        ([(1.0, CALM), (2.0, STORM)], [1.4, 3.6]),
        # The next poll is at 1.2, and after it at 3.2.
        ([(1.05, CALM), (2.0, STORM)], [1.6, 3.8]),
        # A storm that is too short, and one that is just long enough.
        ([(1.0, CALM), (0.39, STORM)], []),
        ([(1.0, CALM), (0.41, STORM)], [1.4, 2.2]),
        # A storm through changing conditions is one storm.
        ([(1.0, CALM), (0.3, STORM), (0.3, BUSY_STORM), (1.0, STORM)], [1.4, 3.2]),
        # Pause that ends now and then, and pause that the switch sends, are no storms.
        ([(1.0, CALM), (10.0, SOME)], []),
        ([(1.0, CALM), (10.0, VICTIM)], []),
        # It holds the queue while any pause arrives.
        ([(1.0, CALM), (1.0, STORM), (2.0, SOME), (0.1, CALM), (1.0, SOME)], [1.4, 5.8]),
        # A second storm trips it again.
        ([(1.0, CALM), (1.0, STORM), (2.0, CALM), (1.0, STORM)], [1.4, 2.6, 4.4, 5.6]),
    ],
)
def test_it_trips_and_restores_to_the_poll(spans, expected) -> None:
    assert changes(*spans) == expected


def test_every_priority_has_its_own_state() -> None:
    other = Conditions(pauses=(Pause(4, TRANSMIT, 1.0),))
    both = Conditions(pauses=(*STORM.pauses, *other.pauses))
    watchdog = SwitchWatchdog((3, 4), detection=DETECTION, restoration=RESTORATION, poll=POLL)
    played = play((1.0, STORM), (1.0, both), (1.0, other), watchdog=watchdog)
    states = [(round(span.start - START, 6), sorted(span.stormed)) for span in played]
    assert states == [
        (0.0, []),
        (0.4, [3]),
        (1.0, [3]),
        (1.4, [3, 4]),
        (2.0, [3, 4]),
        (2.6, [4]),
        (3.0, [4]),
        (3.6, []),
    ]


@given(st.lists(st.tuples(st.floats(0.01, 5), st.sampled_from((CALM, STORM, BUSY_STORM, SOME, VICTIM)))))
def test_the_spans_keep_their_conditions_and_every_trip_follows_a_storm(spans) -> None:
    played = play(*spans)
    assert played[0].start == START
    assert math.isinf(played[-1].end)
    assert all(old.end == new.start for old, new in pairwise(played)), "without a gap"
    plain = hold(
        [*(Span(*span) for span in spans), Span(math.inf, CALM)], START, Setup(lossless=(3, 4)), 400 * 10**9
    )
    for conditions, start, end in plain:
        inside = [span for span in played if start <= span.start < end]
        assert inside[0].start == start
        assert inside[-1].end == end
        assert {span.conditions for span in inside} == {conditions}
    check_trips(played)


def check_trips(played) -> None:
    since = None
    for old, new in pairwise(played):
        pause = old.conditions.pause(3, TRANSMIT)
        storming = pause is not None and pause.storm
        since = (old.start if since is None else since) if storming else None
        if new.stormed - old.stormed:
            assert since is not None
            assert DETECTION - 1e-6 <= new.start - since <= DETECTION + POLL + 1e-6
        elif storming and not old.stormed:
            assert new.start - since <= DETECTION + POLL + 1e-6, "it must have tripped"

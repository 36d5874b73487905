"""Totals over time are exact and independent of earlier reads; spans can be overlaid."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.host.simulated.conditions import RECEIVE, TRANSMIT, Conditions, Pause, Setup, Span
from roce_exporter.host.simulated.rates import RunningTotals, hold
from roce_exporter.host.simulated.scenarios import Window, overlay, paused

SPEED = 100 * 10**9


PAUSES = st.builds(
    Pause, st.just(3), st.sampled_from((RECEIVE, TRANSMIT)), st.sampled_from((0.0, 0.1, 0.7, 1.0))
).map(lambda pause: (pause,))

CONDITIONS = st.builds(
    Conditions,
    load=st.floats(0, 1),
    marked=st.sampled_from((0.0, 0.1)),
    pauses=st.one_of(st.just(()), PAUSES),
    lost=st.floats(0, 100),
    up=st.booleans(),
    frozen=st.booleans(),
)

SPANS = st.lists(st.builds(Span, st.floats(0.001, 30), CONDITIONS), max_size=12)
TIMES = st.lists(st.floats(0, 200), min_size=1, max_size=12).map(sorted)


def meter(*spans: Span, start: float = 0.0) -> RunningTotals:
    return RunningTotals(hold([*spans, Span(math.inf, Conditions(load=0.0))], start, Setup(), SPEED))


@given(SPANS, TIMES)
def test_a_total_does_not_depend_on_earlier_readings(spans, times) -> None:
    often = meter(*spans)
    read = [(often.totals(time), often.shown(time)) for time in times]
    for time, (totals, shown) in zip(times, read, strict=True):
        assert meter(*spans).totals(time) == totals
        assert meter(*spans).shown(time) == shown


@given(SPANS, TIMES)
def test_no_total_falls(spans, times) -> None:
    one = meter(*spans)
    last: dict[str, float] = {}
    for time in times:
        totals = one.totals(time)
        assert all(totals[name] >= value for name, value in last.items() if name != "stalled_percent")
        last = totals


@given(SPANS, st.floats(0.001, 200))
def test_pause_never_lasts_longer_than_the_time(spans, time) -> None:
    totals = meter(*spans).totals(time)
    for direction in (RECEIVE, TRANSMIT):
        assert totals.get(f"{direction}_pause_us_3", 0.0) <= time * 1e6 * (1 + 1e-12)


def test_spans_of_no_length_are_passed_over() -> None:
    assert meter(Span(0.0, Conditions(up=False)), Span(1.0)).totals(0.5).get("carrier_changes", 0) == 0


def test_a_reset_is_once_however_many_spans_hold_it() -> None:
    lossy, reset = Conditions(lost=10.0), Conditions(lost=10.0, reset=True)
    one = meter(Span(5.0, lossy), Span(1.0, reset), Span(1.0, reset), Span(9.0, lossy))
    assert [one.totals(time)["out_of_sequence"] for time in (4.9, 5.5, 6.5, 8.0)] == pytest.approx(
        [49, 5, 15, 30]
    )


def test_frozen_counters_do_not_change_and_then_catch_up() -> None:
    one = meter(
        Span(5.0, Conditions(lost=10.0)),
        Span(5.0, Conditions(lost=10.0, frozen=True)),
        Span(5.0, Conditions(lost=10.0)),
    )
    assert [one.shown(time)["out_of_sequence"] for time in (4.0, 6.0, 9.9, 11.0)] == pytest.approx(
        [40, 50, 50, 110]
    )


WINDOWS = st.lists(st.floats(0.01, 50), max_size=10).map(
    lambda edges: [
        Window(start, end, lambda conditions: Conditions(load=1.0))
        for start, end in zip(sorted(edges)[::2], sorted(edges)[1::2], strict=False)
        if start < end
    ]
)


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=12), WINDOWS)
def test_windows_change_their_own_time_and_nothing_else(lengths, windows) -> None:
    laid = list(overlay([Span(length, Conditions(load=0.1)) for length in lengths], windows))
    assert math.fsum(span.seconds for span in laid) == pytest.approx(sum(lengths))
    assert all(span.seconds > 0 for span in laid)
    changed = math.fsum(span.seconds for span in laid if span.conditions.load == 1)
    end = sum(lengths)
    wanted = math.fsum(max(0.0, min(window.end, end) - window.start) for window in windows)
    assert changed == pytest.approx(wanted, abs=1e-6)


def test_a_pause_replaces_only_one_of_the_same_kind() -> None:
    mine, yours, other = Pause(3, RECEIVE, 1.0), Pause(3, RECEIVE, 0.2), Pause(3, TRANSMIT, 0.3)
    assert paused(mine)(Conditions(pauses=(yours, other))).pauses == (other, mine)

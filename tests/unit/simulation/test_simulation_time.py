"""Totals over time are exact and independent of earlier reads; spans can be overlaid."""

import math
from itertools import islice, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.host.simulated.conditions import RECEIVE, TRANSMIT, Conditions, Pause, Setup, Span
from roce_exporter.host.simulated.rates import RunningTotals, hold
from roce_exporter.host.simulated.scenarios import Window, bursts, overlay, paused, repeat

SPEED = 100 * 10**9

DRAWN = Random(1)  # noqa: S311 - a test that must replay

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


def test_an_hour_of_spans_is_added_up_to_the_microsecond() -> None:
    pause = Conditions(pauses=(Pause(3, RECEIVE, 0.5),))
    one = meter(*(Span(0.05, conditions) for _ in range(36_000) for conditions in (pause, Conditions())))
    assert one.totals(3600.0)["receive_pause_us_3"] == pytest.approx(900e6, abs=1)


def test_after_the_last_span_the_port_rests() -> None:
    one = meter(Span(2.0, Conditions(lost=10.0)))
    assert one.totals(1.0)["out_of_sequence"] == 10
    assert one.totals(2.0)["out_of_sequence"] == one.totals(1e9)["out_of_sequence"] == 20
    assert one.current.end == math.inf


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


def test_only_the_exposed_counters_are_frozen() -> None:
    one = meter(Span(9.0, Conditions(lost=10.0, frozen=True)))
    assert one.shown(8.0).get("out_of_sequence", 0) == 0
    assert one.totals(8.0)["out_of_sequence"] == 80


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


def test_bursts_are_as_ordinary_congestion_is() -> None:
    spans = list(islice(bursts(DRAWN, Conditions(), Conditions(load=0.9), (2.0, 20.0)), 400))
    calm, burst = spans[::2], spans[1::2]
    assert all(2 <= span.seconds <= 20 and not span.conditions.pauses for span in calm)
    assert all(0.005 <= span.seconds <= 0.06 for span in burst)
    ratios = {pause.ratio for span in burst for pause in span.conditions.pauses}
    assert min(ratios) == 0.1
    assert max(ratios) == 0.9


def test_windows_repeat() -> None:
    windows = list(islice(repeat(DRAWN, paused(), first=(20, 40), lasting=(2, 6), every=(60, 120)), 50))
    assert 20 <= windows[0].start <= 40
    assert all(2 <= window.end - window.start <= 6 for window in windows)
    gaps = [after.start - before.start for before, after in pairwise(windows)]
    assert all(60 <= gap <= 120 for gap in gaps)


def test_a_pause_replaces_only_one_of_the_same_kind() -> None:
    mine, yours, other = Pause(3, RECEIVE, 1.0), Pause(3, RECEIVE, 0.2), Pause(3, TRANSMIT, 0.3)
    assert paused(mine)(Conditions(pauses=(yours, other))).pauses == (other, mine)

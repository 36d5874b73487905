"""The histogram of pause lengths is that of the simulated pauses, whatever their lengths and the moments of the reads."""

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roce_exporter.fastloop.episodes import BOUNDS, Counts
from roce_exporter.fastloop.watch import CounterSample, PauseKey, Watch
from roce_exporter.normalise.series import Histogram

KEY = PauseKey("3", "receive")
POLL = 0.1
RATE = 100_000

Pause = tuple[float, float]
"""The start and the end, in seconds."""


def counted(pauses: list[Pause], now: float, ends: str) -> Counts:
    """A NIC's counters at a moment; `ends`: whether it counts `ends` of pauses, `edges` (each half of one) or `none`."""
    paused = sum(max(0.0, min(end, now) - begin) for begin, end in pauses if begin < now)
    over = sum(end <= now for _, end in pauses)
    begun = sum(begin < now for begin, _ in pauses)
    resumes = {"ends": over, "edges": (over + begun) / 2, "none": None}[ends]
    return Counts(paused, None, resumes, round(now - paused, 6) * RATE)


def watched(pauses: list[Pause], ends: str, first: float = 0.0, until: float | None = None) -> Watch:
    """A watch that read the counters ten times a second until all pauses were over."""
    watch = Watch()
    end = until or pauses[-1][1] + 1.0
    for step in range(round((end - first) / POLL) + 1):
        now = first + step * POLL
        watch.see(CounterSample(now, {KEY: counted(pauses, now, ends)}, POLL, speed=1e9))
    return watch


def lengths(watch: Watch) -> tuple[float, ...]:
    return watch.tracks[KEY].episodes.lengths.values()


def histogram(*seconds: float) -> tuple[float, ...]:
    made = Histogram(BOUNDS)
    for length in seconds:
        made.observe(length)
    return made.values()


KINDS = pytest.mark.parametrize("ends", ["ends", "edges", "none"])
LENGTHS = st.sampled_from([0.00012, 0.0007, 0.003, 0.02, 0.07, 0.15, 0.3, 0.9, 2.2, 4.7, 7.0])
"""No length is near a bound of the histogram, so that rounding moves no pause into another bucket."""


@KINDS
@settings(deadline=None)  # a shared machine may be slow
@given(
    played=st.lists(st.tuples(LENGTHS, st.floats(0.35, 2.0)), min_size=1, max_size=12),
    first=st.floats(0.0, POLL),
)
def test_pauses_apart_are_counted_one_by_one_with_their_lengths(ends, played, first) -> None:
    begins = accumulate((gap + length for length, gap in played), initial=0.5)
    pauses = [(begin, begin + length) for begin, (length, _) in zip(begins, played, strict=False)]
    found = lengths(watched(pauses, ends, first))
    expected = histogram(*(length for length, _ in played))
    assert found[:-2] == expected[:-2]
    assert found[-1] == expected[-1]
    assert found[-2] == pytest.approx(expected[-2])


def test_a_long_pause_that_ends_in_a_read_with_short_ones_keeps_its_length() -> None:
    pauses = [(1.0, 3.02), (3.04, 3.042), (3.05, 3.052)]
    *_, total, number = found = lengths(watched(pauses, "ends"))
    assert number == 3
    assert total == pytest.approx(2.024)
    assert found[BOUNDS.index(1.0)] == 2, "one pause longer than a second"


def test_steady_congestion_without_a_count_of_ends_is_no_endless_pause() -> None:
    """Fifty pauses a second for a minute: no episode may be longer than two reads."""
    pauses = [(1 + number * 0.02, 1.01 + number * 0.02) for number in range(3000)]
    found = lengths(watched(pauses, "none"))
    assert found[-2] == pytest.approx(30.0)
    assert found[BOUNDS.index(0.2)] == found[-1]


@KINDS
def test_a_partly_unobserved_pause_is_not_counted(ends) -> None:
    """The link goes down in the middle: the length of the pause cannot be known."""
    pauses = [(1.0, 3.0)]
    watch = Watch()
    for step in range(60):
        now = step * POLL
        look = CounterSample(
            now, {KEY: counted(pauses, min(now, 2.0), ends)}, POLL, speed=1e9, up=not 2.0 < now < 3.0
        )
        watch.see(look)
    assert lengths(watch) == histogram()


@KINDS
def test_slow_and_late_reads_lose_no_pause(ends) -> None:
    """The machine is busy: every third read takes half of the interval, every seventh is a second late."""
    pauses = [(1.0, 5.03), (8.0, 8.3), (11.0, 11.02)]
    watch, now = Watch(), 0.0
    for step in range(200):
        now += 1.1 if step % 7 == 6 else POLL
        seconds = POLL / 2 if step % 3 == 2 else 0.001
        watch.see(CounterSample(now, {KEY: counted(pauses, now, ends)}, POLL, seconds, speed=1e9))
    assert lengths(watch) == pytest.approx(histogram(4.03, 0.3, 0.02))


@pytest.mark.parametrize("poll", [0.1, 0.35])
@pytest.mark.parametrize("ends", ["ends", "edges"])
def test_counters_that_are_renewed_once_a_second_show_every_pause(ends, poll) -> None:
    """As on bnxt; also with reads that are too rare to learn the interval from."""
    pauses = [(6.3, 10.35), (16.2, 16.9), (21.5, 22.7)]
    watch = Watch()
    for step in range(round(30 / poll)):
        now = step * poll
        watch.see(CounterSample(now, {KEY: counted(pauses, now // 1, ends)}, poll, speed=1e9))
    assert lengths(watch) == pytest.approx(histogram(4.05, 0.7, 1.2))


@KINDS
def test_bursty_counts_show_the_whole_pause(ends) -> None:
    """The NIC counts nothing for a moment, at the start of the pause and during it, then everything at once."""
    pauses = [(2.0, 6.05)]
    watch = Watch()
    for step in range(100):
        now = step * POLL
        told = 2.18 if 2.18 < now < 2.55 else 4.25 if 4.25 < now < 4.95 else now
        watch.see(CounterSample(now, {KEY: counted(pauses, told, ends)}, POLL, speed=1e9))
    assert lengths(watch) == pytest.approx(histogram(4.05))


@KINDS
def test_an_impossible_span_is_part_of_the_pause(ends) -> None:
    """The values of one read are half a second newer than its timestamp."""
    pauses = [(2.0, 6.05)]
    watch = Watch()
    for step in range(100):
        now = step * POLL
        shown = 4.0 if 35 <= step <= 40 else now
        watch.see(CounterSample(now, {KEY: counted(pauses, shown, ends)}, POLL, speed=1e9))
    assert watch.tracks[KEY].faults
    assert lengths(watch) == pytest.approx(histogram(4.05))


def test_on_an_idle_priority_without_a_count_of_ends_two_pauses_are_two() -> None:
    watch = Watch()
    for step in range(100):
        paused, _, _, _ = counted([(2.0, 2.25), (5.0, 5.33)], step * POLL, "none")
        watch.see(CounterSample(step * POLL, {KEY: Counts(paused, None, None, 0)}, POLL, speed=1e9))
    assert lengths(watch) == pytest.approx(histogram(0.25, 0.33))


def test_lengths_in_another_unit_are_discarded() -> None:
    """Milliseconds where microseconds should be: after three impossible intervals no data is left."""
    watch = Watch()
    for step in range(40):
        now = step * POLL
        paused, _, _, packets = counted([(1.0, 9.0)], now, "ends")
        watch.see(CounterSample(now, {KEY: Counts(paused * 1000, None, step, packets)}, POLL, speed=1e9))
    assert watch.tracks[KEY].reason == "implausible"
    assert lengths(watch) == histogram()


def test_billions_of_ends_in_one_span_take_no_longer_than_one() -> None:
    watch = Watch()
    for now, paused, ends in ((0.0, 0.0, 0), (0.1, 0.0, 0), (0.2, 0.05, 10**12)):
        watch.see(CounterSample(now, {KEY: Counts(paused, None, ends, now * RATE)}, POLL, speed=1e9))
    assert lengths(watch)[-1] == 10**12

"""The daemon's history: dense in the last minutes, sparse before, an hour in all."""

from itertools import pairwise

from roce_exporter.view.host_view import MOST_AGE, History, TimedSamples, kept


def play(times: range) -> History:
    history: History = ()
    for time in times:
        history = kept(history, TimedSamples(float(time), {}))
    return history


def test_two_hours_leave_an_hour_of_few_moments() -> None:
    history = play(range(0, 7200, 15))
    ages = [history[-1].time - moment.time for moment in history]
    assert ages == sorted(ages, reverse=True)
    assert 3300 <= max(ages) <= MOST_AGE
    assert len(history) < 50


def test_the_last_five_minutes_are_complete() -> None:
    history = play(range(0, 7200, 15))
    recent = [moment.time for moment in history if moment.time >= history[-1].time - 300]
    assert [after - before for before, after in pairwise(recent)] == [15.0] * 20


def test_older_moments_are_never_further_apart_than_twice_their_spacing() -> None:
    history = play(range(0, 7200, 15))
    for before, after in pairwise(history):
        assert after.time - before.time <= (120 if history[-1].time - before.time < 900 else 600)


def test_a_clock_that_was_set_back_begins_again() -> None:
    assert kept(play(range(0, 600, 15)), TimedSamples(100.0, {})) == (TimedSamples(100.0, {}),)

"""The model of RoCE: how each condition of a port moves each counter, compared with values computed by hand."""

import pytest

from roce_exporter.host.simulated.conditions import RECEIVE, TRANSMIT, Conditions, Pause, Setup, settle
from roce_exporter.host.simulated.rates import (
    CNP_PER_FLOW,
    FLOWS,
    PACKET_BYTES,
    STORM_TIMEOUTS,
    edges,
    levels,
    rates,
    refresh_rate,
)

GIGABIT = 10**9


def facts(conditions: Conditions, setup: Setup | None = None, gigabits: int = 400) -> dict[str, float]:
    return dict(rates(settle(conditions, setup or Setup(), gigabits * GIGABIT)))


@pytest.mark.parametrize(("gigabits", "frames"), [(10, 596), (100, 5961), (400, 23842), (800, 47684)])
def test_a_storm_is_kept_up_by_frames_at_half_of_what_one_holds_for(gigabits, frames) -> None:
    storm = Conditions(pauses=(Pause(3, RECEIVE, 1.0),))
    found = facts(storm, gigabits=gigabits)
    assert round(refresh_rate(gigabits * GIGABIT)) == frames
    assert (
        round(found["receive_xoff_3"])
        == round(found["receive_frames_3"])
        == round(found["receive_frames"])
        == frames
    )


@pytest.mark.parametrize(
    ("direction", "blocked", "free"), [(RECEIVE, TRANSMIT, RECEIVE), (TRANSMIT, RECEIVE, TRANSMIT)]
)
def test_a_storm_lets_nothing_pass_one_way_and_everything_the_other(direction, blocked, free) -> None:
    calm = facts(Conditions(load=0.5))
    storm = facts(Conditions(load=0.5, pauses=(Pause(3, direction, 1.0),)))
    assert f"{blocked}_packets_3" not in storm
    assert storm[f"{free}_packets_3"] == calm[f"{free}_packets_3"] > 0
    assert storm[f"{blocked}_packets_0"] == calm[f"{blocked}_packets_0"] > 0
    assert storm[f"{direction}_pause_us_3"] == 1_000_000
    assert f"{direction}_xon_3" not in storm
    assert f"{direction}_pauses_3" not in storm
    assert storm["timeouts"] == STORM_TIMEOUTS


def test_ordinary_pause_is_episodes_of_one_xoff_and_one_xon_each() -> None:
    found = facts(Conditions(load=1.0, pauses=(Pause(3, RECEIVE, 0.25, episode=0.005),)))
    assert found["receive_pause_us_3"] == 250_000
    assert found["receive_pauses_3"] == found["receive_xon_3"] == 50
    assert found["receive_xoff_3"] == pytest.approx(0.25 * 23842.2 + 50, abs=0.1)
    assert found["receive_frames_3"] == pytest.approx(found["receive_xoff_3"] + 50)
    assert found["transmit_packets_3"] == pytest.approx(0.75 * found["receive_packets_3"])


def test_full_load_is_the_line_rate() -> None:
    found = facts(Conditions(load=1.0))
    assert found["transmit_bytes_3"] == pytest.approx(50e9)
    assert found["transmit_packets_3"] == pytest.approx(50e9 / PACKET_BYTES)
    assert found["transmit_bits"] == pytest.approx(8 * found["transmit_bytes"])


def test_marks_are_answered_with_cnps_up_to_one_per_flow_and_50_microseconds() -> None:
    few = facts(Conditions(load=0.5, marked=0.001))
    assert few["cnps_sent"] == pytest.approx(few["marks"])
    silent = facts(Conditions(load=0.5, marked=0.001, notifies=False))
    assert silent["marks"] == few["marks"]
    assert "cnps_sent" not in silent
    many = facts(Conditions(load=1.0, marked=0.5))
    assert many["marks"] > many["cnps_sent"] == FLOWS * CNP_PER_FLOW == many["transmit_packets_6"]


def test_handled_notifications_cut_the_rate() -> None:
    free, held = facts(Conditions(load=1.0)), facts(Conditions(load=1.0, notified=0.5))
    assert held["cnps_handled"] == held["receive_packets_6"] == 80_000
    assert held["transmit_packets_3"] == pytest.approx(0.75 * free["transmit_packets_3"])


def test_losses_show_at_both_ends() -> None:
    found = facts(Conditions(lost=20.0, timeouts=1.0))
    assert (found["out_of_sequence"], found["sequence_errors"], found["implied_naks"]) == (20, 20, 1)
    assert (found["timeouts"], found["retransmits"], found["duplicates"]) == (1, 21, 5)


def test_discards_are_of_the_priority_that_roce_travels_on() -> None:
    found = facts(Conditions(discards=7.0), Setup(priority=5))
    assert found["discards"] == found["discards_5"] == 7
    assert "discards_3" not in found


@pytest.mark.parametrize(("stall", "seconds"), [(0.3, 0.0), (0.31, 1.0)])
def test_a_second_of_pcie_stall_counts_above_thirty_percent(stall, seconds) -> None:
    conditions = Conditions(pcie_stall=stall)
    assert facts(conditions).get("stalled_seconds", 0.0) == seconds
    assert levels(conditions) == {"stalled_percent": round(stall * 100)}


def test_a_priority_without_pfc_is_not_paused() -> None:
    pauses = (Pause(3, RECEIVE, 1.0), Pause(4, RECEIVE, 0.5))
    assert settle(Conditions(pauses=pauses), Setup(lossless=(4,)), 1).pauses == pauses[1:]
    assert settle(Conditions(pauses=pauses, lossless=()), Setup(), 1).pauses == ()


def test_a_span_takes_precedence_over_the_configuration_of_the_port() -> None:
    settled = settle(Conditions(lossless=(5,), priority=5, speed=7), Setup(), 400)
    assert (settled.lossless, settled.priority, settled.speed) == ((5,), 5, 7)
    settled = settle(Conditions(), Setup(lossless=(4,), priority=4), 400)
    assert (settled.lossless, settled.priority, settled.speed) == ((4,), 4, 400)


STORM = Conditions(pauses=(Pause(3, TRANSMIT, 1.0),))


def test_a_storm_ends_with_one_xon_that_is_one_transition() -> None:
    assert edges(Conditions(), STORM) == {
        "transmit_storm_starts": 1,
        "transmit_storm_starts_3": 1,
        "transmit_halves_3": 1,
    }
    assert edges(STORM, Conditions()) == {
        "transmit_storm_ends": 1,
        "transmit_pauses_3": 1,
        "transmit_halves_3": 1,
        "transmit_xon_3": 1,
        "transmit_frames_3": 1,
        "transmit_frames": 1,
    }


def test_a_storm_that_ends_with_the_link_ends_without_a_frame() -> None:
    down = edges(STORM, Conditions(up=False))
    assert down["transmit_pauses_3"] == down["carrier_downs"] == down["carrier_changes"] == 1
    assert "transmit_frames_3" not in down
    assert edges(Conditions(up=False), Conditions()) == {"carrier_ups": 1, "carrier_changes": 1}

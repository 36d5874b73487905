"""Rises with resets and wraps; what is absent is not seen."""

import pytest
from health_history import history

from roce_exporter.normalise.series import step
from roce_exporter.view.host_view import WHOLE, PortView, View, moduli, rise_between

TIMEOUTS = "roce_transport_ack_timeouts_total"
PAUSE = "roce_pfc_receive_pause_seconds_total"


def port(series: dict[str, object], **options: float) -> PortView:
    return View(history(series, **options)).ports()[0]


def test_a_rise_is_the_sum_of_the_steps_and_its_rate_is_per_second() -> None:
    view = port({TIMEOUTS: [5, 6, 10]}, seconds=30, moments=3)
    rise = view.rise(TIMEOUTS, 3600)
    assert rise is not None
    assert (rise.amount, rise.seconds, rise.rate) == (5, 30, 5 / 30)


def test_only_the_window_counts() -> None:
    rise = port({TIMEOUTS: [0, 100, 101, 102]}, seconds=90, moments=4).rise(TIMEOUTS, 60)
    assert rise == (2, 60)


def test_a_reset_starts_again_from_zero() -> None:
    assert port({TIMEOUTS: [1000, 3, 5]}, moments=3).rose(TIMEOUTS, 3600) == 5


@pytest.mark.parametrize(
    ("before", "after", "rise"),
    [
        (2**32 - 10, 5, 15),  # a short step over the end
        (1000, 5, 5),  # it was far from the end: started again
        (2**31, 5, 5),
        (2**32 - 10, 2**31, 2**31),  # a step as large as this is no wrap
        (7, 7, 0),
    ],
)
def test_a_narrow_counter_wraps(before, after, rise) -> None:
    assert step(before, after, (float(2**32),)) == rise


def test_the_width_at_which_a_row_wraps_is_that_of_its_spellings() -> None:
    assert 2**32 in moduli("roce_transport_adaptive_retransmits_total")
    assert moduli("roce_port_up") == ()
    assert moduli("no_such_row") == ()


def test_a_wide_counter_near_a_narrow_width_does_not_wrap() -> None:
    assert rise_between([(0, 2.0**40), (1, 3.0)], 0, 1, (2.0**32,)) == (3.0, 1)


def test_a_series_that_vanished_has_no_value_now() -> None:
    view = port({TIMEOUTS: [1, None]})
    assert view.highest(TIMEOUTS) is None
    assert len(view.tracks(TIMEOUTS)) == 1


def test_labels_select_series_and_rises_add_up() -> None:
    view = port({PAUSE + "{priority=3}": [0, 1], PAUSE + "{priority=4}": [0, 2]})
    assert view.rose(PAUSE, 3600) == 3
    assert view.rose(PAUSE, 3600, priority="4") == 2


def test_a_port_sees_its_own_series_and_those_of_the_device() -> None:
    view = View(
        history(
            {
                TIMEOUTS + "{port=1}": [0, 1],
                TIMEOUTS + "{port=2}": [0, 2],
                TIMEOUTS + "{port=all}": [0, 4],
                TIMEOUTS + "{device=mlx5_1}": [0, 8],
                "roce_resource_qp": 7,
            }
        )
    )
    assert PortView(view, "mlx5_0", "1").rose(TIMEOUTS, 99) == 5
    assert PortView(view, "mlx5_0", WHOLE).rose(TIMEOUTS, 99) == 7
    assert PortView(view, "mlx5_0", "1").highest("roce_resource_qp") == 7
    assert view.devices() == ["mlx5_0"]


def test_events_of_a_series_that_appears_are_new() -> None:
    assert port({TIMEOUTS: [None, 2, 3]}, moments=3).events(TIMEOUTS, 3600) == 3
    assert port({TIMEOUTS: [2, 3, 3]}, moments=3).events(TIMEOUTS, 3600) == 1


def test_the_network_device_is_the_bond_of_a_lag() -> None:
    assert port({"roce_port_netdev_info": 1}).netdev == "eth0"
    roles = {
        "roce_port_netdev_info{netdev=eth1,role=member}": 1,
        "roce_port_netdev_info{netdev=bond0,role=bond}": 1,
    }
    assert port(roles).netdev == "bond0"

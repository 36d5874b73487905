"""Missing series of a host that serves lean or standard: usual values where these are known, and otherwise still missing."""

from __future__ import annotations

import pytest
from health_history import causes, history

from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.view.from_prometheus import read_matrix, with_usual_values
from roce_exporter.view.host_view import PortView, View

TIMEOUTS = "roce_transport_ack_timeouts_total"
LEAN = {"roce_exporter_metric_set_info{set=lean}": 1}
HOST = {
    "roce_device_info{driver=mlx5_core}": 1,
    "roce_link_up": 1,
    "roce_exporter_source_up{source=hw_counters,device=}": 1,
    "roce_exporter_source_up{source=ethtool,device=}": 1,
}
LIMITED = pytest.mark.parametrize("metric_set", ["lean", "standard"])


def port(series: dict[str, object], **options: float) -> PortView:
    return View(with_usual_values(history(series, **options))).ports()[0]


@LIMITED
def test_the_first_event_is_a_rise(metric_set: str) -> None:
    info = {f"roce_exporter_metric_set_info{{set={metric_set}}}": 1}
    assert port(HOST | info | {TIMEOUTS: [None, None, 3]}, moments=3).rose(TIMEOUTS, 3600) == 3


@pytest.mark.parametrize("info", [{}, {"roce_exporter_metric_set_info{set=full}": 1}])
def test_a_history_of_everything_stays_as_it_is(info: dict[str, object]) -> None:
    given = history(HOST | info | {TIMEOUTS: [None, 3]})
    assert with_usual_values(given) is given
    assert PortView(View(given), "mlx5_0", "1").rise(TIMEOUTS, 3600) is None


def test_a_series_that_never_began_has_its_usual_value_where_driver_and_source_have_it() -> None:
    assert port(HOST | LEAN).highest(TIMEOUTS) == 0


@pytest.mark.parametrize(
    "other",
    [
        {"roce_device_info{driver=}": 1},
        {"roce_device_info{driver=rdma_rxe}": 1},
        {"roce_exporter_source_up{source=hw_counters,device=mlx5_0}": 0},
    ],
    ids=["unknown driver", "a driver without it", "broken source"],
)
def test_it_stays_missing_where_it_may_not_exist(other: dict[str, object]) -> None:
    kept = {
        key: value for key, value in HOST.items() if "device_info" not in key or "source" in next(iter(other))
    }
    # The default of the helper is a device without a driver; one with a driver replaces it.
    found = with_usual_values(history(kept | LEAN | other))
    names = {labels for one in found for labels in one.values.get(TIMEOUTS, {})}
    drivers = [labels[1] for labels in found[-1].values["roce_device_info"]]
    assert names == set(), drivers


def test_counters_come_by_rdma_netlink_too() -> None:
    other = {key.replace("hw_counters", "rdma_netlink"): value for key, value in HOST.items()}
    assert port(other | LEAN).highest(TIMEOUTS) == 0


def test_labels_of_their_own_are_completed_once_they_are_known() -> None:
    name = "roce_kernel_log_events_total"
    view = port(HOST | LEAN | {f"{name}{{event=tx_timeout}}": [None, None, 2]}, moments=3)
    (track,) = view.tracks(name)
    assert [value for _, value in track.points] == [0, 0, 2]
    assert port(HOST | LEAN).tracks(name) == ()


def test_a_device_that_is_not_there_gets_nothing() -> None:
    given = HOST | LEAN | {"roce_transport_ack_timeouts_total{device=gone}": [2, None]}
    (track,) = View(with_usual_values(history(given))).of("gone", "1", TIMEOUTS)
    assert [value for _, value in track.points] == [2]


def test_a_source_of_all_devices_stands_for_each() -> None:
    """One of three broken: not the whole driver. A broken one has worked before, although its series is new."""
    down = {"roce_exporter_source_up{source=dcb}": [None, 0]}
    view = port(HOST | LEAN | down)
    states = {track.labels["source"]: value for track, value in view.current("roce_exporter_source_up")}
    assert states == {"hw_counters": 1, "ethtool": 1, "dcb": 0}
    (track,) = view.tracks("roce_exporter_source_up", source="dcb")
    assert [value for _, value in track.points] == [1, 0]
    assert causes(diagnose(with_usual_values(history(HOST | LEAN | down)))) == ["source_broken"]


def test_all_sources_broken_is_the_driver() -> None:
    names = ("hw_counters", "ethtool")
    down = {f"roce_exporter_source_up{{source={name}}}": [None, 0] for name in names}
    series = {key: value for key, value in HOST.items() if "source_up" not in key}
    common = {f"roce_exporter_source_up{{source={name},device=}}": [1, None] for name in names}
    assert causes(diagnose(with_usual_values(history(series | LEAN | common | down)))) == [
        "driver_not_responding"
    ]


def test_a_check_that_passes_again_was_not_failed_before() -> None:
    name = "roce_config_check_ok"
    view = port(HOST | LEAN | {f"{name}{{check=trust}}": [None, 0, 1]}, moments=3)
    (track,) = view.tracks(name)
    assert [value for _, value in track.points] == [1, 0, 1]


def test_a_counter_of_a_priority_without_pfc_began_at_0() -> None:
    name = "roce_buffer_discards_total"
    assert port(HOST | LEAN | {f"{name}{{priority=0}}": [None, 4]}).rose(name, 3600) == 4


def test_what_is_quiet_is_not_called_unseen() -> None:
    devlink = {"roce_exporter_source_up{source=devlink,device=}": 1}
    what = "devlink health reporters"
    assert what not in map(str, diagnose(with_usual_values(history(HOST | LEAN | devlink))).not_checked)
    assert what in map(str, diagnose(with_usual_values(history(HOST | LEAN))).not_checked)
    assert what in map(str, diagnose(with_usual_values(history(HOST | devlink))).not_checked)


def test_a_matrix_of_a_lean_host_is_completed() -> None:
    labels = {"instance": "a", "job": "roce"}

    def one(name: str, values: list[list[object]], **more: str) -> dict[str, object]:
        return {"metric": {"__name__": name, **labels, **more}, "values": values}

    every = [[0, "1"], [15, "1"]]
    result = [
        one("roce_exporter_metric_set_info", every, set="lean"),
        one("roce_device_info", every, device="mlx5_0", driver="mlx5_core"),
        one("roce_port_up", every, device="mlx5_0", port="1"),
        one("roce_exporter_source_up", every, source="hw_counters"),
        one(TIMEOUTS, [[15, "7"]], device="mlx5_0", port="1"),
    ]
    found = read_matrix({"resultType": "matrix", "result": result}).history
    assert [moment.values[TIMEOUTS] for moment in found] == [{("mlx5_0", "1"): 0}, {("mlx5_0", "1"): 7}]

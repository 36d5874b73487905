"""A matrix of Prometheus as a history."""

from typing import Any

import pytest

from roce_exporter.view.remote import MatrixError, read_matrix

TARGET = {"instance": "h1", "job": "roce"}


def matrix(*series: tuple[dict[str, str], list[Any]]) -> dict[str, Any]:
    return {
        "resultType": "matrix",
        "result": [{"metric": {**TARGET, **metric}, "values": values} for metric, values in series],
    }


def named(name: str, **labels: str) -> dict[str, str]:
    return {"__name__": name, **labels}


def test_labels_are_those_of_the_row_and_absent_ones_empty() -> None:
    up = named("roce_exporter_source_up", source="ethtool", device="mlx5_0")
    found = read_matrix(matrix((up, [[10, "1"], [25.5, "0"]])))
    assert [(one.time, dict(one.values)) for one in found.history] == [
        (10.0, {"roce_exporter_source_up": {("ethtool", "mlx5_0", ""): 1.0}}),
        (25.5, {"roce_exporter_source_up": {("ethtool", "mlx5_0", ""): 0.0}}),
    ]


def test_a_series_that_begins_later_or_has_no_number_is_absent_before() -> None:
    found = read_matrix(
        matrix(
            (named("roce_port_up", device="a", port="1"), [[10, "1"], [25, "1"]]),
            (named("roce_port_up", device="b", port="1"), [[5, "NaN"], [10, "NaN"], [25, "1"]]),
        )
    )
    assert [(one.time, sorted(one.values["roce_port_up"])) for one in found.history] == [
        (10.0, [("a", "1")]),
        (25.0, [("a", "1"), ("b", "1")]),
    ]


def test_metrics_of_another_version_are_named_and_histograms_left_out() -> None:
    found = read_matrix(
        matrix(
            (named("roce_port_up", device="a", port="1"), [[10, "1"]]),
            (named("roce_future_total", device="a"), [[10, "1"]]),
            (named("roce_pfc_pause_ratio_bucket", device="a", le="1"), [[10, "1"]]),
            (named("roce_exporter_build_info", version="9"), [[10, "1"]]),
        )
    )
    assert found.unknown == ("roce_future_total",)
    assert set(found.history[0].values) == {"roce_port_up", "roce_exporter_build_info"}


def test_two_exporters_of_one_instance_are_not_mixed() -> None:
    up = named("roce_port_up", device="a", port="1")
    with pytest.raises(MatrixError) as caught:
        read_matrix(matrix((up, [[10, "1"]]), ({**up, "job": "other"}, [[10, "1"]])))
    assert str(caught.value) == "several exporters have this instance: job=other; job=roce"


def test_a_point_without_a_time_is_left_out() -> None:
    labels = {"__name__": "roce_exporter_devices"}
    points = [[float("inf"), "1"], [float("nan"), "1"], [5, "1"]]
    found = read_matrix({"resultType": "matrix", "result": [{"metric": labels, "values": points}]})
    assert [one.time for one in found.history] == [5.0]


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {"resultType": "vector", "result": []},
        {"resultType": "matrix"},
        {"resultType": "matrix", "result": [{}]},
        {"resultType": "matrix", "result": 5},
        {"resultType": "matrix", "result": [{"metric": {}, "values": [[1]]}]},
        {"resultType": "matrix", "result": [{"metric": {}, "values": [[1, "x"]]}]},
        {"resultType": "matrix", "result": [{"metric": [1], "values": []}]},
        {"resultType": "matrix", "result": [{"metric": {}, "values": [[10**399, "1"]]}]},
        {"resultType": "matrix", "result": [{"metric": {"__name__": ["a"]}, "values": []}]},
        {"resultType": "matrix", "result": [{"metric": {"__name__": "a", "b": 1}, "values": []}]},
    ],
)
def test_other_documents_are_refused(document) -> None:
    with pytest.raises(MatrixError):
        read_matrix(document)

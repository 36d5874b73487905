"""The configuration in `deploy/windows/` under windows_exporter's own parser and its own collector, of the version it is for.

Both are built for Linux from the module; only the calls of pdh.dll are ours (`windows_exporter/`). Constructed values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from deploy_metrics import Series, series_of
from windows_collector import VERSION, Scrape, collector_program, scrape
from windows_hosts import CONFIGURATION, FIRST, PORT_QOS, SECOND, WINDOWS, counters, instances, objects

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def program() -> Path:
    return collector_program()


def expected(values: dict[str, Any]) -> dict[Series, float]:
    """What the collector must show: per entry and instance one series, with the labels of the entry."""
    found = {}
    for entry in objects():
        (counter,) = entry["counters"]
        for instance in instances(entry["object"]):
            labels = {"device": instance, **counter.get("labels", {})}
            key = (counter["metric"], frozenset(labels.items()))
            found[key] = values[entry["object"]][counter["name"]][instance]
    return found


def shown(result: Scrape) -> dict[Series, float]:
    return {
        key: value for key, value in series_of(result.metrics).items() if not key[0].startswith("windows_")
    }


def failing(result: Scrape) -> set[str]:
    """The entries that the collector reports as failed."""
    metric = "windows_performancecounter_collector_success"
    return {
        dict(labels)["collector"]
        for (name, labels), value in series_of(result.metrics).items()
        if name == metric and value == 0
    }


def test_the_files_name_the_version_that_is_tested() -> None:
    named = re.findall(
        r"windows_exporter (\d+\.\d+\.\d+)", CONFIGURATION.read_text() + (WINDOWS / "README.md").read_text()
    )
    assert set(named) == {VERSION.removeprefix("v")}


def test_every_counter_becomes_its_series(program: Path, tmp_path: Path) -> None:
    """Names, labels and values of all series, and nothing else: the total of all instances is left out by the collector."""
    values = counters()
    result = scrape(program, CONFIGURATION, values, tmp_path)
    assert result.status == 0, result.errors
    assert "build:" not in result.errors
    assert shown(result) == expected(values)
    assert not failing(result)


def test_counters_and_gauges_have_their_types(program: Path, tmp_path: Path) -> None:
    result = scrape(program, CONFIGURATION, counters(), tmp_path)
    types = dict(re.findall(r"# TYPE ((?:roce|winof2)_\w+) (\w+)", result.metrics))
    kinds = {counter["metric"]: counter["type"] for entry in objects() for counter in entry["counters"]}
    assert types == kinds
    assert {kind for metric, kind in types.items() if metric.endswith("_total")} == {"counter"}


def test_the_collector_is_enabled_in_addition_to_the_defaults(program: Path, tmp_path: Path) -> None:
    result = scrape(program, CONFIGURATION, counters(), tmp_path)
    assert "enabled: [defaults],performancecounter\n" in result.errors


def test_a_name_that_the_driver_does_not_have_loses_only_itself(program: Path, tmp_path: Path) -> None:
    """A wrong spelling, or an older driver."""
    values = counters()
    lost = values[PORT_QOS].pop("Rcv Pause Frames")
    assert lost
    result = scrape(program, CONFIGURATION, values, tmp_path)
    values[PORT_QOS]["Rcv Pause Frames"] = lost
    wanted = {
        key: value for key, value in expected(values).items() if key[0] != "roce_pfc_receive_frames_total"
    }
    assert shown(result) == wanted
    assert failing(result) == {"port_qos_rcv_pause_frames"}


def test_an_object_that_the_driver_does_not_have_loses_only_itself(program: Path, tmp_path: Path) -> None:
    values = counters()
    gone = "Mellanox WinOF-2 Congestion Control"
    whole = dict(values)
    del values[gone]
    result = scrape(program, CONFIGURATION, values, tmp_path)
    metrics = {entry["counters"][0]["metric"] for entry in objects() if entry["object"] == gone}
    assert len(metrics) == 5
    assert shown(result) == {key: value for key, value in expected(whole).items() if key[0] not in metrics}


def test_a_value_that_is_not_valid_is_missing_and_not_0(program: Path, tmp_path: Path) -> None:
    values = counters()
    values[PORT_QOS]["Sent Pause Frames"][f"{FIRST} Priority 3"] = None
    result = scrape(program, CONFIGURATION, values, tmp_path)
    found = {
        labels: value
        for (name, labels), value in shown(result).items()
        if name == "roce_pfc_transmit_frames_total"
    }
    devices = {dict(labels)["device"] for labels in found}
    assert f"{FIRST} Priority 3" not in devices
    assert f"{SECOND} Priority 3" in devices
    assert 0 not in found.values()


def test_two_counters_in_one_entry_would_report_0_for_a_missing_value(program: Path, tmp_path: Path) -> None:
    """Why each counter is an entry of its own."""
    together = tmp_path / "together.yml"
    together.write_text(
        "collector:\n  performancecounter:\n    objects: |-\n"
        f'      - {{name: both, object: "{PORT_QOS}", instances: ["*"], instance_label: device, counters: ['
        '{name: "Rcv Pause Frames", metric: roce_a}, {name: "Sent Pause Frames", metric: roce_b}]}\n'
    )
    values = {PORT_QOS: {"Rcv Pause Frames": {"x": 5}, "Sent Pause Frames": {"x": None}}}
    device = frozenset({("device", "x")})
    assert shown(scrape(program, together, values, tmp_path)) == {
        ("roce_a", device): 5,
        ("roce_b", device): 0,
    }
    del values[PORT_QOS]["Sent Pause Frames"]
    assert shown(scrape(program, together, values, tmp_path)) == {}


def test_the_parser_refuses_an_unknown_key_of_the_file(program: Path, tmp_path: Path) -> None:
    """The parser of the file is strict, so the file above has no misspelt key."""
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(CONFIGURATION.read_text().replace("collectors:", "colectors:"))
    result = scrape(program, wrong, counters(), tmp_path)
    assert result.status == 1
    assert "field colectors not found" in result.errors

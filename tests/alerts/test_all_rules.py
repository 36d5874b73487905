"""All rules over one history with a cluster for each situation: only these alerts fire, at any time."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from alert_promtool import complaints, delivered, fired, history, needed
from alert_scenario import CASES, Case, Series, Variant, input_series, labels_written, series_written

pytestmark = pytest.mark.usefixtures("promtool")

MINUTES = 100
UP = 'up{job="roce",instance="h1"}'
ALIVE = {UP: "1x200"}
LINK = {
    'roce_netdev_info{NETDEV,mac="02:00:00:00:00:01",hostname="gpu-h1"}': "1x200",
    'roce_switch_lldp_neighbor_info{device="leaf-h1",port="Ethernet0",LLDP_MAC,neighbor_mac="02:00:00:00:00:01"}': "1x200",
}
QUEUE = '{device="leaf-h1",port="Ethernet0",queue="3"}'
FRAMES = "roce_pfc_transmit_frames_total{PRIORITY}"
SWITCH_FRAMES = 'roce_switch_pfc_receive_frames_total{device="leaf-h1",port="Ethernet0",priority="3"}'
BURST, AWAY = "0+300x20 12000+6000x29 186300+300x150", "0+300x20 _x30 186300+300x150"
"""The same counts at the end; the second was not scraped for 15 minutes in which the other end counted."""
TRIPS = f"roce_switch_pfc_watchdog_trips_total{QUEUE}"
READ_AGAIN = {TRIPS: "7x20 stale _x59 7x120"}
SITUATIONS: dict[str, tuple[dict[str, str], set[str]]] = {
    # what both ends counted since is alike, the averages are not
    "a host that was not scraped": (LINK | {FRAMES: AWAY, SWITCH_FRAMES: BURST}, set()),
    "a switch that was not scraped": (LINK | {FRAMES: BURST, SWITCH_FRAMES: AWAY}, set()),
    # trips of the past that are read again are no page
    "a source of a switch that failed": (
        READ_AGAIN
        | {
            'roce_switch_probe_success{device="leaf-h1"}': "1x200",
            'roce_switch_source_up{device="leaf-h1",source="watchdog"}': "1x20 0x59 1x120",
        },
        {"RoceSwitchUnreadable"},
    ),
    "a switch that could not be read": (
        READ_AGAIN
        | {
            'roce_switch_probe_success{device="leaf-h1"}': "1x20 _x60 1x120",
            'roce_switch_source_up{device="leaf-h1",source="watchdog"}': "1x20 _x60 1x120",
        },
        set(),
    ),
    # their jobs begin with `roce` too; the alerts on the exporters of hosts leave them out
    "a switch exporter that does not respond": (
        {'up{job="roce-switch",instance="leaf1"}': "0x200"},
        {"RoceSwitchUnreadable"},
    ),
    "a capture that does not respond": (
        {'up{job="roce-wire",instance="probe"}': "0x200"},
        {"RoceWireCaptureBroken"},
    ),
    "a capture that responds no more": (
        {'up{job="roce-wire",instance="probe"}': "1x20 0x180"},
        {"RoceWireCaptureBroken"},
    ),
    # usual without the privileges for owners; `none` is the name of the clusters that require all owners in the rules as delivered
    "hidden owners": ({"roce_owner_hidden_processes{DEVICE}": "3x200"}, set()),
    "none": ({"roce_owner_hidden_processes{DEVICE}": "3x200"}, {"RoceDataMissing"}),
}


def of_cluster(cluster: str, series: dict[str, str]) -> Iterable[dict[str, str]]:
    """The series of a situation, of host h1 unless they name another target."""
    for name, values in (ALIVE | series).items():
        metric, _, inside = labels_written(name).partition("{")
        target = "" if "job=" in inside else 'job="roce",instance="h1",'
        yield {"series": f'{metric}{{cluster="{cluster}",{target}{inside}', "values": values}


def all_at_once(*prefixes: str, but: str = "roce_none") -> Series:
    """The series of all cases whose name begins like this, in the faulty state of the first case that has them."""
    found: Series = {}
    for case in CASES:
        for name, shape in (case.series | case.background).items():
            if name.startswith(prefixes) and not name.startswith(but) and shape.sick is not None:
                found.setdefault(name, shape._replace(healthy=shape.sick))
    return found


ALL = {
    "all faults of switches": all_at_once("roce_switch_"),
    "all faults of captures": all_at_once("roce_wire_"),
    "all faults of hosts": all_at_once("roce_", but=("roce_switch_", "roce_wire_")),
}
HEALTHY = {
    name: shape for case in reversed(CASES) for name, shape in (case.series | case.background).items()
} | series_written({"roce_pfc_storm_detector_state{TRANSMIT}": "always 0"})
"""The series of all cases."""


def firing(
    folder: Path, series: Iterable[dict[str, str]], minutes: int, step: int, every: int
) -> dict[str, set[str]]:
    """The names of all alerts that fire at any time, by cluster."""
    found: dict[str, set[str]] = {}
    for labels in fired(folder, delivered(), history(series, minutes, step, every), every).spans:
        known = dict(labels)
        found.setdefault(known.get("cluster", ""), set()).add(known["alertname"])
    return found


def test_no_alert_disturbs_another(tmp_path) -> None:
    case = Case("", {}, lead=0, sick=MINUTES, tail=0)
    series = [one for name, (given, _) in SITUATIONS.items() for one in of_cluster(name, given)]
    for name, given in ALL.items():
        series += of_cluster(name, {})
        series += input_series(case, Variant(name, given, 1, "", 1))
    healthy = Variant("a healthy fleet", HEALTHY, 0, "", 2)
    series += input_series(case, healthy)
    found = firing(tmp_path, series, MINUTES, 30, 60)
    for name, (_, expected) in SITUATIONS.items():
        assert found.get(name, set()) == expected, name
    assert healthy.cluster not in found
    of_switches, of_captures, of_hosts = (found[name] for name in ALL)
    assert len(of_switches) >= 6
    assert {name for name in of_switches if not name.startswith("RoceSwitch")} == set()
    assert len(of_captures) >= 2
    assert {name for name in of_captures if not name.startswith("RoceWire")} == set()
    assert len(of_hosts) >= 12
    assert not {name for name in of_hosts if name.startswith(("RoceWire", "RoceSwitch"))}
    assert set(found) <= {*SITUATIONS, *ALL}


def test_switches_alone_are_no_exporters_of_hosts(tmp_path) -> None:
    """As in a Prometheus for switches only: it reports that no host is scraped."""
    series = [{"series": 'up{job="roce-switch",instance="leaf1"}', "values": "1x100"}]
    found = fired(tmp_path, needed({"RoceClusterBlind"}, delivered()), history(series, 30))
    assert [dict(labels)["alertname"] for labels in found.spans] == ["RoceClusterBlind"]


@pytest.mark.parametrize(
    ("series", "url"),
    [
        (["up"], "http://gpu-1:9000/runbooks"),
        (["up", "roce_exporter_tls"], "https://gpu-1:9000/runbooks"),
        ([], "http://localhost:10123/runbooks"),
    ],
)
def test_runbooks_are_at_an_exporter_over_tls_where_it_has_tls(tmp_path, series, url) -> None:
    given = [
        {"series": f'{name}{{job="roce",instance="{host}"}}', "values": value}
        for host, value in (("gpu-0", "0x9"), ("gpu-1:9000", "1x9"))
        for name in series
    ]
    query = {
        "expr": "source:roce_runbooks:info",
        "eval_time": "5m",
        "exp_samples": [{"labels": f'source:roce_runbooks:info{{url="{url}"}}', "value": 1}],
    }
    groups = needed({"source:roce_runbooks:info"}, delivered())
    test = {"interval": "1m", "input_series": given, "promql_expr_test": [query]}
    assert complaints(tmp_path, groups, [test]) == ""


@pytest.mark.nightly
def test_a_healthy_fleet_is_silent_for_a_day(tmp_path) -> None:
    case = Case("", {}, lead=0, sick=24 * 60, tail=0, step=60)
    series = input_series(case, Variant("a healthy fleet", HEALTHY, 0, "", 4))
    assert not firing(tmp_path, series, case.minutes, 60, 120)

"""The paths of `roce-exporter serve --switches.config`."""

import json
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from recorded import recording
from switch_fakes import RAW, FakeSwitch, leaf, prober

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.host.recorded.recorded import load_recording
from roce_exporter.net.login import Credentials
from roce_exporter.self_metrics.own_registry import OwnRegistry
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.readings import SwitchReading, SwitchReadings
from roce_exporter.switches.reply_values import number
from roce_exporter.web import Request, Response, switch_pages
from roce_exporter.web.application import Application
from roce_exporter.web.host_pages import HostPages
from roce_exporter.web.switch_pages import SwitchPages


def pages_of(one: Prober) -> Application:
    registry = OwnRegistry()
    application = Application((SwitchPages(one, registry),), registry)
    application.ready = True
    return application


async def get(endpoints: Application, target: str, **headers: str) -> Response:
    path, _, query = target.partition("?")
    found = {name.replace("_", "-"): text for name, text in headers.items()}
    return await endpoints(Request("GET", path, found, query))


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text;version=1.0.0"])
async def test_a_probe_is_a_complete_exposition(switch, accept) -> None:
    answer = await get(pages_of(prober()), "/probe?target=leaf1", accept=accept)
    assert answer.status == 200
    parse = parse_openmetrics if accept else parse_text
    names = {sample.name for family in parse(answer.body.decode()) for sample in family.samples}
    assert {"roce_switch_pfc_receive_frames_total", "roce_switch_probe_success"} <= names
    assert not [name for name in names if name.startswith(("process_", "roce_exporter"))]


async def test_a_page_does_not_wait_for_pause_trees(switch) -> None:
    """Any client may ask for a tree, again and again."""
    pages = SwitchPages(prober(), registry := OwnRegistry())
    endpoints = Application((pages,), registry)
    endpoints.ready = True
    async with pages.tree_turn:
        assert (await get(endpoints, "/probe?target=leaf1")).status == 200


async def test_a_page_that_takes_long_is_made_in_a_thread(switch, monkeypatch) -> None:
    """The first one of each format, and each of many values."""
    endpoints, calls = pages_of(prober()), []

    async def run(work: Any, *_: Any) -> Any:
        calls.append(work)
        return work()

    monkeypatch.setattr(switch_pages, "run_in_thread", run)
    for accept in ("", "", "application/openmetrics-text;version=1.0.0"):
        await get(endpoints, "/probe?target=leaf1", accept=accept)
    assert len(calls) == 2
    monkeypatch.setattr(switch_pages, "MANY_VALUES", 0)
    await get(endpoints, "/probe?target=leaf1")
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("target", "status", "line"),
    [
        ("/probe", 400, "no target; write /probe?target=NAME with a name from the configuration file"),
        ("/probe?target=", 400, "no target; write /probe?target=NAME"),
        ("/probe?target=leaf9", 404, "'leaf9' is not a target of the configuration file"),
        ("/probe?target=http://leaf1/", 404, "'http://leaf1/' is not a target of the configuration file"),
        ("/probe?target=leaf1&target=leaf2", 400, "target is given twice"),
        ("/probe?target=leaf1&user=x", 400, "'user' is not a parameter; known here: target, module"),
        ("/probe?target=leaf1&module=x", 400, "'x' is not the module of leaf1"),
        ("/probe?target=leaf1%0Ax", 400, "target is given twice or is not printable text"),
        ("/probe?target=%ff", 400, "the query is not of the form"),
        ("/probe?%s", 400, "the query is not of the form"),
        ("/debug/probe", 400, "no target"),
        ("/metrics/x", 404, "not found; / lists the pages"),
    ],
)
async def test_a_bad_request_is_one_line(switch, target, status, line) -> None:
    answer = await get(pages_of(prober()), target)
    assert answer.status == status
    assert line in answer.body.decode()
    assert answer.body.count(b"\n") == 1
    assert switch.rounds == 0


async def test_the_debug_page_shows_queries_and_series_and_hides_the_password(switch, tmp_path) -> None:
    (tmp_path / "pw").write_text("hunter2")
    endpoints = pages_of(prober(leaf(basic_auth=Credentials("ro", tmp_path / "pw"))))
    switch.faults["lldp"] = "refused hunter2"
    answer = await get(endpoints, "/debug/probe?target=leaf1")
    document = json.loads(answer.body)
    assert b"hunter2" not in answer.body
    assert document["queries"] == [{"source": "port_counters", "query": "HMGET", "reply": "***"}]
    assert document["sources"] == [
        {"source": "lldp", "up": False, "fault": "refused ***"},
        {"source": "port_counters", "up": True, "fault": ""},
    ]
    assert document["values"] == [
        {
            "source": "port_counters",
            "object": {"port": "Ethernet0"},
            "raw": "SAI_PORT_STAT_PFC_3_RX_PKTS",
            "raw_value": 1,
            "series": 'roce_switch_pfc_receive_frames_total{device="leaf1.example.com",port="Ethernet0",priority="3"}',
            "value": 1,
        }
    ]


async def test_the_debug_page_says_why_a_value_is_missing(switch, monkeypatch) -> None:
    unreadable = SwitchReading("port_counters", (("port", "Ethernet0"),), {RAW: number("75.19 KB")})
    monkeypatch.setattr(
        FakeSwitch, "read", lambda *_: SwitchReadings("leaf1", (unreadable,), sources=("port_counters",))
    )
    answer = await get(pages_of(prober()), "/debug/probe?target=leaf1")
    (value,) = json.loads(answer.body)["values"]
    assert (value["raw_value"], value["missing"], value["value"]) == (None, "garbage", None)
    text = (await get(pages_of(prober()), "/probe?target=leaf1")).body.decode()
    assert 'roce_switch_source_unreadable_values{device="leaf1",source="port_counters"} 1' in text


async def test_the_exporter_counts_probes_and_requests(switch) -> None:
    endpoints = pages_of(prober())
    await get(endpoints, "/probe?target=leaf1")
    text = (await get(endpoints, "/metrics")).body.decode()
    assert 'roce_exporter_switch_probes_total{module="sonic",success="true"} 1.0' in text
    assert 'roce_exporter_http_requests_total{code="200",path="/probe"} 1.0' in text
    assert "roce_exporter_build_info" in text


async def test_one_application_has_the_pages_and_metrics_of_every_part(switch) -> None:
    registry = OwnRegistry()
    host = HostPages(Exporter(Collector(load_recording(recording("mlx5-pair")), Settings(), lambda: 0.0)))
    both = Application((host, SwitchPages(prober(), registry)), registry)
    assert both.private == {
        *("/debug/snapshot", "/debug/events", "/debug/owners"),
        *("/debug/probe", "/debug/pause-tree"),
    }
    page = (await get(both, "/")).body.decode()
    assert all(f'href="{path}"' in page for path in ("/health.json", "/probe", *both.private))
    assert (await get(both, "/probe?target=leaf1")).status == 200
    accept = "application/openmetrics-text;version=1.0.0"
    metrics = (await get(both, "/metrics", accept=accept)).body.decode()
    names = {family.name for family in parse_openmetrics(metrics)}
    assert {"roce_port_up", "roce_exporter_switch_probes", "roce_exporter_http_requests"} <= names
    assert switch.faults == {}

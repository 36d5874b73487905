"""The reply under each path."""

import asyncio
import gzip
import json

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from recorded import recording

from roce_exporter.catalog.row import LEAN
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.errors import UserError
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.host.recorded.recorded import load_recording
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.web import Request, Response
from roce_exporter.web.application import Application, accepts_gzip, scrape_timeout
from roce_exporter.web.host_pages import HostPages

MOVING = recording("moving")


@pytest.fixture
def endpoints() -> Application:
    kernel = load_recording(MOVING)
    return Application((HostPages(Exporter(Collector(kernel, Settings(), lambda: 0.0))),))


async def get(endpoints: Application, path: str, **headers: str) -> Response:
    return await endpoints(
        Request("GET", path, {name.replace("_", "-"): text for name, text in headers.items()})
    )


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Format.TEXT),
        ("text/plain;version=1.0.0", Format.TEXT_1),
        ("application/openmetrics-text;version=1.0.0", Format.OPENMETRICS),
    ],
)
async def test_the_content_type_is_that_of_the_body(endpoints, accept, form) -> None:
    answer = await get(endpoints, "/metrics", accept=accept)
    assert answer.status == 200
    assert answer.content_type == form.value
    parse = parse_openmetrics if form is Format.OPENMETRICS else parse_text
    names = {sample.name for family in parse(answer.body.decode()) for sample in family.samples}
    assert {
        "roce_port_up",
        "roce_ecn_marked_packets_total",
        "process_cpu_seconds_total",
        "roce_exporter_build_info",
        "roce_exporter_kernel_info",
    } <= names
    assert not [name for name in names if name.endswith("_created")]


async def test_the_body_is_compressed_for_clients_that_accept_it(endpoints) -> None:
    answer = await get(endpoints, "/metrics", accept_encoding="gzip")
    assert ("Content-Encoding", "gzip") in answer.headers
    assert b"roce_port_up" in gzip.decompress(answer.body)


async def test_ready_only_after_the_first_collection(endpoints) -> None:
    assert (await get(endpoints, "/-/healthy")).status == 200
    assert (await get(endpoints, "/-/ready")).status == 503
    endpoints.ready = True
    assert (await get(endpoints, "/-/ready")).status == 200


async def test_the_debug_view_shows_raw_name_series_and_value(endpoints) -> None:
    document = json.loads((await get(endpoints, "/debug/snapshot")).body)
    assert {"source", "device", "state", "seconds", "error"} <= document["sources"][0].keys()
    device = document["devices"][0]
    (marks,) = [one for one in device["values"] if "np_ecn_marked_roce_packets" in one["raw"]]
    assert marks["series"] == f'roce_ecn_marked_packets_total{{device="{device["device"]}",port="1"}}'
    assert marks["value"] == marks["raw"]["np_ecn_marked_roce_packets"]
    (words,) = [one for one in device["values"] if "port_rcv_data" in one["raw"]]
    assert words["value"] == 4 * words["raw"]["port_rcv_data"]


async def test_an_unknown_path_is_not_found_and_makes_no_new_series(endpoints) -> None:
    for number in range(50):
        assert (await get(endpoints, f"/{number}")).status == 404
        # Requests of `roce-exporter check` are no scrapes, and no client is hidden by its name.
        assert (await get(endpoints, "/metrics", **{"user-agent": "roce-exporter/0.1.0"})).status == 200
    body = (await get(endpoints, "/metrics")).body.decode()
    requests = [line for line in body.splitlines() if line.startswith("roce_exporter_http_requests_total{")]
    assert requests == [
        'roce_exporter_http_requests_total{code="404",path="other"} 50.0',
        'roce_exporter_http_requests_total{code="200",path="other"} 50.0',
    ]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("10", 9.5),
        ("1", 0.5),
        ("0.5", 0.5),
        ("0.0001", 0.5),
        ("", 9.5),
        ("soon", 9.5),
        ("-1", 9.5),
        ("inf", 9.5),
        ("nan", 9.5),
    ],
)
def test_the_deadline_is_the_scrapers_less_a_margin(header, seconds) -> None:
    assert scrape_timeout(header) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("identity", False),
        ("", False),
    ],
)
def test_gzip_only_on_request(header, accepted) -> None:
    assert accepts_gzip(header) is accepted


async def test_storms_are_listed_as_json_and_empty_without_a_sampler(endpoints) -> None:
    answer = await get(endpoints, "/debug/events")
    assert (answer.status, json.loads(answer.body)) == (200, {"storms": []})
    clock = [5000.0]
    kernel = simulate("pfc-storm", clock=lambda: clock[0])
    sampler = Sampler(kernel, lambda: clock[0], lambda: clock[0], Pace(mode="fixed"))
    exporter = Exporter(Collector(kernel, Settings(), lambda: clock[0]), [sampler])
    watching = Application((HostPages(exporter, least=0),))
    await get(watching, "/metrics")
    while clock[0] < 5060:
        clock[0] = max(clock[0] + 0.01, sampler.tick())
    answer = await get(watching, "/debug/events")
    (storm, *_) = json.loads(answer.body)["storms"]
    assert storm.keys() >= {
        "device",
        "netdev",
        "priority",
        "direction",
        "start",
        "end",
        "duration",
        "hint",
        "reason",
    }
    assert b"roce_pfc_storms_total" in (await get(watching, "/metrics")).body


async def test_a_set_of_metrics_changes_no_other_page() -> None:
    pages = ("/", "/-/healthy", "/-/ready", "/debug/snapshot", "/debug/events", "/health.json")
    found = []
    for served in (None, ServedSeries(LEAN, ["roce_port_up"])):
        kernel = load_recording(MOVING)
        endpoints = Application(
            (HostPages(Exporter(Collector(kernel, Settings(), lambda: 0.0), served=served)),)
        )
        found.append(
            [(answer.status, answer.body) for answer in [await get(endpoints, page) for page in pages]]
        )
        body = (await get(endpoints, "/metrics")).body
        assert (b"roce_port_up{" in body) == (served is None)
    assert found[0] == found[1]


@pytest.mark.parametrize("path", ["/health.json", "/-/healthy", "/debug/snapshot"])
def test_the_path_of_another_page_is_no_path_of_the_metrics(path) -> None:
    host = HostPages(Exporter(Collector(load_recording(MOVING), Settings(), lambda: 0.0)))
    with pytest.raises(UserError, match=f"web.telemetry-path: {path} is the path of another page"):
        Application((host,), telemetry_path=path)


async def test_a_client_in_a_loop_causes_a_collection_at_least_half_a_second_after_the_last(
    monkeypatch,
) -> None:
    """All clients get the last one until then, with its age."""
    now = 100.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    exporter = Exporter(Collector(load_recording(MOVING), Settings(), lambda: 0.0))
    pages, begun = HostPages(exporter), []
    observe = exporter.observe
    monkeypatch.setattr(exporter, "observe", lambda *given: begun.append(now) or observe(*given))
    for now in (100.0, 100.1, 100.49, 100.5, 100.99, 101.0):
        await pages.metrics(Format.TEXT, 5.0)
        assert pages.age == pytest.approx(now - begun[-1])
    assert begun == [100.0, 100.5, 101.0]

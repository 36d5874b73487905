"""`collector_config` in a real OpenTelemetry Collector: what SONiC's countersyncd and Cumulus send becomes our series."""

import json
import re
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tools import need
from waiting import wait_until

from roce_exporter.catalog import CATALOG
from roce_exporter.cli.otel_config import collector_config, otlp_names

pytestmark = pytest.mark.nightly

SONIC = {
    ("sai_counter_type_1_stat_0", "Ethernet0"): 1000,
    ("sai_counter_type_1_stat_109", "Ethernet0"): 4711,
    ("sai_counter_type_1_stat_141", "Ethernet0"): 2_500_000,
    ("sai_counter_type_1_stat_143", "Ethernet0"): 0,
    ("sai_counter_type_21_stat_34", "Ethernet0|3"): 7,
    ("sai_counter_type_26_stat_8", "Ethernet4|3"): 9,
    ("sai_counter_type_24_stat_1", "pool"): 5,
}
"""As countersyncd names and counts it (crates/countersyncd/src/message/otel.rs of sonic-swss)."""
CUMULUS = {
    ("oper_state", "swp1"): 1,
    ("oper_state", "swp2"): 2,
    ("oper_aggregate_speed", "swp1"): 400e9,
    ("carrier_last_change_time_ms", "swp1"): 1_722_458_198_491,
    ("dot3_stats_fcs_errors", "swp1"): 12,
    ("sp_rx_pause", "swp1", "sp", "3"): 4711,
    ("tc_tx_octet", "swp1", "tc", 3): 99,
    ("iface_id", "swp1"): 3,
}
"""As NVIDIA documents it (Open Telemetry Export); the attribute of switch priorities is a guess."""
SERIES = """\
roce_switch_buffer_discards_total{device="127.0.0.1",port="Ethernet4",priority_group="3"} 9
roce_switch_link_last_change_timestamp_seconds{device="leaf01",port="swp1"} 1.722458198491e+09
roce_switch_link_speed_bytes_per_second{device="leaf01",port="swp1"} 5e+10
roce_switch_link_up{device="leaf01",port="swp1"} 1
roce_switch_link_up{device="leaf01",port="swp2"} 0
roce_switch_pfc_receive_frames_total{device="127.0.0.1",port="Ethernet0",priority="3"} 4711
roce_switch_pfc_receive_frames_total{device="leaf01",port="swp1",priority="3"} 4711
roce_switch_pfc_receive_pause_seconds_total{device="127.0.0.1",port="Ethernet0",priority="3"} 2.5
roce_switch_pfc_receive_pause_seconds_total{device="127.0.0.1",port="Ethernet0",priority="4"} 0
roce_switch_phy_receive_bytes_total{device="127.0.0.1",port="Ethernet0"} 1000
roce_switch_phy_receive_crc_errors_total{device="leaf01",port="swp1"} 12
roce_switch_queue_ecn_marked_packets_total{device="127.0.0.1",port="Ethernet0",queue="3"} 7
roce_switch_queue_transmit_bytes_total{device="leaf01",port="swp1",queue="3"} 99
"""


def attributes(**values: str | int) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}
        for key, value in values.items()
    ]


def document(metrics: list[tuple[str, dict[str, Any], list[dict[str, Any]]]], **resource: str) -> bytes:
    found = [
        {
            "name": name,
            "unit": "1",
            "gauge": {"dataPoints": [{"timeUnixNano": "1764000000000000000", "attributes": labels, **value}]},
        }
        for name, value, labels in metrics
    ]
    scopes = [{"scope": {"name": "test"}, "metrics": found}]
    return json.dumps(
        {"resourceMetrics": [{"resource": {"attributes": attributes(**resource)}, "scopeMetrics": scopes}]}
    ).encode()


def sonic() -> bytes:
    metrics = [
        (name, {"asInt": str(value)}, attributes(object_name=one, sai_type_id="1", sai_stat_id="0"))
        for (name, one), value in SONIC.items()
    ]
    return document(metrics, **{"service.name": "countersyncd"})


def cumulus() -> bytes:
    metrics = [
        (
            f"nvswitch_interface_{name}",
            {"asDouble": value},
            attributes(interface=port, **dict([more] if more else [])),
        )
        for (name, port, *more), value in CUMULUS.items()
    ]
    return document(metrics, **{"net.host.name": "leaf01"})


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


@contextmanager
def collector(folder: Path) -> Iterator[tuple[str, str]]:
    """Where it takes OTLP over HTTP, and where Prometheus scrapes it."""
    program = need("otelcol")
    grpc, http, page = free_ports(3)
    text = collector_config().replace(
        '0.0.0.0:4317"}', f'127.0.0.1:{grpc}"}}, http: {{endpoint: "127.0.0.1:{http}"}}'
    )
    text = text.replace("0.0.0.0:9464", f"127.0.0.1:{page}") + "  telemetry: {metrics: {level: none}}\n"
    (folder / "collector.yaml").write_text(text)
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen((program, f"--config={folder}/collector.yaml"), stderr=log) as running,
    ):
        try:

            def ready() -> bool:
                assert running.poll() is None, (folder / "log").read_text()
                return "Everything is ready" in (folder / "log").read_text()

            wait_until(ready)
            yield f"http://127.0.0.1:{http}/v1/metrics", f"http://127.0.0.1:{page}/metrics"
        finally:
            running.kill()


def post(address: str, body: bytes) -> None:
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        assert response.status == 200


def test_a_collector_makes_our_series_of_what_switches_export(tmp_path: Path) -> None:
    with collector(tmp_path) as (address, page):
        post(address, sonic())
        post(address, cumulus())

        def read() -> str:
            with urllib.request.urlopen(page) as response:
                return response.read().decode()

        wait_until(lambda: 'port="swp2"' in (found := read()) and 'port="Ethernet4"' in found)
        found = read()
    series = [
        re.sub(r',?(job|instance|otel_scope_\w+)="[^"]*"', "", line)
        for line in found.splitlines()
        if line.startswith("roce_")
    ]
    assert sorted(re.sub(r"\{,", "{", line) for line in series) == SERIES.splitlines()
    assert "sai_counter" not in found
    assert "nvswitch" not in found
    assert "# TYPE roce_switch_pfc_receive_frames_total counter" in found
    assert "# TYPE roce_switch_link_up gauge" in found
    help_text = next(row.help for row in CATALOG if row.name == "roce_switch_link_up")
    assert f"# HELP roce_switch_link_up {help_text}"[:60] in found
    log = (tmp_path / "log").read_text()
    assert not re.search(r"\t(warn|error)\t|were modified", log)


def test_each_name_of_otlp_is_one_row() -> None:
    names = [one.name for one in otlp_names()]
    assert len(names) == len(set(names)) > 60

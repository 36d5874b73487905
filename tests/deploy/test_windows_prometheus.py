"""Windows hosts in Prometheus: the collector's own text, scraped with the delivered configuration, next to Linux hosts.

The text is that of windows_exporter's real collector (`windows_collector.py`) over constructed values. Labels, recording rules and alerts
are evaluated by a real Prometheus and by promtool.
"""

from __future__ import annotations

import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deploy_servers import Server, prometheus
from deploy_tools import ROOT, need, wait_until
from windows_collector import collector_program, scrape
from windows_hosts import ADAPTERS, CONFIGURATION, FIRST, PORT_QOS, PRIORITIES, SECOND, WINDOWS, counters

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.nightly

HOST = {"cluster": "default", "instance": "win1", "job": "roce-windows"}
ODD = {
    f"{FIRST}, Priority 3": 11.0,
    f"{FIRST} (Priority 4)": 12.0,
    f"{SECOND} - prio 3": 13.0,
    f"{SECOND}_Priority_4": 14.0,
    "Slot 2 Port 1 Priority #5": 15.0,
    "Slot 2 Port 1 Q5": 16.0,
}
"""Forms that an instance of Port QoS may have; the last one is not understood."""


@contextmanager
def served(text: str) -> Iterator[int]:
    """A port on which every GET returns this text."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """No log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def delivered(port: int) -> dict[str, Any]:
    """The delivered scrape configuration and rules, for one target and a short interval."""
    config = yaml.safe_load((WINDOWS / "prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    del job["file_sd_configs"]
    job["static_configs"] = [{"targets": [f"127.0.0.1:{port}"], "labels": {"instance": "win1"}}]
    config["global"] = {"scrape_interval": "3s", "scrape_timeout": "3s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(WINDOWS / "roce-windows.rules.yml")]
    return config


@pytest.fixture(scope="module")
def values() -> dict[str, dict[str, dict[str, float | None]]]:
    found = counters()
    found[PORT_QOS]["Packets Sent"] = dict(ODD)
    return found


@pytest.fixture(scope="module")
def server(
    values: dict[str, dict[str, dict[str, float | None]]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("windows")
    text = scrape(collector_program(), CONFIGURATION, values, folder).metrics
    text += "".join(
        f'windows_net_nic_operation_status{{nic="{adapter}",status="{status}"}} {int(status == "up")}\n'
        for adapter in (FIRST,)
        for status in ("up", "down")
    )
    text += f'windows_net_current_bandwidth_bytes{{nic="{FIRST}"}} 1.25e+10\nwindows_cpu_time_total 5\n'
    with served(text) as port:
        config = folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(delivered(port)))
        with prometheus(need("prometheus", "prometheus"), config, folder) as started:
            # the last of the rules: all others were evaluated before it
            wait_until(lambda: started.values("roce_link_speed_bytes_per_second"), "the last rule")
            wait_until(lambda: started.values("roce_pfc_receive_pause_seconds_total"), "the units")
            yield started


def labels_of(server: Server, metric: str) -> dict[tuple[tuple[str, str], ...], float]:
    """The series of a metric by the labels that are not the host's."""
    found = {}
    for labels, value in server.values(metric).items():
        pairs = dict(labels)
        assert {name: pairs.get(name) for name in HOST} == HOST
        rest = {name: text for name, text in pairs.items() if name not in HOST and name != "__name__"}
        found[tuple(sorted(rest.items()))] = value
    return found


def key(**labels: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def test_a_priority_has_the_labels_of_a_linux_host(server: Server, values: dict[str, Any]) -> None:
    assert labels_of(server, "roce_pfc_receive_frames_total") == {
        key(device=adapter, port="1", netdev=adapter, priority=str(priority)): values[PORT_QOS][
            "Rcv Pause Frames"
        ][f"{adapter} Priority {priority}"]
        for adapter in ADAPTERS
        for priority in PRIORITIES
    }


def test_an_adapter_has_the_labels_of_a_linux_host(server: Server, values: dict[str, Any]) -> None:
    marked = values["Mellanox WinOF-2 Congestion Control"]["Notification Point - RoCEv2 DCQCN Marked Packets"]
    assert labels_of(server, "roce_ecn_marked_packets_total") == {
        key(device=adapter, port="1"): marked[adapter] for adapter in ADAPTERS
    }
    warnings = values["Mellanox WinOF-2 Diagnostics"]["Minor Stall Watermark Reached"]
    assert labels_of(server, "roce_pfc_watchdog_warnings_total") == {
        key(device=adapter, port="1", netdev=adapter): warnings[adapter] for adapter in ADAPTERS
    }
    overruns = values["Mellanox WinOF-2 VF Diagnostics"]["CQ Overrun"]
    assert labels_of(server, "roce_devlink_vnic_cq_overrun_total") == {
        key(device=adapter): overruns[adapter] for adapter in ADAPTERS
    }


def test_durations_are_seconds_of_the_host_that_is_paused(server: Server, values: dict[str, Any]) -> None:
    """WinOF's `Sent Pause Duration` is how long this host was paused: that of received frames on Linux."""
    for metric, counter in (
        ("roce_pfc_receive_pause_seconds_total", "Sent Pause Duration"),
        ("roce_pfc_transmit_pause_seconds_total", "Rcv Pause Duration"),
    ):
        found = labels_of(server, metric)
        assert len(found) == 16
        of_one = found[key(device=SECOND, port="1", netdev=SECOND, priority="3")]
        assert of_one == pytest.approx(values[PORT_QOS][counter][f"{SECOND} Priority 3"] / 1_000_000)


def test_forms_of_instances(server: Server) -> None:
    """What is not understood stays visible and keeps the whole instance as its device."""
    found = labels_of(server, "roce_priority_transmit_packets_total")
    unknown = "Slot 2 Port 1 Q5"
    assert found == {
        key(device=FIRST, port="1", netdev=FIRST, priority="3"): 11,
        key(device=FIRST, port="1", netdev=FIRST, priority="4"): 12,
        key(device=SECOND, port="1", netdev=SECOND, priority="3"): 13,
        key(device=SECOND, port="1", netdev=SECOND, priority="4"): 14,
        key(device="Slot 2 Port 1", port="1", netdev="Slot 2 Port 1", priority="5"): 15,
        key(device=unknown, port="1", netdev=unknown, priority="in_device"): 16,
    }


def test_devices_and_ports_have_their_rows(server: Server) -> None:
    assert labels_of(server, "roce_device_info") == {
        key(device=adapter, driver="winof2"): 1 for adapter in ADAPTERS
    }
    assert labels_of(server, "roce_port_info") == {
        key(device=adapter, port="1", netdev=adapter, lag="false"): 1 for adapter in ADAPTERS
    }
    assert labels_of(server, "roce_port_netdev_info") == {
        key(device=adapter, port="1", netdev=adapter, role="port"): 1 for adapter in ADAPTERS
    }


def test_states_are_missing_where_the_collector_net_has_another_name(server: Server) -> None:
    assert labels_of(server, "roce_port_up") == {key(device=FIRST, port="1"): 1}
    assert labels_of(server, "roce_link_up") == {key(device=FIRST, port="1", netdev=FIRST): 1}
    assert labels_of(server, "roce_link_speed_bytes_per_second") == {
        key(device=FIRST, port="1", netdev=FIRST): 12.5e9
    }


def test_other_collectors_are_left_to_other_jobs(server: Server) -> None:
    assert not server.values("windows_cpu_time_total")


# --- alerts, by promtool -------------------------------------------------------------------------------------------------------

PAUSED = 'device="CX6",port="1",netdev="CX6",priority="3"'
WHERE = 'cluster="default",job="roce-windows",instance="win1"'
LINUX = 'cluster="default",job="roce",instance="lin1",device="mlx5_0",port="1",netdev="eth0",priority="3"'


def host(
    sent_duration: str = "0+0x360", received_frames: str = "0+0x360", **more: str
) -> list[dict[str, str]]:
    """The series of a Windows host after the scrape, every 15 s: what the tests above saw, for one adapter."""
    adapter = f'{{device="CX6",port="1",netdev="CX6",{WHERE}}}'
    port = f'{{device="CX6",port="1",{WHERE}}}'
    priority = f"{{{PAUSED},{WHERE}}}"
    series = {
        f"up{{{WHERE}}}": "1+0x360",
        f"winof2_adapter_received_bytes_total{adapter}": "0+1000000000x360",
        f"roce_phy_receive_bytes_total{adapter}": "0+1000000000x360",
        f"roce_phy_transmit_bytes_total{adapter}": "0+1000000000x360",
        f"roce_phy_receive_crc_errors_total{adapter}": "0+0x360",
        f"roce_port_receive_bytes_total{port}": "0+1000000000x360",
        f"roce_port_transmit_bytes_total{port}": "0+1000000000x360",
        f"roce_priority_receive_bytes_total{priority}": "0+1000000000x360",
        f"roce_priority_transmit_bytes_total{priority}": "0+1000000000x360",
        f"roce_ecn_marked_packets_total{port}": "0+100x360",
        f"roce_cnp_sent_total{port}": "0+50x360",
        f"roce_cnp_handled_total{port}": "0+50x360",
        f"roce_cnp_ignored_total{port}": "0+0x360",
        f"roce_pfc_receive_frames_total{priority}": received_frames,
        f"roce_pfc_transmit_frames_total{priority}": "0+0x360",
        f"winof2_sent_pause_duration_microseconds_total{priority}": sent_duration,
        f"winof2_rcv_pause_duration_microseconds_total{priority}": "0+0x360",
        f"roce_pfc_watchdog_warnings_total{adapter}": more.get("warnings", "0+0x360"),
        f"roce_pfc_watchdog_trips_total{adapter}": more.get("trips", "0+0x360"),
        f"roce_transport_out_of_sequence_total{port}": "0+0x360",
        f'windows_net_nic_operation_status{{nic="CX6",status="up",{WHERE}}}': "1+0x360",
        f'windows_net_current_bandwidth_bytes{{nic="CX6",{WHERE}}}': "12500000000+0x360",
    }
    return [{"series": name, "values": values} for name, values in series.items()]


def promtool_passes(folder: Path, series: list[dict[str, str]], *expected: dict[str, Any]) -> None:
    test = {
        "rule_files": [str(ROOT / "alerts/roce.rules.yml"), str(WINDOWS / "roce-windows.rules.yml")],
        "evaluation_interval": "1m",
        "tests": [{"interval": "15s", "input_series": series, "promql_expr_test": list(expected)}],
    }
    file = folder / "test.yml"
    file.write_text(yaml.safe_dump(test))
    done = subprocess.run(
        [need("promtool", "prometheus"), "test", "rules", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def firing(minute: int, *alerts: str) -> dict[str, Any]:
    """Exactly these alerts fire for the host at this minute."""
    expression = 'group by (alertname) (ALERTS{alertstate="firing",instance="win1"})'
    samples = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts]
    return {"expr": expression, "eval_time": f"{minute}m", "exp_samples": samples}


def test_a_healthy_windows_host_has_no_alert(tmp_path: Path) -> None:
    """No alert takes the missing series of a Linux host for a fault."""
    promtool_passes(tmp_path, host(), *(firing(minute) for minute in (5, 30, 60, 90)))


def test_a_paused_windows_host_has_the_alert_of_a_paused_linux_host(tmp_path: Path) -> None:
    """Paused 60 % of the time: 9 s of each 15 s."""
    series = host("0+9000000x360", "0+5000x360")
    promtool_passes(
        tmp_path,
        series,
        firing(60, "RocePfcPauseElevated", "RocePfcPauseHigh", "RocePfcReceivePauseSaturated"),
    )


def test_stall_watermarks_are_the_nic_s_watchdog(tmp_path: Path) -> None:
    series = host(warnings="0+0x120 1+0x240", trips="0+0x240 1+0x120")
    promtool_passes(
        tmp_path,
        series,
        firing(25),
        firing(33, "RoceNicPauseWatchdogWarning"),
        firing(63, "RoceNicPauseWatchdogTripped"),
    )


def test_one_query_shows_windows_and_linux_hosts(tmp_path: Path) -> None:
    linux = {"series": f"roce_pfc_receive_pause_seconds_total{{{LINUX}}}", "values": "0+3x360"}
    query = "round(sum by (instance, priority) (rate(roce_pfc_receive_pause_seconds_total[5m])) * 100)"
    shown = [
        {"labels": '{instance="win1",priority="3"}', "value": 60},
        {"labels": '{instance="lin1",priority="3"}', "value": 20},
    ]
    test = {"expr": query, "eval_time": "60m", "exp_samples": shown}
    promtool_passes(tmp_path, [*host("0+9000000x360", "0+5000x360"), linux], test)

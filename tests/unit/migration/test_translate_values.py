"""Prometheus itself evaluates expressions before and after the translation, on the same facts in both forms: the values are equal."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from foreign_table import NAMES

from roce_exporter.migrate.promql_names import names_of
from roce_exporter.migrate.translation import translate

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")

WORDS = {"mlx5_0": "0+100x20", "mlx5_1": "7+300x10 4+200x10"}
BYTES = {"mlx5_0": "0+400x20", "mlx5_1": "28+1200x10 16+800x10"}
"""The same counters in 4-byte words and in bytes; one begins again after ten minutes."""
FRAMES = {("eth0", "3"): "0+5x20", ("eth1", "3"): "0+9x20", ("eth0", "4"): "0+2x20", ("eth1", "4"): "0+3x20"}
RCV, XMIT = "rdma_port_rcv_data_total", "rdma_port_xmit_data_total"
PRIO3, PRIO4 = "node_ethtool_received_prio3_pause", "node_ethtool_received_prio4_pause"

BY_DEVICE = [
    f"rate({RCV}[5m])",
    f"4 * rate({RCV}[5m]) * 8",
    f"(increase({RCV}[15m]) + increase({XMIT}[15m])) / 2",
    f"rate({RCV}[5m]) / ({XMIT} + 1)",
    f"-{RCV} ^ 2",
    f"changes({RCV}[10m]) + resets({RCV}[20m])",
    f"max_over_time({RCV}[10m:1m])",
    f"quantile_over_time(0.5, {RCV}[10m]) % 7",
    f"sum without (port) ({RCV}) > bool 4000",
    f"predict_linear({RCV}[10m], 60)",
    f"topk(5, {RCV}) or {XMIT}",
]
BY_NETDEV = [
    f"{PRIO3}",
    f"sum by (device) (rate({PRIO3}[5m]))",
    f"sum without (instance) ({PRIO3})",
    f"{PRIO3} / {PRIO4}",
    f"{PRIO3} - ignoring (x) {PRIO4}",
    f"{PRIO3} * on (device) {PRIO4}",
    f'label_replace({PRIO3}, "device", "$1", "device", "(.*)")',
]


def series() -> list[dict[str, str]]:
    found = []
    for one, (theirs, ours) in {device: (WORDS[device], BYTES[device]) for device in WORDS}.items():
        for direction, name in (("rcv", "receive"), ("xmit", "transmit")):
            labels = f'{{device="{one}", port="1", instance="a"}}'
            found.append({"series": f"rdma_port_{direction}_data_total{labels}", "values": theirs})
            found.append({"series": f"roce_port_{name}_bytes_total{labels}", "values": ours})
    for (netdev, priority), values in FRAMES.items():
        found.append(
            {
                "series": f'node_ethtool_received_prio{priority}_pause{{device="{netdev}", instance="a"}}',
                "values": values,
            }
        )
        labels = f'{{device="mlx5_{netdev[-1]}", port="1", netdev="{netdev}", priority="{priority}", instance="a"}}'
        found.append({"series": f"roce_pfc_receive_frames_total{labels}", "values": values})
    return found


def equal(text: str, *, renamed: bool) -> str:
    """An expression whose value is the number of series that have the same value before and after."""
    found = translate(text, NAMES)
    assert found is not None
    if not renamed:
        return f"count(({found.text}) == on (device) ({text}))"
    return f'count(({found.text}) == on (netdev) label_replace({text}, "netdev", "$1", "device", "(.*)"))'


def evaluate(folder: Path, given: list[dict[str, str]], tests: list[dict[str, Any]]) -> None:
    """Let promtool compare these expressions with their expected samples."""
    one = {"interval": "1m", "input_series": given, "promql_expr_test": tests}
    file = folder / "test.yml"
    file.write_text(json.dumps({"rule_files": [], "evaluation_interval": "1m", "tests": [one]}))
    ran = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_values_before_and_after_are_equal(tmp_path) -> None:
    expressions = [
        *(equal(text, renamed=False) for text in BY_DEVICE),
        *(equal(text, renamed=True) for text in BY_NETDEV),
    ]
    tests = [
        {"expr": one, "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": 2}]}
        for one in expressions
        for minute in (9, 14)
    ]
    evaluate(tmp_path, series(), tests)


FIRST_FAULT = "0x30 1x10 3x40"
"""A counter that is 0 for half an hour, as both exporters serve it, and counts its first fault then."""
COUNTERS = {
    "node_infiniband_symbol_error_total": "roce_port_symbol_errors_total",
    "node_infiniband_local_ack_timeout_errors_total": "roce_transport_ack_timeouts_total",
    "rdma_local_ack_timeout_err_total": "roce_transport_ack_timeouts_total",
    "rdma_out_of_sequence_total": "roce_transport_out_of_sequence_total",
}
ALERTS = [
    "increase({0}[5m]) > 0",
    "rate({0}[10m]) > 0",
    "changes({0}[15m]) > 1",
    "sum by (instance) (increase({0}[5m])) >= 1",
    "({0} - {0} offset 5m) > 0",
    "delta({0}[5m]) != 0",
    "{0} > 2",
    "max_over_time({0}[5m]) > 0 unless {0} > 2",
    "avg_over_time((increase({0}[5m]) > bool 0)[15m:1m]) > 0.2",
]
NEVER = [
    "absent({0})",
    "{0} unless {0} offset 5m > 0 unless {0}",
    "absent_over_time({0}[10m])",
    "rate({0}[5m]) < 0",
]
"""Absence is no fault: neither form fires at any minute."""


def fires(expression: str) -> str:
    return f"(count({expression}) or vector(0))"


def test_alerts_on_events_fire_alike_from_the_first_fault_on(tmp_path) -> None:
    """Before and after the translation, at each minute of a history whose first fault comes after half an hour."""
    labels = '{device="mlx5_0", port="1", instance="a"}'
    names = {**dict.fromkeys(COUNTERS), **dict.fromkeys(COUNTERS.values())}
    given = [{"series": f"{name}{labels}", "values": FIRST_FAULT} for name in names]
    given.append({"series": 'roce_port_info{device="mlx5_0", port="1", instance="a"}', "values": "1x80"})
    tests = []
    for theirs in COUNTERS:
        exporter = ("node_exporter" if theirs.startswith("node_") else "rdma_exporter",)
        for form in [*ALERTS, *NEVER]:
            before = form.format(theirs)
            after = translate(before, names_of(exporter))
            assert after is not None, before
            differing = f"{fires(before)} != {fires(after.text)}"
            tests += [
                {"expr": differing, "eval_time": f"{minute}m", "exp_samples": []}
                for minute in range(16, 70, 3)
            ]
            ever = f"max_over_time({fires(after.text)}[30m:1m])"
            value = 1 if form in ALERTS else 0
            tests.append(
                {"expr": ever, "eval_time": "55m", "exp_samples": [{"labels": "{}", "value": value}]}
            )
    evaluate(tmp_path, given, tests)

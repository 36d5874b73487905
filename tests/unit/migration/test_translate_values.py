"""Prometheus itself evaluates expressions before and after the translation, on the same facts in both forms: the values are equal."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from foreign_table import NAMES

from roce_exporter.migrate.translation import translate

if TYPE_CHECKING:
    from pathlib import Path

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


def test_values_before_and_after_are_equal(tmp_path: Path) -> None:
    expressions = [
        *(equal(text, renamed=False) for text in BY_DEVICE),
        *(equal(text, renamed=True) for text in BY_NETDEV),
    ]
    tests = [
        {"expr": one, "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": 2}]}
        for one in expressions
        for minute in (9, 14)
    ]
    document = {
        "rule_files": [],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series(), "promql_expr_test": tests}],
    }
    file = tmp_path / "test.yml"
    file.write_text(json.dumps(document))
    ran = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr

"""`explain` works without the hardware: by pattern, with the reasons of every driver, and with the nearest names otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from recorded import recording

from roce_exporter.cli import main
from roce_exporter.introspection.explain import NEAREST, nearest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def laptop(tmp_path: Path) -> str:
    """A host without RDMA."""
    return f"--path.sysfs={tmp_path}"


BY_PATTERN = {
    "rx_prio3_pause_duration": ("roce_pfc_receive_pause_seconds_total", "priority 3"),
    "rx_pause_prio_5": ("roce_pfc_receive_frames_total", "priority 5"),
    "rx_err_lane_2_phy": ("roce_phy_lane_errors_total", "lane 2"),
    "hc_tc5_rx_pause_phy": ("roce_pfc_receive_frames_total", "priority 5"),
    "ets_transmit_bandwidth_6": ("roce_config_ets_transmit_bandwidth_ratio", "traffic_class 6"),
    "rx_discard_packets_cos4": ("roce_queue_receive_discards_total", "queue 4"),
    "pfc_pri3_tx_duration_us": ("roce_pfc_transmit_pause_seconds_total", "priority 3"),
}


@pytest.mark.parametrize("name", BY_PATTERN)
def test_a_priority_a_lane_or_a_class_in_a_name_is_recognised(
    name: str, laptop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    metric, label = BY_PATTERN[name]
    assert main(["explain", name, laptop]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in lines if not line.startswith(" ")] == [metric]
    assert f"  {name}: {label}" in lines
    assert "  now: this host has no such series" in lines


def test_an_exact_name_is_explained_without_a_placeholder(
    laptop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "np_cnp_pkts", laptop]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("roce_cnp_sent_total (counter, packets, stable)\n")
    assert "  set lean\n" in shown
    assert "  bnxt_re: np_cnp_pkts in hw_counters, 64 bits\n" in shown
    assert "np_cnp_pkts: " not in shown


REASONS = {
    "rp_cnp_ignored": "(bnxt_re, hw_counters): not exported: declared by the driver but never written",
    "rx_runt_bytes": "(bnxt_re, ethtool): not exported: bytes of the short frames",
    "tcpRetransSegs": "(irdma, hw_counters): not exported: TCP segments: iWARP, not RoCE",
    "[3]: rx_discards": "(any driver, ethtool): not exported: one queue of the kernel's own traffic",
    "req_cqe_error": "(bnxt_re, hw_counters): not exported: a sum, calculated by the driver, of counters",
}


@pytest.mark.parametrize("name", REASONS)
def test_names_left_out_are_explained_without_their_driver(
    name: str, laptop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", name, laptop]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "not exported" in line)
    assert line.startswith(f"{name} {REASONS[name]}")


def test_on_the_nic_only_its_own_reasons_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    host = f"--host.recording={recording('drift-bnxt-own')}"
    assert main(["explain", "rp_cnp_ignored", host]) == 0
    assert capsys.readouterr().out.count("not exported") == 1


NEAR = {
    "rx_prio3_pause_duratoin": "rx_prio{priority}_pause_duration",
    "np_cnp_snt": "np_cnp_sent",
    "local_ack_timeouts_err": "local_ack_timeout_err",
    "roce_cnp_send_total": "roce_cnp_sent_total",
    "RX_CRC_ERRORS_PHY": "rx_crc_errors_phy",
}


@pytest.mark.parametrize("name", NEAR)
def test_the_nearest_names_are_suggested(name: str, laptop: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name, laptop]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(
        f"roce-exporter: {name}: not a known metric, raw counter name, or counter of this host"
    )
    assert f"; similar names: {NEAR[name]}" in shown.err
    assert shown.err.count("\n") == 1


def test_a_name_without_similar_ones_gets_no_suggestion(
    laptop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "xyzzy", laptop]) == 1
    assert capsys.readouterr().err.endswith("or counter of this host\n")
    assert nearest("xyzzy") == []
    assert 1 < len(nearest("rx_prio3_pause")) <= NEAREST

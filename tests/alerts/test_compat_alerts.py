"""Our alerts on hosts that run only another exporter: those that docs/migration.md lists fire, and healthy hosts are silent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from alert_promtool import needed, rules_of_cases
from compat_samples import COMPAT, complaint, series

if TYPE_CHECKING:
    from pathlib import Path

    from compat_samples import Series

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("promtool")]

NODE = {"job": "node", "instance": "host1:9100"}
RDMA = {"job": "rdma", "instance": "host1:9879"}
POOL = {"job": "spiderpool", "instance": "host1:5721"}
OF_PORT = {"device": "mlx5_0", "port": "1"}
OF_NETDEV = {**OF_PORT, "netdev": "ens1f0np0"}
IN_POOL = {"ifname": "mlx5_0", "net_dev_name": "ens1f0np0", "node_name": "host1", "is_root": "true"}
STILL, TRAFFIC, SLIGHT, HEAVY = "7x120", "0+3000000000x120", "0+3000x120", "0+20000000x120"
"""In 30 s: nothing, 100 MB/s, 0.01 % and 67 % of microseconds."""
EXPECTED_WITHOUT_OURS = "RoceExporterAbsent"


def node(*, pause: str = SLIGHT, loss: str = STILL, state: str = "4x120") -> dict[Series, str]:
    of_infiniband = {
        "node_infiniband_state_id": state,
        "node_infiniband_physical_state_id": "5x120",
        "node_infiniband_port_data_received_bytes_total": TRAFFIC,
        "node_infiniband_port_data_transmitted_bytes_total": TRAFFIC,
        "node_infiniband_port_packets_received_total": "0+30000000x120",
        "node_infiniband_port_packets_transmitted_total": "0+30000000x120",
        "node_infiniband_out_of_sequence_packets_received_total": loss,
        "node_infiniband_packet_sequence_errors_total": loss,
        "node_infiniband_local_ack_timeout_errors_total": STILL,
        "node_infiniband_implied_nak_seq_errors_total": STILL,
        "node_infiniband_symbol_error_total": STILL,
        "node_infiniband_link_downed_total": STILL,
    }
    info = {
        "device": "mlx5_0",
        "board_id": "MT_0000000838",
        "firmware_version": "28.39.1002",
        "hca_type": "MT4129",
    }
    driver = {"device": "ens1f0np0", "driver": "mlx5_core"}
    return {
        series("node_infiniband_info", {**NODE, **info}): "1x120",
        series("node_ethtool_info", {**NODE, **driver}): "1x120",
        **{series(name, {**NODE, **OF_PORT}): values for name, values in of_infiniband.items()},
        series("node_ethtool_received_prio3_pause_duration", {**NODE, "device": "ens1f0np0"}): pause,
        series("node_ethtool_received_prio3_pause", {**NODE, "device": "ens1f0np0"}): SLIGHT,
        series("node_ethtool_link_down_events_phy", {**NODE, "device": "ens1f0np0"}): STILL,
    }


def rdma(*, pause: str = SLIGHT, retries: str = STILL, down_at: int = 120) -> dict[Series, str]:
    counters = {
        "rdma_port_rcv_data_total": TRAFFIC,
        "rdma_port_xmit_data_total": TRAFFIC,
        "rdma_port_rcv_packets_total": "0+30000000x120",
        "rdma_port_xmit_packets_total": "0+30000000x120",
        "rdma_req_transport_retries_exceeded_total": retries,
        "rdma_out_of_sequence_total": STILL,
    }
    info = {"link_layer": "Ethernet", "phys_state": "LINK_UP", "link_speed": "400 Gb/sec"}
    of_pause = {**RDMA, **OF_NETDEV, "priority": "3", "direction": "rx"}
    return {
        # A port that goes down is another series: the state is a label.
        series("rdma_port_info", {**RDMA, **OF_NETDEV, **info, "state": "ACTIVE"}): f"1x{down_at} stale",
        series(
            "rdma_port_info", {**RDMA, **OF_NETDEV, **info, "state": "DOWN"}
        ): f"_x{down_at} 1x{120 - down_at}",
        **{series(name, {**RDMA, **OF_PORT}): values for name, values in counters.items()},
        series("rdma_roce_pfc_pause_duration_total", of_pause): pause,
        series("rdma_roce_pfc_pause_frames_total", of_pause): SLIGHT,
    }


def pool(*, ignored: str = STILL) -> dict[Series, str]:
    counters = {
        "rdma_rp_cnp_ignored_total": ignored,
        "rdma_rp_cnp_handled_total": "0+3000x120",
        "rdma_np_cnp_sent_total": "0+3000x120",
        "rdma_np_ecn_marked_roce_packets_total": "0+6000x120",
        "rdma_vport_speed_mbps_total": "400000x120",
    }
    return {series(name, {**POOL, **IN_POOL}): values for name, values in counters.items()}


FAULTS = {
    "node: paused": ("node_exporter", node(pause=HEAVY), "RocePfcPauseHigh"),
    "node: loss": ("node_exporter", node(loss="0+900000x120"), "RocePacketLossHigh"),
    "node: port down": ("node_exporter", node(state="4x60 1x60"), "RocePortDown"),
    "rdma: paused": ("rdma_exporter", rdma(pause=HEAVY), "RocePfcPauseHigh"),
    "rdma: retries": ("rdma_exporter", rdma(retries="7x100 9x20"), "RoceTransportRetriesExceeded"),
    "rdma: port down": ("rdma_exporter", rdma(down_at=60), "RocePortDown"),
    "spiderpool: CNPs ignored": ("spiderpool", pool(ignored="0+3000x120"), "RoceCnpIgnored"),
}
HEALTHY = {"node_exporter": node(), "rdma_exporter": rdma(), "spiderpool": pool()}


def firing(alert: str) -> str:
    return f'group by (alertname) (ALERTS{{alertname="{alert}",alertstate="firing"}})'


def reduced(folder: Path, name: str, text: str) -> str:
    """The file with the rules that this text uses, and the lists of hosts: promtool is slow."""
    groups = yaml.safe_load((COMPAT / name).read_text())["groups"]
    for group in groups:
        group["rules"] = [one for one in group["rules"] if ":" in one["record"] or one["record"] in text]
    place = folder / name
    place.write_text(json.dumps({"groups": groups}))
    return str(place)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fires(tmp_path: Path, fault: str) -> None:
    exporter, given, alert = FAULTS[fault]
    text = json.dumps({"groups": needed({alert}, rules_of_cases())})
    (tmp_path / "rules.yml").write_text(text)
    files = [reduced(tmp_path, f"from_{exporter}.rules.yml", text), str(tmp_path / "rules.yml")]
    expected = {firing(alert): {("", frozenset({("alertname", alert)})): 1.0}}
    assert complaint(tmp_path, files, given, expected, "52m") == ""


@pytest.mark.parametrize("exporter", HEALTHY)
def test_a_healthy_host_is_silent(tmp_path: Path, exporter: str) -> None:
    """Of all our alerts that docs/migration.md lists, and of those that it does not list."""
    text = json.dumps({"groups": rules_of_cases()})
    (tmp_path / "rules.yml").write_text(text)
    files = [reduced(tmp_path, f"from_{exporter}.rules.yml", text), str(tmp_path / "rules.yml")]
    any_but = f'count(ALERTS{{alertname!="{EXPECTED_WITHOUT_OURS}",alertstate="firing"}}) or vector(0)'
    assert complaint(tmp_path, files, HEALTHY[exporter], {any_but: {("", frozenset()): 0.0}}, "20m") == ""

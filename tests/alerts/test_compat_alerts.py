"""Our alerts on hosts that run only another exporter: those that docs/migration.md lists fire, and healthy hosts are silent."""

import pytest
import yaml
from alert_promtool import COMPAT, fired, history, rules_of_cases, series, written

pytestmark = [pytest.mark.ci, pytest.mark.usefixtures("promtool")]

OF_PORT = {"device": "mlx5_0", "port": "1"}
OF_NETDEV = {**OF_PORT, "netdev": "ens1f0np0"}
SILENT = "7x60 8+1x59"
"""A peer that does not answer for half an hour."""
STILL, TRAFFIC, SLIGHT, HEAVY = "7x120", "0+3000000000x120", "0+3000x120", "0+20000000x120"
"""In 30 s: nothing, 100 MB/s, 0.01 % and 67 % of microseconds."""
Given = dict[tuple[str, frozenset[tuple[str, str]]], str]


def node(host: str, *, pause: str = SLIGHT, loss: str = STILL, state: str = "4x120") -> Given:
    target = {"job": "node", "instance": f"{host}:9100"}
    of_infiniband = {
        "state_id": state,
        "physical_state_id": "5x120",
        **dict.fromkeys(("port_data_received_bytes_total", "port_data_transmitted_bytes_total"), TRAFFIC),
        **dict.fromkeys(("port_packets_received_total", "port_packets_transmitted_total"), "0+30000000x120"),
        **dict.fromkeys(("out_of_sequence_packets_received_total", "packet_sequence_errors_total"), loss),
        "local_ack_timeout_errors_total": STILL,
        "symbol_error_total": STILL,
        "link_downed_total": STILL,
    }
    info = {"board_id": "MT_0000000838", "firmware_version": "28.39.1002", "hca_type": "MT4129"}
    of_ethtool = {
        "received_prio3_pause_duration": pause,
        "received_prio3_pause": SLIGHT,
        "link_down_events_phy": STILL,
    }
    netdev = {**target, "device": "ens1f0np0"}
    return {
        series("node_infiniband_info", {**target, **info, "device": "mlx5_0"}): "1x120",
        series("node_ethtool_info", {**netdev, "driver": "mlx5_core"}): "1x120",
        **{
            series(f"node_infiniband_{name}", {**target, **OF_PORT}): text
            for name, text in of_infiniband.items()
        },
        **{series(f"node_ethtool_{name}", netdev): text for name, text in of_ethtool.items()},
    }


def rdma(host: str, *, pause: str = SLIGHT, retries: str = STILL, down_at: int = 120) -> Given:
    target = {"job": "rdma", "instance": f"{host}:9879"}
    counters = {
        **dict.fromkeys(("port_rcv_data_total", "port_xmit_data_total"), TRAFFIC),
        **dict.fromkeys(("port_rcv_packets_total", "port_xmit_packets_total"), "0+30000000x120"),
        "req_transport_retries_exceeded_total": retries,
        "out_of_sequence_total": STILL,
    }
    info = {
        **target,
        **OF_NETDEV,
        "link_layer": "Ethernet",
        "phys_state": "LINK_UP",
        "link_speed": "400 Gb/sec",
    }
    of_pause = {**target, **OF_NETDEV, "priority": "3", "direction": "rx"}
    return {
        # A port that goes down is another series: the state is a label.
        series("rdma_port_info", {**info, "state": "ACTIVE"}): f"1x{down_at} stale",
        series("rdma_port_info", {**info, "state": "DOWN"}): f"_x{down_at} 1x{120 - down_at}",
        **{series(f"rdma_{name}", {**target, **OF_PORT}): text for name, text in counters.items()},
        series("rdma_roce_pfc_pause_duration_total", of_pause): pause,
        series("rdma_roce_pfc_pause_frames_total", of_pause): SLIGHT,
    }


def pool(host: str, *, timeouts: str = STILL) -> Given:
    target = {"job": "spiderpool", "instance": f"{host}:5721"}
    labels = {"ifname": "mlx5_0", "net_dev_name": "ens1f0np0", "node_name": host, "is_root": "true"}
    counters = {
        "rp_cnp_ignored_total": STILL,
        "local_ack_timeout_err_total": timeouts,
        **dict.fromkeys(("rp_cnp_handled_total", "np_cnp_sent_total"), "0+3000x120"),
        "np_ecn_marked_roce_packets_total": "0+6000x120",
        "vport_speed_mbps_total": "400000x120",
    }
    return {series(f"rdma_{name}", {**target, **labels}): text for name, text in counters.items()}


HOSTS = {
    "node_exporter": (
        (node("node-healthy"), ""),
        (node("node-paused", pause=HEAVY), "RocePortVictim"),
        (node("node-lossy", loss="0+900000x120"), "RocePacketLoss"),
        (node("node-down", state="4x60 1x60"), "RocePortDown"),
    ),
    "rdma_exporter": (
        (rdma("rdma-healthy"), ""),
        (rdma("rdma-paused", pause=HEAVY), "RocePortVictim"),
        (rdma("rdma-killed-job", retries="7x60 9x60"), ""),
        (rdma("rdma-retries", retries=SILENT), "RocePeerUnreachable"),
        (rdma("rdma-down", down_at=60), "RocePortDown"),
    ),
    "spiderpool": ((pool("pool-healthy"), ""), (pool("pool-silent", timeouts=SILENT), "RocePeerUnreachable")),
}


@pytest.mark.parametrize("exporter", HOSTS)
def test_a_fault_fires_and_a_healthy_host_is_silent(tmp_path, exporter) -> None:
    """Of all our alerts. One cluster per host; a host with ours, as otherwise its absence is an alert."""
    ours = rules_of_cases()
    text = str(ours)
    theirs = yaml.safe_load((COMPAT / f"from_{exporter}.rules.yml").read_text())["groups"]
    for group in theirs:
        group["rules"] = [one for one in group["rules"] if ":" in one["record"] or one["record"] in text]
    given = [{"series": 'up{job="roce",instance="other"}', "values": "1x120"}]
    for samples, _ in HOSTS[exporter]:
        _, labels = next(iter(samples))
        target = {name: value for name, value in labels if name in ("job", "instance")}
        for (name, labels), values in {**samples, series("up", target): "1x120"}.items():
            cluster = dict(labels)["instance"].partition(":")[0]
            given.append(
                {"series": written(series(name, dict(labels) | {"cluster": cluster})), "values": values}
            )
    found: dict[str, set[str]] = {}
    for labels in fired(tmp_path, [*theirs, *ours], history(given, 60)).spans:
        known = dict(labels)
        found.setdefault(known.get("cluster", ""), set()).add(known["alertname"])
    for samples, alert in HOSTS[exporter]:
        (cluster,) = {dict(labels)["instance"].partition(":")[0] for _, labels in samples}
        assert alert in found.get(cluster, {""}), (cluster, found)
        assert alert or cluster not in found, (cluster, found)
    assert "" not in found

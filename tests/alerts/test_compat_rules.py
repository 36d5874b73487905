"""The rules of `alerts/compat/` on samples shaped as the exporters print them (constructed after their sources)."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml
from compat_samples import COMPAT, OURS, THEIRS, Samples, complaint, series

from roce_exporter.catalog import CATALOG
from roce_exporter.migration.compat_rules import files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ROWS = {row.name for row in CATALOG}
FILES = sorted(files())


def one(name: str, value: float, target: Mapping[str, str] = THEIRS, **labels: str) -> Samples:
    return {series(name, {**target, **labels}): value}


def rules_of(name: str) -> list[dict[str, str]]:
    return [rule for group in yaml.safe_load(files()[name])["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_current(name: str) -> None:
    """Rewrite them with `make generate`."""
    assert (COMPAT / name).read_text() == files()[name]


def test_there_is_no_other_file() -> None:
    assert sorted(place.name for place in COMPAT.iterdir()) == FILES


@pytest.mark.usefixtures("promtool")
@pytest.mark.parametrize("name", FILES)
def test_promtool_finds_no_problem(name: str) -> None:
    command = ["promtool", "check", "rules", "--lint=all", "--lint-fatal", str(COMPAT / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", FILES)
def test_no_two_rules_of_a_file_record_the_same_series(name: str) -> None:
    found = [(rule["record"], *sorted(rule.get("labels", {}).items())) for rule in rules_of(name)]
    assert len(found) == len(set(found)) > 100


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("from_")])
def test_ours_are_rows_of_the_catalogue(name: str) -> None:
    own = {rule["record"] for rule in rules_of(name)} - ROWS
    assert {record.split(":")[1] for record in own} == {f"roce_{name.removesuffix('.rules.yml')}"}


# ---- ethtool of node_exporter

MLX5 = one(
    "node_ethtool_info", 1, device="ens1f0np0", driver="mlx5_core", bus_info="0000:1a:00.0", version="6.8"
)
E1000E = one("node_ethtool_info", 1, device="eno1", driver="e1000e", bus_info="0000:00:1f.6", version="6.8")
UNKNOWN = {"device": "unknown (ens1f0np0)", "netdev": "ens1f0np0"}


@pytest.mark.usefixtures("promtool")
def test_ethtool_of_node_exporter_becomes_ours(tmp_path: Path) -> None:
    """The number in the name is the label, microseconds are seconds, and the RDMA device is not guessed."""
    given = {
        **MLX5,
        **one("node_ethtool_received_prio3_pause", 17, device="ens1f0np0"),
        **one("node_ethtool_received_prio5_pause", 18, device="ens1f0np0"),
        **one("node_ethtool_transmitted_prio3_pause_duration", 2_500_000, device="ens1f0np0"),
        **one("node_ethtool_received_discards_phy", 4, device="ens1f0np0"),
    }
    frames = "roce_pfc_receive_frames_total"
    expected = {
        frames: {
            **one(frames, 17, priority="3", **UNKNOWN),
            **one(frames, 18, priority="5", **UNKNOWN),
        },
        "roce_pfc_transmit_pause_seconds_total": one(
            "roce_pfc_transmit_pause_seconds_total", 2.5, priority="3", **UNKNOWN
        ),
        "roce_phy_receive_discards_total": one("roce_phy_receive_discards_total", 4, **UNKNOWN),
    }
    assert complaint(tmp_path, ["from_node_exporter.rules.yml"], given, expected) == ""


@pytest.mark.usefixtures("promtool")
def test_a_network_device_without_rdma_gives_nothing(tmp_path: Path) -> None:
    """By its driver; the same name of a driver with RDMA is taken."""
    name = "node_ethtool_link_down_events_phy"
    given = {**MLX5, **E1000E, **one(name, 1, device="eno1"), **one(name, 2, device="ens1f0np0")}
    expected = {"roce_link_down_events_total": one("roce_link_down_events_total", 2, **UNKNOWN)}
    assert complaint(tmp_path, ["from_node_exporter.rules.yml"], given, expected) == ""


@pytest.mark.usefixtures("promtool")
def test_ours_become_ethtool_of_node_exporter(tmp_path: Path) -> None:
    """`device` is the network device; names of another driver are given for its devices only."""
    of_mlx5 = {"device": "mlx5_0", "port": "1", "netdev": "ens1f0np0", "priority": "3"}
    of_bnxt = {"device": "bnxt_re0", "port": "1", "netdev": "ens3np0", "priority": "3"}
    given = {
        **one("roce_device_info", 1, OURS, device="mlx5_0", driver="mlx5_core"),
        **one("roce_device_info", 1, OURS, device="bnxt_re0", driver="bnxt_en"),
        **one("roce_pfc_receive_frames_total", 17, OURS, **of_mlx5),
        **one("roce_pfc_receive_frames_total", 19, OURS, **of_bnxt),
        **one("roce_pfc_receive_pause_seconds_total", 0.25, OURS, **of_mlx5),
    }
    frames, of_broadcom = "node_ethtool_received_prio3_pause", "node_ethtool_received_pfc_ena_frames_pri3"
    duration = "node_ethtool_received_prio3_pause_duration"
    expected = {
        frames: {**one(frames, 17, OURS, device="ens1f0np0"), **one(frames, 19, OURS, device="ens3np0")},
        of_broadcom: one(of_broadcom, 19, OURS, device="ens3np0"),
        duration: one(duration, 250_000, OURS, device="ens1f0np0"),
        "node_ethtool_received_prio4_pause": {},
    }
    assert complaint(tmp_path, ["node_exporter.rules.yml"], given, expected) == ""


# ---- labels of rdma_exporter

OF_PORT = {"device": "mlx5_0", "port": "1", "netdev": "ens1f0np0"}
RDMA_PORT = {
    **OF_PORT,
    "link_layer": "Ethernet",
    "state": "ACTIVE",
    "phys_state": "LINK_UP",
    "link_speed": "100 Gb/sec",
    "pci_addr": "0000:1a:00.0",
    "is_vf": "false",
}


@pytest.mark.usefixtures("promtool")
def test_a_label_of_rdma_exporter_becomes_a_part_of_our_name(tmp_path: Path) -> None:
    pause, stall = "rdma_roce_pfc_pause_duration_total", "rdma_pcie_outbound_stalled_percent"
    given = {
        **one("rdma_port_info", 1, **RDMA_PORT),
        **one(pause, 3_000_000, **OF_PORT, priority="3", direction="rx"),
        **one(pause, 5_000_000, **OF_PORT, priority="3", direction="tx"),
        **one(stall, 30, **OF_PORT, op="rd"),
    }
    names = ("roce_pfc_receive_pause_seconds_total", "roce_pfc_transmit_pause_seconds_total")
    expected = {
        names[0]: one(names[0], 3, **OF_PORT, priority="3"),
        names[1]: one(names[1], 5, **OF_PORT, priority="3"),
        "roce_pcie_read_stalled_ratio": one("roce_pcie_read_stalled_ratio", 0.3, **OF_PORT),
        "roce_pcie_write_stalled_ratio": {},
        "roce_port_speed_bytes_per_second": one(
            "roce_port_speed_bytes_per_second", 12_500_000_000, device="mlx5_0", port="1"
        ),
        "roce_device_info": one("roce_device_info", 1, device="mlx5_0", pci="0000:1a:00.0"),
        "roce_exporter_devices": one("roce_exporter_devices", 1),
    }
    assert complaint(tmp_path, ["from_rdma_exporter.rules.yml"], given, expected) == ""


@pytest.mark.usefixtures("promtool")
def test_a_part_of_our_name_becomes_a_label_of_rdma_exporter(tmp_path: Path) -> None:
    given = {
        **one("roce_pfc_receive_pause_seconds_total", 3, OURS, **OF_PORT, priority="3"),
        **one("roce_pfc_transmit_pause_seconds_total", 5, OURS, **OF_PORT, priority="3"),
        **one("roce_port_receive_bytes_total", 400, OURS, device="mlx5_0", port="1"),
    }
    pause, words = "rdma_roce_pfc_pause_duration_total", "rdma_port_rcv_data_total"
    expected = {
        pause: {
            **one(pause, 3_000_000, OURS, **OF_PORT, priority="3", direction="rx"),
            **one(pause, 5_000_000, OURS, **OF_PORT, priority="3", direction="tx"),
        },
        words: one(words, 100, OURS, device="mlx5_0", port="1"),
    }
    assert complaint(tmp_path, ["rdma_exporter.rules.yml"], given, expected) == ""


@pytest.mark.usefixtures("promtool")
def test_of_several_names_of_a_driver_the_preferred_one_gives_the_series(tmp_path: Path) -> None:
    """bnxt_re has three names for one fact in the order of the catalogue, and irdma's bytes are a sum of two."""
    of_bnxt, of_irdma = {"device": "bnxt_re0", "port": "1"}, {"device": "rocep1s0", "port": "1"}
    given = {
        **one("rdma_port_info", 1, **of_bnxt, state="ACTIVE"),
        **one("rdma_out_of_sequence_total", 9, **of_bnxt),
        **one("rdma_oos_drop_count_total", 8, **of_bnxt),
        **one("rdma_ip4inoctets_total", 1000, **of_irdma),
        **one("rdma_ip6inoctets_total", 24, **of_irdma),
    }
    expected = {
        "roce_transport_out_of_sequence_total": one("roce_transport_out_of_sequence_total", 8, **of_bnxt),
        "roce_port_receive_bytes_total": one("roce_port_receive_bytes_total", 1024, **of_irdma),
    }
    assert complaint(tmp_path, ["from_rdma_exporter.rules.yml"], given, expected) == ""


# ---- spiderpool

OF_SPIDERPOOL = {
    "ifname": "mlx5_0",
    "net_dev_name": "ens1f0np0",
    "node_name": "node1",
    "node_guid": "9c:63:c0:03:00:f6:ce:42",
    "sys_image_guid": "9c:63:c0:03:00:f6:ce:42",
    "is_root": "true",
    "otel_scope_name": "spiderpool",
    "otel_scope_version": "1.19.0",
}


@pytest.mark.usefixtures("promtool")
def test_spiderpool_becomes_ours(tmp_path: Path) -> None:
    """Without a port; its series in pods have the labels of the pod, ours have none."""
    in_pod = {**OF_SPIDERPOOL, "ifname": "mlx5_3", "is_root": "false", "pod_name": "p", "pod_namespace": "n"}
    given = {
        **one("rdma_vport_speed_mbps_total", 100_000, **OF_SPIDERPOOL),
        **one("rdma_np_cnp_sent_total", 5, **OF_SPIDERPOOL),
        **one("rdma_np_cnp_sent_total", 6, **in_pod),
        **one("rdma_rx_pause_total", 7, **OF_SPIDERPOOL, priority="3"),
    }
    of_netdev = {"device": "mlx5_0", "netdev": "ens1f0np0"}
    expected = {
        "roce_link_speed_bytes_per_second": one("roce_link_speed_bytes_per_second", 12.5e9, **of_netdev),
        "roce_cnp_sent_total": {
            **one("roce_cnp_sent_total", 5, device="mlx5_0"),
            **one("roce_cnp_sent_total", 6, device="mlx5_3"),
        },
        "roce_pfc_receive_frames_total": one("roce_pfc_receive_frames_total", 7, **of_netdev, priority="3"),
    }
    assert complaint(tmp_path, ["from_spiderpool.rules.yml"], given, expected) == ""


@pytest.mark.usefixtures("promtool")
def test_ours_become_spiderpool(tmp_path: Path) -> None:
    """The labels that its dashboards filter by come from our info metrics."""
    given = {
        **one("roce_device_info", 1, OURS, device="mlx5_0", node_guid="9c63:c003:00f6:ce42", function="pf"),
        **one("roce_port_info", 1, OURS, **OF_PORT, link_layer="Ethernet", lag="false"),
        **one("roce_netdev_info", 1, OURS, **OF_PORT, mac="9c:63:c0:f6:ce:42", hostname="node1"),
        **one("roce_cnp_sent_total", 5, OURS, device="mlx5_0", port="1"),
        **one("roce_pfc_receive_frames_total", 7, OURS, **OF_PORT, priority="3"),
        **one("roce_link_speed_bytes_per_second", 12.5e9, OURS, **OF_PORT),
    }
    labels = {
        "ifname": "mlx5_0",
        "net_dev_name": "ens1f0np0",
        "node_name": "node1",
        "node_guid": "9c63:c003:00f6:ce42",
        "is_root": "true",
    }
    expected = {
        "rdma_np_cnp_sent_total": one("rdma_np_cnp_sent_total", 5, OURS, **labels),
        "rdma_rx_pause_total": one("rdma_rx_pause_total", 7, OURS, **labels, priority="3"),
        "rdma_vport_speed_mbps_total": one("rdma_vport_speed_mbps_total", 100_000, OURS, **labels),
    }
    assert complaint(tmp_path, ["spiderpool.rules.yml"], given, expected) == ""


# ---- hosts with both exporters, and hosts that change

IN_BOTH = {"device": "mlx5_0", "port": "1"}
SENT = "roce_cnp_sent_total"
FROM_NODE, FROM_RDMA = "from_node_exporter.rules.yml", "from_rdma_exporter.rules.yml"


def of_node(host: str, values: str) -> dict[tuple[str, frozenset[tuple[str, str]]], str]:
    """A host with node_exporter, in promtool's notation of values."""
    target = {"job": "node", "instance": f"{host}:9100"}
    return {
        series("node_infiniband_info", {**target, "device": "mlx5_0"}): values,
        series("node_infiniband_np_cnp_packets_sent_total", {**target, **IN_BOTH}): values,
    }


def of_ours(instance: str, values: str) -> dict[tuple[str, frozenset[tuple[str, str]]], str]:
    """A host with ours."""
    target = {"job": "roce", "instance": instance}
    return {
        series("roce_exporter_metric_set_info", {**target, "set": "lean"}): values,
        series(SENT, {**target, **IN_BOTH}): values,
    }


@pytest.mark.usefixtures("promtool")
def test_a_host_with_both_has_one_series(tmp_path: Path) -> None:
    """The other host of the fleet has not changed yet."""
    given = {**of_node("host1", "1x8"), **of_node("host2", "1x8"), **of_ours("host1:10123", "1x8")}
    expected = {
        SENT: {
            **one(SENT, 1, {"job": "roce", "instance": "host1:10123"}, **IN_BOTH),
            **one(SENT, 1, {"job": "node", "instance": "host2:9100"}, **IN_BOTH),
        }
    }
    assert complaint(tmp_path, [FROM_NODE], given, expected) == ""


@pytest.mark.usefixtures("promtool")
def test_a_host_that_the_two_jobs_name_differently_is_known_by_its_own_name(tmp_path: Path) -> None:
    target = {"job": "node", "instance": "10.0.0.7:9100"}
    given = {
        **of_node("10.0.0.7", "1x8"),
        series("node_uname_info", {**target, "nodename": "gpu-7"}): "1x8",
        **of_ours("gpu-7.example:10123", "1x8"),
        series(
            "roce_netdev_info", {"job": "roce", "instance": "gpu-7.example:10123", "hostname": "gpu-7"}
        ): "1x8",
    }
    expected = {SENT: one(SENT, 1, {"job": "roce", "instance": "gpu-7.example:10123"}, **IN_BOTH)}
    assert complaint(tmp_path, [FROM_NODE], given, expected) == ""


@pytest.mark.usefixtures("promtool")
@pytest.mark.parametrize("instance", ["host1", "[fd00::1]:9100"])
def test_an_instance_without_a_port_or_with_an_ipv6_address(tmp_path: Path, instance: str) -> None:
    target = {"job": "node", "instance": instance}
    theirs = {
        series("node_infiniband_info", {**target, "device": "mlx5_0"}): "1x8",
        series("node_infiniband_np_cnp_packets_sent_total", {**target, **IN_BOTH}): "1x8",
    }
    ours = f"{instance.removesuffix(':9100')}:10123"
    alone, both = (
        {SENT: one(SENT, 1, target, **IN_BOTH)},
        {SENT: one(SENT, 1, {"job": "roce", "instance": ours}, **IN_BOTH)},
    )
    assert complaint(tmp_path, [FROM_NODE], theirs, alone) == ""
    assert complaint(tmp_path, [FROM_NODE], {**theirs, **of_ours(ours, "1x8")}, both) == ""


@pytest.mark.usefixtures("promtool")
@pytest.mark.parametrize(("at", "node_gives"), [("4m", True), ("8m", False), ("24m", False), ("31m", True)])
def test_a_host_changes_and_ours_is_removed_again(tmp_path: Path, at: str, node_gives: bool) -> None:
    """Ours runs from the 5th to the 10th minute. A restart of 15 minutes brings nothing back; what is removed is given up after that."""
    given = {**of_node("host1", "1x80"), **of_ours("host1:10123", "_x9 1x10 stale")}
    served = one(SENT, 1, {"job": "node", "instance": "host1:9100"}, **IN_BOTH)
    ours = one(SENT, 1, {"job": "roce", "instance": "host1:10123"}, **IN_BOTH)
    expected = {SENT: served if node_gives else ours if at == "8m" else {}}
    assert complaint(tmp_path, [FROM_NODE], given, expected, at) == ""


@pytest.mark.usefixtures("promtool")
def test_a_host_with_two_others_has_one_series(tmp_path: Path) -> None:
    """node_exporter reads InfiniBand by default, so it is next to rdma_exporter on most hosts."""
    target = {"job": "rdma", "instance": "host1:9879"}
    given = {
        **of_node("host1", "1x8"),
        series("rdma_port_info", {**target, **IN_BOTH, "state": "ACTIVE"}): "1x8",
        series("rdma_np_cnp_sent_total", {**target, **IN_BOTH}): "1x8",
    }
    assert complaint(tmp_path, [FROM_NODE, FROM_RDMA], given, {SENT: one(SENT, 1, target, **IN_BOTH)}) == ""


@pytest.mark.usefixtures("promtool")
def test_both_directions_at_once_do_not_feed_each_other(tmp_path: Path) -> None:
    """A name of theirs that was made from ours is not taken for a host with theirs."""
    given = {
        **of_ours("host1:10123", "1x8"),
        **dict.fromkeys(
            one("roce_device_info", 1, OURS, device="mlx5_0", board="b", firmware="f", model="m"), "1x8"
        ),
    }
    expected = {
        SENT: one(SENT, 1, OURS, **IN_BOTH),
        "instance:roce_from_node_exporter:hosts": {},
        "node_infiniband_np_cnp_packets_sent_total": one(
            "node_infiniband_np_cnp_packets_sent_total", 1, OURS, **IN_BOTH
        ),
    }
    assert complaint(tmp_path, ["node_exporter.rules.yml", FROM_NODE], given, expected) == ""


@pytest.mark.usefixtures("promtool")
def test_a_recorded_counter_has_the_right_rate(tmp_path: Path) -> None:
    """4-byte words become bytes; after a reset of the counter the rate is that of the counter."""
    target = {"job": "rdma", "instance": "host1:9879"}
    given = {
        series("rdma_port_info", {**target, **IN_BOTH, "state": "ACTIVE"}): "1x20",
        series("rdma_port_rcv_data_total", {**target, **IN_BOTH}): "0+3000x10 0+3000x10",
    }
    # rounded: newer promtool compares every digit
    rate = "round(rate(roce_port_receive_bytes_total[2m]), 0.001)"
    expected = {rate: {("", frozenset({**target, **IN_BOTH}.items())): 400.0}}
    assert complaint(tmp_path, [FROM_RDMA], given, expected, "4m") == ""
    assert complaint(tmp_path, [FROM_RDMA], given, expected, "9m") == ""

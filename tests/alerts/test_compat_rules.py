"""The rules of `alerts/compat/` on samples shaped as the exporters print them (constructed after their sources)."""

import subprocess
from collections.abc import Mapping

import pytest
import yaml
from alert_promtool import COMPAT, OURS, THEIRS, Samples, Seen, complaint, series
from compat_rules import files

from roce_exporter.catalog import CATALOG

ROWS = {row.name for row in CATALOG}


@pytest.fixture(scope="module")
def generated() -> Mapping[str, str]:
    """The rule files as they are generated now: their names and texts."""
    return files()


def one(name: str, value: float, target: Mapping[str, str] = THEIRS, **labels: str) -> Samples:
    return {series(name, {**target, **labels}): value}


def test_the_files_are_current(generated) -> None:
    """Rewrite them with `make generate`."""
    assert {place.name: place.read_text() for place in COMPAT.glob("*.yml")} == generated


def test_promtool_finds_no_problem(promtool, generated) -> None:
    places = [str(COMPAT / name) for name in generated]
    done = subprocess.run(
        [promtool, "check", "rules", "--lint=all", "--lint-fatal", *places],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_two_rules_record_the_same_series_and_ours_are_rows(generated) -> None:
    for name, text in generated.items():
        rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
        found = [(rule["record"], *sorted(rule.get("labels", {}).items())) for rule in rules]
        assert len(found) == len(set(found)) > 100
        if name.startswith("from_"):
            own = {rule["record"] for rule in rules} - ROWS
            assert {record.split(":")[1] for record in own} == {f"roce_{name.removesuffix('.rules.yml')}"}


MLX5 = one(
    "node_ethtool_info", 1, device="ens1f0np0", driver="mlx5_core", bus_info="0000:1a:00.0", version="6.8"
)
E1000E = one("node_ethtool_info", 1, device="eno1", driver="e1000e", bus_info="0000:00:1f.6", version="6.8")
UNKNOWN = {"device": "unknown (ens1f0np0)", "netdev": "ens1f0np0"}
OF_PORT = {"device": "mlx5_0", "port": "1", "netdev": "ens1f0np0"}
OF_BNXT = {"device": "bnxt_re0", "port": "1", "netdev": "ens3np0"}
FRAMES, RECEIVED = "roce_pfc_receive_frames_total", "roce_pfc_receive_pause_seconds_total"
SENT_PAUSE, DOWNS = "roce_pfc_transmit_pause_seconds_total", "roce_link_down_events_total"
THEIR_PAUSE, STALL = "rdma_roce_pfc_pause_duration_total", "rdma_pcie_outbound_stalled_percent"
WORDS, BYTES = "rdma_port_rcv_data_total", "roce_port_receive_bytes_total"

FROM_NODE = {
    # the number in the name is the label, microseconds are seconds, and the RDMA device is not guessed
    "ethtool": Seen(
        {
            **MLX5,
            **one("node_ethtool_received_prio3_pause", 17, device="ens1f0np0"),
            **one("node_ethtool_received_prio5_pause", 18, device="ens1f0np0"),
            **one("node_ethtool_transmitted_prio3_pause_duration", 2_500_000, device="ens1f0np0"),
            **one("node_ethtool_received_discards_phy", 4, device="ens1f0np0"),
        },
        {
            FRAMES: one(FRAMES, 17, priority="3", **UNKNOWN) | one(FRAMES, 18, priority="5", **UNKNOWN),
            SENT_PAUSE: one(SENT_PAUSE, 2.5, priority="3", **UNKNOWN),
            "roce_phy_receive_discards_total": one("roce_phy_receive_discards_total", 4, **UNKNOWN),
        },
    ),
    # by its driver; the same name of a driver with RDMA is taken
    "a network device without RDMA": Seen(
        {
            **MLX5,
            **E1000E,
            **one("node_ethtool_link_down_events_phy", 1, device="eno1"),
            **one("node_ethtool_link_down_events_phy", 2, device="ens1f0np0"),
        },
        {DOWNS: one(DOWNS, 2, **UNKNOWN)},
    ),
}
DURATION = "node_ethtool_received_prio3_pause_duration"
PAUSES, OF_BROADCOM = "node_ethtool_received_prio3_pause", "node_ethtool_received_pfc_ena_frames_pri3"
TO_NODE = {
    # `device` is the network device; names of another driver are given for its devices only
    "ethtool": Seen(
        {
            **one("roce_device_info", 1, OURS, device="mlx5_0", driver="mlx5_core"),
            **one("roce_device_info", 1, OURS, device="bnxt_re0", driver="bnxt_en"),
            **one(FRAMES, 17, OURS, **OF_PORT, priority="3"),
            **one(FRAMES, 19, OURS, **OF_BNXT, priority="3"),
            **one(RECEIVED, 0.25, OURS, **OF_PORT, priority="3"),
        },
        {
            PAUSES: one(PAUSES, 17, OURS, device="ens1f0np0") | one(PAUSES, 19, OURS, device="ens3np0"),
            OF_BROADCOM: one(OF_BROADCOM, 19, OURS, device="ens3np0"),
            DURATION: one(DURATION, 250_000, OURS, device="ens1f0np0"),
            "node_ethtool_received_prio4_pause": {},
        },
    )
}
IN_BOTH = {"device": "mlx5_0", "port": "1"}
RDMA_HOST = {"job": "rdma", "instance": "host1:9879"}
RATE = {
    "round(rate(roce_port_receive_bytes_total[2m]), 0.001)": {
        ("", frozenset((RDMA_HOST | IN_BOTH).items())): 400.0
    }
}
"""Rounded: newer promtool compares every digit."""
COUNTING = {
    series("rdma_port_info", {**RDMA_HOST, **IN_BOTH, "state": "ACTIVE"}): "1x20",
    series(WORDS, {**RDMA_HOST, **IN_BOTH}): "0+3000x10 0+3000x10",
}
FROM_RDMA = {
    "a label becomes a part of our name": Seen(
        {
            **one(
                "rdma_port_info",
                1,
                **OF_PORT,
                link_layer="Ethernet",
                state="ACTIVE",
                phys_state="LINK_UP",
                link_speed="100 Gb/sec",
                pci_addr="0000:1a:00.0",
                is_vf="false",
            ),
            **one(THEIR_PAUSE, 3_000_000, **OF_PORT, priority="3", direction="rx"),
            **one(THEIR_PAUSE, 5_000_000, **OF_PORT, priority="3", direction="tx"),
            **one(STALL, 30, **OF_PORT, op="rd"),
        },
        {
            RECEIVED: one(RECEIVED, 3, **OF_PORT, priority="3"),
            SENT_PAUSE: one(SENT_PAUSE, 5, **OF_PORT, priority="3"),
            "roce_pcie_read_stalled_ratio": one("roce_pcie_read_stalled_ratio", 0.3, **OF_PORT),
            "roce_pcie_write_stalled_ratio": {},
            "roce_port_speed_bytes_per_second": one("roce_port_speed_bytes_per_second", 12.5e9, **IN_BOTH),
            "roce_device_info": one("roce_device_info", 1, device="mlx5_0", pci="0000:1a:00.0"),
            "roce_exporter_devices": one("roce_exporter_devices", 1),
        },
    ),
    # bnxt_re has three names for one fact in the order of the catalogue, and irdma's bytes are a sum of two
    "of several names of a driver the preferred one": Seen(
        {
            **one("rdma_port_info", 1, device="bnxt_re0", port="1", state="ACTIVE"),
            **one("rdma_out_of_sequence_total", 9, device="bnxt_re0", port="1"),
            **one("rdma_oos_drop_count_total", 8, device="bnxt_re0", port="1"),
            **one("rdma_ip4inoctets_total", 1000, device="rocep1s0", port="1"),
            **one("rdma_ip6inoctets_total", 24, device="rocep1s0", port="1"),
        },
        {
            "roce_transport_out_of_sequence_total": one(
                "roce_transport_out_of_sequence_total", 8, device="bnxt_re0", port="1"
            ),
            BYTES: one(BYTES, 1024, device="rocep1s0", port="1"),
        },
    ),
    # 4-byte words become bytes; after a reset of the counter the rate is that of the counter
    "the rate of a recorded counter": Seen(COUNTING, RATE, "4m"),
    "the rate after a reset": Seen(COUNTING, RATE, "9m"),
}
TO_RDMA = {
    "a part of our name becomes a label": Seen(
        {
            **one(RECEIVED, 3, OURS, **OF_PORT, priority="3"),
            **one(SENT_PAUSE, 5, OURS, **OF_PORT, priority="3"),
            **one(BYTES, 400, OURS, **IN_BOTH),
        },
        {
            THEIR_PAUSE: {
                **one(THEIR_PAUSE, 3_000_000, OURS, **OF_PORT, priority="3", direction="rx"),
                **one(THEIR_PAUSE, 5_000_000, OURS, **OF_PORT, priority="3", direction="tx"),
            },
            WORDS: one(WORDS, 100, OURS, **IN_BOTH),
        },
    )
}
SENT, THEIR_SENT = "roce_cnp_sent_total", "node_infiniband_np_cnp_packets_sent_total"
SPEED, NETDEV = "roce_link_speed_bytes_per_second", {"device": "mlx5_0", "netdev": "ens1f0np0"}
IN_POOL = {"ifname": "mlx5_0", "net_dev_name": "ens1f0np0", "node_name": "node1", "is_root": "true"}
GUID = {"node_guid": "9c:63:c0:03:00:f6:ce:42"}
OF_POOL = IN_POOL | GUID | {"otel_scope_name": "spiderpool", "otel_scope_version": "1.19.0"}
IN_POD = OF_POOL | {"ifname": "mlx5_3", "is_root": "false", "pod_name": "p", "pod_namespace": "n"}
FROM_POOL = {
    # without a port; its series in pods have the labels of the pod, ours have none
    "all": Seen(
        {
            **one("rdma_vport_speed_mbps_total", 100_000, **OF_POOL),
            **one("rdma_np_cnp_sent_total", 5, **OF_POOL),
            **one("rdma_np_cnp_sent_total", 6, **IN_POD),
            **one("rdma_rx_pause_total", 7, **OF_POOL, priority="3"),
        },
        {
            SPEED: one(SPEED, 12.5e9, **NETDEV),
            SENT: one(SENT, 5, device="mlx5_0") | one(SENT, 6, device="mlx5_3"),
            FRAMES: one(FRAMES, 7, **NETDEV, priority="3"),
        },
    )
}
LABELS = IN_POOL | {"node_guid": "9c63:c003:00f6:ce42"}
TO_POOL = {
    # the labels that its dashboards filter by come from our info metrics
    "all": Seen(
        {
            **one(
                "roce_device_info", 1, OURS, device="mlx5_0", node_guid="9c63:c003:00f6:ce42", function="pf"
            ),
            **one("roce_port_info", 1, OURS, **OF_PORT, link_layer="Ethernet", lag="false"),
            **one("roce_netdev_info", 1, OURS, **OF_PORT, mac="9c:63:c0:f6:ce:42", hostname="node1"),
            **one(SENT, 5, OURS, **IN_BOTH),
            **one(FRAMES, 7, OURS, **OF_PORT, priority="3"),
            **one(SPEED, 12.5e9, OURS, **OF_PORT),
        },
        {
            "rdma_np_cnp_sent_total": one("rdma_np_cnp_sent_total", 5, OURS, **LABELS),
            "rdma_rx_pause_total": one("rdma_rx_pause_total", 7, OURS, **LABELS, priority="3"),
            "rdma_vport_speed_mbps_total": one("rdma_vport_speed_mbps_total", 100_000, OURS, **LABELS),
        },
    )
}


# ---- hosts with both exporters, and hosts that change

HOST1, OURS1 = {"job": "node", "instance": "host1:9100"}, {"job": "roce", "instance": "host1:10123"}


def of_node(instance: str, values: str = "1x8") -> dict[tuple[str, frozenset[tuple[str, str]]], str]:
    """A host with node_exporter, in promtool's notation of values."""
    target = {"job": "node", "instance": instance}
    return {
        series("node_infiniband_info", {**target, "device": "mlx5_0"}): values,
        series(THEIR_SENT, {**target, **IN_BOTH}): values,
    }


def of_ours(instance: str, values: str = "1x8") -> dict[tuple[str, frozenset[tuple[str, str]]], str]:
    """A host with ours."""
    target = {"job": "roce", "instance": instance}
    return {
        series("roce_exporter_metric_set_info", {**target, "set": "lean"}): values,
        series(SENT, {**target, **IN_BOTH}): values,
    }


def sent(target: Mapping[str, str]) -> dict[str, Samples]:
    """The only series of the counter."""
    return {SENT: one(SENT, 1, target, **IN_BOTH)}


CHANGING = of_node("host1:9100", "1x80") | of_ours("host1:10123", "_x9 1x10 stale")
FULL_NAME = {"job": "roce", "instance": "gpu-7.example:10123"}
BOTH_ON_A_HOST = {
    # the other host of the fleet has not changed yet
    "one series": Seen(
        of_node("host1:9100") | of_node("host2:9100") | of_ours("host1:10123"),
        {SENT: one(SENT, 1, OURS1, **IN_BOTH) | one(SENT, 1, HOST1 | {"instance": "host2:9100"}, **IN_BOTH)},
    ),
    "a host that the two jobs name differently is known by its own name": Seen(
        {
            **of_node("10.0.0.7:9100"),
            series(
                "node_uname_info", {"job": "node", "instance": "10.0.0.7:9100", "nodename": "gpu-7"}
            ): "1x8",
            **of_ours(FULL_NAME["instance"]),
            series("roce_netdev_info", {**FULL_NAME, "hostname": "gpu-7"}): "1x8",
        },
        sent(FULL_NAME),
    ),
    **{
        f"{name} {theirs}": Seen(given, sent(target))
        for theirs, ours in (("host1", "host1:10123"), ("[fd00::1]:9100", "[fd00::1]:10123"))
        for name, given, target in (
            ("without ours", of_node(theirs), {"job": "node", "instance": theirs}),
            ("with ours", of_node(theirs) | of_ours(ours), {"job": "roce", "instance": ours}),
        )
    },
    # ours runs from the 5th to the 10th minute; a restart of 15 minutes brings nothing back
    "before ours": Seen(CHANGING, sent(HOST1), "4m"),
    "while ours runs": Seen(CHANGING, sent(OURS1), "8m"),
    "after ours": Seen(CHANGING, {SENT: {}}, "24m"),
    "long after ours": Seen(CHANGING, sent(HOST1), "31m"),
}
TWO_OTHERS = {
    # node_exporter reads InfiniBand by default, so it is next to rdma_exporter on most hosts
    "one series": Seen(
        {
            **of_node("host1:9100"),
            series("rdma_port_info", {**RDMA_HOST, **IN_BOTH, "state": "ACTIVE"}): "1x8",
            series("rdma_np_cnp_sent_total", {**RDMA_HOST, **IN_BOTH}): "1x8",
        },
        sent(RDMA_HOST),
    )
}
BOTH_DIRECTIONS = {
    # a name of theirs that was made from ours is not taken for a host with theirs
    "do not feed each other": Seen(
        {
            **of_ours("host1:10123"),
            **one("roce_device_info", 1, OURS, device="mlx5_0", board="b", firmware="f", model="m"),
        },
        {
            **sent(OURS),
            "instance:roce_from_node_exporter:hosts": {},
            THEIR_SENT: one(THEIR_SENT, 1, OURS, **IN_BOTH),
        },
    )
}


@pytest.mark.ci
@pytest.mark.usefixtures("promtool")
@pytest.mark.parametrize(
    ("names", "situations"),
    [
        (["from_node_exporter"], FROM_NODE | BOTH_ON_A_HOST),
        (["node_exporter"], TO_NODE),
        (["from_rdma_exporter"], FROM_RDMA),
        (["rdma_exporter"], TO_RDMA),
        (["from_spiderpool"], FROM_POOL),
        (["spiderpool"], TO_POOL),
        (["from_node_exporter", "from_rdma_exporter"], TWO_OTHERS),
        (["node_exporter", "from_node_exporter"], BOTH_DIRECTIONS),
    ],
    ids=lambda one: "+".join(one) if isinstance(one, list) else "",
)
def test_names_become_names(tmp_path, names, situations) -> None:
    assert complaint(tmp_path, [f"{name}.rules.yml" for name in names], *situations.values()) == ""

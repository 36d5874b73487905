"""Every value that a test sets in a driver is the value that the exporter reports."""

from pathlib import Path

import pytest
from daemon import about, value
from nic import ask_json, kernel, run

BIG = 5_000_000_000
"""More than 32 bits."""

EXPECTED = {
    "mlx5_0": (
        ("rdma", "np_ecn_marked_roce_packets", BIG + 1, "roce_ecn_marked_packets_total", BIG + 1),
        ("rdma", "np_cnp_sent", BIG + 2, "roce_cnp_sent_total", BIG + 2),
        ("rdma", "rp_cnp_handled", 3, "roce_cnp_handled_total", 3),
        ("rdma", "out_of_sequence", 4, "roce_transport_out_of_sequence_total", 4),
        ("rdma", "local_ack_timeout_err", 2**32 + 5, "roce_transport_ack_timeouts_total", 5),
        ("port", "port_rcv_data", 1000, "roce_port_receive_bytes_total", 4000),
        ("port", "port_xmit_wait", 7, "roce_port_transmit_wait_ticks_total", 7),
        ("leg0/ethtool", "rx_prio3_pause", 8, "roce_pfc_receive_frames_total", 8),
        ("leg0/ethtool", "tx_prio3_pause_duration", 2_500_000, "roce_pfc_transmit_pause_seconds_total", 2.5),
        ("leg0/ethtool", "tx_pause_storm_error_events", 9, "roce_pfc_watchdog_trips_total", 9),
        ("leg0/ethtool", "pci_bw_inbound_high", 6, "roce_pcie_inbound_congestions_total", 6),
        ("leg0/ethtool", "pci_bw_inbound_low", 5, "roce_pcie_inbound_congestion_ends_total", 5),
        ("leg0/ethtool", "pci_bw_inbound_high", 6, "roce_pcie_inbound_congested", 1),
        ("leg0/ethtool", "pci_bw_outbound_low", 0, "roce_pcie_outbound_congested", 0),
        ("leg0/ethtool", "pci_bw_stale_event", 2, "roce_pcie_congestion_stale_events_total", 2),
        ("leg0/fec", "uncorrectable_blocks", 11, "roce_phy_fec_uncorrectable_blocks_total", 11),
    ),
    "bnxt_re0": (
        (
            "rdma",
            "np_ecn_marked_roce_packets|rx_ecn_marked_pkts",
            BIG + 21,
            "roce_ecn_marked_packets_total",
            BIG + 21,
        ),
        ("rdma", "np_cnp_pkts|tx_cnp_pkts", 22, "roce_cnp_sent_total", 22),
        ("leg0/ethtool", "rx_pfc_frames", 23, "roce_pfc_receive_all_frames_total", 23),
        ("leg0/ethtool", "continuous_roce_pause_events", 24, "roce_pfc_watchdog_trips_total", 24),
    ),
    "ionic_0": (
        ("rdma", "rx_rdma_ecn_pkts", BIG + 31, "roce_ecn_marked_packets_total", BIG + 31),
        ("rdma", "tx_rdma_cnp_pkts", 32, "roce_cnp_sent_total", 32),
        ("leg0/ethtool", "frames_rx_pripause", 33, "roce_pfc_receive_all_frames_total", 33),
        ("leg0/ethtool", "rx_pause_1us_count", 1_500_000, "roce_global_pause_receive_seconds_total", 1.5),
    ),
    "irdma0": (
        ("rdma", "RxECNMrkd", BIG + 41, "roce_ecn_marked_packets_total", BIG + 41),
        ("rdma", "cnpSent", 42, "roce_cnp_sent_total", 42),
        ("leg0/ethtool", "link_xoff_rx.nic", 43, "roce_global_pause_receive_xoff_frames_total", 43),
    ),
}
"""Computed by hand: the table, the raw name, the set value, the metric, its expected value.

`new|old` is a name and its name on older kernels. Without either of them the driver has no such series.
"""

NAMES = [(device, *row) for device, rows in EXPECTED.items() for row in rows]


@pytest.fixture(scope="module")
def played(cards, exporter) -> dict[str, float]:
    """One scrape after all values were set."""
    for nic in cards.values():
        for leg in range(len(nic.netdevs)):
            nic.leg("ethtool", leg).write("refresh_ms", "0")
    for device, table, raw, number, _, _ in NAMES:
        if spelling := cards[device].table(table).spelling(*raw.split("|")):
            cards[device].table(table).set({spelling: number})
    return exporter.scrape()


@pytest.mark.parametrize("row", NAMES, ids=lambda row: f"{row[0]}-{row[2]}-{row[4]}")
def test_a_value_that_was_set_is_exported(cards, played, row) -> None:
    device, table, raw, _, metric, expected = row
    labels = {"priority": "3"} if "prio3" in raw else {}
    has = cards[device].table(table).spelling(*raw.split("|"))
    assert value(played, metric, device=device, **labels) == (expected if has else None)


def test_rdma_counters_are_those_that_rdma_statistic_prints(cards, exporter) -> None:
    names = [name for name in cards["bnxt_re0"].table("rdma").values() if not name.startswith("watermark")]
    cards["bnxt_re0"].table("rdma").set({name: 70_000 + place for place, name in enumerate(names)})
    (printed,) = ask_json("rdma", "-j", "statistic", "show", "link", "bnxt_re0/1")
    exporter.scrape()
    told = next(one for one in exporter.snapshot()["devices"] if one["device"] == "bnxt_re0")
    raw = {
        name: number
        for one in told["values"]
        for name, number in one["raw"].items()
        if one["source"] == "hw_counters"
    }
    assert raw
    assert {name: printed[name] for name in raw} == raw


def test_private_counters_are_those_that_ethtool_prints(cards, exporter) -> None:
    lines = run("ethtool", "-S", cards["irdma0"].netdevs[0]).splitlines()[1:]
    printed = {name.strip(): int(number) for name, _, number in (line.rpartition(": ") for line in lines)}
    exporter.scrape()
    told = next(one for one in exporter.snapshot()["devices"] if one["device"] == "irdma0")
    raw = {
        name: number
        for one in told["values"]
        for name, number in one["raw"].items()
        if one["source"] == "ethtool"
    }
    assert raw
    assert {name: printed[name] for name in raw} == raw


def test_only_priorities_with_pfc_are_exported_for_mlx5(played) -> None:
    told = {
        series
        for series in played
        if series.startswith("roce_pfc_receive_frames_total{") and "mlx5_0" in series
    }
    assert {series.split('priority="')[1][0] for series in told} == {"3"}


def test_all_priorities_are_exported_for_ice(played) -> None:
    told = {series for series in played if series.startswith("roce_pfc_receive_xoff_frames_total{")}
    assert {series.split('priority="')[1][0] for series in told if "irdma0" in series} == set("01234567")


@pytest.mark.skipif(kernel() < (6, 18), reason="FEC histograms came with Linux 6.18")
def test_the_fec_histogram_is_exported_by_port_and_by_lane(cards, exporter) -> None:
    """The driver counts two lanes; the port is their sum."""
    cards["mlx5_0"].leg("fec").set({"lane0_0": 2**40, "lane1_0": 7, "lane0_4_7": 20, "lane1_8_15": 1})
    samples = about(exporter.scrape(), "mlx5_0")
    buckets = {
        bound: value(samples, "roce_phy_fec_codeword_errors_bucket", le=bound)
        for bound in ("0", "3", "7", "15", "+Inf")
    }
    first = 2**40 + 7
    assert buckets == {"0": first, "3": first, "7": first + 20, "15": first + 21, "+Inf": first + 21}
    name = "roce_phy_fec_lane_codewords_total"
    assert value(samples, name, lane="0", low="4", high="7") == 20
    assert value(samples, name, lane="1", low="8", high="15") == 1
    assert value(samples, name, lane="1", low="4", high="7") == 0


def test_both_member_ports_of_a_lag_are_exported(cards, exporter) -> None:
    lag = cards["mlx5_1"]
    for leg in (0, 1):
        lag.leg("ethtool", leg).set({"rx_prio3_pause": 100 + leg})
    samples = exporter.scrape()
    for leg, netdev in enumerate(lag.netdevs):
        assert value(samples, "roce_pfc_receive_frames_total", device="mlx5_1", netdev=netdev) == 100 + leg
    roles = {series for series in about(samples, "mlx5_1") if series.startswith("roce_port_netdev_info")}
    assert {
        (role.split('netdev="')[1].split('"')[0], role.split('role="')[1].split('"')[0]) for role in roles
    } == {("bond0", "bond"), *((netdev, "member") for netdev in lag.netdevs)}


def test_an_optional_counter_is_exported_once_it_is_on(cards, exporter) -> None:
    cards["mlx5_0"].table("rdma").set({"cc_rx_ce_pkts": 12})
    assert value(exporter.scrape(), "roce_optional_enabled", device="mlx5_0", counter="cc_rx_ce_pkts") == 0
    run("rdma", "statistic", "set", "link", "mlx5_0/1", "optional-counters", "cc_rx_ce_pkts")
    samples = exporter.scrape()
    assert value(samples, "roce_optional_enabled", device="mlx5_0", counter="cc_rx_ce_pkts") == 1
    assert 12 in about(samples, "mlx5_0").values()


@pytest.mark.parametrize("device", ["mlx5_0", "bnxt_re0", "ionic_0", "irdma0"])
def test_pfc_is_exported_as_dcb_prints_it(cards, exporter, device) -> None:
    netdev = cards[device].netdevs[0]
    run("dcb", "pfc", "set", "dev", netdev, "prio-pfc", "all:off", "3:on", "5:on")
    printed = ask_json("dcb", "-j", "pfc", "show", "dev", netdev)["prio_pfc"]
    samples = exporter.scrape()
    told = [value(samples, "roce_pfc_enabled", netdev=netdev, priority=str(number)) for number in range(8)]
    assert told == [float(on) for on in printed]
    run("dcb", "pfc", "set", "dev", netdev, "prio-pfc", "all:off", "3:on")


def test_the_pfc_mask_may_move_while_serving(cards, exporter) -> None:
    """The series follow the mask, and none of the previous priority remains."""
    nic = cards["mlx5_0"]
    nic.leg("ethtool").set({"rx_prio3_pause": 33, "rx_prio4_pause": 44})
    run("dcb", "pfc", "set", "dev", nic.netdevs[0], "prio-pfc", "3:off", "4:on")
    moved = exporter.scrape()
    assert value(moved, "roce_pfc_receive_frames_total", device="mlx5_0", priority="3") is None
    assert value(moved, "roce_pfc_receive_frames_total", device="mlx5_0", priority="4") == 44
    run("dcb", "pfc", "set", "dev", nic.netdevs[0], "prio-pfc", "3:on", "4:off")
    back = exporter.scrape()
    assert value(back, "roce_pfc_receive_frames_total", device="mlx5_0", priority="3") == 33
    assert value(back, "roce_pfc_receive_frames_total", device="mlx5_0", priority="4") is None


def test_queues_that_come_and_go_move_no_other_value(cards, exporter) -> None:
    nic = cards["mlx5_0"]
    nic.leg("ethtool").set({"rx_prio3_pause": 77})
    for queues in (8, 2, 16, 1):
        run("ethtool", "-L", nic.netdevs[0], "combined", str(queues))
        assert value(exporter.scrape(), "roce_pfc_receive_frames_total", device="mlx5_0", priority="3") == 77


def test_a_reset_is_exported_unchanged(cards, exporter) -> None:
    cards["mlx5_0"].table("rdma").set({"np_cnp_sent": 9})
    assert value(exporter.scrape(), "roce_cnp_sent_total", device="mlx5_0") == 9
    cards["mlx5_0"].reset()
    assert value(exporter.scrape(), "roce_cnp_sent_total", device="mlx5_0") == 0


def test_link_and_speed_follow_the_card(cards, exporter) -> None:
    nic = cards["ionic_0"]
    nic.leg("link").set({"speed": 25_000})
    samples = exporter.scrape()
    assert value(samples, "roce_port_up", device="ionic_0") == 1
    assert 25_000 * 125_000 in about(samples, "ionic_0").values()
    nic.leg("link").set({"up": 0})
    assert value(exporter.scrape(), "roce_port_up", device="ionic_0") == 0
    nic.leg("link").set({"up": 1, "speed": 100_000})


def test_the_exporter_runs_as_an_unprivileged_user(exporter) -> None:
    status = Path(f"/proc/{exporter.process.pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == ["65534"] * 4
    assert int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == 0

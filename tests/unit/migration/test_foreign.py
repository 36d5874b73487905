"""What the names of other exporters mean is made from the catalogue, and a name with two meanings is refused."""

import re

import pytest
from compat_rules import terms

from roce_exporter.catalog import INDEX
from roce_exporter.catalog.row import COUNTERS, ETHTOOL, HW_COUNTERS
from roce_exporter.migrate import node_exporter
from roce_exporter.migrate.foreign import EXPORTERS, Foreign, foreign_metrics, untranslatable
from roce_exporter.migrate.naming import expanded
from roce_exporter.migrate.node_exporter import ethtool_name
from roce_exporter.migrate.rdma_exporter import counter_name
from roce_exporter.migrate.spiderpool import statistic_name

ROWS = INDEX.named


def named(exporter: str, name: str) -> list[Foreign]:
    return [one for one in foreign_metrics(exporter) if one.name == name]


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_every_name_leads_to_a_row(exporter) -> None:
    found = foreign_metrics(exporter)
    assert len(found) > 300
    assert list(found) == sorted(found, key=lambda one: (one.name, one.where))
    assert len({(one.name, one.where) for one in found}) == len(found)
    for one in found:
        row = ROWS[one.ours]
        assert {ours for _, ours in one.labels} | {label for label, _ in one.matching} <= set(row.labels), one
        assert one.times > 0 < one.per


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_a_name_is_translated_or_refused_and_not_both(exporter) -> None:
    names = {one.name for one in foreign_metrics(exporter)}
    patterns = [re.compile(pattern) for pattern in untranslatable(exporter)]
    assert {name for name in names for pattern in patterns if pattern.fullmatch(name)} == set()


@pytest.mark.parametrize(
    ("exporter", "name", "ours", "times", "per"),
    [
        (
            "node_exporter",
            "node_infiniband_port_data_received_bytes_total",
            "roce_port_receive_bytes_total",
            1,
            1,
        ),
        ("node_exporter", "node_amazonefa_rx_bytes", "roce_port_receive_bytes_total", 1, 1),
        ("rdma_exporter", "rdma_port_rcv_data_total", "roce_port_receive_bytes_total", 4, 1),
        ("node_exporter", "node_infiniband_rate_bytes_per_second", "roce_port_speed_bytes_per_second", 1, 1),
        ("node_exporter", "node_ethtool_received_bits_phy", "roce_phy_line_bytes_total", 1, 8),
        ("node_exporter", "node_ethtool_outbound_pci_stalled_rd", "roce_pcie_read_stalled_ratio", 1, 100),
        ("spiderpool", "rdma_vport_speed_mbps_total", "roce_link_speed_bytes_per_second", 125_000, 1),
    ],
)
def test_units(exporter, name, ours, times, per) -> None:
    """Ours is theirs x times / per: node_exporter multiplies the 4-byte words itself."""
    (found,) = named(exporter, name)
    assert (found.ours, found.times, found.per) == (ours, times, per)


def test_a_number_in_a_name_is_a_label_of_ours() -> None:
    (found,) = named("node_exporter", "node_ethtool_received_prio3_pause_duration")
    assert (found.ours, found.matching) == ("roce_pfc_receive_pause_seconds_total", (("priority", "3"),))
    assert found.labels == (("device", "netdev"),)


def test_a_label_of_theirs_is_a_name_of_ours() -> None:
    found = named("rdma_exporter", "rdma_netdev_pause_storm_events_total")
    assert {one.where: one.ours for one in found} == {
        (("severity", "error"),): "roce_pfc_watchdog_trips_total",
        (("severity", "warning"),): "roce_pfc_watchdog_warnings_total",
    }


def test_a_name_with_two_meanings_is_refused() -> None:
    """`rx_bytes` counts the wire on bnxt_en, and on mlx5 what the kernel receives itself."""
    name = "node_ethtool_received_bytes_total"
    assert not named("node_exporter", name)
    reason = "the kernel's own path through the driver, which RDMA does not use"
    found = untranslatable("node_exporter")[name]
    assert found.startswith("roce_phy_receive_bytes_total on bnxt_re, but on ")
    assert found.endswith(f", irdma, mlx4, mlx5: {reason}")


def test_a_part_of_a_sum_is_refused_alone_and_used_in_the_sum() -> None:
    assert not named("rdma_exporter", "rdma_ip4inoctets_total")
    why = "a part of roce_port_receive_bytes_total of irdma, which adds up ip4InOctets and ip6InOctets"
    assert untranslatable("rdma_exporter")["rdma_ip4inoctets_total"] == why
    patterns = {"rdma_(current_rate)_total", "(?!(rdma_vport_speed_mbps_total)$)rdma_(vport_.+)_total"}
    assert patterns <= untranslatable("spiderpool").keys()
    parts = [
        [one.name for part in term.parts for one in part]
        for term in terms("rdma_exporter", ROWS["roce_port_receive_bytes_total"])
    ]
    assert ["rdma_ip4inoctets_total", "rdma_ip6inoctets_total"] in parts


def test_a_name_of_several_drivers_comes_after_the_names_that_one_of_them_prefers() -> None:
    row = ROWS["roce_transport_out_of_sequence_total"]
    names = [term.parts[0][0].name for term in terms("rdma_exporter", row)]
    assert names.index("rdma_oos_drop_count_total") < names.index("rdma_out_of_sequence_total")


def test_a_driver_that_counts_badly_is_a_loss() -> None:
    (found,) = named("node_exporter", "node_infiniband_symbol_error_total")
    assert found.loss.startswith("on bnxt_re, ")
    assert ", rxe: declared by the driver but never written" in found.loss


def test_every_name_of_the_infiniband_collector_is_known() -> None:
    """58 names: those of 1.12.1 without the eight that Linux 4.5 made obsolete and the one that is never written."""
    tables = (node_exporter.OF_COUNTERS, node_exporter.OF_HW_COUNTERS, node_exporter.OF_PORT)
    names = {f"node_infiniband_{name}" for table in tables for name in table.values()} | {
        "node_infiniband_info"
    }
    translated = {one.name for one in foreign_metrics("node_exporter")}
    assert (
        names - translated
        == {"node_infiniband_port_discards_received_total"}
        <= set(untranslatable("node_exporter"))
    )


@pytest.mark.parametrize(
    ("written", "raw", "name"),
    [
        # node_exporter: other characters become one `_`, then lower case, then `rx` and `tx` as words
        (ethtool_name, "rx_prio3_pause", "node_ethtool_received_prio3_pause"),
        (ethtool_name, "rx_bytes", "node_ethtool_received_bytes_total"),
        (ethtool_name, "port.tx_errors", "node_ethtool_port_transmitted_errors"),
        (ethtool_name, "port-rx-xoff_prio-3_events", "node_ethtool_port_received_xoff_prio_3_events"),
        (ethtool_name, "[0]: rx_ucast_packets", "node_ethtool_0_received_ucast_packets"),
        (ethtool_name, "rxp_good_frames", "node_ethtool_rxp_good_frames"),
        (ethtool_name, "rx", "node_ethtool_received"),
        (ethtool_name, "RX_Drops", "node_ethtool_received_drops"),
        (counter_name, "VL15_dropped", "rdma_vl15_dropped_total"),
        (counter_name, "Rcvd Out of order packets", "rdma_rcvd_out_of_order_packets_total"),
        (counter_name, "64b_frames", "rdma__64b_frames_total"),
        # spiderpool: camel case is split before a capital that a small letter follows; OpenTelemetry refuses spaces
        (statistic_name, "np_cnp_sent", "rdma_np_cnp_sent_total"),
        (statistic_name, "ip4InOctets", "rdma_ip4_in_octets_total"),
        (statistic_name, "RxUDP", "rdma_rxudp_total"),
        (statistic_name, "Rcvd Out of order packets", ""),
    ],
)
def test_names_of_other_exporters(written, raw, name) -> None:
    assert written(raw) == name


def test_only_numbers_are_written_out() -> None:
    assert [labels for _, labels in expanded("rx_prio{priority}_pause")] == [
        (("priority", str(n)),) for n in range(8)
    ]
    assert expanded("codewords_le_{le}") == []
    assert expanded("plain") == [("plain", ())]


@pytest.mark.parametrize("source", [COUNTERS, HW_COUNTERS, ETHTOOL])
def test_a_pattern_with_other_characters_is_not_listed(source) -> None:
    assert node_exporter.pattern_of(source, r"\[\d+\]: .+") == ""

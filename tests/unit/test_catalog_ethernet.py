"""The Ethernet rows: each driver's `ethtool -S` name has one meaning, one direction and base units, or a reason."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.catalog import CATALOG, DIALECTS, INDEX, pattern_of
from roce_exporter.catalog.row import ANY, ETHTOOL, HW_COUNTERS, Spelling

SPELT = [(row, spelling) for row in CATALOG for spelling in row.spellings if spelling.source == ETHTOOL]

EXPECTED = {
    ("mlx5", HW_COUNTERS, "rx_icrc_encapsulated"): "roce_transport_icrc_errors_total",
    ("erdma", HW_COUNTERS, "hw_rx_bytes_cnt"): "roce_port_receive_bytes_total",
    ("mlx5", ETHTOOL, "rx_global_pause_duration"): "roce_global_pause_receive_seconds_total",
    ("mlx5", ETHTOOL, "tx_pause_ctrl_phy"): "roce_global_pause_transmit_frames_total",
    ("mlx5", ETHTOOL, "tx_pause_storm_warning_events"): "roce_pfc_watchdog_warnings_total",
    ("mlx5", ETHTOOL, "tx_pause_storm_error_events"): "roce_pfc_watchdog_trips_total",
    ("mlx5", ETHTOOL, "rx_prio3_marked"): "roce_nic_ecn_marked_packets_total",
    ("mlx5", ETHTOOL, "rx_prio3_discards"): "roce_buffer_discards_total",
    ("mlx5", ETHTOOL, "rx_prio3_buf_discard"): "roce_host_buffer_discards_total",
    ("mlx5", ETHTOOL, "rx_prio3_cong_discard"): "roce_host_congestion_discards_total",
    ("mlx5", ETHTOOL, "rx_discards_phy"): "roce_phy_receive_discards_total",
    ("mlx5", ETHTOOL, "rx_unsupported_op_phy"): "roce_mac_control_frames_unsupported_total",
    ("mlx5", ETHTOOL, "rx_out_of_buffer"): "roce_netdev_out_of_buffer_total",
    ("mlx5", ETHTOOL, "dev_out_of_buffer"): "roce_device_internal_out_of_buffer_total",
    ("mlx5", ETHTOOL, "outbound_pci_buffer_overflow"): "roce_pcie_buffer_overflows_total",
    ("mlx5", ETHTOOL, "rx_symbol_err_phy"): "roce_phy_symbol_error_packets_total",
    ("mlx5", ETHTOOL, "rx_pcs_symbol_err_phy"): "roce_phy_symbol_errors_total",
    ("mlx5", ETHTOOL, "link_down_events_phy"): "roce_link_down_events_total",
    ("mlx4", ETHTOOL, "rx_pause_duration"): "roce_global_pause_receive_seconds_total",
    ("bnxt_re", ETHTOOL, "rx_pfc_frames"): "roce_pfc_receive_all_frames_total",
    ("bnxt_re", ETHTOOL, "continuous_roce_pause_events"): "roce_pfc_watchdog_trips_total",
    ("bnxt_re", ETHTOOL, "resume_roce_pause_events"): "roce_pfc_watchdog_resumes_total",
    ("bnxt_re", ETHTOOL, "continuous_pause_events"): "roce_pause_watchdog_trips_total",
    ("bnxt_re", ETHTOOL, "rx_discard_packets_cos5"): "roce_queue_receive_discards_total",
    ("bnxt_re", ETHTOOL, "tx_bytes_cos5"): "roce_queue_transmit_bytes_total",
    ("bnxt_re", ETHTOOL, "rx_bytes_pri3"): "roce_priority_receive_bytes_total",
    ("bng_re", ETHTOOL, "rxp_pfc_ena_frames_pri3"): "roce_pfc_receive_frames_total",
    ("bng_re", ETHTOOL, "pfc_pri3_tx_duration_us"): "roce_pfc_transmit_pause_seconds_total",
    ("irdma", ETHTOOL, "rx_priority_3_xoff.nic"): "roce_pfc_receive_xoff_frames_total",
    ("irdma", ETHTOOL, "tx_priority_3_xon.nic"): "roce_pfc_transmit_xon_frames_total",
    ("irdma", ETHTOOL, "port-tx-xoff_prio-3_events"): "roce_pfc_transmit_xoff_frames_total",
    ("irdma", ETHTOOL, "port.rx_priority_3_xoff"): "roce_pfc_receive_xoff_frames_total",
    ("irdma", ETHTOOL, "port.rx_priority_3_xoff_rx"): "roce_pfc_receive_xoff_frames_total",
    ("irdma", ETHTOOL, "port.rx_priority_3_xon_2_xoff"): "roce_pfc_receive_transitions_total",
    ("irdma", ETHTOOL, "link_xoff_tx.nic"): "roce_global_pause_transmit_xoff_frames_total",
    ("irdma", ETHTOOL, "port-rx-xon_events"): "roce_global_pause_receive_xon_frames_total",
    ("irdma", ETHTOOL, "illegal_bytes.nic"): "roce_phy_symbol_error_packets_total",
    ("irdma", ETHTOOL, "port-rx-dropped_pkts"): "roce_phy_receive_discards_total",
    ("irdma", ETHTOOL, "tx_errors.nic"): "roce_phy_transmit_errors_total",
    ("ionic", ETHTOOL, "rx_pause_1us_count"): "roce_global_pause_receive_seconds_total",
    ("ionic", ETHTOOL, "hw_rx_over_errors"): "roce_netdev_out_of_buffer_total",
    ("ionic", ETHTOOL, "hw_rx_missed_errors"): "roce_netdev_receive_transfer_errors_total",
    ("ionic", ETHTOOL, "frames_rx_stomped_crc"): "roce_phy_receive_stomped_crc_errors_total",
    ("hns", ETHTOOL, "mac_tx_pfc_pri3_pkt_num"): "roce_pfc_transmit_frames_total",
    ("hns", ETHTOOL, "mac_rx_mac_pause_num"): "roce_global_pause_receive_frames_total",
    ("qedr", ETHTOOL, "tx_pfc_frames"): "roce_pfc_transmit_all_frames_total",
    ("qedr", ETHTOOL, "brb_discards"): "roce_phy_receive_discards_total",
    ("mana", ETHTOOL, "hc_tc3_rx_pause_phy"): "roce_pfc_receive_frames_total",
    ("mana", ETHTOOL, "hc_tc3_tx_byte_phy"): "roce_priority_transmit_bytes_total",
    ("mana", ETHTOOL, "hc_rx_pkt_drop_phy"): "roce_phy_receive_discards_total",
}
"""Names that no recorded host counts; golden files have what the others mean."""


def test_a_vendors_name_has_the_common_meaning() -> None:
    found = {key: INDEX.claimed(*key).name for key in EXPECTED}
    assert found == EXPECTED


NEW = [
    "rx_prio3_fresh_counter",
    "tx_prio3_pause_storm_events",
    "tx_pause_storm_events",
    "rx_buffer_headroom_exceeded",
    "rx_roce_ecn_events",
    "pci_bw_inbound_limit",
    "rx_prio_pause",
    "rx_priox_pause",
    "rx_prio3_pause_phy",
    "port.rx_priority_3_xoff_tx",
]


SOFTWARE = {"rxe", "siw"}
"""RDMA in software: the private counters are those of the network device below, whose driver does not support RDMA."""


@pytest.mark.parametrize("dialect", sorted(SOFTWARE))
def test_rdma_in_software_has_no_private_counters_of_its_own(dialect) -> None:
    assert INDEX.left_out(dialect, ETHTOOL, "rx_pp_alloc_fast")
    assert not INDEX.left_out(dialect, "hw_counters", "sent_pkts")


def test_an_unknown_name_is_shown_as_unmapped() -> None:
    """No pattern is wide enough to hide a new driver's names for pause or congestion."""
    hidden = [
        (dialect, raw)
        for dialect, raw in product((*DIALECTS, ""), NEW)
        if INDEX.claimed(dialect, ETHTOOL, raw) or INDEX.left_out(dialect, ETHTOOL, raw)
    ]
    assert hidden == []


def test_no_name_is_both_a_series_and_left_out() -> None:
    assert len(SPELT) > 300
    for row, spelling in SPELT:
        for raw in spelling.raw:
            name = raw.format(priority=3, lane=3, queue=3)
            assert INDEX.left_out(spelling.dialect, ETHTOOL, name) == "", (row.name, name)


@given(st.text(max_size=30), st.sampled_from(["priority", "lane", "queue"]))
def test_only_numbers_match_a_priority_a_lane_or_a_queue(text, placeholder) -> None:
    matched = pattern_of(f"rx_{{{placeholder}}}_pause").fullmatch(f"rx_{text}_pause")
    assert bool(matched) == bool(re.fullmatch("[0-9]+", text))


def directions(raw: str) -> set[str]:
    return {"rx", "tx"} & set(re.split(r"[._-]", raw))


def test_received_values_are_never_shown_as_sent() -> None:
    opposite = {"receive": "tx", "transmit": "rx"}
    for row, spelling in SPELT:
        for way, other in opposite.items():
            if f"_{way}_" in row.name and row.name != "roce_pcie_transmit_recoveries_total":
                assert other not in directions(spelling.raw[0]), (row.name, spelling.raw)


def turned(raw: str) -> str:
    return re.sub(r"(?<![a-z])[rt]x(?=p_|[^a-z]|$)", lambda way: "tx" if way[0] == "rx" else "rx", raw)


def joined(raw: str) -> str:
    """Without underscores: a driver may write `pause_frames` for one direction and `pauseframes` for the other."""
    return raw.replace("_", "")


ONE_WAY = {
    "rx_prio{priority}_pause_transition",
    "rx_global_pause_transition",
    "port.rx_priority_{priority}_xon_2_xoff",
    "rx_pause_1us_count",
}
"""Pause that a driver counts in one direction only."""


def test_pause_rows_are_the_same_in_both_directions() -> None:
    rows = INDEX.named
    twins = [name for name in rows if re.match("roce_(pfc|global_pause)_receive_", name)]
    assert len(twins) >= 10
    for name in twins:
        told = {
            (one.dialect, joined(turned(one.raw[0])), one.bits, one.per)
            for one in rows[name].spellings
            if one.source == ETHTOOL and one.raw[0] not in ONE_WAY
        }
        twin = rows[name.replace("_receive_", "_transmit_")] if told else None
        answered = {
            (one.dialect, joined(one.raw[0]), one.bits, one.per)
            for one in (twin.spellings if twin else ())
            if one.source == ETHTOOL
        }
        assert told == answered, name


SCALES = {
    "rx_global_pause_duration": 1_000_000,
    "outbound_pci_stalled_rd": 100,
    "outbound_pci_stalled_rd_events": 1,
}

WIDTHS = {
    "rx_out_of_buffer": 32,
    "dev_internal_queue_oob": 32,
    "link_down_events_phy": 32,
    "total_success_recovery_phy": 32,
    "tx_pci_signal_integrity": 32,
    "outbound_pci_stalled_wr_events": 32,
    "rx_prio{priority}_pause": 64,
    "rx_pfc_ena_frames_pri{priority}": 64,
    "rx_priority_{priority}_xoff.nic": 64,
    "port.rx_priority_{priority}_xoff": 32,
    "port.rx_crc_errors": 32,
    "port.rx_bytes": 48,
}


def spelling_of(raw: str) -> Spelling:
    found = [spelling for _, spelling in SPELT if spelling.raw == (raw,)]
    assert len({(one.times, one.per, one.bits) for one in found}) == 1, "drivers with one name count alike"
    return found[0]


def test_times_are_seconds_and_shares_are_ratios() -> None:
    assert {raw: spelling_of(raw).per for raw in SCALES} == SCALES
    assert {spelling_of(raw).times for raw in SCALES} == {1}


def test_narrow_counters_have_their_width() -> None:
    """The narrow registers of ice are added up to 64 bits; those of i40e are shown as they wrap."""
    assert {raw: spelling_of(raw).bits for raw in WIDTHS} == WIDTHS


def test_the_unit_is_in_the_name() -> None:
    for row, _ in SPELT:
        if row.unit in ("bytes", "seconds"):
            assert row.name.endswith(f"{row.unit}_total"), row.name


def test_no_row_applies_to_all_drivers() -> None:
    """The same name of `ethtool -S` means different things to different drivers."""
    assert ANY not in {spelling.dialect for _, spelling in SPELT}

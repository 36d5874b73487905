"""Priority flow control (IEEE 802.1Qbb), global pause (802.3 annex 31B) and the NIC's own watchdogs.

Received pause stops this host: the fabric is congested, or another host blocks it. Transmitted pause stops others: this
host cannot receive fast enough. Frame counts do not measure time: one frame pauses for up to 65,535 quanta, and again
when it is repeated. Where a driver reports seconds, rely on those.
"""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.drivers import DRIVERS
from roce_exporter.catalog.row import ANY, LEAN, PRIORITY_LABELS, STANDARD, Spelling, netdev_counter, spelt
from roce_exporter.catalog.spellings import (
    eth_bng,
    eth_bnxt,
    eth_hns,
    eth_intel,
    eth_ionic,
    eth_mana,
    eth_mlx4,
    eth_mlx5,
    eth_ocrdma,
    eth_qedr,
)
from roce_exporter.catalog.windows_names import win_diagnostics, win_qos

MICROSECONDS = 1_000_000

ENABLED_ONLY = " mlx5 and mlx4 report only priorities with PFC enabled: missing means off."
PER_CLASS = " mana counts per traffic class, so `priority` is the traffic class there."


def pause(name: str, bits: int = 64) -> Spelling:
    """A global pause counter of ethtool netlink, the same for all drivers."""
    return spelt(ANY, "pause", name, bits=bits)


FRAMES_BY_DCB = tuple(family.dialect for family in DRIVERS if family.dcb_counts_pfc)
"""Dialects whose DCB reply has PFC frame counts of its own. mlx5 and mlx4 also fill it in for priorities without PFC,
which must not be exported."""


def reported_by_dcb(dialect: str, name: str) -> Spelling:
    """A counter of DCB netlink: the fallback where `ethtool -S` has no such name."""
    return spelt(dialect, "dcb", name)


by_priority = partial(netdev_counter, labels=PRIORITY_LABELS)

PFC = (
    by_priority(
        "roce_pfc_receive_frames_total",
        "frames",
        "PFC pause frames received for the priority: they stop this host from sending."
        + ENABLED_ONLY
        + PER_CLASS,
        eth_mlx5("rx_prio{priority}_pause"),
        eth_mlx4("rx_pause_prio_{priority}"),
        eth_bnxt("rx_pfc_ena_frames_pri{priority}"),
        eth_bng("rxp_pfc_ena_frames_pri{priority}"),
        eth_hns("mac_rx_pfc_pri{priority}_pkt_num"),
        eth_mana("hc_tc{priority}_rx_pause_phy"),
        *(reported_by_dcb(dialect, "pfc_indications_{priority}") for dialect in FRAMES_BY_DCB),
        win_qos("Rcv Pause Frames"),
        metric_set=LEAN,
    ),
    by_priority(
        "roce_pfc_transmit_frames_total",
        "frames",
        "PFC pause frames sent for the priority: they stop the switch from sending to this host."
        + ENABLED_ONLY
        + PER_CLASS,
        eth_mlx5("tx_prio{priority}_pause"),
        eth_mlx4("tx_pause_prio_{priority}"),
        eth_bnxt("tx_pfc_ena_frames_pri{priority}"),
        eth_bng("txp_pfc_ena_frames_pri{priority}"),
        eth_hns("mac_tx_pfc_pri{priority}_pkt_num"),
        eth_mana("hc_tc{priority}_tx_pause_phy"),
        *(reported_by_dcb(dialect, "pfc_requests_{priority}") for dialect in FRAMES_BY_DCB),
        win_qos("Sent Pause Frames"),
        metric_set=LEAN,
    ),
    by_priority(
        "roce_pfc_receive_xoff_frames_total",
        "frames",
        "PFC XOFF frames received, which pause the priority. Intel counts per traffic class: priorities of one class rise "
        "together, so do not add them up.",
        eth_intel("rx_priority_{priority}_xoff.nic"),
        eth_intel("port-rx-xoff_prio-{priority}_events"),
        eth_intel("port.rx_priority_{priority}_xoff", bits=32),
        eth_intel("port.rx_priority_{priority}_xoff_rx", bits=32),
        metric_set=LEAN,
    ),
    by_priority(
        "roce_pfc_receive_xon_frames_total",
        "frames",
        "PFC XON frames received, which resume the priority. Intel counts per traffic class; do not add priorities up.",
        eth_intel("rx_priority_{priority}_xon.nic"),
        eth_intel("port-rx-xon_prio-{priority}_events"),
        eth_intel("port.rx_priority_{priority}_xon", bits=32),
        eth_intel("port.rx_priority_{priority}_xon_rx", bits=32),
        metric_set=LEAN,
    ),
    by_priority(
        "roce_pfc_transmit_xoff_frames_total",
        "frames",
        "PFC XOFF frames sent, which pause the priority. Intel counts per traffic class; do not add priorities up.",
        eth_intel("tx_priority_{priority}_xoff.nic"),
        eth_intel("port-tx-xoff_prio-{priority}_events"),
        eth_intel("port.tx_priority_{priority}_xoff", bits=32),
        eth_intel("port.tx_priority_{priority}_xoff_tx", bits=32),
        metric_set=LEAN,
    ),
    by_priority(
        "roce_pfc_transmit_xon_frames_total",
        "frames",
        "PFC XON frames sent, which resume the priority. Intel counts per traffic class; do not add priorities up.",
        eth_intel("tx_priority_{priority}_xon.nic"),
        eth_intel("port-tx-xon_prio-{priority}_events"),
        eth_intel("port.tx_priority_{priority}_xon", bits=32),
        eth_intel("port.tx_priority_{priority}_xon_tx", bits=32),
        metric_set=LEAN,
    ),
    by_priority(
        "roce_pfc_receive_pause_seconds_total",
        "seconds",
        "Seconds this host was prevented from sending on the priority by received PFC frames." + ENABLED_ONLY,
        eth_mlx5("rx_prio{priority}_pause_duration", per=MICROSECONDS),
        eth_mlx4("rx_pause_duration_prio_{priority}", per=MICROSECONDS),
        eth_bnxt("pfc_pri{priority}_rx_duration_us", per=MICROSECONDS),
        eth_bng("pfc_pri{priority}_rx_duration_us", per=MICROSECONDS),
        eth_ionic("rx_pripause_{priority}_1us_count", per=MICROSECONDS),
        # Not a mistake: WinOF names the durations after the host that is paused, not after the frames.
        win_qos("Sent Pause Duration", per=MICROSECONDS),
        metric_set=LEAN,
    ),
    by_priority(
        "roce_pfc_transmit_pause_seconds_total",
        "seconds",
        "Seconds this host prevented its switch from sending on the priority by PFC frames." + ENABLED_ONLY,
        eth_mlx5("tx_prio{priority}_pause_duration", per=MICROSECONDS),
        eth_mlx4("tx_pause_duration_prio_{priority}", per=MICROSECONDS),
        eth_bnxt("pfc_pri{priority}_tx_duration_us", per=MICROSECONDS),
        eth_bng("pfc_pri{priority}_tx_duration_us", per=MICROSECONDS),
        eth_ionic("tx_pripause_{priority}_1us_count", per=MICROSECONDS),
        win_qos("Rcv Pause Duration", per=MICROSECONDS),
        metric_set=LEAN,
    ),
    by_priority(
        "roce_pfc_receive_pause_cycles_total",
        "cycles",
        "Device cycles during which received PFC prevented this host from sending; hns does not document the length of a cycle.",
        eth_hns("mac_rx_pfc_pri{priority}_xoff_time"),
    ),
    by_priority(
        "roce_pfc_transmit_pause_cycles_total",
        "cycles",
        "Device cycles during which this host prevented its switch from sending; hns does not document the length of a cycle.",
        eth_hns("mac_tx_pfc_pri{priority}_xoff_time"),
    ),
    by_priority(
        "roce_pfc_receive_transitions_total",
        "events",
        "Number of times received PFC paused and resumed the priority. bnxt counts both transitions, so its value is halved.",
        eth_mlx5("rx_prio{priority}_pause_transition"),
        eth_mlx4("rx_pause_transition_prio_{priority}"),
        eth_bnxt("pfc_pri{priority}_rx_transitions", per=2),
        eth_bng("pfc_pri{priority}_rx_transitions", per=2),
        eth_intel("port.rx_priority_{priority}_xon_2_xoff", bits=32),
        metric_set=LEAN,
    ),
    by_priority(
        "roce_pfc_transmit_transitions_total",
        "events",
        "Number of times this host paused and resumed the priority. bnxt counts both transitions, so its value is halved.",
        eth_mlx4("tx_pause_transition_prio_{priority}"),
        eth_bnxt("pfc_pri{priority}_tx_transitions", per=2),
        eth_bng("pfc_pri{priority}_tx_transitions", per=2),
        metric_set=LEAN,
    ),
    netdev_counter(
        "roce_pfc_receive_all_frames_total",
        "frames",
        "PFC pause frames received, all priorities together.",
        eth_bnxt("rx_pfc_frames"),
        eth_ionic("frames_rx_pripause"),
        eth_qedr("rx_pfc_frames"),
        eth_hns("mac_rx_pfc_pkt_num"),
        eth_ocrdma("rx_priority_pause_frames"),
    ),
    netdev_counter(
        "roce_pfc_transmit_all_frames_total",
        "frames",
        "PFC pause frames sent, all priorities together.",
        eth_bnxt("tx_pfc_frames"),
        eth_ionic("frames_tx_pripause"),
        eth_qedr("tx_pfc_frames"),
        eth_hns("mac_tx_pfc_pkt_num"),
        eth_ocrdma("tx_priority_pauseframes"),
    ),
)

WATCHDOG = (
    netdev_counter(
        "roce_pfc_watchdog_warnings_total",
        "events",
        "Number of times the NIC sent pause for longer than its minor stall watermark. mlx5 reports priority 0 only: "
        "0 does not mean that there was no storm on the lossless priority.",
        eth_mlx5("tx_pause_storm_warning_events"),
        win_diagnostics("Minor Stall Watermark Reached"),
        metric_set=LEAN,
        usual=0,
    ),
    netdev_counter(
        "roce_pfc_watchdog_trips_total",
        "events",
        "Number of times the NIC's own watchdog stopped its pause frames because the pause lasted too long; packets are "
        "dropped from then on. mlx5 before Linux 7 reports priority 0 only: 0 does not mean healthy.",
        pause("transmit_storm_events"),
        eth_mlx5("tx_pause_storm_error_events"),
        eth_bnxt("continuous_roce_pause_events"),
        eth_bng("continuous_roce_pause_events"),
        win_diagnostics("Critical Stall Watermark Reached"),
        metric_set=LEAN,
    ),
    netdev_counter(
        "roce_pfc_watchdog_resumes_total",
        "events",
        "Number of times the NIC's own watchdog re-enabled PFC.",
        eth_bnxt("resume_roce_pause_events"),
        eth_bng("resume_roce_pause_events"),
        metric_set=STANDARD,
        usual=0,
    ),
    netdev_counter(
        "roce_pause_watchdog_trips_total",
        "events",
        "Number of times the NIC found idle rings that still asserted pause.",
        eth_bnxt("continuous_pause_events"),
        eth_bng("continuous_pause_events"),
        metric_set=LEAN,
    ),
    netdev_counter(
        "roce_pause_watchdog_resumes_total",
        "events",
        "Number of times idle rings that asserted pause resumed.",
        eth_bnxt("resume_pause_events"),
        eth_bng("resume_pause_events"),
        metric_set=STANDARD,
        usual=0,
    ),
)

GLOBAL = (
    netdev_counter(
        "roce_global_pause_receive_frames_total",
        "frames",
        "Global pause frames (802.3x) received: they stop all priorities at once. PFC is counted separately.",
        eth_mlx5("rx_pause_ctrl_phy"),
        eth_mlx5("rx_global_pause"),
        eth_mlx4("rx_pause"),
        eth_bnxt("rx_pause_frames"),
        eth_ionic("frames_rx_pause"),
        eth_qedr("rx_pause_frames"),
        eth_hns("mac_rx_mac_pause_num"),
        eth_ocrdma("rx_pause_frames"),
        pause("receive_frames"),
        metric_set=LEAN,
        usual=0,
    ),
    netdev_counter(
        "roce_global_pause_transmit_frames_total",
        "frames",
        "Global pause frames (802.3x) sent: they stop all priorities at once. PFC is counted separately.",
        eth_mlx5("tx_pause_ctrl_phy"),
        eth_mlx5("tx_global_pause"),
        eth_mlx4("tx_pause"),
        eth_bnxt("tx_pause_frames"),
        eth_ionic("frames_tx_pause"),
        eth_qedr("tx_pause_frames"),
        eth_hns("mac_tx_mac_pause_num"),
        eth_ocrdma("tx_pauseframes"),
        pause("transmit_frames"),
        metric_set=LEAN,
        usual=0,
    ),
    netdev_counter(
        "roce_global_pause_receive_xoff_frames_total",
        "frames",
        "Global pause XOFF frames received, which stop the port.",
        eth_intel("link_xoff_rx.nic"),
        eth_intel("port-rx-xoff_events"),
        eth_intel("port.link_xoff_rx", bits=32),
        metric_set=LEAN,
        usual=0,
    ),
    netdev_counter(
        "roce_global_pause_receive_xon_frames_total",
        "frames",
        "Global pause XON frames received, which resume the port.",
        eth_intel("link_xon_rx.nic"),
        eth_intel("port-rx-xon_events"),
        eth_intel("port.link_xon_rx", bits=32),
    ),
    netdev_counter(
        "roce_global_pause_transmit_xoff_frames_total",
        "frames",
        "Global pause XOFF frames sent, which stop the port.",
        eth_intel("link_xoff_tx.nic"),
        eth_intel("port-tx-xoff_events"),
        eth_intel("port.link_xoff_tx", bits=32),
        metric_set=LEAN,
        usual=0,
    ),
    netdev_counter(
        "roce_global_pause_transmit_xon_frames_total",
        "frames",
        "Global pause XON frames sent, which resume the port.",
        eth_intel("link_xon_tx.nic"),
        eth_intel("port-tx-xon_events"),
        eth_intel("port.link_xon_tx", bits=32),
    ),
    netdev_counter(
        "roce_global_pause_receive_seconds_total",
        "seconds",
        "Seconds this host was prevented from sending by received global pause frames.",
        eth_mlx5("rx_global_pause_duration", per=MICROSECONDS),
        eth_mlx4("rx_pause_duration", per=MICROSECONDS),
        eth_ionic("rx_pause_1us_count", per=MICROSECONDS),
    ),
    netdev_counter(
        "roce_global_pause_transmit_seconds_total",
        "seconds",
        "Seconds this host prevented its switch from sending by global pause frames.",
        eth_mlx5("tx_global_pause_duration", per=MICROSECONDS),
        eth_mlx4("tx_pause_duration", per=MICROSECONDS),
    ),
    netdev_counter(
        "roce_global_pause_receive_cycles_total",
        "cycles",
        "Device cycles during which received global pause prevented this host from sending; hns does not document their length.",
        eth_hns("mac_rx_pause_xoff_time"),
    ),
    netdev_counter(
        "roce_global_pause_transmit_cycles_total",
        "cycles",
        "Device cycles during which this host prevented its switch from sending; hns does not document their length.",
        eth_hns("mac_tx_pause_xoff_time"),
    ),
    netdev_counter(
        "roce_global_pause_receive_transitions_total",
        "events",
        "Number of times received global pause stopped and resumed the port.",
        eth_mlx5("rx_global_pause_transition"),
        eth_mlx4("rx_pause_transition"),
    ),
    netdev_counter(
        "roce_global_pause_transmit_transitions_total",
        "events",
        "Number of times this host stopped and resumed its switch by global pause.",
        eth_mlx4("tx_pause_transition"),
    ),
)

ROWS = (*PFC, *WATCHDOG, *GLOBAL)

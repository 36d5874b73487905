"""Every counter of faults is read by a rule of health, or is listed here with the reason why it is not."""

from roce_exporter.catalog import CATALOG
from roce_exporter.checks.health.health_watch import KEPT

OTHERS = ("roce_switch", "roce_windows", "roce_wire", "roce_exporter", "roce_owner")
"""Rows that are about no port of this host, or about the exporter."""

COUNTED_TWICE = "another row that is read has the same events"
OWN_TRAFFIC = "the kernel's own traffic, which no job sees"
NORMAL = "part of normal operation: healthy hosts have it all the time"
END = "the end of an event whose begin is read"
BAD_SENDER = "frames that another program or host made wrong; the link's own errors are read"

REASONS = {
    COUNTED_TWICE: (
        "transport_retransmitted_bytes transport_adaptive_retransmit_timeouts transport_slow_restarts "
        "transport_slow_restart_transitions transport_responder_completion_errors transport_responder_flushed_completions "
        "collective_ack_timeouts phy_link_changes "
        "pfc_storm_seconds pfc_congested_seconds pfc_storm_near_misses pfc_detector_faults mac_oversized_frames rmon_oversize_packets"
    ),
    NORMAL: (
        "port_transmit_wait_ticks transport_recoverable_errors delay_drop_timeouts ud_discards phy_recoveries "
        "doorbells_recovered admin_command_errors "
        "devlink_vnic_odp_local_triggered_page_fault devlink_vnic_odp_remote_triggered_page_fault"
    ),
    END: "pfc_watchdog_resumes pause_watchdog_resumes pfc_storms_restored devlink_health_recoveries",
    OWN_TRAFFIC: (
        "netdev_interface_down_drops netdev_oversized_drops netdev_receive_transfer_errors netdev_transmit_transfer_errors "
        "netdev_receive_dropped netdev_receive_missed port_management_drops devlink_vnic_invalid_command "
        "devlink_vnic_generated_pkt_steering_fail devlink_vnic_handled_pkt_steering_fail"
    ),
    BAD_SENDER: (
        "port_receive_truncated_packets port_receive_switch_relay_errors port_receive_constraint_errors "
        "port_transmit_constraint_errors  phy_receive_too_long phy_receive_undersized  "
        "phy_receive_length_errors    phy_transmit_oversized "
        "phy_transmit_undersized rmon_undersize_packets "
    ),
}  # fmt: skip


def test_every_counter_of_faults_is_read_or_has_a_reason() -> None:
    counted = {row.name for row in CATALOG if row.usual is not None and not row.name.startswith(OTHERS)}
    unread = counted - KEPT
    listed = [f"roce_{name}_total" for names in REASONS.values() for name in names.split()]
    assert len(listed) == len({*listed})
    assert unread == {*listed}

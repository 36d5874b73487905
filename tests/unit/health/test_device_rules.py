"""Rules about slot, optics, driver, settings, owners, congestion control and the wire view."""

import pytest
from health_history import history, only, rows_of, shown

from roce_exporter.checks.finding import Side, Status
from roce_exporter.checks.health.diagnosis import diagnose

FAULTS = """
fewer lanes = pcie_link_width_lanes 8; pcie_link_width_max_lanes 16 => pcie_narrow: 8 of 16 lanes are in use
all lanes = pcie_link_width_lanes 16; pcie_link_width_max_lanes 16 =>
an old slot = pcie_link_speed_transfers_per_second 8e+09; pcie_link_speed_max_transfers_per_second 1.6e+10 => pcie_slow
a slot that became slower = pcie_link_speed_transfers_per_second 1.6e+10 8e+09; pcie_link_speed_max_transfers_per_second 1.6e+10 => pcie_slow: 8 GT/s per lane, the card supports 16: it was 16 GT/s before
a slot that is as good as the card = pcie_link_width_lanes 16; pcie_link_width_max_lanes 16; pcie_link_speed_transfers_per_second 1.6e+10; pcie_link_speed_max_transfers_per_second 1.6e+10; pcie_inbound_congestions_total 0 3 => pcie_congestion: 3 times the NIC reported inbound PCIe traffic as congested within 60 s: but width and speed of the slot are full: rather IOMMU, NUMA placement or memory
a slot that is congested now and then = pcie_inbound_congestions_total 0 2 =>
an old slot that limits the traffic = pcie_link_speed_transfers_per_second 8e+09; pcie_link_speed_max_transfers_per_second 1.6e+10; pcie_read_stalled_seconds_total 0 30 => pcie_slow | pcie_congestion: reads from memory were stalled in 50 % of the seconds (60 s)
a fatal error = pcie_fatal_errors_total 0 1 => pcie_fatal
a lost transaction = pcie_nonfatal_errors_total 0 1 => pcie_errors
some corrected errors = pcie_correctable_errors_total 0 99 =>
many corrected errors = pcie_correctable_errors_total 0 100 => pcie_errors
a full slot now = pcie_inbound_congested 1 => pcie_congestion: the NIC reports that inbound PCIe traffic is congested now
drops of the slot = pcie_buffer_overflows_total 0 1 => pcie_congestion
too little light = transceiver_receive_power_watts 1e-05; transceiver_receive_power_low_alarm_watts 0.0001; link_up 1 => optics_receive_power_low: 0.01 mW of eth0, the module's alarm limit is 0.1 mW
no light without a link = transceiver_receive_power_watts 0; transceiver_receive_power_low_alarm_watts 0.0001; link_up 0 =>
a module without limits = transceiver_receive_power_watts 1e-05; transceiver_receive_power_high_alarm_watts 0; temperature_celsius{sensor=asic} 50; temperature_critical_celsius{sensor=asic} 0 =>
an old laser = transceiver_bias_amperes 0.09; transceiver_bias_high_alarm_amperes 0.08 => optics_bias_high
a hot module = transceiver_temperature_celsius 76; transceiver_temperature_high_alarm_celsius 75 => too_hot
a hot chip = temperature_celsius{sensor=asic} 105; temperature_critical_celsius{sensor=asic} 105 => too_hot: sensor asic has 105 °C, 105 is critical
an unplugged module = transceiver_unplugs_total 0 1 => module_fault
a broken source = exporter_source_up{source=ethtool} 0 => source_broken
sources that worked = exporter_source_up{source=ethtool} 1 0; exporter_source_up{source=port} 1 0 => driver_not_responding
some sources that worked = exporter_source_up{source=ethtool} 1 0; exporter_source_up{source=port} 1 => source_broken
values that cannot be read = exporter_unreadable_values{source=counters} 2 => source_broken: 2 values of the source counters cannot be read
values that the device does not have = exporter_unreadable_values{source=counters} 2; exporter_read_errors_total{source=counters} 0; exporter_read_errors_total{source=ethtool} 5 =>
values of a source that is new = exporter_unreadable_values{source=counters} - 2 =>
values that could not be read once = exporter_unreadable_values{source=counters} 0 2 =>
a read that hangs = exporter_sampler_stuck 1 => driver_not_responding: a read of eth0 does not return (roce_exporter_sampler_stuck)
a reporter in error = devlink_health_state{reporter=fw} 1; devlink_health_errors_total{reporter=fw} 0 2 => device_error: devlink's reporter fw is in error: devlink's reporter fw counted 2 errors
a reporter that recovered = devlink_health_state{reporter=fw} 0; devlink_health_errors_total{reporter=fw} 0 1 => device_warning: devlink's reporter fw counted 1 error: but reporter fw recovered
old errors of a reporter = devlink_health_state{reporter=fw} 0; devlink_health_errors_total{reporter=fw} 3 =>
a command that timed out = kernel_log_events_total{event=command_timeout} 0 1 => driver_not_responding
an old message = kernel_log_events_total{event=command_timeout} 5 =>
a first message = kernel_log_events_total{event=driver_error} - 1 => device_warning: 1 message of the kernel log within 15 min: the driver reported another error of the device (driver_error)
normal operation = kernel_log_events_total{event=link_up} 0 9 =>
an error of the device = fatal_errors_total 0 1 => device_error
no objects left = resource_qp 91; resource_qp_limit 100 => resources_exhausted
objects left = resource_qp 90; resource_qp_limit 100 =>
queue pairs in error = owner_queue_pairs{owner=slurm/1,state=ERR,type=RC} 2 => queue_pairs_in_error
queue pairs that a job closes = owner_queue_pairs{owner=slurm/1,state=ERR,type=RC} 0 2 =>
a wrong setting = config_check_ok{check=trust} 0 => misconfigured
a wrong route = config_check_ok{check=ip_route} 0 => ip_misconfigured
a neighbour that does not resolve = config_check_ok{check=neighbour} 0 => neighbour_unresolved
an address twice = config_check_ok{check=duplicate_address} 0 => duplicate_address
a setting as expected = config_check_ok{check=trust} 1 =>
no route = port_transmit_no_route_total 0 1 => no_route
packets too long = phy_receive_oversized_total 0 10 => path_mtu
marks without CNPs = ecn_marked_packets_total 0 660; cnp_sent_total 0 => marks_without_cnps
marks, and CNPs are not counted = ecn_marked_packets_total 0 660 =>
marks with CNPs = ecn_marked_packets_total 0 660; cnp_sent_total 0 1 =>
CNPs ignored = cnp_ignored_total 0 120; cnp_handled_total 0 120 => cnps_ignored
few CNPs ignored = cnp_ignored_total 0 120; cnp_handled_total 0 100000 =>
CNPs slow senders = cnp_handled_total 0 2e+06 => incast
CNPs slow senders now and then = cnp_handled_total 0 190000 =>
CNPs that the NIC makes itself = cnp_handled_total 0 2e+06; transport_slow_restart_cnps_total 0 2e+06 =>
marks at a fast port = ecn_marked_packets_total 0 60000; port_receive_packets_total 0 1e+09; cnp_sent_total 0 200000 => incast
CNPs of a driver that counts no marks = cnp_sent_total 0 210000 => incast
senders that are slowed down now and then = cnp_sent_total 0 190000 =>
an incast = ecn_marked_packets_total 0 60000; cnp_sent_total 0 100; port_receive_udp_packets_total 0 1e+06 => incast: 6 % of what it received was marked within 60 s: 100 CNPs sent within 60 s
fewer marks where the switch pauses, too = ecn_marked_packets_total 0 20000; cnp_sent_total 0 100; port_receive_packets_total 0 1e+06; pfc_receive_pause_seconds_total 0 6 => incast | pause_received
CNPs without a priority of their own = cnp_sent_total 0 6600; dcqcn_parameter{role=np,parameter=cnp_priority} 0; pfc_enabled 1 => misconfigured: wrong setting of eth0: priority of CNPs (check cnp_priority): 6,600 CNPs sent within 60 s, all with priority 0
the same without PFC = cnp_sent_total 0 6600; dcqcn_parameter{role=np,parameter=cnp_priority} 0; pfc_enabled 0 =>
lossless drops = buffer_discards_total 0 1; pfc_enabled 1 => lossless_drops: 1 packet of priority 3 dropped because the port's buffer was full within 60 s
lossy drops = buffer_discards_total 0 1; pfc_enabled 0 =>
drops of a link that went down = buffer_discards_total 0 1; pfc_enabled 1; netdev_carrier_down_total 0 1 => link_interrupted
traffic outside = port_transmit_bytes_total 0 1e+10; priority_transmit_bytes_total 0 8e+09; pfc_enabled 1 => outside_lossless_priority
traffic between two programs of one host = port_transmit_bytes_total 0 1e+10; priority_transmit_bytes_total{priority=3} 0 10; priority_transmit_bytes_total{priority=0} 0 1e+06; pfc_enabled{priority=3} 1; pfc_enabled{priority=0} 0 =>
traffic of another priority = port_transmit_bytes_total 0 1e+10; priority_transmit_bytes_total{priority=3} 0 10; priority_transmit_bytes_total{priority=0} 0 1e+10; pfc_enabled{priority=3} 1; pfc_enabled{priority=0} 0 => outside_lossless_priority
packets with a symbol error = phy_symbol_error_packets_total 0 500 => link_errors
one refused request = transport_responder_opcode_errors_total 0 1 => peer_requests_refused
losses that queue pairs waited for = transport_ack_timeouts_total 0 6; transport_packet_sequence_errors_total 0 5000; port_transmit_packets_total 0 1e+09 => packet_loss | ack_timeouts
packets sent again, on the wire = gid_info{address=10.0.0.1} 1; wire_packets_total{source=10.0.0.1,destination=10.0.0.2} 0 1e+06; wire_retransmitted_packets_total{source=10.0.0.1,destination=10.0.0.2} 0 2000 => packet_loss: a capture saw 0.2 % of the packets to 10.0.0.2 again
corrupted packets, on the wire = gid_info{address=10.0.0.1} 1; wire_bad_icrc_packets_total{source=10.0.0.1,destination=10.0.0.2} 0 1; wire_bad_icrc_packets_total{source=10.0.0.1,destination=10.0.0.3} 0 0 => corruption: a capture saw corrupted packets of this port to 10.0.0.2
another port's packets sent again = gid_info{address=10.0.0.9} 1; wire_packets_total{source=10.0.0.1,destination=10.0.0.2} 0 1e+06; wire_retransmitted_packets_total{source=10.0.0.1,destination=10.0.0.2} 0 2000 =>
few packets sent again, on the wire = gid_info{address=10.0.0.1} 1; wire_packets_total{source=10.0.0.1,destination=10.0.0.2} 0 1e6; wire_retransmitted_packets_total{source=10.0.0.1,destination=10.0.0.2} 0 1 =>
senders that a capture sees slowed = gid_info{address=10.0.0.1} 1; wire_cnps_total{source=10.0.0.1,destination=10.0.0.2} 0 6e4; wire_cnps_total{source=10.0.0.1,destination=10.0.0.3} 0 6e4; wire_cnps_total{source=10.0.0.1,destination=10.0.0.4} 0 6e4; wire_cnps_total{source=10.0.0.1,destination=10.0.0.5} 0 6e4 => incast: a capture saw CNPs of this port to 4 senders
a port that is paused nearly always = pfc_receive_pause_seconds_total 0 58.2; priority_transmit_packets_total 0 30000 => pause_storm_received: priority 3 was paused for 97 % of 60 s, and next to no packet of it passed | pause_received
drops while the link changed = phy_receive_discards_total 0 50; netdev_carrier_changes_total 1 2 =>
a module that is unplugged from a port without use = port_up 0; netdev_carrier_up_total 0; kernel_log_events_total{event=module_unplugged} 0 1 =>
another message of a port without use = port_up 0; netdev_carrier_up_total 0; kernel_log_events_total{event=driver_error} 0 1 => device_warning
a message of a virtual function that leaves = device_info -; device_info{function=vf} 1 -; port_info 1 -; port_up 1 -; exporter_devices 1; kernel_log_events_total{event=command_timeout} 0 1 => taken_away
a message of a physical function that leaves = device_info 1 -; port_info 1 -; port_up 1 -; exporter_devices 1; kernel_log_events_total{event=command_timeout} 0 1 => device_vanished | driver_not_responding
a loss of a link that was set down = netdev_carrier_down_total 0 1; netdev_set_up 1 0 =>
blocks that were lost = phy_fec_uncorrectable_blocks_total 5 9 => link_errors: 4 blocks that could not be corrected within 60 s
frames that a switch marked as corrupt = phy_receive_crc_errors_total 0 9; phy_receive_stomped_crc_errors_total 0 9 => corruption@fabric: 9 packets with a wrong checksum within 60 s: 9 of them were marked as corrupt by a switch: the bad link is upstream
frames that came damaged = phy_receive_crc_errors_total 0 900; phy_fec_corrected_blocks_total 0 120; phy_fec_uncorrectable_blocks_total 7 => corruption: 900 packets with a wrong checksum within 60 s: this link's error correction left no block damaged: they came so
no GID on a host that has some = device_info -; device_info{protocol=roce} 1; gid_info{device=mlx5_1,address=10.0.0.2} 1 => ip_misconfigured: no GID with an address, and nothing flows
no GID on a port with traffic = device_info -; device_info{protocol=roce} 1; gid_info{device=mlx5_1,address=10.0.0.2} 1; port_receive_packets_total 0 9 =>
no GID on a port of iWARP = device_info -; device_info{protocol=iw} 1; gid_info{device=mlx5_1,address=10.0.0.2} 1 =>
drops without any flow control = pfc_enabled 0; phy_receive_discards_total 0 50; transport_out_of_sequence_total 0 100 => misconfigured: wrong setting of eth0: priorities with PFC (check pfc): PFC is on for no priority | port_drops
drops without flow control and without gaps = pfc_enabled 0; phy_receive_discards_total 0 50; transport_out_of_sequence_total 7 => port_drops
drops with global pause = pfc_enabled 0; phy_receive_discards_total 0 50; transport_out_of_sequence_total 0 100; global_pause_transmit_frames_total 0 9 => port_drops
"""


@pytest.mark.parametrize(("series", "found"), rows_of(FAULTS))
def test_facts_lead_to_causes(series, found) -> None:
    assert shown(diagnose(history(series)), found) == found


@pytest.mark.parametrize(
    ("off", "status"), [({}, Status.OK), ({"roce_config_notification_point_enabled": 0}, Status.DEGRADED)]
)
def test_cnps_that_firmware_may_not_count_are_missed_in_a_note(off, status) -> None:
    """`cnpSent` of an E810 may never move; a setting leaves no doubt, and one that moves is as good as any."""
    series = {
        "roce_device_info": None,
        "roce_device_info{driver=irdma}": 1,
        "roce_ecn_marked_packets_total": [0, 660],
    }
    fault = only(diagnose(history(series | off | {"roce_cnp_sent_total": 7})))
    assert (fault.check, fault.status) == ("marks_without_cnps", status)
    assert ("the notification point is off for priority 3" in fault.evidence) == bool(off)
    assert diagnose(history(series | {"roce_cnp_sent_total": [0, 9]})).findings == ()
    assert diagnose(history(series)).findings == ()


def test_a_device_that_vanishes_has_failed_unless_it_is_a_virtual_function() -> None:
    gone = {
        "roce_device_info": [1, None],
        "roce_port_info": [1, None],
        "roce_port_up": [1, None],
        "roce_exporter_devices": 1,
    }
    fault = only(diagnose(history(gone, up=False)))
    assert (fault.check, fault.status, fault.port) == ("device_vanished", Status.FAILED, "")
    assert fault.evidence == ("last seen 60 s ago; other series are still reported",)
    virtual = {key: values for key, values in gone.items() if key != "roce_device_info"}
    virtual["roce_device_info{function=vf}"] = [1, None]
    found = diagnose(history({**virtual, "roce_device_info": None}, up=False))
    assert [(one.check, one.status) for one in found.findings] == [("taken_away", Status.OK)]


def test_queue_pairs_in_error_after_silence_are_the_peers() -> None:
    series = {
        "roce_owner_queue_pairs{owner=slurm/1,state=ERR,type=RC}": 2,
        "roce_transport_retries_exceeded_total": [0, 2],
    }
    found = diagnose(history(series)).findings
    assert [(fault.check, fault.side) for fault in found] == [
        ("retries_exceeded", Side.PEER),
        ("queue_pairs_in_error", Side.PEER),
    ]
    one = {"roce_owner_queue_pairs{owner=slurm/1,state=ERR,type=RC}": 1}
    said = diagnose(history({**series, **one})).findings[-1].evidence
    assert said == ("1 queue pair of slurm/1 is in error, for at least 60 s",)
    assert only(diagnose(history(one, moments=1))).evidence == ("1 queue pair of slurm/1 is in error",)


LOST = {
    "roce_transport_out_of_sequence_total": [0, 10_000],
    "roce_transport_duplicate_requests_total": [0, 100],
    "roce_port_receive_packets_total": [0, 1e6],
}


def test_a_port_that_is_seen_to_drop_next_to_nothing_explains_no_loss() -> None:
    narrow = {"roce_pcie_link_width_lanes": 8, "roce_pcie_link_width_max_lanes": 16, **LOST}
    for drops, side, reasons in (
        ({}, Side.HOST, ("pcie_narrow",)),
        ({"roce_phy_receive_discards_total": [0, 9]}, Side.FABRIC, ()),
    ):
        found = {one.check: one for one in diagnose(history({**narrow, **drops})).findings}
        loss = found["packet_loss"]
        assert (loss.side, loss.caused_by) == (side, reasons)


def test_the_symptom_of_a_wrong_setting_is_its_consequence_and_keeps_its_side() -> None:
    found = diagnose(history({"roce_config_check_ok{check=pfc}": 0, **LOST})).findings
    assert [(one.check, one.side, one.caused_by) for one in found] == [
        ("misconfigured", Side.HOST, ()),
        ("packet_loss", Side.FABRIC, ("misconfigured",)),
    ]
    assert found[0].status == found[1].status == Status.DEGRADED


@pytest.mark.parametrize(("wrong", "reasons"), [(0, ("misconfigured",)), (3, ("misconfigured",)), (6, ())])
def test_what_began_before_a_setting_was_wrong_is_no_symptom_of_it(wrong, reasons) -> None:
    series = {
        "roce_config_check_ok{check=pfc}": [1] * wrong + [0] * (9 - wrong),
        "roce_config_check_ok{check=trust}": [1] * 8 + [0],
        "roce_transport_ack_timeouts_total": [9 * number for number in range(9)],
    }
    found = {one.check: one for one in diagnose(history(series, seconds=480, moments=9)).findings}
    assert found["ack_timeouts"].caused_by == reasons


@pytest.mark.parametrize(
    ("route", "reasons"),
    [([0] * 9, ()), ([1, 0, 0, 0, 0, 0, 0, 0, 0], ()), ([1, 1, 1, 1, 1, 1, 1, 0, 0], ("link_interrupted",))],
    ids=["wrong from the begin", "wrong before", "wrong since"],
)
def test_a_setting_is_lost_with_the_link_only_if_it_was_right_before(
    route: list[int], reasons: tuple[str, ...]
) -> None:
    lost = {
        "roce_netdev_carrier_down_total": [0, 0, 0, 0, 0, 0, 0, 1, 1],
        "roce_config_check_ok{check=ip_route}": route,
    }
    found = {one.check: one for one in diagnose(history(lost, seconds=480, moments=9)).findings}
    assert found["link_interrupted"].caused_by == ()
    assert (found["ip_misconfigured"].caused_by, found["ip_misconfigured"].side) == (
        reasons,
        Side.LINK if reasons else Side.HOST,
    )


def test_a_module_that_was_hot_later_is_no_reason_for_a_loss_of_the_link() -> None:
    log = "roce_kernel_log_events_total{event=%s}"
    series = {
        log % "driver_warning": [0, 0, 1, 1, 1, 1, 1, 1, 1],
        log % "module_high_temperature": [0, 0, 0, 0, 0, 0, 0, 1, 1],
        "roce_port_up": [1, 1, 0, 1, 1, 1, 1, 1, 1],
        "roce_netdev_carrier_down_total": [0, 0, 1, 1, 1, 1, 1, 1, 1],
    }
    found = {one.check: one for one in diagnose(history(series, seconds=480, moments=9)).findings}
    assert found["link_interrupted"].caused_by == ()
    assert [found[name].since for name in ("device_warning", "link_interrupted", "too_hot")] == [
        1120,
        1120,
        1420,
    ]


@pytest.mark.parametrize(("ends", "reasons"), [(5, ("too_hot",)), (1, ())])
def test_what_lasts_follows_from_a_cause_that_ended_less_than_two_minutes_ago(ends, reasons) -> None:
    log = "roce_kernel_log_events_total{event=module_high_temperature}"
    heat = [min(number, ends) for number in range(9)]
    crc = {"roce_phy_receive_crc_errors_total": [1000 * number for number in range(9)]}
    found = diagnose(history({log: heat, **crc}, seconds=240, moments=9)).findings
    assert {one.check: one.caused_by for one in found} == {"too_hot": (), "crc_errors": reasons}


ERRORS = "roce_owner_queue_pairs{owner=slurm/1,state=ERR,type=RC}"
WORKS = "roce_owner_queue_pairs{owner=slurm/1,state=RTS,type=RC}"
LINK_LOST = {"roce_netdev_carrier_down_total": [0, 0, 0, 0, 0, 0, 0, 1, 1]}
NO_RULE = "roce_config_check_ok{check=ip_rule}"


@pytest.mark.parametrize(
    ("series", "reasons"),
    [
        ({ERRORS: 2, **LINK_LOST}, ()),
        ({ERRORS: [None] * 7 + [2] * 2, **LINK_LOST}, ("link_interrupted",)),
        ({ERRORS: [None] * 7 + [2] * 2, NO_RULE: 0}, ("ip_misconfigured",)),
        ({ERRORS: [None] * 7 + [2] * 2, WORKS: [2] * 7 + [None] * 2, NO_RULE: 0}, ()),
        (
            {ERRORS: [None] * 7 + [2] * 2, WORKS: [2] * 7 + [None] * 2, NO_RULE: [1] * 6 + [0] * 3},
            ("ip_misconfigured",),
        ),
    ],
    ids=["before the link", "after it", "never connected", "connected before", "rule lost"],
)
def test_queue_pairs_in_error_follow_only_from_what_came_before(series, reasons) -> None:
    found = {one.check: one for one in diagnose(history(series, seconds=480, moments=9)).findings}
    assert found["queue_pairs_in_error"].caused_by == reasons


@pytest.mark.parametrize(("dim", "reasons"), [(5, ("optics_receive_power_low",)), (7, ())])
def test_a_value_is_wrong_since_it_passed_its_limit_which_is_read_once_a_minute(dim, reasons) -> None:
    series = {
        "roce_transceiver_receive_power_watts": [0.5, 0.3] + [0.4] * (dim - 2) + [0.1, 0.15, 0.1, 0.1],
        "roce_transceiver_receive_power_low_alarm_watts": 0.2,
        "roce_link_up": 1,
        "roce_phy_receive_crc_errors_total": [0, *(1000 * number for number in range(8))],
    }
    found = {one.check: one for one in diagnose(history(series, seconds=240, moments=9)).findings}
    assert found["optics_receive_power_low"].since == 1000 + 30 * dim
    assert found["crc_errors"].caused_by == reasons


def test_the_next_step_names_the_port() -> None:
    series = {"roce_port_netdev_info": 1, "roce_phy_receive_crc_errors_total": [0, 1]}
    assert only(diagnose(history(series))).fix[0] == "ethtool -S eth0 | grep -i -e crc -e fcs"


def test_nothing_is_seen_in_an_empty_history() -> None:
    assert [*map(str, diagnose(()).not_checked)] == ["everything: there are no samples"]
    assert str(diagnose(history({"roce_port_up": 1}, moments=1)).not_checked[0]).startswith(
        "anything that counts"
    )


def test_what_other_ports_show_is_unseen_by_name() -> None:
    series = {
        "roce_port_info{device=mlx5_1}": 1,
        "roce_port_up{device=mlx5_1}": 1,
        "roce_cnp_ignored_total{device=mlx5_1}": 0,
    }
    unseen = [*map(str, diagnose(history(series)).not_checked)]
    assert "mlx5_0/1: ignored CNPs" in unseen
    assert "ECN marks" in unseen  # no port has it


def test_missing_facts_and_unreadable_values_are_unseen() -> None:
    series = {
        "roce_exporter_missing_facts{fact=cnp_sent}": 1,
        "roce_exporter_unreadable_values{source=counters}": 2,
        "roce_config_check_unreadable{check=cm_tos}": 1,
    }
    unseen = [*map(str, diagnose(history(series)).not_checked)]
    assert any("cnp_sent (the driver should report it" in line for line in unseen)
    assert "mlx5_0: 2 values of its source counters cannot be read" in unseen
    assert "mlx5_0/1: settings that cannot be read here: cm_tos" in unseen


def test_a_driver_that_was_loaded_again_is_a_note() -> None:
    """The carrier's counter of a new network device is no loss of the link, and a device that is back has not vanished."""
    series = {
        "roce_exporter_devices": 1,
        "roce_device_info": [1, None, 1, 1, None, 1],
        "roce_port_up": [1, None, 1, 1, None, 1],
        "roce_netdev_carrier_down_total": [3, None, 1, 1, None, 1],
    }
    fault = only(diagnose(history(series, seconds=100, moments=6, up=False)))
    assert (fault.check, fault.status, fault.evidence) == (
        "restarted",
        Status.OK,
        ("it was gone for up to 40 s",),
    )
    assert fault.since == 1060.0


TRAFFIC = [f"roce_port_{one}_total" for one in ("receive_packets", "transmit_packets", "transmit_bytes")]


def test_a_device_whose_counters_all_begin_again_was_reset_between_two_samples() -> None:
    """One of them can wrap; an idle port shows nothing."""
    fault = only(diagnose(history(dict.fromkeys(TRAFFIC, (9e6, 9.1e6, 40, 1e5)), moments=4)))
    assert (fault.check, fault.status, fault.since) == ("restarted", Status.OK, 1020.0)
    one = dict.fromkeys(TRAFFIC, (9e6, 9.1e6, 9.2e6, 9.3e6)) | {TRAFFIC[0]: [9e6, 9.1e6, 40, 1e5]}
    assert diagnose(history(one, moments=4)).findings == ()
    assert diagnose(history(dict.fromkeys(TRAFFIC[1:], (9e6, 9.1e6, 40, 1e5)), moments=4)).findings == ()
    assert diagnose(history(dict.fromkeys(TRAFFIC, 7), moments=4)).findings == ()


def test_a_device_of_the_other_protocol_is_said() -> None:
    two = {
        "roce_device_info": None,
        "roce_device_info{driver=ice,protocol=roce}": 1,
        "roce_device_info{device=irdma1,driver=ice,protocol=iw}": 1,
        "roce_port_info{device=irdma1}": 1,
        "roce_port_up{device=irdma1}": 1,
    }
    fault = only(diagnose(history(two)))
    assert (fault.device, fault.check, fault.side) == ("irdma1", "misconfigured", Side.HOST)
    alone = two | {"roce_device_info{driver=ice,protocol=roce}": None}
    software = {key.replace("driver=ice,", ""): value for key, value in two.items()}
    assert diagnose(history(software)).findings == ()
    assert diagnose(history(alone)).findings == ()


def test_drops_of_a_virtual_function_name_it_and_its_owner() -> None:
    series = {
        "roce_vf_receive_drops_total{vf=3}": [0, 900],
        "roce_vf_info{vf=3,pci=0000:3b:00.5,rdma_device=mlx5_7}": 1,
        "roce_owner_queue_pairs{device=mlx5_7,owner=train/worker-0}": 8,
    }
    fault = only(diagnose(history(series)))
    assert fault.check == "port_drops"
    assert fault.evidence[0].startswith("VF 3 0000:3b:00.5 mlx5_7 train/worker-0: 900 ")


def test_two_ports_that_differ_are_a_note_and_the_odd_one_of_three_is_wrong() -> None:
    checks = {f"roce_config_check_ok{{port={port},check=consistency}}": int(port != 1) for port in (1, 2)}
    assert {one.status for one in diagnose(history(checks)).findings} == {Status.OK}
    checks["roce_config_check_ok{port=3,check=consistency}"] = 1
    assert {one.status for one in diagnose(history(checks)).findings} == {Status.DEGRADED}


@pytest.mark.parametrize(
    ("fatal", "recovered", "found"),
    [
        ([0, 1, 1, 1], [0, 0, 1, 1], ("device_warning", Status.DEGRADED)),
        ([0, 0, 1, 1], [None, None, 1, 1], ("device_warning", Status.DEGRADED)),  # both between two rounds
        ([0, 0, 1, 2], [0, 0, 1, 1], ("device_error", Status.FAILED)),  # and again
        ([0, 0, 1, 1], [1, 1, 1, 1], ("device_error", Status.FAILED)),  # that was another time
    ],
)
def test_a_device_that_its_driver_recovered_has_not_failed(fatal, recovered, found) -> None:
    log = "roce_kernel_log_events_total{event="
    series = {f"{log}firmware_fatal}}": fatal, f"{log}device_recovered}}": recovered}
    fault = only(diagnose(history(series, moments=4)))
    assert (fault.check, fault.status) == found


def test_of_two_ports_the_one_with_the_smaller_mtu_is_set_wrong() -> None:
    series = {
        "roce_phy_receive_oversized_total": [0, 10],
        "roce_port_mtu_bytes": 1500,
        "roce_port_info{device=mlx5_1}": 1,
        "roce_port_up{device=mlx5_1}": 1,
    }
    for other, side in ((4200, Side.HOST), (1500, Side.FABRIC)):
        fault = only(diagnose(history({**series, "roce_port_mtu_bytes{device=mlx5_1}": other})))
        assert (fault.check, fault.side) == ("path_mtu", side)
        said = f"its MTU is 1500, that of another port of this host {other}"
        assert (said in fault.evidence) == (side is Side.HOST)


@pytest.mark.parametrize(("other", "side"), [("10.0.0.1", Side.HOST), ("10.0.0.2", Side.PEER)])
def test_an_address_of_two_ports_of_this_host_is_its_own_fault(other, side) -> None:
    gid = "roce_gid_info{device=%s,address=%s}"
    series = {gid % ("mlx5_0", "10.0.0.1"): 1, gid % ("mlx5_1", other): 1}
    fault = only(diagnose(history({**series, "roce_config_check_ok{check=duplicate_address}": 0})))
    assert (fault.check, fault.side) == ("duplicate_address", side)


@pytest.mark.parametrize(
    ("up", "at", "health"),
    [(1, 1, Status.DEGRADED), (0, 1, Status.FAILED), (1, 18, Status.FAILED)],
    ids=["it responds for five minutes", "an interface fails", "lately"],
)
def test_a_driver_that_responds_again_is_no_failure(up, at, health) -> None:
    series = {
        "roce_kernel_log_events_total{event=command_timeout}": [float(number >= at) for number in range(21)],
        "roce_exporter_source_up{source=ethtool}": up,
    }
    (found, *_) = diagnose(history(series, seconds=600, moments=21)).findings
    assert (found.check, found.status) == ("driver_not_responding", health)


def two_ports(lost: str, driver: str = "mlx5_core") -> dict[str, object]:
    """Two ports that are set differently; the second one is called the odd one. `lost`: which drops packets."""
    consistency = "roce_config_check_ok{check=consistency,device="
    return {
        "roce_device_info{driver=mlx5_core}": 1,
        f"roce_device_info{{device=mlx5_1,driver={driver}}}": 1,
        "roce_port_up{device=mlx5_1}": 1,
        consistency + "mlx5_0}": 1,
        consistency + "mlx5_1}": 0,
        f"roce_transport_packet_sequence_errors_total{{device={lost}}}": [0, 500],
    }


@pytest.mark.parametrize(
    ("lost", "driver", "suspect"),
    [
        ("mlx5_0", "mlx5_core", "mlx5_0"),
        ("mlx5_1", "mlx5_core", "mlx5_1"),
        ("mlx5_0", "bnxt_en", "mlx5_1"),  # what another card loses is no symptom of this one
    ],
)
def test_of_two_ports_that_differ_the_one_with_a_symptom_is_the_suspect(lost, driver, suspect) -> None:
    found = diagnose(history(two_ports(lost, driver), up=True)).findings
    assert [one.device for one in found if one.check == "misconfigured"] == [suspect]


def test_a_card_that_works_on_a_slot_with_less_power_than_it_asks_for_is_a_note() -> None:
    told = {"roce_kernel_log_events_total{event=slot_power_insufficient}": [0, 1]}
    busy = {"roce_port_receive_packets_total": [0, 1e6]}
    assert [one.status for one in diagnose(history(told | busy)).findings] == [Status.OK]
    assert [one.status for one in diagnose(history(told)).findings] == [Status.DEGRADED]
    assert diagnose(history(told | busy | {"roce_port_up": [1, 0]})).findings[0].status == Status.DEGRADED

"""Rules about the link: up, steady, fast, clean."""

import pytest
from health_history import causes, history, only

from roce_exporter.checks.finding import Side, Status
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.link_rules import ENDS_LINK
from roce_exporter.host.kernel.ethtool_netlink import LINK_STATES

DOWN = "roce_netdev_carrier_down_total"


def test_a_port_that_loses_its_link_has_failed() -> None:
    fault = only(diagnose(history({"roce_port_up": [1, 0]})))
    assert (fault.check, fault.side, fault.status) == ("link_down", Side.LINK, Status.FAILED)
    assert (fault.device, fault.port) == ("mlx5_0", "1")
    assert fault.evidence == ("the port is not active (roce_port_up is 0)", "it was up at the beginning")
    assert not fault.against
    carrier = only(diagnose(history({"roce_port_up": [1, 0], "roce_link_up": 1})))
    assert carrier.against == ("the network device has a link (roce_link_up is 1)",)
    log = {"roce_kernel_log_events_total{event=module_power_insufficient}": [0, 1, 1, 1]}
    report = diagnose(history({"roce_port_up": [1, 0, 0, 0]} | log, moments=4))
    assert [(one.check, one.until) for one in report.findings] == [
        ("power_insufficient", 0.0),
        ("link_down", 0.0),
    ]
    no_cable = only(diagnose(history({"roce_port_up": [1, 0], "roce_link_extended_state": 4})))
    assert (no_cable.check, no_cable.evidence[2:]) == ("link_down", ("the driver says: No cable",))
    # mlx5 and others report the physical state 3 for every RoCE port without a link: no proof that someone set it down.
    disabled = {"roce_port_up": [1, 0], "roce_port_physical_state": [5, 3]}
    assert only(diagnose(history(disabled))).side == Side.LINK


def test_a_port_that_never_had_a_link_is_unused() -> None:
    diagnosis = diagnose(history({"roce_port_up": 0, DOWN: 0}))
    assert not diagnosis.findings
    assert any("it may be unused" in gap.what for gap in diagnosis.not_checked)


def test_a_port_that_lost_its_link_before_has_not_failed() -> None:
    fault = only(diagnose(history({"roce_port_up": 0, DOWN: 1})))
    assert (fault.check, fault.status) == ("link_lost", Status.OK)  # set down, or never used
    assert fault.evidence[1:] == ("the link was lost 1 time since the counters began",)
    assert diagnose(history({"roce_port_up": 0, DOWN: 1, "roce_link_extended_state": 4})).findings == ()
    assert diagnose(history({"roce_port_up": 0, DOWN: 1, "roce_netdev_carrier_up_total": 0})).findings == ()
    fault = only(diagnose(history({"roce_port_up": [1, 0], "roce_port_set_up": [1, 0]})))
    assert (fault.check, fault.status) == ("set_down", Status.OK)
    said = "its network device is set down (IFF_UP is missing)"
    assert fault.evidence == (said, "it was up at the beginning")
    fault = only(diagnose(history({"roce_port_up": 0, DOWN: 1, "roce_link_extended_state": 1})))
    assert fault.status == Status.DEGRADED
    assert fault.evidence[-1] == "the driver says: Link training failure"


def test_a_port_that_was_set_down_and_is_up_again_is_fit() -> None:
    again = {"roce_port_up": [1, 0, 0, 1], "roce_port_set_up": [1, 0, 0, 1], DOWN: [1, 2, 2, 2]}
    fault = only(diagnose(history(again, moments=4)))
    assert (fault.check, fault.status) == ("set_down", Status.OK)
    assert (fault.since, fault.until) == (1020.0, 1040.0)
    later = {"roce_port_up": 1, "roce_port_set_up": [1, 0, 1, 1], DOWN: [1, 2, 2, 6]}
    assert {*causes(diagnose(history(later, moments=4)))} == {"link_flapping", "set_down"}


MODULE = {"roce_transceiver_temperature_high_alarm_celsius": 75}


@pytest.mark.parametrize(
    ("series", "cause", "side"),
    [
        ({"roce_link_extended_state": 9}, "too_hot", Side.HOST),
        ({"roce_link_extended_state": 8}, "power_insufficient", Side.HOST),
        ({"roce_link_extended_state": 1}, "link_down", Side.LINK),
        ({"roce_link_extended_state": 5}, "module_fault", Side.LINK),
        ({"roce_link_extended_state": 6}, "module_fault", Side.LINK),
        ({"roce_link_extended_state": 10, "roce_link_extended_substate": 1}, "module_fault", Side.LINK),
        ({"roce_link_extended_state": 2, "roce_link_extended_substate": 5}, "link_mode_mismatch", Side.LINK),
        ({"roce_link_extended_state": 3, "roce_link_extended_substate": 2}, "link_mode_mismatch", Side.LINK),
        ({"roce_link_extended_state": 0, "roce_link_extended_substate": 5}, "link_mode_mismatch", Side.LINK),
        ({"roce_link_extended_state": 0, "roce_link_extended_substate": 4}, "link_down", Side.LINK),
        (MODULE | {"roce_transceiver_temperature_celsius": 75}, "too_hot", Side.HOST),
        (MODULE | {"roce_transceiver_temperature_celsius": 60}, "link_down", Side.LINK),
        (
            MODULE | {"roce_transceiver_temperature_celsius": 90, "roce_transceiver_unplugs_total": [0, 1]},
            "too_hot",
            Side.HOST,
        ),
    ],
)
def test_a_module_that_protects_itself_goes_dark(series, cause, side) -> None:
    """Heat or a lack of power is the cause, the loss of the link its consequence; the port has failed all the same."""
    report = diagnose(history({"roce_port_up": [1, 0]} | series))
    assert (report.findings[0].check, report.findings[0].side) == (cause, side)
    assert [one.side for one in report.findings if one.check == "link_down"] == [Side.LINK]
    assert report.ports[0].health is Status.FAILED


UNMAPPED = {
    "Autoneg": "the other end is off as often as it is set differently",
    "Link training failure": "the signal, or the other end, whichever: the loss of the link says as much",
    "Bad signal integrity": "cable, module or dirt: the loss of the link says as much",
    "No cable": "a cable that is pulled is a loss of the link, and a port that never had one is unused",
    "Calibration failure": "firmware of the port or a bad signal",
}
"""Reasons for a link that is down that are evidence of the loss and no cause of their own."""


def test_every_reason_for_a_link_that_is_down_has_a_cause_or_is_listed() -> None:
    states = {name for name, _ in LINK_STATES}
    reasons = {f"{name}, {one}" for name, names in LINK_STATES for one in names}
    assert ENDS_LINK.keys() <= states | reasons
    assert (states & ENDS_LINK.keys()) ^ UNMAPPED.keys() == states
    assert not ENDS_LINK.keys() & UNMAPPED.keys()


@pytest.mark.parametrize(
    ("series", "found"),
    [
        (
            {"roce_phy_symbol_errors_total": [0, 50], "roce_phy_receive_crc_errors_total": [0, 50]},
            ("link_errors",),
        ),
        ({"roce_phy_symbol_errors_total": [0, 1], "roce_phy_receive_crc_errors_total": [0, 50]}, ()),
        (
            {
                "roce_phy_symbol_errors_total": [0, 50],
                "roce_phy_receive_crc_errors_total": [0, 50],
                "roce_phy_receive_stomped_crc_errors_total": [0, 40],
            },
            (),
        ),
    ],
)
def test_blocks_of_this_link_explain_its_wrong_checksums(series, found) -> None:
    """Not a single one, and not those that a switch has marked."""
    names = ("crc_errors", "corruption")
    (checksums,) = [one for one in diagnose(history(series)).findings if one.check in names]
    assert checksums.caused_by == found


@pytest.mark.parametrize(
    ("counts", "seconds", "found"),
    [
        ([0, 0], 3600, []),
        ([0, 1], 3600, ["link_interrupted"]),
        ([0, 2], 3600, ["link_interrupted"]),
        ([0, 3], 3600, ["link_flapping"]),
        ([0, 2], 300, ["link_flapping"]),
        ([7, 0], 3600, []),  # a reset counts what came after it: nothing
    ],
)
def test_flapping_needs_several_losses(counts, seconds, found) -> None:
    assert causes(diagnose(history({DOWN: counts}, seconds=seconds))) == found


def test_counters_of_the_same_losses_are_not_added_up() -> None:
    names = (DOWN, "roce_link_down_events_total", "roce_port_link_downed_total")
    fault = only(diagnose(history({name: [0, 1] for name in names}, seconds=3600)))
    assert fault.evidence == ("1 loss of the link within 60 min",)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("roce_link_speed_bytes_per_second", 12.5e9, "100 Gbit/s now, 200 Gbit/s before"),
        ("roce_port_speed_bytes_per_second", 12.5e9, "100 Gbit/s now, 200 Gbit/s before"),
        ("roce_link_lanes", 2, "2 lanes now, 4 lanes before"),
    ],
)
def test_a_link_that_became_slower(name, value, said) -> None:
    fault = only(diagnose(history({name: [2 * value, value]})))
    assert (fault.check, fault.evidence) == ("link_slow", (f"{said} ({name})",))
    assert causes(diagnose(history({name: [value, 2 * value]}))) == []
    assert causes(diagnose(history({name: [value, 0]}))) == []  # down, which is said by others


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("roce_phy_symbol_errors_total", "link_errors"),
        ("roce_phy_fec_uncorrectable_blocks_total", "link_errors"),
        ("roce_phy_receive_crc_errors_total", "crc_errors"),
        ("roce_mac_frame_check_sequence_errors_total", "crc_errors"),
    ],
)
def test_errors_on_a_steady_link(name, cause) -> None:
    assert causes(diagnose(history({name: [5, 9]}))) == [cause]
    ended, lasts = (only(diagnose(history({name: some}, moments=4))) for some in ([5, 9, 9, 9], [5, 5, 5, 9]))
    assert (ended.since, ended.until, lasts.since, lasts.until) == (1020.0, 1020.0, 1060.0, 0.0)
    assert causes(diagnose(history({name: [5, 5]}))) == []
    assert causes(diagnose(history({name: [5, 9], "roce_netdev_carrier_changes_total": [1, 2]}))) == []
    fast = {"roce_link_speed_bytes_per_second": 1e12}  # 4 of 4.8e14 bits
    assert only(diagnose(history({name: [5, 9]}))).status is Status.DEGRADED
    assert only(diagnose(history({name: [5, 9]} | fast))).status is Status.OK


def test_what_ports_of_infiniband_count_has_no_meaning_on_ethernet() -> None:
    errors = {f"roce_port_{name}_errors_total": [5, 9] for name in ("symbol", "receive")}
    assert causes(diagnose(history(errors))) == []
    layer = {"roce_port_info": None, "roce_port_info{link_layer=InfiniBand}": 1}
    fault = only(diagnose(history(errors | layer)))
    assert (fault.check, fault.evidence) == (
        "link_errors",
        ("4 symbol errors within 60 s", "4 packets received with an error within 60 s"),
    )
    few = {"roce_link_speed_bytes_per_second": 1.25e11}  # 4 of 6e13 bits: ten times as many may err
    assert only(diagnose(history(errors | layer | few))).status is Status.OK


CHANGES, CRC = "roce_netdev_carrier_changes_total", "roce_phy_receive_crc_errors_total"


def test_a_link_that_changes_hides_only_what_it_makes_itself() -> None:
    """Errors of the time in which it is steady, many wrong checksums, and those of another member of the LAG are said."""
    quiet = {CHANGES: [1, 3, 3, 3], CRC: [0, 0, 20, 40]}
    assert causes(diagnose(history(quiet, moments=4))) == ["crc_errors"]
    assert causes(diagnose(history({CHANGES: [1, 3], CRC: [0, 5000]}))) == ["crc_errors"]
    assert causes(diagnose(history({CHANGES: [1, 3], "roce_phy_symbol_errors_total": [0, 5000]}))) == []
    other = {f"{CHANGES}{{netdev=eth1}}": [1, 3], f"{CRC}{{netdev=eth0}}": [0, 40]}
    assert causes(diagnose(history(other))) == ["crc_errors"]


def test_a_lossless_priority_that_drops_on_a_link_that_was_lost_earlier_is_said() -> None:
    lost = {DOWN: [0, 1, 1, 1], "roce_netdev_carrier_changes_total": [0, 2, 2, 2], "roce_pfc_enabled": 1}
    name = "roce_buffer_discards_total"
    assert "lossless_drops" in causes(diagnose(history({**lost, name: [0, 0, 500, 900]}, moments=4)))
    assert "lossless_drops" not in causes(diagnose(history({**lost, name: [0, 900, 900, 900]}, moments=4)))


def test_frames_that_a_switch_marked_are_said_without_errors_of_the_link() -> None:
    stomped = {"roce_phy_receive_stomped_crc_errors_total": [0, 40, 80, 120]}
    fault = only(diagnose(history(stomped, moments=4)))
    assert (fault.check, fault.side) == ("fault_counted", Side.FABRIC)
    assert fault.evidence[0].startswith(
        "120 packets received that a cut-through switch had marked as corrupt within"
    )


@pytest.mark.parametrize(("left", "check"), [(0, "corruption"), (9, "crc_errors"), (None, "crc_errors")])
def test_what_is_damaged_behind_a_link_that_corrects_all_was_so_before(left, check) -> None:
    series = {
        "roce_phy_receive_crc_errors_total": [0, 900],
        "roce_phy_fec_corrected_blocks_total": [0, 120],
        "roce_phy_symbol_errors_total": 7,
    }
    if left is not None:  # a driver that does not count them shows no clean link
        series["roce_phy_fec_uncorrectable_blocks_total"] = [0, left]
    assert check in causes(diagnose(history(series)))


def test_bit_errors_near_the_limit_of_correction() -> None:
    line = {"roce_phy_line_bytes_total": [0, 1e9]}
    near = {"roce_phy_corrected_errors_total": [0, 8e5]}
    far = {"roce_phy_corrected_errors_total": [0, 8e3]}
    assert causes(diagnose(history(line | near))) == ["bit_errors_rising"]
    assert causes(diagnose(history(line | far))) == []
    speed = {"roce_link_speed_bytes_per_second": 1e9 / 60}  # where the bytes of the line are not counted
    assert only(diagnose(history(speed | near))).evidence == (
        "1.0e-04 bit errors per bit before correction; RS(544,514) corrects up to 2.4e-4",
    )
    assert causes(diagnose(history(speed | far))) == causes(diagnose(history(near))) == []


def test_bit_errors_that_rise_within_the_history() -> None:
    name = "roce_phy_fec_corrected_blocks_total"
    rising = [0, 100_000, 200_000, 201_000, 501_000]
    assert only(diagnose(history({name: rising}, seconds=600, moments=5))).evidence == (
        "2,000 corrected errors per second in the last 2 min, 7 at the calmest of the 10 min before",
    )
    assert causes(diagnose(history({name: rising}, seconds=60, moments=5))) == []  # too short for a trend
    steady = [0, 100_000, 200_000, 300_000, 400_000]
    assert causes(diagnose(history({name: steady}, seconds=600, moments=5))) == []


def test_a_port_without_its_network_device_was_taken_away() -> None:
    series = {"roce_port_up": [1, 0], "roce_port_netdev_info": [1, None]}
    fault = only(diagnose(history(series)))
    assert (fault.check, fault.status) == ("taken_away", Status.OK)


SPEED = "roce_link_speed_bytes_per_second{{netdev={}}}"
MEMBERS = {
    "roce_port_netdev_info{netdev=bond0,role=bond}": 1,
    "roce_port_netdev_info{netdev=eth0,role=member}": 1,
    "roce_port_netdev_info{netdev=eth1,role=member}": 1,
    "roce_link_up{netdev=eth1}": 1,
    f"{DOWN}{{netdev=eth1}}": 4,
    SPEED.format("eth1"): 12.5e9,
}


def test_a_member_of_a_lag_that_is_set_down_is_no_fault() -> None:
    dead = {**MEMBERS, "roce_link_up{netdev=eth0}": [1, 0], f"{DOWN}{{netdev=eth0}}": [1, 2]}
    fault = only(diagnose(history(dead, seconds=3600)))  # and it is not back
    left = "100 of 200 Gbit/s are left"
    assert (fault.check, fault.evidence) == ("leg_down", (f"1 of 2 members have no link: eth0; {left}",))
    fault = only(diagnose(history({**dead, "roce_netdev_set_up{netdev=eth0}": [1, 0]}, seconds=3600)))
    assert (fault.check, fault.status) == ("set_down", Status.OK)
    assert fault.evidence == (f"member eth0 of the LAG is set down (IFF_UP is missing); {left}",)
    slow = {**MEMBERS, "roce_link_up{netdev=eth0}": 1, SPEED.format("eth0"): 3.125e9}
    assert only(diagnose(history(slow))).evidence == (
        "member eth0 runs at 25 Gbit/s, the fastest at 100; 125 of 200 Gbit/s are left",
    )
    unknown = {**dead, SPEED.format("eth1"): None}
    assert only(diagnose(history(unknown, seconds=3600))).evidence == ("1 of 2 members have no link: eth0",)
    found = diagnose(
        history({**dead, "roce_link_extended_state{netdev=eth0}": [None, 9]}, seconds=3600)
    ).findings
    assert [one.check for one in found] == ["too_hot", "leg_down"]
    assert found[0].evidence == found[1].evidence[1:] == ("the driver says: Overheat of eth0",)
    both = {
        **dead,
        "roce_port_up": [1, 0],
        **{f"roce_netdev_set_up{{netdev=eth{n}}}": [1, 0] for n in (0, 1)},
    }
    assert {(one.check, one.status) for one in diagnose(history(both)).findings} == {("set_down", Status.OK)}


def test_the_member_that_flaps_is_named() -> None:
    flapping = {**MEMBERS, "roce_link_up{netdev=eth0}": 1, f"{DOWN}{{netdev=eth0}}": [1, 7]}
    fault = only(diagnose(history(flapping, seconds=3600)))
    assert fault.evidence == ("6 losses of the link of eth0 within 60 min",)


def test_of_two_ports_of_one_driver_the_slower_one_is_a_note() -> None:
    """Of a port without a network device the speed is that of InfiniBand or Omni-Path; a virtual function has its own."""
    two = {
        "roce_device_info": None,
        "roce_device_info{driver=hfi1,function=pf}": 1,
        "roce_device_info{device=hfi1_1,driver=hfi1,function=pf}": 1,
        "roce_port_up{device=hfi1_1}": 1,
        "roce_port_speed_bytes_per_second": 12.5e9,
        "roce_port_speed_bytes_per_second{device=hfi1_1}": 3.125e9,
    }
    fault = only(diagnose(history(two)))
    assert (fault.device, fault.check, fault.status) == ("hfi1_1", "link_slow", Status.OK)
    assert fault.evidence == ("25 Gbit/s, not 100 as 1 other port of this driver",)
    assert diagnose(history(two | {"roce_port_up{device=hfi1_1}": 0})).findings == ()
    virtual = {"roce_device_info{device=hfi1_1,driver=hfi1,function=pf}": None}
    virtual["roce_device_info{device=hfi1_1,driver=hfi1,function=vf}"] = 1
    assert diagnose(history(two | virtual)).findings == ()

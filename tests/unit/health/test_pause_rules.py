"""Rules about pause: storms, slow receivers and victims, by direction."""

import pytest
from health_history import causes, history, only

from roce_exporter.checks.finding import Side, Status
from roce_exporter.checks.health.diagnosis import diagnose

SENT, RECEIVED = "roce_pfc_transmit_pause_seconds_total", "roce_pfc_receive_pause_seconds_total"
CALM = {"roce_pcie_write_stalled_seconds_total": 0, "roce_pcie_read_stalled_seconds_total": 0}


@pytest.mark.parametrize(
    ("direction", "cause", "side", "health"),
    [
        ("transmit", "pause_storm_transmitted", Side.HOST, Status.FAILED),
        ("receive", "pause_storm_received", Side.FABRIC, Status.DEGRADED),
    ],
)
def test_a_storm_that_the_detector_saw(direction, cause, side, health) -> None:
    for series in (
        {f"roce_pfc_storm_active{{direction={direction}}}": [0, 1]},
        {f"roce_pfc_storms_total{{direction={direction}}}": [4, 5]},
    ):
        fault = only(diagnose(history(series)))
        assert (fault.check, fault.side, fault.status) == (cause, side, health)
    ended = {
        f"roce_pfc_storm_active{{direction={direction}}}": 0,
        f"roce_pfc_storms_total{{direction={direction}}}": 5,
    }
    assert causes(diagnose(history(ended))) == []


@pytest.mark.parametrize(
    ("active", "storms", "health"),
    [
        ([0, 1, 1, 1, 1], [0, 1, 1, 1, 1], Status.FAILED),  # it lasts
        ([0, 1, 1, 0, 0], [0, 1, 1, 1, 1], Status.DEGRADED),  # its end is seen
        ([0, 0, 0, 0, 0], [0, 0, 0, 0, 1], Status.FAILED),  # it came and went in the newest interval
        ([0, 0, 0, 0, 0], [0, 0, 1, 2, 2], Status.FAILED),  # it comes back again and again
        ([0, 0, 0, 0, 0], [0, 1, 2, 2, 2], Status.FAILED),
    ],
)
def test_a_storm_has_failed_until_its_end_is_seen(active, storms, health) -> None:
    series = {
        "roce_pfc_storm_active{direction=transmit}": active,
        "roce_pfc_storms_total{direction=transmit}": storms,
    }
    for seconds in (60, 240):  # together within two minutes, or not
        fault = only(diagnose(history(series, seconds=seconds, moments=5)))
        assert (fault.check, fault.status) == ("pause_storm_transmitted", health)
        assert bool(fault.until) == (health is Status.DEGRADED)


def test_pause_without_progress_that_has_ended_is_no_failure_any_more() -> None:
    series = {
        SENT: [0, 50, 100, 150, 150, 150],
        "roce_priority_receive_packets_total": [9, 9, 9, 9, 9000, 18_000],
    }
    storm = diagnose(history(series, seconds=300, moments=6)).findings[0]
    assert (storm.check, storm.status, storm.until) == ("pause_storm_transmitted", Status.DEGRADED, 1180.0)
    said = "priority 3 was paused for 83.3 % of 60 s, which ended 2 min ago, and no packet of it passed"
    assert storm.evidence == (said,)


def test_the_hint_of_the_detector_is_evidence() -> None:
    series = {
        "roce_pfc_storm_active{direction=transmit}": 1,
        "roce_pfc_storm_hint{direction=transmit,hint=host_stopped}": 1,
    }
    assert "hint of the detector: host_stopped" in only(diagnose(history(series))).evidence


@pytest.mark.parametrize(
    ("paused", "passed", "found"),
    [
        (40, 0, ["pause_storm_transmitted", "slow_receiver"]),  # blocked, without a detector
        (40, 1000, ["slow_receiver"]),  # slow, but it receives
        (40, None, ["slow_receiver"]),  # not known whether it receives
        (0.5, 0, []),
    ],
)
def test_pause_without_progress_is_a_storm(paused, passed, found) -> None:
    packets = {} if passed is None else {"roce_priority_receive_packets_total": [0, passed]}
    assert causes(diagnose(history({SENT: [0, paused]} | packets))) == found


@pytest.mark.parametrize(
    ("paused", "pauses", "found"),
    [(0.45, 0, ["pause_storm_received"]), (0.45, 1, []), (0.4, 0, []), (0.5, 100, [])],
)
def test_one_long_pause_is_proven_by_two_samples(paused, pauses, found) -> None:
    turns = [0, pauses, pauses, pauses]
    series = {RECEIVED: [0, paused, paused, paused], "roce_pfc_receive_transitions_total": turns}
    report = diagnose(history(series, moments=4))
    assert causes(report) == found
    assert [(one.evidence, one.until) for one in report.findings] == [
        (("one pause of priority 3 lasted at least 0.5 s",), 1020.0) for _ in found
    ]
    late = {RECEIVED: [0, paused, paused], "roce_pfc_receive_transitions_total": [0, pauses, pauses]}
    assert causes(diagnose(history(late, seconds=1800, moments=3))) == [], "more than ten minutes ago"


def test_a_slow_receiver_without_stalls_says_so() -> None:
    fault = only(diagnose(history(CALM | {SENT: [0, 6]})))
    assert fault.against == ("PCIe is not stalled: rather the NIC's caches or the receiving program",)
    full = {SENT: [0, 6], "roce_buffer_threshold_passed_total": [0, 3]}
    fault = only(diagnose(history(full)))
    assert fault.against == ()  # the driver does not report stalls
    assert fault.evidence[1:] == ("3 times the port's buffer was nearly full within 60 s",)


def test_a_victim_is_paused_by_the_fabric() -> None:
    fault = only(diagnose(history({RECEIVED: [0, 6]})))
    assert (fault.check, fault.side) == ("pause_received", Side.FABRIC)
    assert fault.evidence == ("priority 3 was paused for 10 % of 60 s",)
    assert causes(diagnose(history({RECEIVED: [0, 6], "roce_pfc_enabled": 1}))) == ["pause_received"]
    other = {"roce_pfc_enabled": 0, "roce_pfc_enabled{priority=4}": 1}
    assert causes(diagnose(history({RECEIVED: [0, 6]} | other))) == []
    slowed = {RECEIVED: [0, 6], "roce_cnp_handled_total": [0, 7000]}
    assert only(diagnose(history(slowed))).status is Status.OK
    own = {"roce_transport_slow_restart_cnps_total": [0, 2000]}
    assert only(diagnose(history(slowed | own))).status is Status.DEGRADED


def test_frames_are_an_upper_bound_of_pause() -> None:
    speed = {"roce_link_speed_bytes_per_second": 12.5e9}
    frames = "roce_pfc_receive_xoff_frames_total"
    fault = only(diagnose(history(speed | {frames: [0, 180_000]})))
    assert fault.check == "pause_received"
    assert fault.evidence == ("priority 3 was paused for at most 100 % of 60 s",)
    blocked = {"roce_pfc_transmit_xoff_frames_total": [0, 200_000], "roce_priority_receive_packets_total": 0}
    storm = diagnose(history(speed | blocked)).findings[0]
    assert storm.evidence == ("priority 3 was paused for at most 100 % of 60 s, and no packet of it passed",)
    assert fault.against == ("an upper bound: this NIC counts pause frames, not paused time",)
    resumed = {"roce_pfc_receive_xon_frames_total": [0, 180_000]}
    many = only(diagnose(history(speed | {frames: [0, 180_000]} | resumed)))
    assert (many.check, many.status) == ("pause_received", Status.OK)
    assert causes(diagnose(history(speed | {frames: [0, 17_000]}))) == []


def test_the_watchdog_of_the_nic() -> None:
    fault = only(diagnose(history({"roce_pfc_watchdog_trips_total": [0, 1]})))
    assert (fault.check, fault.status) == ("nic_pause_watchdog", Status.FAILED)
    assert causes(diagnose(history({"roce_pfc_watchdog_warnings_total": [0, 1]}))) == ["slow_receiver"]


@pytest.mark.parametrize(
    ("direction", "side", "said"),
    [("receive", Side.FABRIC, "received"), ("transmit", Side.HOST, "transmitted")],
)
def test_global_pause_next_to_pfc(direction, side, said) -> None:
    frames = {f"roce_global_pause_{direction}_frames_total": [0, 9]}
    fault = only(diagnose(history(frames | {"roce_pfc_enabled": 1})))
    assert (fault.side, fault.evidence) == (side, (f"9 frames of global pause were {said}",))
    assert causes(diagnose(history(frames | {"roce_pfc_enabled": 0}))) == []


def test_pause_for_a_priority_without_pfc() -> None:
    frames = {"roce_pfc_receive_frames_total{priority=4}": [0, 9], "roce_pfc_enabled{priority=4}": 0}
    assert causes(diagnose(history(frames))) == ["pfc_mismatch"]
    assert causes(diagnose(history(frames | {"roce_pfc_enabled{priority=4}": 1}))) == []
    by_class = {"roce_pfc_receive_xoff_frames_total{priority=4}": [0, 9]}
    without = {"roce_pfc_enabled{priority=4}": 0}
    assert causes(diagnose(history(by_class | without))) == ["pfc_mismatch"], "no class is lossless"
    lossless = without | {"roce_pfc_enabled{priority=3}": 1}
    assert causes(diagnose(history(by_class | lossless))) == ["pfc_mismatch"], "of another class"
    same = by_class | {"roce_pfc_receive_xoff_frames_total{priority=3}": [0, 9]}
    assert causes(diagnose(history(same | lossless))) == [], "of one class"


@pytest.mark.parametrize(
    ("name", "share", "with_pfc"),
    [
        ("roce_pfc_receive_all_frames_total", "at most 25 %", ["pause_received"]),  # all priorities together
        ("roce_global_pause_receive_frames_total", "at most 25 %", ["global_pause"]),  # a host without PFC
        ("roce_global_pause_receive_xoff_frames_total", "at most 25 %", ["global_pause"]),
        ("roce_global_pause_receive_seconds_total", "25 %", []),
    ],
)
def test_pause_without_priorities_is_judged(name, share, with_pfc) -> None:
    seconds = {name: [0, 15.0 if "seconds" in name else 44700.0], "roce_link_speed_bytes_per_second": 1.25e10}
    fault = only(diagnose(history(seconds)))
    assert fault.check == "pause_received"
    assert fault.evidence == (f"all traffic was paused for {share} of 60 s",)
    assert causes(diagnose(history(seconds | {"roce_pfc_enabled": 1}))) == with_pfc


def test_what_the_driver_calls_a_storm_is_one_where_no_packet_arrives() -> None:
    told = {
        "roce_kernel_log_events_total{event=pause_storm}": [0, 1],
        "roce_pfc_transmit_frames_total": [0, 90],
    }
    blocked = told | {"roce_port_receive_packets_total": 7}
    assert causes(diagnose(history(blocked)))[0] == "pause_storm_transmitted"
    for less, cause in (
        ({"roce_port_receive_packets_total": [7, 9000]}, "slow_receiver"),
        ({"roce_pfc_transmit_pause_seconds_total": [0, 0.01]}, "slow_receiver"),  # of an idle port
        ({"roce_pfc_receive_frames_total": [0, 900]}, "pause_received"),  # of a port that is paused itself
        ({"roce_global_pause_receive_frames_total": [0, 900]}, "pause_received"),
        ({"roce_pfc_receive_frames_total": [0, 90]}, "slow_receiver"),  # as often as it pauses
    ):
        assert causes(diagnose(history(blocked | less))) == [cause]


def test_a_port_that_is_paused_nearly_always_is_blocked_although_a_little_passes() -> None:
    """What a host transmits is a storm only where nothing passes."""

    def paused(way: str, passes: str, packets: float, share: float = 0.97, seconds: float = 300) -> list[str]:
        series = {
            f"roce_pfc_{way}_pause_seconds_total": [0, seconds * share],
            f"roce_priority_{passes}_packets_total": [0, seconds * packets],
        }
        return causes(diagnose(history(series, seconds=seconds)))

    assert paused("receive", "transmit", 500)[0] == "pause_storm_received"
    assert paused("receive", "transmit", 5000) == ["pause_received"]
    assert paused("receive", "transmit", 500, 0.8) == ["pause_received"]
    assert paused("transmit", "receive", 500) == ["slow_receiver"]
    assert paused("transmit", "receive", 0, 0.8, 5)[0] == "pause_storm_transmitted", "a short recording"


def test_a_port_that_stops_its_switch_thousands_of_times_is_a_note_without_drops() -> None:
    stops = dict.fromkeys(
        ("roce_pfc_transmit_xoff_frames_total", "roce_pfc_transmit_xon_frames_total"), (0, 300_000)
    )
    assert only(diagnose(history(stops, seconds=60))).status is Status.OK
    paused = {name.replace("transmit", "receive"): values for name, values in stops.items()}
    fault = only(diagnose(history(paused)))
    assert (fault.check, fault.evidence) == (
        "pause_received",
        ("300,000 times its switch stopped it within 60 s",),
    )
    dropped = stops | {"roce_phy_receive_discards_total": [0, 900]}
    found = diagnose(history(dropped, seconds=60)).findings
    assert [(one.check, one.status, one.caused_by) for one in found] == [
        ("slow_receiver", Status.DEGRADED, ()),
        ("port_drops", Status.DEGRADED, ("slow_receiver",)),
    ]


def test_frames_of_global_pause_count_where_only_the_time_of_pfc_is_counted() -> None:
    series = {
        "roce_pfc_receive_pause_seconds_total": 7e-6,
        "roce_global_pause_receive_frames_total": [0, 9000 * 60],
        "roce_link_speed_bytes_per_second": 12.5e9,
    }
    assert causes(diagnose(history(series, seconds=60))) == ["pause_received"]

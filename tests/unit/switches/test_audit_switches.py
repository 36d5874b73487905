"""Each check of switches: the right value, the wrong one, one that was not read, and a profile or port it does not concern."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fabric_views import ROWS, MadeSwitch, linked, views

from roce_exporter.audit import Profile, load_profile
from roce_exporter.catalog import SWITCH_SYSTEMS
from roce_exporter.catalog.row import ANY
from roce_exporter.switches.audit import audit_settings
from roce_exporter.switches.audit.audit_check import SwitchVerdict, fix_text, fix_texts
from roce_exporter.switches.audit.audit_switches import OWN_CHECKS, SWITCH_CHECKS, audit_switches
from roce_exporter.switches.pause import port_pause
from roce_exporter.switches.switch_view import SwitchView

NVIDIA = load_profile("nvidia-lossless")
CONSISTENT = replace(NVIDIA, consistent=True)
AUTO = load_profile("auto")
LOSSY = load_profile("lossy")
NOTHING_REQUIRED = Profile("nothing required")


def set_right(switch: MadeSwitch, port: str) -> None:
    """All settings of a port as nvidia-lossless requires them."""
    switch.set("pfc_enabled", port, "3", value=1)
    for row in ("pfc_watchdog_enabled", "pfc_watchdog_acts", "config_ecn_enabled"):
        switch.set(row, port, "3", value=1)
    switch.set("pfc_watchdog_detection_seconds", port, "3", value=0.4)
    switch.set("config_ecn_minimum_bytes", port, "3", value=250_000)
    switch.set("config_ecn_maximum_bytes", port, "3", value=500_000)
    switch.set("config_ecn_probability_ratio", port, "3", value=0.05)
    switch.set("buffer_headroom_bytes", port, "3", value=160_000)


def leaf(*, os: str = "sonic") -> MadeSwitch:
    """One switch with two ports to hosts."""
    switch = MadeSwitch("leaf1", "Ethernet0", "Ethernet4", os=os)
    for number, port in enumerate(("Ethernet0", "Ethernet4")):
        set_right(switch, port)
        switch.neighbor(port, f"gpu-00{number}", "eth0")
    return switch.set("pfc_watchdog_overridden", value=0)


def judged(
    switch: MadeSwitch, profile: Profile = CONSISTENT, port: str = "Ethernet0"
) -> dict[str, bool | None]:
    return {
        one.check.id: one.result.ok
        for one in audit_switches(views(switch), profile)
        if one.settings.port == port
    }


def verdict(
    switch: MadeSwitch, check: str, profile: Profile = CONSISTENT, port: str = "Ethernet0"
) -> SwitchVerdict:
    (found,) = (
        one
        for one in audit_switches(views(switch), profile)
        if one.check.id == check and one.settings.port == port
    )
    return found


def test_the_rows_that_it_reads_are_in_the_catalogue() -> None:
    names = {value for name, value in vars(audit_settings).items() if str(value).startswith("roce_switch_")}
    assert len(names) == 12
    assert names <= ROWS.keys()
    assert port_pause.PAUSE_THRESHOLD in names


def test_a_correct_port_passes_every_check() -> None:
    found = judged(leaf())
    assert set(found) == {check.id for check in SWITCH_CHECKS if not check.whole} - {"switch_peer_pfc"}
    assert set(found.values()) == {True}
    assert judged(leaf(), port="") == {"switch_dscp": None, "switch_watchdog_overridden": True}


@pytest.mark.parametrize(
    ("check", "row", "wrong", "found"),
    [
        ("switch_pfc", "pfc_enabled", 0, "none"),
        ("switch_headroom", "buffer_headroom_bytes", 0, "0 bytes"),
        ("switch_watchdog", "pfc_watchdog_enabled", 0, "off"),
        ("switch_watchdog_acts", "pfc_watchdog_acts", 0, "only reports"),
        ("switch_watchdog_detection", "pfc_watchdog_detection_seconds", 0.1, "100 ms"),
        ("switch_watchdog_detection", "pfc_watchdog_detection_seconds", 1.5, "1500 ms"),
        ("switch_ecn", "config_ecn_enabled", 0, "off"),
        ("switch_ecn_order", "config_ecn_minimum_bytes", 500_000, "500000 to 500000 bytes"),
        ("switch_ecn_before_pause", "config_ecn_minimum_bytes", 1_000_000, "1000000, pause at 1000000 bytes"),
        ("switch_consistent", "config_ecn_probability_ratio", 1, "differs in probability of 3"),
    ],
)
def test_a_wrong_value_is_found(check: str, row: str, wrong: float, found: str) -> None:
    # The second port is the wrong one: of two kinds that are equally frequent, the first is the model.
    switch = leaf().set(row, "Ethernet4", "3", value=wrong)
    result = verdict(switch, check, port="Ethernet4").result
    assert (result.ok, result.found) == (False, found)
    assert verdict(switch, check).result.ok is True


@pytest.mark.parametrize(
    ("check", "row"),
    [
        ("switch_pfc", "pfc_enabled"),
        ("switch_headroom", "buffer_headroom_bytes"),
        ("switch_watchdog", "pfc_watchdog_enabled"),
        ("switch_watchdog_detection", "pfc_watchdog_detection_seconds"),
        ("switch_ecn", "config_ecn_enabled"),
        ("switch_ecn_order", "config_ecn_minimum_bytes"),
        ("switch_ecn_order", "config_ecn_maximum_bytes"),
        ("switch_ecn_before_pause", "config_ecn_minimum_bytes"),
    ],
)
def test_what_was_not_read_is_unreadable_and_not_wrong(check: str, row: str) -> None:
    assert verdict(leaf().drop(row), check).result.ok is None


@pytest.mark.parametrize(
    "check", [check.id for check in OWN_CHECKS if not check.whole and check.id != "switch_pfc"]
)
def test_a_priority_whose_queue_is_not_known_is_never_right(check: str) -> None:
    """The neighbour does not depend on queues; other checks are unreadable, or say nothing."""
    found = judged(leaf().drop("queue_info"))
    assert found.get(check) is (True if check == "switch_neighbor" else None)


@pytest.mark.parametrize(
    ("check", "row"),
    [
        ("switch_watchdog_acts", "pfc_watchdog_acts"),
        ("switch_ecn_before_pause", "buffer_pause_threshold_bytes"),
        ("switch_watchdog_acts", "pfc_watchdog_enabled"),
        ("switch_watchdog_detection", "pfc_watchdog_enabled"),
    ],
)
def test_a_check_of_what_not_every_system_reports_is_left_out(check: str, row: str) -> None:
    assert check not in judged(leaf().drop(row))


def test_the_watchdog_of_the_whole_switch_may_be_overridden() -> None:
    switch = leaf().set("pfc_watchdog_overridden", value=1)
    assert verdict(switch, "switch_watchdog_overridden", port="").result.found == "yes"
    assert verdict(switch, "switch_watchdog_overridden", port="").result.ok is False
    assert judged(switch.drop("pfc_watchdog_overridden"), port="") == {"switch_dscp": None}


def test_the_map_of_dscps_is_said_not_to_be_read() -> None:
    result = verdict(leaf(), "switch_dscp", port="").result
    assert (result.ok, result.expected) == (None, "26 to 3")
    assert "switch_dscp" not in judged(leaf(), AUTO, port="")


@pytest.mark.parametrize(
    ("profile", "on", "right"),
    [
        (NVIDIA, (3,), True),
        (NVIDIA, (3, 4), False),
        (NVIDIA, (4,), False),
        (AUTO, (4,), True),
        (AUTO, (3, 4), False),
        (LOSSY, (3,), False),
    ],
)
def test_pfc_is_on_for_exactly_the_priorities_of_the_hosts(
    profile: Profile, on: tuple[int, ...], right: bool
) -> None:
    switch = leaf().drop("pfc_enabled")
    for priority in on:
        switch.set("pfc_enabled", "Ethernet0", str(priority), value=1)
    assert verdict(switch, "switch_pfc", profile).result.ok is right


def test_a_port_to_a_host_without_pfc_is_wrong_and_its_queues_are_not_judged() -> None:
    assert judged(leaf().set("pfc_enabled", "Ethernet0", "3", value=0)) == {"switch_pfc": False}


def test_a_port_whose_pfc_was_not_read_is_not_wrong_although_others_were_read() -> None:
    switch = leaf()
    for answer in (switch.now, switch.before):
        del answer[switch.series("pfc_enabled", "Ethernet0", "3")]
    assert judged(switch)["switch_pfc"] is None
    assert judged(switch, port="Ethernet4")["switch_pfc"] is True


def test_a_lossy_profile_does_not_require_what_is_for_lossless_queues() -> None:
    switch = leaf()
    for port in ("Ethernet0", "Ethernet4"):
        switch.set("pfc_enabled", port, "3", value=0)
    assert judged(switch, LOSSY) == {"switch_pfc": True}


def test_keys_that_a_profile_omits_are_not_checked() -> None:
    """What is wrong under any profile is checked: two lossless priorities, no headroom, thresholds that contradict."""
    assert set(judged(leaf(), NOTHING_REQUIRED)) == {
        "switch_pfc",
        "switch_headroom",
        "switch_neighbor",
        "switch_ecn_order",
        "switch_ecn_before_pause",
    }


def test_a_watchdog_can_be_unwanted() -> None:
    profile = replace(NVIDIA, switch_watchdog=False)
    assert judged(leaf(), profile)["switch_watchdog"] is False
    assert "switch_watchdog_acts" not in judged(leaf(), profile)


@pytest.mark.parametrize(
    ("least", "most", "expected"),
    [(200, None, "200 ms or more"), (None, 300, "0 to 300 ms"), (500, 600, "500 to 600 ms")],
)
def test_the_detection_time_is_between_the_nic_and_the_limit(
    least: int | None, most: int | None, expected: str
) -> None:
    profile = replace(NVIDIA, pfc_prevention=least, switch_watchdog_most=most)
    result = verdict(leaf(), "switch_watchdog_detection", profile).result
    assert (result.expected, result.ok) == (expected, most is None)


def test_a_port_with_several_priorities_names_the_wrong_ones() -> None:
    switch = (
        leaf()
        .set("pfc_enabled", "Ethernet0", "4", value=1)
        .set("queue_info", "Ethernet0", "4", "4", "4", value=1)
    )
    switch.set("buffer_headroom_bytes", "Ethernet0", "4", value=0)
    assert verdict(switch, "switch_headroom").result.found == "0 bytes"
    switch.set("buffer_headroom_bytes", "Ethernet0", "4", value=170_000)
    assert verdict(switch, "switch_headroom").result.found == "3: 160000 bytes, 4: 170000 bytes"
    assert verdict(switch, "switch_watchdog").result.ok is None, "that of priority 4 was not read"
    switch.set("pfc_watchdog_enabled", "Ethernet0", "3", value=0)
    assert verdict(switch, "switch_watchdog").result.ok is False, (
        "wrong is wrong although another was not read"
    )


def test_a_port_with_pfc_needs_a_neighbour() -> None:
    switch = leaf().drop("lldp_neighbor_info").neighbor("Ethernet4", "gpu-001", "eth0")
    assert verdict(switch, "switch_neighbor").result == (False, "known", "none")
    assert verdict(switch, "switch_neighbor", port="Ethernet4").result.found == "gpu-001 eth0"


def test_a_port_without_a_cable_needs_no_neighbour() -> None:
    switch = leaf().drop("lldp_neighbor_info")
    for queue, packets in (("3", 0), ("0", 0)):
        switch.set("queue_transmit_packets_total", "Ethernet0", queue, value=packets)
    assert "switch_neighbor" not in judged(switch)
    assert verdict(switch, "switch_neighbor", port="Ethernet4").result.ok is False, (
        "not known whether it is used"
    )
    switch.set("queue_transmit_packets_total", "Ethernet0", "0", value=1)
    assert verdict(switch, "switch_neighbor").result.ok is False


def test_no_neighbours_because_a_source_failed_is_not_wrong() -> None:
    switch = leaf().drop("lldp_neighbor_info")
    view = switch.view()
    assert verdict(switch, "switch_neighbor").result.ok is False, "LLDP is off"
    failed = SwitchView(view.device, view.samples, faults={"lldp": "no reply"})
    found = {one.check.id: one.result.ok for one in audit_switches([failed], NVIDIA)}
    assert found["switch_neighbor"] is None


def test_both_ends_of_a_link_between_switches_have_the_same_priorities() -> None:
    one, two = leaf(), MadeSwitch("spine1", "Ethernet8")
    one.port("Ethernet48")
    set_right(one, "Ethernet48")
    set_right(two, "Ethernet8")
    linked(one, "Ethernet48", two, "Ethernet8")

    def peers() -> dict[str, tuple[bool | None, str]]:
        return {
            str(found.settings.port): (found.result.ok, found.result.found)
            for found in audit_switches(views(one, two), NVIDIA)
            if found.check.id == "switch_peer_pfc"
        }

    assert peers() == {"Ethernet48": (True, "3"), "Ethernet8": (True, "3")}
    two.set("pfc_enabled", "Ethernet8", "3", value=0).set("pfc_enabled", "Ethernet8", "4", value=1)
    assert peers() == {"Ethernet48": (False, "4"), "Ethernet8": (False, "3")}
    two.drop("pfc_enabled")
    assert peers()["Ethernet48"] == (None, "")


def test_ports_to_hosts_and_to_switches_are_not_compared() -> None:
    one, two = leaf(), MadeSwitch("spine1", "Ethernet8")
    one.port("Ethernet48")
    set_right(one, "Ethernet48")
    linked(one, "Ethernet48", two, "Ethernet8")
    one.set("config_ecn_maximum_bytes", "Ethernet48", "3", value=2_000_000)
    ids = {
        (found.settings.port, found.result.ok)
        for found in audit_switches(views(one, two), CONSISTENT)
        if found.check.id == "switch_consistent"
    }
    assert ids == {("Ethernet0", True), ("Ethernet4", True)}


def test_the_usual_values_are_those_of_most_ports() -> None:
    switch = leaf()
    switch.port("Ethernet8")
    set_right(switch, "Ethernet8")
    switch.neighbor("Ethernet8", "gpu-008", "eth0").set("config_ecn_maximum_bytes", "Ethernet0", "3", value=1)
    result = verdict(switch, "switch_consistent").result
    assert result == (False, "as Ethernet4, to hosts", "differs in maximum of 3")
    assert "switch_consistent" not in judged(switch, NVIDIA), "the profile does not require it"


@pytest.mark.parametrize(
    ("pattern", "ports"),
    [(None, ["", "Ethernet0", "Ethernet4"]), ("Ethernet4", ["", "Ethernet4"]), ("Ethernet.*", None)],
)
def test_a_profile_chooses_ports(pattern: str | None, ports: list[str] | None) -> None:
    switch = leaf()
    switch.port("Ethernet100")
    switch.neighbor("eth0", "oob-switch", "Ethernet1/1")
    found = audit_switches(views(switch), replace(NVIDIA, switch_ports=pattern))
    chosen = list(dict.fromkeys(one.settings.port for one in found))
    assert chosen == (ports or ["", "Ethernet0", "Ethernet4", "Ethernet100"])


def test_a_switch_that_did_not_answer_has_no_verdicts() -> None:
    assert audit_switches([SwitchView("leaf1", faults={"": "connection refused"})], NVIDIA) == ()


@pytest.mark.parametrize("system", [*SWITCH_SYSTEMS, "unknown"])
@pytest.mark.parametrize("profile", [NVIDIA, AUTO, LOSSY, NOTHING_REQUIRED])
def test_every_check_has_a_command_for_every_system(system: str, profile: Profile) -> None:
    """Complete, with the port filled in where it has one, and without a name in braces."""
    switch = leaf(os=system).set("pfc_enabled", "Ethernet0", "4", value=1)
    for one in audit_switches(views(switch), profile):
        text = fix_text(one, profile)
        assert text
        assert "{" not in text
        assert text == fix_texts(one, profile).get(system, fix_texts(one, profile)[ANY])


def test_commands_are_those_of_the_operating_system() -> None:
    switch = (
        leaf().set("pfc_enabled", "Ethernet0", "3", value=0).set("pfc_enabled", "Ethernet0", "4", value=1)
    )
    assert fix_text(verdict(switch, "switch_pfc"), NVIDIA) == (
        "config interface pfc priority Ethernet0 3 on; config interface pfc priority Ethernet0 4 off"
    )
    watchdog = leaf().set("pfc_watchdog_enabled", "Ethernet0", "3", value=0)
    assert fix_text(verdict(watchdog, "switch_watchdog"), NVIDIA) == (
        "pfcwd start --action drop --restoration-time 400 Ethernet0 400"
    )
    eos = leaf(os="eos").set("pfc_watchdog_enabled", "Ethernet0", "3", value=0)
    assert fix_text(verdict(eos, "switch_watchdog"), NVIDIA) == (
        "interface Ethernet0: priority-flow-control pause watchdog"
    )


def test_ids_and_titles_of_checks_are_unique() -> None:
    assert len({check.id for check in SWITCH_CHECKS}) == len(SWITCH_CHECKS) == 13
    assert len({check.title for check in SWITCH_CHECKS}) == len(SWITCH_CHECKS)
    assert all(ANY in check.fix and set(check.fix) <= {ANY, *SWITCH_SYSTEMS} for check in SWITCH_CHECKS)

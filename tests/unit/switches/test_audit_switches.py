"""Each check of switches: the right value, the wrong one, one that was not read, and a profile or port it does not concern.

Each case is a switch with all settings right and some of them changed; `golden/switch-audit.txt` holds the results that this
adds and removes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fabric_views import MadeSwitch, linked, views
from switch_recordings import differences

from roce_exporter.catalog import SWITCH_SYSTEMS
from roce_exporter.catalog.row import ANY
from roce_exporter.checks.finding import Status, Topic
from roce_exporter.checks.settings import Profile, load_profile
from roce_exporter.checks.settings.check import judged
from roce_exporter.checks.switches.audit_switches import (
    SWITCH_CHECKS,
    SwitchPortSettings,
    audit_switches,
    fill_in,
    switch_port_settings,
)
from roce_exporter.switches.switch_view import SwitchView

NVIDIA = load_profile("nvidia-lossless")
CONSISTENT = replace(NVIDIA, consistent=True)
AUTO = load_profile("auto")
LOSSY = load_profile("lossy")
NOTHING_REQUIRED = Profile("nothing required")
GOLDEN = Path(__file__).parent / "golden/switch-audit.txt"


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


def between_switches(one: MadeSwitch) -> MadeSwitch:
    """A spine behind a third port of the leaf, with all settings right."""
    spine = MadeSwitch("spine1", "Ethernet8")
    one.port("Ethernet48")
    set_right(one, "Ethernet48")
    set_right(spine, "Ethernet8")
    linked(one, "Ethernet48", spine, "Ethernet8")
    return spine


def forgotten(switch: MadeSwitch, row: str, *labels: str) -> MadeSwitch:
    """One series was not read."""
    for answer in (switch.now, switch.before):
        del answer[switch.series(row, *labels)]
    return switch


def with_pfc(*priorities: str) -> MadeSwitch:
    switch = leaf().drop("pfc_enabled")
    for priority in priorities:
        switch.set("pfc_enabled", "Ethernet0", priority, value=1)
    return switch


def two_priorities(**more: float) -> MadeSwitch:
    switch = (
        leaf()
        .set("pfc_enabled", "Ethernet0", "4", value=1)
        .set("queue_info", "Ethernet0", "4", "4", "4", value=1)
    )
    for row, value in more.items():
        switch.set(row, "Ethernet0", "4" if row == "buffer_headroom_bytes" else "3", value=value)
    return switch


def alone(**packets: float) -> MadeSwitch:
    """Without neighbours, and with what two queues of a port have sent."""
    switch = leaf().drop("lldp_neighbor_info")
    for queue, sent in packets.items():
        switch.set("queue_transmit_packets_total", "Ethernet0", queue[1:], value=sent)
    return switch


def third(row: str, value: float) -> MadeSwitch:
    """Of three ports to hosts the first differs."""
    switch = leaf()
    switch.port("Ethernet8")
    set_right(switch, "Ethernet8")
    return switch.neighbor("Ethernet8", "gpu-008", "eth0").set(row, "Ethernet0", "3", value=value)


def more_ports() -> MadeSwitch:
    """Another port with PFC unknown and no neighbour, and a neighbour of the management port."""
    switch = leaf()
    switch.port("Ethernet100")
    return switch.neighbor("eth0", "oob-switch", "Ethernet1/1")


def pair(row: str = "", value: float = 1, *, on_spine: str = "") -> list[SwitchView]:
    one = leaf()
    spine = between_switches(one)
    if row:
        one.set(row, "Ethernet48", "3", value=value)
    if on_spine == "other priority":
        spine.set("pfc_enabled", "Ethernet8", "3", value=0).set("pfc_enabled", "Ethernet8", "4", value=1)
    elif on_spine:
        spine.drop(on_spine)
    return views(one, spine)


def failed() -> SwitchView:
    view = leaf().drop("lldp_neighbor_info").view()
    return SwitchView(view.device, view.samples, faults={"lldp": "no reply"})


NEVER = replace(NVIDIA, switch_watchdog=False)
# Of two kinds of ports that are equally frequent the first is the model, so the second port is the wrong one.
WRONG = {
    "pfc_enabled": [0],
    "buffer_headroom_bytes": [0],
    "pfc_watchdog_enabled": [0],
    "pfc_watchdog_acts": [0],
    "pfc_watchdog_detection_seconds": [0.1, 1.5],
    "config_ecn_enabled": [0],
    "config_ecn_minimum_bytes": [500_000, 1_000_000],
    "config_ecn_probability_ratio": [1],
}
UNREAD = (
    *(row for row in WRONG if row != "config_ecn_probability_ratio"),
    *("config_ecn_maximum_bytes", "buffer_pause_threshold_bytes", "queue_info", "pfc_watchdog_overridden"),
)
CASES: dict[str, tuple[object, Profile]] = {
    **{
        f"{row} is {value} on the second port": (leaf().set(row, "Ethernet4", "3", value=value), CONSISTENT)
        for row, some in WRONG.items()
        for value in some
    },
    **{f"{row} was not read": (leaf().drop(row), CONSISTENT) for row in UNREAD},
    "PFC of one port was not read": (forgotten(leaf(), "pfc_enabled", "Ethernet0", "3"), CONSISTENT),
    "the watchdog of the whole switch is overridden": (
        leaf().set("pfc_watchdog_overridden", value=1),
        CONSISTENT,
    ),
    **{
        f"{profile.name}: PFC on {', '.join(on)}": (with_pfc(*on), profile)
        for profile, on in ((NVIDIA, "34"), (NVIDIA, "4"), (AUTO, "4"), (AUTO, "34"), (LOSSY, "3"))
    },
    "two priorities": (two_priorities(), CONSISTENT),
    "two priorities, one without headroom": (two_priorities(buffer_headroom_bytes=0), CONSISTENT),
    "two priorities with different headroom": (two_priorities(buffer_headroom_bytes=170_000), CONSISTENT),
    "two priorities, one without a watchdog and one unread": (
        two_priorities(pfc_watchdog_enabled=0),
        CONSISTENT,
    ),
    "a lossy profile requires nothing of lossless queues": (
        leaf().set("pfc_enabled", "Ethernet0", "3", value=0).set("pfc_enabled", "Ethernet4", "3", value=0),
        LOSSY,
    ),
    "nothing is required: two lossless priorities, no headroom and thresholds that contradict are wrong": (
        two_priorities(buffer_headroom_bytes=0, config_ecn_minimum_bytes=500_000),
        NOTHING_REQUIRED,
    ),
    "a watchdog that is unwanted": (leaf(), NEVER),
    **{
        f"detection from {least} to {most} ms": (
            leaf(),
            replace(NVIDIA, pfc_prevention=least, switch_watchdog_most=most),
        )
        for least, most in ((200, None), (None, 300), (500, 600))
    },
    "LLDP is off": (alone(), CONSISTENT),
    "a port without a cable needs no neighbour": (alone(q3=0, q0=0), CONSISTENT),
    "a port that sends needs one": (alone(q3=0, q0=1), CONSISTENT),
    "no neighbours because a source failed": ([failed()], CONSISTENT),
    "both ends of a link between switches": (pair(), NVIDIA),
    "the other end has another priority": (pair(on_spine="other priority"), NVIDIA),
    "PFC of the other end was not read": (pair(on_spine="pfc_enabled"), NVIDIA),
    "ports to hosts and to switches are not compared": (
        pair("config_ecn_maximum_bytes", 2_000_000),
        CONSISTENT,
    ),
    "the usual values are those of most ports": (third("config_ecn_maximum_bytes", 1), CONSISTENT),
    **{
        f"ports {pattern}": (more_ports(), replace(NVIDIA, switch_ports=pattern))
        for pattern in (None, "Ethernet4", "Ethernet.*")
    },
    "a switch that did not answer": ([SwitchView("leaf1", faults={"": "connection refused"})], NVIDIA),
    "EOS without a watchdog": (
        leaf(os="eos").set("pfc_watchdog_enabled", "Ethernet0", "3", value=0),
        CONSISTENT,
    ),
}


def shown(made: object, profile: Profile) -> set[str]:
    """A line per result, with the fix of what is wrong."""
    words = {Status.OK: "ok", Status.DEGRADED: "WRONG", Status.UNKNOWN: "unreadable"}
    report = audit_switches(views(made) if isinstance(made, MadeSwitch) else made, profile)
    return {
        f"{one.device} {one.port} {one.check}: {words[one.status]}, expected {one.expected!r}, found {one.found!r}"
        + "".join(f"; {fix}" for fix in one.fix)
        for one in report.findings
    }


def test_every_case_is_as_worked_out_by_hand(golden) -> None:
    right = shown(leaf(), CONSISTENT)
    parts = ["## all settings are right", *sorted(right)]
    for name, (made, profile) in CASES.items():
        parts += ["", f"## {name}", *differences(right, shown(made, profile), ":")]
    golden(GOLDEN, "\n".join(parts) + "\n")


def test_every_check_has_a_command_for_every_system() -> None:
    """Complete, with the port filled in where it has one, and without a name in braces."""
    for system in (*SWITCH_SYSTEMS, "unknown"):
        switch = leaf(os=system).set("pfc_enabled", "Ethernet0", "4", value=1)
        for profile in (NVIDIA, AUTO, LOSSY, NOTHING_REQUIRED):
            for settings in switch_port_settings(views(switch)):
                for check in SWITCH_CHECKS:
                    place, values = (settings.device, settings.port, ""), fill_in(settings, profile)
                    finding = check.finding(
                        Topic.SWITCHES, place, judged(False, "", ""), settings.dialect, values
                    )
                    assert finding.fix[0] in (finding.fixes.get(system), finding.fixes["generic"])
                    assert "{" not in finding.fix[0]
    port = SwitchPortSettings("leaf1", "Ethernet8", pfc=frozenset({3, 4}))
    assert " ".join(map(str, fill_in(port, Profile("none")).values())) == (
        "Ethernet8 3 3 3 3 400 0.4 4 DSCP "
        "config interface pfc priority Ethernet8 4 off priority-flow-control priority 4 drop"
    )
    port, profile = replace(port, pfc=frozenset()), Profile("late", roce_dscp=26, pfc_prevention=600)
    assert " ".join(map(str, fill_in(port, profile).values())) == (
        "Ethernet8 3 3 3 3 600 0.6 6 26 "
        "config interface pfc priority Ethernet8 3 on priority-flow-control priority 3 no-drop"
    )


def test_ids_and_titles_of_checks_are_unique() -> None:
    assert len({check.id for check in SWITCH_CHECKS}) == len(SWITCH_CHECKS) == 13
    assert len({check.title for check in SWITCH_CHECKS}) == len(SWITCH_CHECKS)
    assert all(ANY in check.fix and set(check.fix) <= {ANY, *SWITCH_SYSTEMS} for check in SWITCH_CHECKS)


def test_sources_that_fail_for_one_reason_are_one_line() -> None:
    faults = {"lldp": "refused", "queues": "timeout", "state": "refused"}
    gaps = audit_switches([SwitchView("leaf1", faults=faults)], NVIDIA).not_checked
    assert [str(one) for one in gaps] == ["leaf1: lldp, state: refused", "leaf1: queues: timeout"]


def test_what_the_switches_file_says_of_a_switch_takes_precedence_over_the_profile() -> None:
    """The command sets what the file says, too."""
    wanted = replace(leaf().view(), lossless=(5,))
    found = shown([wanted], NVIDIA)
    assert {line.partition("; ")[0] for line in found if "switch_pfc:" in line} == {
        f"leaf1 {port} switch_pfc: WRONG, expected '5', found '3'" for port in ("Ethernet0", "Ethernet4")
    }
    assert any("config interface pfc priority Ethernet0 5 on" in line for line in found)
    assert not any("WRONG" in line for line in shown([replace(wanted, lossless=(3,))], NVIDIA))

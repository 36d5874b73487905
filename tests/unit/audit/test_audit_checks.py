"""Each check alone: the right value, the wrong value, an unreadable value, and a profile without the key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roce_exporter.audit import ALL_CHECKS, Profile, address_checks, load_profile, rail_checks
from roce_exporter.audit.auditor import judge
from roce_exporter.audit.commands import fill, fix_command, fix_commands
from roce_exporter.audit.port_settings import PcieLink, PortSettings
from roce_exporter.catalog.row import ANY
from roce_exporter.model import Gid

NVIDIA = load_profile("nvidia-lossless")
AUTO = load_profile("auto")
NOTHING_REQUIRED = Profile("nothing required")

EIGHT = tuple(range(8))

GOOD = PortSettings(
    device="mlx5_0",
    port=1,
    netdev="eth0",
    dialect="mlx5",
    pci="0000:3b:00.0",
    pfc=frozenset({3}),
    delay=7,
    trust="dscp",
    dscp_priority={26: 3, 48: 6},
    traffic_class=EIGHT,
    algorithm=(2, 2, 2, 2, 2, 2, 0, 2),
    bandwidth=(50, 0, 0, 50, 0, 0, 0, 0),
    buffer_of=(0, 0, 0, 1, 0, 0, 0, 0),
    buffer_bytes=(262144, 131072, 0, 0, 0, 0, 0, 0),
    dcbx=0x09,
    global_pause=False,
    prevention=100,
    cm_tos=106,
    cm_version=2,
    tclass_forced=True,
    tclass=106,
    notification=frozenset({3}),
    reaction=frozenset({3}),
    dcqcn={"np.cnp_dscp.one": 48, "np.cnp_priority.one": 6},
    mtu=4200,
    speed=25_000_000_000,
    pcie=PcieLink(32_000_000_000, 32_000_000_000, 16, 16),
    gids=(Gid(3, "RoCE v2", "eth0", "192.0.2.1"),),
)


def answers(settings: PortSettings, profile: Profile) -> dict[str, bool | None]:
    return {one.check.id: one.result.ok for one in judge([settings], profile)}


def test_a_correct_port_passes_every_possible_check() -> None:
    found = answers(GOOD, NVIDIA)
    assert {check for check, ok in found.items() if ok is not True} == {"adaptive_retransmission"}
    assert len(found) == 22


@pytest.mark.parametrize(
    ("wanted", "happened", "ok"),
    [
        (False, False, True),
        (False, True, False),
        (False, None, None),
        (True, True, True),
        (True, False, None),
    ],
)
def test_adaptive_retransmission_is_checked_by_its_effect(
    wanted: bool, happened: bool | None, ok: bool | None
) -> None:
    """The setting itself is not readable: a counter of 0 is consistent with off, and proves nothing else."""
    profile = replace(NVIDIA, adaptive_retransmission=wanted)
    assert answers(replace(GOOD, adaptive=happened), profile)["adaptive_retransmission"] is ok


def test_without_values_nothing_is_wrong() -> None:
    blank = PortSettings("mlx5_0", 1, "eth0", "mlx5", pci="0000:3b:00.0")
    assert set(answers(blank, NVIDIA).values()) == {None}
    assert set(answers(blank, AUTO).values()) == {None}


def test_keys_missing_in_a_profile_are_not_checked() -> None:
    found = answers(replace(GOOD, pfc=frozenset()), NOTHING_REQUIRED)
    assert found == {"pfc": True}


WRONG = [
    ("trust", {"trust": "pcp"}, "dscp", "pcp"),
    ("pfc", {"pfc": frozenset()}, "3", "none"),
    ("pfc", {"pfc": frozenset({3, 4})}, "3", "3,4"),
    ("peer_pfc", {"peer_pfc": frozenset({4})}, "3 as here", "4"),
    ("dscp_priority", {"dscp_priority": {26: 0, 48: 6}}, "26 to 3", "26 to 0"),
    ("cnp_mapping", {"dscp_priority": {26: 3, 48: 0}}, "48 to 6", "48 to 0"),
    (
        "lossless_bandwidth",
        {"bandwidth": (60, 0, 0, 40, 0, 0, 0, 0)},
        "ETS, 50 % or more",
        "ETS, 40 % of class 3",
    ),
    (
        "lossless_bandwidth",
        {"algorithm": (2, 2, 2, 0, 2, 2, 0, 2)},
        "ETS, 50 % or more",
        "strict, 50 % of class 3",
    ),
    ("cnp_strict", {"algorithm": (2, 2, 2, 2, 2, 2, 255, 2)}, "strict", "vendor, class 6"),
    ("lossless_buffer", {"buffer_of": (1, 0, 0, 1, 0, 0, 0, 0)}, "of its own", "shared with priority 0"),
    (
        "headroom",
        {"buffer_bytes": (0, 74_623, 0, 0, 0, 0, 0, 0)},
        "74624 bytes or more for 7 m",
        "74623 bytes",
    ),
    ("dcbx", {"dcbx": 0x0A}, "host", "firmware"),
    ("global_pause", {"global_pause": True}, "off", "on"),
    ("pfc_prevention", {"prevention": 8000}, "200 ms or less", "8000 ms"),
    ("pfc_prevention", {"prevention": 0}, "200 ms or less", "never"),
    ("cm_tos", {"cm_tos": 104}, "106 (DSCP 26, ECT(0))", "104 (DSCP 26, no ECT)"),
    ("cm_tos", {"cm_tos": 0}, "106 (DSCP 26, ECT(0))", "0 (DSCP 0, no ECT)"),
    ("traffic_class", {"tclass": 107}, "106 (DSCP 26, ECT(0))", "107 (DSCP 26, CE)"),
    ("traffic_class", {"tclass_forced": False, "tclass": None}, "106 (DSCP 26, ECT(0))", "not set"),
    ("notification_point", {"notification": frozenset({0})}, "on for 3", "0"),
    ("reaction_point", {"reaction": frozenset()}, "on for 3", "none"),
    ("cnp_dscp", {"dcqcn": {"np.cnp_dscp.one": 0, "np.cnp_priority.one": 6}}, "48", "0"),
    ("cnp_priority", {"dcqcn": {"np.cnp_dscp.one": 48, "np.cnp_priority.one": 3}}, "6", "3"),
    ("roce_version", {"cm_version": 1}, "RoCE v2", "RoCE v1"),
    ("adaptive_retransmission", {"adaptive": True}, "off", "on, it happened"),
    ("gid", {"gids": (Gid(1, "RoCE v2", "eth0", "fe80::1"),)}, "RoCE v2 with IPv4", "only v2 without it"),
    (
        "gid",
        {"gids": (Gid(2, "IB/RoCE v1", "eth0", "192.0.2.1"),)},
        "RoCE v2 with IPv4",
        "only v1 without it",
    ),
    ("mtu", {"mtu": 4191}, "4192 or more, for an RDMA MTU of 4096", "4191, for 2048"),
    ("pcie", {"pcie": PcieLink(16 * 10**9, 32 * 10**9, 16, 16)}, "x16 at 32 GT/s", "x16 at 16 GT/s"),
    ("pcie", {"pcie": PcieLink(32 * 10**9, 32 * 10**9, 8, 16)}, "x16 at 32 GT/s", "x8 at 32 GT/s"),
]


@pytest.mark.parametrize(("check", "change", "expected", "found"), WRONG)
def test_one_wrong_setting_fails_its_check_alone_with_expected_and_found(
    check: str, change: dict[str, object], expected: str, found: str
) -> None:
    verdicts = judge([replace(GOOD, **change)], NVIDIA)
    (wrong,) = (one for one in verdicts if one.result.ok is False)
    assert (wrong.check.id, wrong.result.expected, wrong.result.found) == (check, expected, found)


def test_the_table_above_fails_every_check_but_those_with_a_test_of_their_own() -> None:
    elsewhere = {"cable_length", "statistics_refresh", "consistency"}
    elsewhere |= {check.id for check in (*address_checks.CHECKS, *rail_checks.CHECKS)}
    assert {check for check, *_ in WRONG} | elsewhere == {check.id for check in ALL_CHECKS}


@pytest.mark.parametrize("check", ALL_CHECKS, ids=lambda check: check.id)
def test_every_check_has_a_reason_and_a_command_with_known_fields(check: object) -> None:
    assert check.why.endswith(".")
    values = fill(GOOD, NVIDIA)
    assert ANY in check.fix
    for command in check.fix.values():
        filled = command.format(**values)
        assert "{" not in filled
        assert "None" not in filled


def test_ids_are_unique() -> None:
    assert len({check.id for check in ALL_CHECKS}) == len(ALL_CHECKS)


def test_mlx5_maps_unmapped_dscps_by_their_upper_bits_and_others_to_0() -> None:
    unmapped = replace(GOOD, dscp_priority={})
    assert answers(unmapped, NVIDIA)["dscp_priority"] is True
    other = answers(replace(unmapped, dialect="bnxt_re"), NVIDIA)
    assert other["dscp_priority"] is False


def test_a_site_with_long_cables_fails_the_7_metres_that_mlx5_begins_with() -> None:
    site = replace(NVIDIA, cable_metres=100)
    assert answers(GOOD, site)["cable_length"] is False
    assert answers(replace(GOOD, delay=100), site)["cable_length"] is True
    assert answers(replace(GOOD, delay=None), site)["cable_length"] is None
    assert "cable_length" not in answers(replace(GOOD, dialect="irdma"), site), (
        "on other drivers it is in bit times"
    )


def test_frozen_counters_are_found_on_bnxt_only() -> None:
    bnxt = replace(GOOD, dialect="bnxt_re")
    assert answers(replace(bnxt, refresh=0), NOTHING_REQUIRED)["statistics_refresh"] is False
    assert answers(replace(bnxt, refresh=1_000_000), NOTHING_REQUIRED)["statistics_refresh"] is True
    assert answers(bnxt, NOTHING_REQUIRED)["statistics_refresh"] is None
    assert "statistics_refresh" not in answers(replace(GOOD, refresh=0), NOTHING_REQUIRED)


@pytest.mark.parametrize(("switch", "ok"), [(1, True), (0, False)])
def test_the_one_setting_of_bnxt_applies_to_both_points(switch: int, ok: bool) -> None:
    bnxt = replace(
        GOOD, dialect="bnxt_re", notification=None, reaction=None, dcqcn={"cc.enabled.one": switch}
    )
    found = answers(bnxt, NVIDIA)
    assert (found["notification_point"], found["reaction_point"]) == (ok, ok)


def test_without_a_wanted_ecn_state_a_mixed_one_is_wrong() -> None:
    half = answers(replace(GOOD, reaction=frozenset()), AUTO)
    assert half["reaction_point"] is False
    assert "notification_point" not in half
    off = answers(replace(GOOD, reaction=frozenset(), notification=frozenset()), AUTO)
    assert not {"reaction_point", "notification_point"} & off.keys()


def test_a_site_without_ecn_requires_both_points_off() -> None:
    site = replace(NVIDIA, ecn=False)
    assert answers(GOOD, site)["reaction_point"] is False
    assert answers(replace(GOOD, reaction=frozenset()), site)["reaction_point"] is True
    assert answers(replace(GOOD, cm_tos=104, tclass=104), site)["cm_tos"] is True


def test_auto_takes_the_lossless_priority_from_the_settings() -> None:
    moved = replace(
        GOOD,
        pfc=frozenset({5}),
        dscp_priority={40: 5},
        cm_tos=162,
        tclass=162,
        buffer_of=(0, 0, 0, 0, 0, 1, 0, 0),
    )
    found = answers(replace(moved, notification=frozenset({5}), reaction=frozenset({5})), AUTO)
    assert set(found.values()) == {True}
    assert {"trust", "dscp_priority", "cm_tos", "reaction_point", "cnp_priority", "headroom"} <= found.keys()


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ({"trust": "pcp"}, "trust"),
        ({"cm_tos": 104}, "cm_tos"),
        ({"tclass": 0x62}, "traffic_class"),  # ECT(0), and a DSCP that maps to another priority
        ({"dscp_priority": {26: 4}, "cm_tos": None, "tclass": None}, "dscp_priority"),
        ({"dcqcn": {"np.cnp_priority.one": 3}}, "cnp_priority"),
    ],
)
def test_auto_finds_contradictory_settings(change: dict[str, object], check: str) -> None:
    found = answers(replace(GOOD, **({"dscp_priority": {26: 3, 24: 0}} | change)), AUTO)
    assert {one for one, ok in found.items() if ok is False} == {check}


def test_auto_omits_checks_of_lossless_ports_on_a_port_without_pfc() -> None:
    plain = replace(GOOD, pfc=frozenset(), trust="pcp", cm_tos=0, tclass_forced=False, tclass=None)
    found = answers(plain, AUTO)
    assert found.keys() == {"pfc", "global_pause", "roce_version", "gid", "pcie"}
    assert set(found.values()) == {True}


def test_a_peer_is_checked_only_if_it_sends_dcbx() -> None:
    assert "peer_pfc" not in answers(GOOD, NVIDIA)
    assert answers(replace(GOOD, peer_pfc=frozenset({3})), NVIDIA)["peer_pfc"] is True


def test_a_vf_has_no_slot_of_its_own_to_check() -> None:
    assert answers(replace(GOOD, pcie=None), NVIDIA)["pcie"] is None
    assert "pcie" not in answers(replace(GOOD, pcie=None, pci=""), NVIDIA)


def test_the_command_is_that_of_the_nic_and_names_its_port_and_the_profiles_values() -> None:
    (trust,) = (one for one in judge([replace(GOOD, trust="pcp")], NVIDIA) if one.check.id == "trust")
    assert fix_command(trust, NVIDIA) == "mlnx_qos -i eth0 --trust dscp"
    assert fix_commands(trust, NVIDIA) == {
        ANY: "dcb apptrust set dev eth0 order dscp",
        "mlx5": "mlnx_qos -i eth0 --trust dscp",
        "bnxt_re": "dcb app replace dev eth0 dscp-prio 26:3",
    }
    assert fix_command(replace(trust, settings=replace(trust.settings, dialect="irdma")), NVIDIA).startswith(
        "dcb apptrust"
    )


def test_the_command_for_pfc_has_the_priorities_of_the_profile() -> None:
    (pfc,) = (one for one in judge([replace(GOOD, pfc=frozenset())], NVIDIA) if one.check.id == "pfc")
    assert fix_command(pfc, NVIDIA) == "mlnx_qos -i eth0 --pfc 0,0,0,1,0,0,0,0"
    assert fix_commands(pfc, NVIDIA)[ANY] == "dcb pfc set dev eth0 prio-pfc all:off 3:on"
    assert fix_commands(pfc, load_profile("lossy"))[ANY] == "dcb pfc set dev eth0 prio-pfc all:off"


def test_the_command_for_the_mtu_leaves_room_for_the_headers() -> None:
    assert fill(GOOD, NVIDIA)["mtu"] == 4200
    assert fill(GOOD, replace(NVIDIA, rdma_mtu=1024))["mtu"] == 1200


def test_the_shares_of_the_command_for_ets_add_up() -> None:
    values = fill(replace(GOOD, traffic_class=(0, 0, 0, 0, 0, 0, 1, 0)), NVIDIA)
    assert sum(map(int, str(values["shares"]).split(","))) == 100
    assert (values["class"], values["cnp_class"]) == (0, 1)


def consistent(*ports: PortSettings) -> list[bool | None]:
    return [
        one.result.ok
        for one in judge(ports, Profile("alike", consistent=True))
        if one.check.id == "consistency"
    ]


def test_ports_of_one_kind_are_compared_with_the_majority() -> None:
    other, third = replace(GOOD, netdev="eth1", mtu=1500), replace(GOOD, netdev="eth2")
    assert consistent(GOOD, other, third) == [True, False, True]
    assert consistent(other, GOOD, third) == [False, True, True]
    assert consistent(GOOD, other) == [True, False], "of two ports the first is the reference"


def test_a_single_port_and_ports_of_other_kinds_are_not_compared() -> None:
    assert consistent(GOOD) == []
    assert consistent(GOOD, replace(GOOD, netdev="eth1", kind="MT4129 vf", mtu=1500)) == []
    assert consistent(GOOD, replace(GOOD, netdev="eth1", dialect="bnxt_re", refresh=1, mtu=1500)) == []
    assert consistent(GOOD, replace(GOOD, device="mlx5_1", netdev="", mtu=1500)) == []


def test_an_unreadable_setting_is_not_a_difference() -> None:
    assert consistent(GOOD, replace(GOOD, netdev="eth1", cm_tos=None, pfc=None)) == [True, True]

"""Each check alone: the right value, the wrong value, an unreadable value, and a profile without the key."""

from dataclasses import replace

import pytest

from roce_exporter.catalog.row import ANY
from roce_exporter.checks.finding import Finding
from roce_exporter.checks.health.settings_rules import IP_CHECKS
from roce_exporter.checks.settings import ALL_CHECKS, Profile, load_profile
from roce_exporter.checks.settings.auditor import fill, findings, judge
from roce_exporter.checks.settings.port_settings import PcieLink, PortSettings
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
    return {check.id: result.ok for check, _, result in judge([settings], profile)}


def test_without_values_nothing_is_wrong() -> None:
    blank = PortSettings("mlx5_0", 1, "eth0", "mlx5", pci="0000:3b:00.0")
    assert set(answers(blank, NVIDIA).values()) == {None}
    assert set(answers(blank, AUTO).values()) == {None}


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
    (
        "gid",
        {"gids": (Gid(1, "RoCE v2", "eth0", "fe80::1"),)},
        "RoCE v2 with an IP address",
        "only v2 without it",
    ),
    (
        "gid",
        {"gids": (Gid(2, "IB/RoCE v1", "eth0", "192.0.2.1"),)},
        "RoCE v2 with an IP address",
        "only v1 without it",
    ),
    ("mtu", {"mtu": 4191}, "4192 or more, for an RDMA MTU of 4096", "4191, for 2048"),
    ("pcie", {"pcie": PcieLink(16 * 10**9, 32 * 10**9, 16, 16)}, "x16 at 32 GT/s", "x16 at 16 GT/s"),
    ("pcie", {"pcie": PcieLink(32 * 10**9, 32 * 10**9, 8, 16)}, "x16 at 32 GT/s", "x8 at 32 GT/s"),
]


@pytest.mark.parametrize(("check", "change", "expected", "found"), WRONG)
def test_one_wrong_setting_fails_its_check_alone_with_expected_and_found(
    check, change, expected, found
) -> None:
    (wrong,) = (one for one in findings([replace(GOOD, **change)], NVIDIA) if one.is_wrong)
    assert (wrong.check, wrong.expected, wrong.found) == (check, expected, found)


def test_the_table_above_fails_every_check_but_those_with_a_test_of_their_own() -> None:
    elsewhere = {"cable_length", "statistics_refresh", "consistency", "adaptive_retransmission"}
    elsewhere |= IP_CHECKS.keys()
    assert {check for check, *_ in WRONG} | elsewhere == {check.id for check in ALL_CHECKS}


@pytest.mark.parametrize("check", ALL_CHECKS, ids=lambda check: check.id)
def test_every_check_has_a_reason_and_a_command_with_known_fields(check) -> None:
    assert check.why.endswith(".")
    values = fill(GOOD, NVIDIA)
    assert ANY in check.fix
    for command in check.fix.values():
        filled = command.format(**values)
        assert "{" not in filled
        assert "None" not in filled


BLANK, FOR_BNXT = frozenset[int](), {"dialect": "bnxt_re"}
BOTH_POINTS = {**FOR_BNXT, "notification": None, "reaction": None}
"""bnxt has one setting for both points."""
FAR = replace(NVIDIA, cable_metres=100)
NO_ECN = replace(NVIDIA, ecn=False)
ADAPTIVE = replace(NVIDIA, adaptive_retransmission=True)

NOT_MADE = "-"
JUDGED: list[tuple[dict[str, object], Profile, str, bool | str | None]] = [
    # the setting itself is not readable: a counter of 0 is consistent with off, and proves nothing else
    ({"adaptive": False}, NVIDIA, "adaptive_retransmission", True),
    # a peer that does not answer makes it rise on a lossless fabric, too
    ({"adaptive": True}, NVIDIA, "adaptive_retransmission", None),
    ({"gids": (Gid(1, "RoCE v2", "eth0", "2001:db8::1"),)}, NVIDIA, "gid", True),
    ({"adaptive": True}, ADAPTIVE, "adaptive_retransmission", True),
    ({"adaptive": False}, ADAPTIVE, "adaptive_retransmission", None),
    # mlx5 maps an unmapped DSCP by its upper bits, others map it to 0
    ({"bandwidth": (96, 0, 0, 4, 0, 0, 0, 0)}, AUTO, "lossless_bandwidth", False),
    ({"bandwidth": (95, 0, 0, 5, 0, 0, 0, 0)}, AUTO, "lossless_bandwidth", NOT_MADE),
    ({"algorithm": (2, 2, 2, 0, 2, 2, 0, 2)}, AUTO, "lossless_bandwidth", NOT_MADE),
    ({"dscp_priority": {}}, NVIDIA, "dscp_priority", True),
    ({"dscp_priority": {}, **FOR_BNXT}, NVIDIA, "dscp_priority", False),
    # mlx5 begins with 7 metres; on other drivers the length is in bit times
    ({}, FAR, "cable_length", False),
    ({"delay": 100}, FAR, "cable_length", True),
    ({"delay": None}, FAR, "cable_length", None),
    ({"dialect": "irdma"}, FAR, "cable_length", NOT_MADE),
    # frozen counters
    ({"refresh": 0, **FOR_BNXT}, NOTHING_REQUIRED, "statistics_refresh", False),
    ({"refresh": 1_000_000, **FOR_BNXT}, NOTHING_REQUIRED, "statistics_refresh", True),
    (FOR_BNXT, NOTHING_REQUIRED, "statistics_refresh", None),
    ({"refresh": 0}, NOTHING_REQUIRED, "statistics_refresh", NOT_MADE),
    *(
        ({**BOTH_POINTS, "dcqcn": {"cc.enabled.one": switch}}, NVIDIA, check, bool(switch))
        for switch in (0, 1)
        for check in ("notification_point", "reaction_point")
    ),
    # without a wanted state of ECN a mixed one is wrong
    ({"reaction": BLANK}, AUTO, "reaction_point", False),
    ({"reaction": BLANK}, AUTO, "notification_point", NOT_MADE),
    ({"reaction": BLANK, "notification": BLANK}, AUTO, "reaction_point", NOT_MADE),
    ({"reaction": BLANK, "notification": BLANK}, AUTO, "notification_point", NOT_MADE),
    ({}, NO_ECN, "reaction_point", False),
    ({"reaction": BLANK}, NO_ECN, "reaction_point", True),
    ({"cm_tos": 104, "tclass": 104}, NO_ECN, "cm_tos", True),
    # a peer that sends no DCBX, a VF, which has no slot of its own
    ({}, NVIDIA, "peer_pfc", NOT_MADE),
    ({"peer_pfc": frozenset({3})}, NVIDIA, "peer_pfc", True),
    ({"pcie": None}, NVIDIA, "pcie", None),
    ({"pcie": None, "pci": ""}, NVIDIA, "pcie", NOT_MADE),
]


@pytest.mark.parametrize(("change", "profile", "check", "ok"), JUDGED)
def test_a_setting_that_decides_is_judged(change, profile, check, ok) -> None:
    assert answers(replace(GOOD, **change), profile).get(check, NOT_MADE) is ok


def test_auto_takes_the_lossless_priority_from_the_settings() -> None:
    moved = replace(
        GOOD,
        pfc=frozenset({5}),
        dscp_priority={40: 5},
        bandwidth=(50, 0, 0, 0, 0, 50, 0, 0),
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
        ({"dscp_priority": {26: 4}}, "dscp_priority"),  # the map alone: no ToS has the priority
        ({"dcqcn": {"np.cnp_priority.one": 3}}, "cnp_priority"),
    ],
)
def test_auto_finds_contradictory_settings(change, check) -> None:
    found = answers(replace(GOOD, **({"dscp_priority": {26: 3, 24: 0}} | change)), AUTO)
    assert {one for one, ok in found.items() if ok is False} == {check}


def test_auto_omits_checks_of_lossless_ports_on_a_port_without_pfc() -> None:
    plain = replace(GOOD, pfc=frozenset(), trust="pcp", cm_tos=0, tclass_forced=False, tclass=None)
    found = answers(plain, AUTO)
    assert found.keys() == {"pfc", "global_pause", "roce_version", "gid", "pcie"}
    assert set(found.values()) == {True}


def wrong(check: str, settings: PortSettings, profile: Profile = NVIDIA) -> Finding:
    (found,) = (one for one in findings([settings], profile) if one.check == check and one.is_wrong)
    return found


def test_the_command_is_that_of_the_nic_and_names_its_port_and_the_profiles_values() -> None:
    trust = wrong("trust", replace(GOOD, trust="pcp"))
    assert trust.fix == ("mlnx_qos -i eth0 --trust dscp",)
    assert trust.fixes == {
        "generic": "dcb apptrust set dev eth0 order dscp # iproute2 6.2 or newer",
        "mlx5": "mlnx_qos -i eth0 --trust dscp",
        "bnxt": "dcb app replace dev eth0 dscp-prio 26:3",
    }
    assert wrong("trust", replace(GOOD, trust="pcp", dialect="irdma")).fix[0].startswith("dcb apptrust")


def test_a_fix_sets_another_value_than_the_one_found() -> None:
    """The DSCP that the port maps to the priority, where that of most fabrics has another one."""
    found = wrong("cm_tos", replace(GOOD, dscp_priority={26: 0, 24: 3}), AUTO)
    assert (found.found, found.fix) == ("106 (DSCP 26, ECT(0))", ("cma_roce_tos -d mlx5_0 -p 1 -t 98",))


def test_the_command_for_pfc_has_the_priorities_of_the_profile() -> None:
    pfc = wrong("pfc", replace(GOOD, pfc=frozenset()))
    assert pfc.fix == ("mlnx_qos -i eth0 --pfc 0,0,0,1,0,0,0,0",)
    assert pfc.fixes["generic"] == "dcb pfc set dev eth0 prio-pfc all:off 3:on"
    assert (
        wrong("pfc", GOOD, load_profile("lossy")).fixes["generic"] == "dcb pfc set dev eth0 prio-pfc all:off"
    )


def test_the_command_for_the_mtu_leaves_room_for_the_headers() -> None:
    assert fill(GOOD, NVIDIA)["mtu"] == 4200
    assert fill(GOOD, replace(NVIDIA, rdma_mtu=1024))["mtu"] == 1200


def test_the_shares_of_the_command_for_ets_add_up() -> None:
    values = fill(replace(GOOD, traffic_class=(0, 0, 0, 0, 0, 0, 1, 0)), NVIDIA)
    assert sum(map(int, str(values["shares"]).split(","))) == 100
    assert (values["class"], values["cnp_class"]) == (0, 1)


def test_a_command_names_what_was_not_read_and_has_what_most_fabrics_use() -> None:
    values = fill(PortSettings("mlx5_0", 1, "", "mlx5"), Profile("none"))
    assert " ".join(map(str, values.values())) == (
        "mlx5_0 1 NETDEV PCI dscp 2 os 100 4200 26 3 48 6 106 0,0,0,1,0,0,0,0 all:off 3:on 3 6 50 50 "
        "ets,ets,ets,ets,ets,ets,strict,ets 50,0,0,50,0,0,0,0 7 16720 1 0,0,0,1,0,0,0,0 "
        "NETDEV ADDRESS LENGTH SUBNET 101 GATEWAY "
    )


def consistent(*ports: PortSettings) -> list[bool | None]:
    return [
        result.ok
        for check, _, result in judge(ports, Profile("alike", consistent=True))
        if check.id == "consistency"
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

"""The IP side: recorded hosts with one fault each, and each check with the values that decide it."""

from dataclasses import replace

import pytest
from observed import observe
from recorded import recording

from roce_exporter.checks.finding import Finding, Status
from roce_exporter.checks.health.settings_rules import IP_CHECKS
from roce_exporter.checks.settings import Profile, audit, built_in, load_profile
from roce_exporter.checks.settings.auditor import fill, judge
from roce_exporter.checks.settings.port_settings import (
    FollowedPath,
    IpNetdev,
    IpSide,
    OwnAddress,
    OwnRule,
    PortSettings,
    read_ip_settings,
    with_rails,
)
from roce_exporter.host.recorded.recorded import load_recording
from roce_exporter.model import Reading

IP_ONLY = Profile("IP side", addresses=True, multi_rail=True)
CHECKS = IP_CHECKS.keys()

FINDINGS: list[tuple[str, set[str], set[str]]] = [
    ("rails-right", set(), set()),
    ("two-rails-one-subnet", {"arp_ignore", "arp_announce"}, {"ip_rule", "arp_ignore", "arp_announce"}),
    ("rp-filter", set(), {"ip_rule", "rp_filter"}),
    ("neighbour-failed", set(), {"neighbour"}),
    ("duplicate-address", {"duplicate_address"}, {"duplicate_address", "ip_route"}),
    ("no-route", set(), {"ip_route"}),
    ("path-mtu", set(), {"path_mtu"}),
    ("link-local-only", set(), {"ip_address"}),
]
"""Host, and what is wrong on each of its two ports."""


async def verdicts(host: str, profile: Profile = IP_ONLY) -> tuple[Finding, ...]:
    _, (seen,) = await observe(load_recording(recording(f"audit-{host}")))
    return tuple(one for one in audit(seen.snapshot.devices, profile) if one.check in CHECKS)


def wrong(found: tuple[Finding, ...], device: str) -> set[str]:
    return {one.check for one in found if one.is_wrong and one.device == device}


@pytest.mark.parametrize(("host", "first", "second"), FINDINGS)
async def test_a_host_gives_its_findings_and_no_other(host, first, second) -> None:
    found = await verdicts(host)
    assert (wrong(found, "mlx5_0"), wrong(found, "mlx5_1")) == (first, second)
    assert not [one for one in found if one.status is Status.UNKNOWN], "everything is readable"


def test_every_profile_has_these_checks_and_a_site_may_switch_them_off() -> None:
    assert all(load_profile(name).addresses and load_profile(name).multi_rail for name in built_in())
    assert answers(Profile("off", addresses=False, multi_rail=False), *RAILS) == [{}, {}]


async def test_the_findings_name_addresses_and_network_devices() -> None:
    (rule,) = [
        one for one in await verdicts("two-rails-one-subnet") if one.is_wrong and one.check == "ip_rule"
    ]
    assert rule.found == "198.18.0.12 to 198.18.0.0/24 leaves by ens1np0"
    assert rule.fix == (
        "ip route add 198.18.0.0/24 dev ens2np0 src 198.18.0.12 table 102; ip rule add from 198.18.0.12 table 102",
    )
    (mtu,) = [one for one in await verdicts("path-mtu") if one.check == "path_mtu" and one.is_wrong]
    assert mtu.found == "1500 to 0.0.0.0/0"


def rail(number: int, **changes: object) -> IpNetdev:
    """Rail `number` of a host as it should be: a subnet, a table, a gateway, and settings for several rails."""
    address, subnet = f"10.0.{number}.1", f"10.0.{number}.0/24"
    gateway = f"10.0.{number}.254"
    right = IpNetdev(
        f"eth{number}",
        (OwnAddress(address, 24, "global"), OwnAddress(f"fe80::{number}", 64, "link")),
        (OwnRule(100 + number, f"{address}/32", 100 + number, 2),),
        (
            FollowedPath(address, subnet, f"eth{number}", "", 0),
            FollowedPath(address, "0.0.0.0/0", f"eth{number}", gateway, 0),
        ),
        gateways={gateway: "resolved"},
        neighbours={"resolved": 3, "incomplete": 0, "failed": 0},
        sysctls={"rp_filter": 2, "arp_ignore": 1, "arp_announce": 2, "arp_filter": 0},
    )
    return replace(right, **changes)  # type: ignore[arg-type]  # names of fields


RAILS = (rail(1), rail(2))


def test_the_commands_for_a_rail_have_its_address_and_a_table_of_its_own() -> None:
    sides = with_rails([("", IpSide((one,))) for one in RAILS])
    values = fill(PortSettings("mlx5_1", 1, "eth2", "mlx5", ip=sides[1]), IP_ONLY)
    assert " ".join(map(str, [*values.values()][-7:])) == (
        "eth2 10.0.2.1 24 10.0.2.0/24 102 10.0.2.254 ; ip route add default via 10.0.2.254 dev eth2 table 102"
    )


def answers(
    profile: Profile, *rails: IpNetdev, kinds: tuple[str, ...] = (), **changes: object
) -> list[dict[str, bool | None]]:
    """What each port's checks say."""
    sides = with_rails(
        [(kind, IpSide((one,))) for one, kind in zip(rails, kinds or ("",) * len(rails), strict=True)]
    )
    ports = [
        PortSettings(f"mlx5_{number}", 1, one.netdev, "mlx5", mtu=4200, up=True, ip=side)
        for number, (one, side) in enumerate(zip(rails, sides, strict=True))
    ]
    ports = [replace(port, **changes) for port in ports]  # type: ignore[arg-type]  # names of fields
    found: list[dict[str, bool | None]] = [{} for _ in ports]
    for check, settings, result in judge(ports, profile):
        if check.id in CHECKS:
            found[ports.index(settings)][check.id] = result.ok
    return found


def said(
    check: str, *rails: IpNetdev, kinds: tuple[str, ...] = (), **changes: object
) -> list[bool | str | None]:
    """What one check says of each port; `-` if it is not made."""
    return [one.get(check, "-") for one in answers(IP_ONLY, *rails, kinds=kinds, **changes)]


def test_a_single_rail_is_not_blamed_for_what_several_need() -> None:
    alone = rail(1, sysctls={"rp_filter": 1, "arp_ignore": 0, "arp_announce": 0, "arp_filter": 0}, rules=())
    assert set(answers(IP_ONLY, alone)[0]) == {"ip_address", "duplicate_address", "neighbour", "ip_route"}
    assert all(answers(IP_ONLY, alone)[0].values())


def test_a_card_without_rdma_in_the_subnet_of_the_only_rail_takes_its_packets() -> None:
    other = stray(1, "eth7")
    assert answers(IP_ONLY, other)[0]["ip_rule"] is False
    assert answers(IP_ONLY, replace(other, sysctls={"rp_filter": 1}))[0]["rp_filter"] is False
    default = replace(other, paths=(FollowedPath("10.0.1.1", "0.0.0.0/0", "eth7", "192.0.2.1", 0),))
    assert said("ip_rule", default) == ["-"], "the default route may be another card's"


@pytest.mark.parametrize(("length", "ok"), [(16, False), (24, True), (25, True)])
def test_a_rail_whose_subnet_contains_that_of_another_has_the_wrong_length(length, ok) -> None:
    second = rail(2, addresses=(OwnAddress("10.0.2.1", length, "global"),))
    assert said("ip_address", rail(1), second) == [True, ok]
    assert said("ip_address", rail(1, addresses=(OwnAddress("10.0.1.1", 31, "global"),)), second) == [
        True,
        True,
    ]


def test_a_table_to_which_no_rule_leads_is_of_no_use() -> None:
    lost = rail(1, rules=(), unled=("101",))
    assert answers(IP_ONLY, lost)[0]["ip_rule"] is False
    assert said("ip_rule", lost, rail(2, unled=("7",))) == [False, True], (
        "of a rail with a rule it is a remainder"
    )


def stray(number: int, by: str | None) -> IpNetdev:
    address = f"10.0.{number}.1"
    return rail(number, rules=(), paths=(FollowedPath(address, f"10.0.{number}.0/24", by, "", 0),))


def test_packets_that_leave_by_another_rail_are_wrong_there_only() -> None:
    assert said("ip_rule", rail(1), stray(2, "eth1")) == [True, False]
    assert said("ip_rule", rail(1), stray(2, None)) == [True, None], "not understood is not wrong"
    assert said("ip_rule", rail(1), rail(2, missing=frozenset({"paths"}))) == [True, None]


@pytest.mark.parametrize(
    ("value", "by", "ok"),
    [(0, "eth1", True), (1, "eth1", False), (2, "eth1", True), (1, "eth2", True), (1, None, None)],
)
def test_a_strict_filter_is_wrong_where_replies_leave_elsewhere(value, by, ok) -> None:
    second = replace(stray(2, by), sysctls={"rp_filter": value})
    assert said("rp_filter", rail(1), second)[1] is ok


def test_a_setting_that_is_not_readable_is_not_wrong() -> None:
    assert said("rp_filter", rail(1), rail(2, sysctls={}))[1] is None
    shared = rail(2, addresses=(OwnAddress("10.0.1.2", 24, "global"),), sysctls={})
    assert said("arp_ignore", rail(1), shared) == [True, None]


IN_ONE_SUBNET = (OwnAddress("10.0.1.2", 24, "global"),)


@pytest.mark.parametrize(
    ("sysctls", "ignore", "announce"),
    [
        ({"arp_ignore": 0, "arp_announce": 0, "arp_filter": 0}, False, False),
        ({"arp_ignore": 1, "arp_announce": 2, "arp_filter": 0}, True, True),
        ({"arp_ignore": 2, "arp_announce": 1, "arp_filter": 0}, True, False),
        ({"arp_ignore": 8, "arp_announce": 2, "arp_filter": 0}, False, True),
        ({"arp_ignore": 0, "arp_announce": 2, "arp_filter": 1}, True, True),
    ],
)
def test_arp_in_a_shared_subnet(sysctls, ignore, announce) -> None:
    """arp_filter does it, too, as long as the rules are right; 8 replies to no request at all."""
    second = rail(2, addresses=IN_ONE_SUBNET, sysctls={"rp_filter": 2, **sysctls})
    assert said("arp_ignore", rail(1), second)[1] is ignore
    assert said("arp_announce", rail(1), second)[1] is announce


def test_arp_does_not_matter_in_subnets_of_their_own() -> None:
    off = {"rp_filter": 2, "arp_ignore": 0, "arp_announce": 0, "arp_filter": 0}
    assert said("arp_ignore", rail(1), rail(2, sysctls=off)) == ["-", "-"]
    wide = (OwnAddress("10.0.2.1", 8, "global"),)
    assert said("arp_ignore", rail(1), rail(2, addresses=wide, sysctls=off)) == [True, False], "it overlaps"


def test_missing_routes() -> None:
    nothing = rail(2, paths=(FollowedPath("10.0.2.1", "10.0.2.0/24", "", "", 0),))
    assert said("ip_route", rail(1), nothing) == [True, False]
    empty_table = rail(2, rules=(OwnRule(102, "10.0.2.1/32", 102, 0),))
    assert said("ip_route", rail(1), empty_table) == [True, False]
    assert said("ip_rule", rail(1), empty_table) == [True, True], "the rule is there, the route is not"
    of_all = rail(2, rules=(OwnRule(102, "10.0.0.0/8", 102, 0),))
    assert said("ip_route", rail(1), of_all) == [True, True], "a rule for the whole fabric"


def test_a_prefix_that_similar_ports_reach() -> None:
    """Of three ports two agree; a port of another kind, and the default route of the host, say nothing."""
    without = stray(3, "eth3")
    assert said("ip_route", rail(1), rail(2), without) == [True, True, False]
    assert said("ip_route", rail(1), without) == [True, True], "of two ports either may be meant"
    strict = replace(without, sysctls=dict(without.sysctls) | {"rp_filter": 1})
    assert said("ip_route", rail(1), strict) == [True, False], "what comes from beyond its subnet is dropped"
    elsewhere = replace(stray(3, "eth1"), sysctls=strict.sysctls)
    assert said("ip_route", rail(1), elsewhere) == [True, True], "`ip_rule` and `rp_filter` say it"
    assert said("ip_route", rail(1), rail(2), without, kinds=("a", "a", "b")) == [True, True, True]
    ruled = replace(without, rules=(OwnRule(103, "10.0.3.1/32", 103, 1),))
    assert said("ip_route", rail(1), ruled) == [True, False], "a table of its own without the gateway"
    shared = replace(rail(1), addresses=(OwnAddress("10.0.3.2", 24, "global"),))
    assert said("ip_route", shared, ruled)[1] is True, "the table is for the subnet that both are in"
    others = (stray(4, "eth4"), stray(5, "eth5"))
    assert said("ip_route", rail(1), rail(2), without, *others) == [True] * 5, "two of four are no majority"
    hosts = [rail(number, rules=()) for number in (1, 2)]
    assert said("ip_route", *hosts, without) == [True, True, True]


def test_iwarp_has_an_ip_side_and_no_settings_of_roce() -> None:
    """TCP fits its segments to the path, and PFC, GIDs and MTU of RDMA are not its own."""
    low = rail(2, limits={"0.0.0.0/0": 1500}, gateways={"10.0.2.254": "failed"})
    found = answers(IP_ONLY, rail(1), low, iwarp=True)[1]
    assert (found["neighbour"], "path_mtu" in found) == (False, False)
    ports = [PortSettings(f"siw{number}", 1, f"eth{number}", "siw", iwarp=True) for number in (1, 2)]
    assert not judge(ports, replace(load_profile("nvidia-lossless"), consistent=True))


def test_addresses() -> None:
    none = rail(2, addresses=(OwnAddress("fe80::2", 64, "link"),))
    assert said("ip_address", rail(1), none) == [True, False]
    assert said("ip_address", none, up=False) == ["-"], "a port without a link needs no address"
    assert said("ip_address", none, kind="MT4129 vf") == ["-"], "a VF waits for its pod"
    assert said("ip_address", rail(1, missing=frozenset({"facts"}), addresses=())) == [None]
    only_six = rail(1, addresses=(OwnAddress("2001:db8::1", 64, "global"),))
    assert said("ip_address", only_six) == [True]


def test_duplicates() -> None:
    same = rail(2, addresses=(OwnAddress("10.0.1.1", 24, "global"),))
    assert said("duplicate_address", rail(1), same) == [False, False]
    failed = rail(2, addresses=(OwnAddress("2001:db8::2", 64, "global", failed=True),))
    assert said("duplicate_address", rail(1), failed) == [True, False]
    local = [rail(number, addresses=(OwnAddress("fe80::1", 64, "link"),)) for number in (1, 2)]
    assert said("duplicate_address", *local) == [True, True], "link-local addresses may repeat on other links"


@pytest.mark.parametrize(
    ("gateway", "failing", "resolved", "ok"),
    [
        ("resolved", 0, 3, True),
        ("unused", 0, 0, "-"),
        ("failed", 0, 9, False),
        ("incomplete", 0, 9, False),
        ("resolved", 1, 9, True),
        ("resolved", 9, 9, False),
        ("unused", 1, 0, False),
    ],
)
def test_neighbours(gateway, failing, resolved, ok) -> None:
    """A gateway counts alone; peers only if as many fail as resolve: one of them may be switched off."""
    one = rail(
        1,
        gateways={"10.0.1.254": gateway},
        failing={f"10.0.1.{number}": "failed" for number in range(failing)},
        neighbours={"resolved": resolved},
    )
    assert said("neighbour", one) == [ok]


@pytest.mark.parametrize(
    ("mtu", "limit", "ok"),
    [(4200, 1500, False), (4200, 4192, True), (1500, 1500, True), (9000, 4200, True), (None, 1500, None)],
)
def test_the_mtu_of_paths(mtu, limit, ok) -> None:
    """What counts is the RDMA MTU: 9000 and 4200 both have 4096."""
    assert said("path_mtu", rail(1, limits={"10.9.0.0/16": limit}), mtu=mtu) == [ok]
    assert said("path_mtu", rail(1), mtu=mtu) == ["-"]


def test_a_vlan_of_the_port_counts_as_the_port() -> None:
    """The VLAN has the address, and the port below it only a link-local one."""
    link_local = (OwnAddress("fe80::1", 64, "link"),)
    bare = rail(1, addresses=link_local, rules=(), paths=(), gateways={}, sysctls={})
    (side,) = with_rails([("", IpSide((bare, replace(rail(1), netdev="eth1.7", paths=()))))])
    port = PortSettings("mlx5_0", 1, "eth1", "mlx5", mtu=4200, up=True, ip=side)
    found = {check.id: result.ok for check, _, result in judge([port], IP_ONLY) if check.id in CHECKS}
    assert found == {"ip_address": True, "duplicate_address": True, "neighbour": True, "ip_route": True}


def test_the_members_of_a_lag_are_one_rail() -> None:
    sides = with_rails([("", IpSide((rail(1),))), ("", IpSide((rail(1),)))])
    assert all(side is not None and not side.is_multi_rail for side in sides)


@pytest.mark.parametrize(
    ("everywhere", "own", "effect"), [(1, 0, 1), (0, 2, 2), (None, 2, None), (0, None, None)]
)
def test_the_larger_setting_is_in_effect(everywhere, own, effect) -> None:
    """IN_DEV_MAXCONF of include/linux/inetdevice.h; half of it is not a setting."""
    names = ("rp_filter.all", "rp_filter.own")
    reading = Reading("addresses", "mlx5_0", 1, names, (everywhere, own), (), "eth1")
    side = read_ip_settings([reading], 1)
    assert side is not None
    assert side.own[0].sysctls.get("rp_filter") == effect

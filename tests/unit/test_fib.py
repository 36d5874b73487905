"""Where a packet leaves by recorded rules and routes; results re-typed from `ip -j route get` on Linux 6.18.

tests/e2e/test_ip_side_kernel.py compares random rules and routes with this machine's kernel.
"""

import pytest

from roce_exporter.host.recorded import recorded_ip
from roce_exporter.host.recorded.recorded_ip import Fib, is_in
from roce_exporter.model.ip import LOCAL, MAIN, IpPath, IpRoute, IpRule, NextHop

ONE, TWO = "10.0.1.1", "10.0.2.1"
BASE = (IpRule(0, 4, LOCAL), IpRule(32766, 4, MAIN))


def via(destination: str, gateway: str, netdev: str, table: int = MAIN, **more: int) -> IpRoute:
    return IpRoute(table, destination, hops=(NextHop(netdev, gateway),), **more)


ROUTES = (
    IpRoute(LOCAL, "10.0.1.1/32", "local", (NextHop("r1"),)),
    IpRoute(LOCAL, "10.0.2.1/32", "local", (NextHop("r2"),)),
    IpRoute(MAIN, "10.0.1.0/24", hops=(NextHop("r1"),)),
    IpRoute(MAIN, "10.0.2.0/24", hops=(NextHop("r2"),)),
    via("0.0.0.0/0", "10.0.1.254", "r1", metric=100),
    via("0.0.0.0/0", "10.0.2.254", "r2", metric=101),
    via("10.9.0.0/16", "10.0.1.254", "r1", mtu=1400),
    IpRoute(MAIN, "10.8.0.0/16", "blackhole"),
    via("0.0.0.0/0", "10.0.2.254", "r2", 102),
    IpRoute(103, "10.9.0.0/16", "throw"),
)


def path(
    *rules: IpRule, source: str = TWO, destination: str = "10.9.0.1", routes: tuple[IpRoute, ...] = ROUTES
) -> IpPath:
    return Fib((*BASE, *rules), routes, (ONE, TWO)).path(source, destination)


RULE = IpRule(102, 4, 102, source="10.0.2.1/32")
LEAVES_BY_RULE = IpPath("r2", "10.0.2.254")
LEAVES_BY_MAIN = IpPath("r1", "10.0.1.254", 1400)


def test_without_a_rule_the_destination_decides() -> None:
    assert path() == LEAVES_BY_MAIN
    assert path(destination="10.0.2.9") == IpPath("r2")
    assert path(destination="10.0.1.9") == IpPath("r1")
    assert path(destination="203.0.113.1") == IpPath("r1", "10.0.1.254"), "the lower metric"
    assert path(destination=ONE) == IpPath("lo", local=True)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (RULE, LEAVES_BY_RULE),
        (IpRule(102, 4, 102, source="10.0.2.0/24"), LEAVES_BY_RULE),
        (IpRule(102, 4, 102, source="10.0.1.1/32"), LEAVES_BY_MAIN),
        (IpRule(102, 4, 102, source="10.0.1.1/32", inverted=True), LEAVES_BY_RULE),
        (IpRule(102, 4, 102, destination="10.9.0.0/24"), LEAVES_BY_RULE),
        (IpRule(102, 4, 102, destination="10.7.0.0/16"), LEAVES_BY_MAIN),
        (IpRule(40_000, 4, 102, source="10.0.2.1/32"), LEAVES_BY_MAIN),
        (IpRule(102, 4, 102, input="r2"), LEAVES_BY_MAIN),
        (IpRule(102, 4, 102, input="lo"), LEAVES_BY_RULE),
        (IpRule(102, 4, 102, output="r2"), LEAVES_BY_MAIN),
        (IpRule(102, 4, 102, mark=1, mask=0xFFFFFFFF), LEAVES_BY_MAIN),
        (IpRule(102, 4, 102, mark=0, mask=0xFF), LEAVES_BY_RULE),
        (IpRule(102, 4, 77), LEAVES_BY_MAIN),
        (IpRule(102, 4, 103), LEAVES_BY_MAIN),
        (IpRule(102, 4, 102, suppress=0), LEAVES_BY_MAIN),
        (IpRule(102, 4, 0, "unreachable"), IpPath(failure="unreachable")),
        (IpRule(102, 4, 0, "prohibit"), IpPath(failure="prohibited")),
        (IpRule(102, 4, 0, "nop"), LEAVES_BY_MAIN),
    ],
)
def test_rules(rule, expected) -> None:
    assert path(rule) == expected


def test_a_table_that_many_rules_name_is_searched_once(monkeypatch) -> None:
    found = []
    monkeypatch.setattr(recorded_ip, "is_in", lambda *prefix: found.append(prefix) or is_in(*prefix))
    rules = [IpRule(number, 4, 103) for number in range(100)]
    assert path(*rules) == LEAVES_BY_MAIN
    assert len(found) < 2 * len(ROUTES)


def test_a_goto_skips_rules() -> None:
    assert path(IpRule(50, 4, 0, "goto", target=103), RULE) == LEAVES_BY_MAIN
    assert path(IpRule(50, 4, 0, "goto", target=102), RULE) == LEAVES_BY_RULE
    assert path(IpRule(50, 4, 0, "goto", target=0)).failure == "unreachable", (
        "a loop, which no kernel accepts, ends"
    )


@pytest.mark.parametrize("other", ["tos", "uid_start", "ipproto", "l3mdev"])
def test_a_selector_that_is_not_known_makes_the_result_unknown(other) -> None:
    assert path(IpRule(90, 4, 77, others=(other,))).unknown
    assert path(IpRule(90, 4, 77, source="10.0.1.1/32", others=(other,))) == LEAVES_BY_MAIN, "it cannot match"
    assert path(IpRule(103, 4, 77, others=(other,)), RULE) == LEAVES_BY_RULE, "an earlier rule decides"


def test_routes_that_do_not_lead_out() -> None:
    assert path(destination="10.8.0.1") == IpPath(failure="blackhole")
    assert path(destination="10.0.3.1", routes=ROUTES[:4]) == IpPath(failure="unreachable")
    dead = IpRoute(MAIN, "10.9.0.0/24", hops=(NextHop("r2", "10.0.2.7", usable=False),))
    assert path(routes=(*ROUTES, dead)) == LEAVES_BY_MAIN, "the next longest prefix"


def test_several_next_hops_are_unknown_unless_they_agree() -> None:
    hops = (NextHop("r1", "10.0.1.7"), NextHop("r2", "10.0.2.7"))
    assert path(routes=(*ROUTES, IpRoute(MAIN, "10.9.0.0/24", hops=hops))).unknown
    same = (NextHop("r2", "10.0.2.8"), NextHop("r2", "10.0.2.7"))
    assert path(routes=(*ROUTES, IpRoute(MAIN, "10.9.0.0/24", hops=same))).netdev == "r2"


def test_without_rules_or_routes_nothing_is_known() -> None:
    assert Fib((), ROUTES, (ONE,)).path(ONE, TWO).unknown
    assert Fib(BASE, (), (ONE,)).path(ONE, TWO).unknown
    assert path(source="10.77.0.1").failure == "blackhole", "not an address of this host"

"""Who probes whom: every host computes the same plan, each port is probed, and nothing exceeds its bound."""

import ipaddress
from collections import Counter

import pytest

from roce_exporter.probe.plan import (
    FABRIC,
    FAR_PATHS,
    MESH,
    NEAR_PATHS,
    PARTNER_SECONDS,
    RACK,
    ProbeTarget,
    SendRate,
    bursts,
    interval,
    plan,
)

NOW = 1_700_000_000.0


def fabric(hosts: int, rails: int = 1, per_rack: int = 16) -> list[ProbeTarget]:
    return [
        ProbeTarget(
            f"r{host // per_rack:02}",
            f"h{host:03}",
            str(rail),
            ipaddress.ip_address(f"10.{rail}.{host // 250}.{host % 250 + 1}"),
            10124,
        )
        for host in range(hosts)
        for rail in range(rails)
    ]


def test_a_port_probes_two_neighbours_and_two_partners_of_its_rail() -> None:
    targets = fabric(64, rails=2)
    for own in targets:
        probes = plan(own, targets, NOW)
        near, far = ({one.target for one in probes if one.scope == scope} for scope in (RACK, FABRIC))
        assert len(near) == 2
        assert 1 <= len(far) <= 2
        assert {one.target.rail for one in probes} == {own.rail}
        assert own not in near | far
        assert all(one.rack == own.rack for one in near)
        assert all(one.rack != own.rack for one in far)
        assert len(probes) == len(near) * NEAR_PATHS + len(far) * FAR_PATHS


def test_partners_change_every_minute_and_all_racks_are_reached() -> None:
    targets = fabric(64)
    own = targets[0]
    minutes = [plan(own, targets, NOW + PARTNER_SECONDS * minute) for minute in range(40)]
    assert plan(own, targets, NOW + 1) == minutes[0]
    assert {one.target.rack for probes in minutes for one in probes} == {"r00", "r01", "r02", "r03"}


@pytest.mark.parametrize(("ports", "meshed"), [(2, True), (MESH, True), (MESH + 1, False)])
def test_few_ports_are_a_full_mesh(ports, meshed) -> None:
    targets = fabric(ports)
    peers = {one.target for one in plan(targets[0], targets, NOW)}
    assert (peers == set(targets[1:])) is meshed


def test_a_port_talks_to_its_own_rail() -> None:
    targets = fabric(64, rails=4)
    assert not any(one.target.rail != own.rail for own in targets for one in plan(own, targets, NOW))


def test_addresses_of_the_other_family_are_left_out() -> None:
    six = ProbeTarget("r0", "h9", "0", ipaddress.ip_address("fd00::9"), 10124)
    targets = [*fabric(3), six]
    assert six not in {one.target for one in plan(targets[0], targets, NOW)}
    assert plan(six, targets, NOW) == ()


def test_a_burst_has_its_bounds_and_every_path_its_turn() -> None:
    targets = fabric(MESH)
    own = targets[0]
    plans = {own: plan(own, targets, NOW)}
    rate = SendRate()
    seen: Counter[tuple[ProbeTarget, int]] = Counter()
    for turn in range(40):
        sent = bursts(plans, rate, turn)[own]
        assert len(sent) <= rate.burst
        assert max(Counter(one.target for one in sent).values()) <= rate.per_target * rate.interval
        seen.update((one.target, one.path) for one in sent)
    assert set(seen) == {(one.target, one.path) for one in plans[own]}


def test_many_ports_send_less_often_and_never_more_than_the_process_may() -> None:
    targets = fabric(64, rails=16)
    own = targets[:16]
    plans = {one: plan(one, targets, NOW) for one in own}
    rate = SendRate()
    assert sum(map(len, bursts(plans, rate, 0).values())) / interval(plans, rate) <= rate.most
    assert interval({own[0]: plans[own[0]]}, rate) == rate.interval
    assert bursts({own[0]: ()}, rate, 0) == {}

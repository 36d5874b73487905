"""The vote names the component that loses probes, and no host that is only busy. `bench/probe_vote.py` prints the whole table."""

import itertools
import sys
from pathlib import Path
from random import Random

import pytest

from roce_exporter.catalog import probe as rows
from roce_exporter.normalise.series import Samples, Series
from roce_exporter.probe.fleet import LossyPair, PortReport, ProbedPort, blame, port_reports, slow_parts
from roce_exporter.probe.plan import FABRIC, RACK
from roce_exporter.probe.vote import HOST, LINK, PATH, SPINE, TOR, Component, PathCount, vote
from roce_exporter.view.host_view import TimedSamples, timed_samples

ONE, TWO, THREE = (Component(HOST, name) for name in ("h1", "h2", "h3"))
HERE, THERE = Component(TOR, "t1"), Component(TOR, "t2")


sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
import probe_vote as bench  # noqa: E402 - benchmarks are no package


def test_a_tor_that_loses_inside_its_rack_too_is_not_its_uplinks() -> None:
    """Nearly all probes pass the uplinks, which have lost a little more by chance."""
    uplinks = Component(LINK, "t1-s1")
    paths = [PathCount((ONE, HERE, uplinks), 1000, 102), PathCount((TWO, HERE), 100, 9)]
    paths += [PathCount((THREE, THERE), 1000, 0), PathCount((ONE, HERE, uplinks, THREE), 1000, 99)]
    assert vote(paths, {})[0].component == HERE


def test_few_losses_name_nothing() -> None:
    assert vote([PathCount((ONE, TWO, HERE), 100, 3)], {}) == ()
    assert vote([PathCount((ONE, TWO, HERE), 1000, 5)], {}) == ()


def test_the_component_with_the_highest_share_is_named_with_its_evidence() -> None:
    paths = [
        PathCount((ONE, TWO, HERE), 100, 0),
        PathCount((ONE, THREE, HERE, THERE), 100, 10),
        PathCount((TWO, THREE, HERE, THERE), 100, 12),
        PathCount((ONE, Component(HOST, "h4"), HERE, THERE), 100, 0),
    ]
    (found,) = vote(paths, {})
    assert (found.component, found.sent, found.lost, found.paths) == (THREE, 200, 22, 2)
    assert found.also == ()


def test_what_the_probes_cannot_tell_apart_is_said() -> None:
    (found,) = vote([PathCount((ONE, TWO, HERE), 100, 50)], {})
    assert {found.component, *found.also} == {ONE, TWO, HERE}


def test_two_faults_are_two_components() -> None:
    others = [Component(HOST, f"o{number}") for number in range(6)]
    healthy = [PathCount((one, other, HERE), 100, 0) for one in others for other in others if one < other]
    paths = [PathCount((bad, one, HERE), 100, 20) for bad in (ONE, TWO) for one in others]
    assert {one.component for one in vote(healthy + paths, {})} == {ONE, TWO}


@pytest.mark.parametrize(("dropped", "named"), [(60, False), (10, True)])
def test_a_host_whose_own_drops_explain_its_losses_is_not_the_network(dropped, named) -> None:
    others = [Component(HOST, f"o{number}") for number in range(6)]
    healthy = [PathCount((one, other, HERE), 100, 0) for one in others for other in others if one < other]
    paths = [PathCount((ONE, one, HERE), 100, 10) for one in others]
    assert [one.component for one in vote(healthy + paths, {"h1": dropped})] == ([ONE] if named else [])


def test_of_simulated_faults_each_is_named_and_nothing_else() -> None:
    """Seeds 1 to 3, with busy hosts; the seeds of the judgement are others."""
    for seed in range(1, 4):
        found = bench.run(64, seed, faulty=True)
        assert set(found.named) == found.right, found
        assert bench.run(64, seed, faulty=False).named == ()
    silent = bench.run(64, 1, faulty=True, silent=True, seconds=15)
    assert set(silent.named) == silent.right


def test_the_simulated_fabric_has_each_kind_of_component() -> None:
    fabric = bench.make_fabric(64, 1)
    way = fabric.way(fabric.targets[0], fabric.targets[-1], 40000)
    assert [one.kind for one in way] == [HOST, HOST, TOR, TOR, LINK, LINK, SPINE]
    assert fabric.way(fabric.targets[0], fabric.targets[1], 1)[2:] == (Component(TOR, "r00"),)


PORT = ("mlx5_0", "1")


def scrape(
    sent: int, lost: int, pair: tuple[int, int] | None = None, dropped: int = 0, time: float = 0
) -> TimedSamples:
    found = [
        (Series(rows.PORT_INFO, (*PORT, "10.0.0.1", "h1", "r1", "0")), 1),
        (Series(rows.SENT, (*PORT, "rack", "roce")), sent),
        (Series(rows.SENT, (*PORT, "fabric", "cnp")), 10),
        (Series(rows.LOST, (*PORT, "rack", "roce")), lost),
        (Series(rows.REPLIES_DROPPED, ("queue",)), dropped),
        (Series(rows.REPLIES_DROPPED, ("unknown",)), 7),
    ]
    if pair:
        of_pair = (*PORT, "h2", "40000")
        found += [(Series(rows.PAIR_SENT, of_pair), pair[0]), (Series(rows.PAIR_LOST, of_pair), pair[1])]
    samples = Samples(tuple(one for one, _ in found), tuple(value for _, value in found))
    return timed_samples([samples], time)


@pytest.mark.parametrize(
    ("before", "sent", "pairs", "dropped"),
    [
        (None, 110, (("h2", 40, 5),), 3),
        (scrape(60, 0, dropped=1), 40, (("h2", 21, 5),), 2),
        (scrape(60, 0, (30, 4)), 40, (("h2", 10, 1),), 3),
        (scrape(900, 0, (90, 1)), 100, (("h2", 40, 4),), 3),
    ],
    ids=["whole", "first-loss", "rise", "restarted"],
)
def test_a_report_is_the_rise_between_two_scrapes(before, sent, pairs, dropped) -> None:
    (found,) = port_reports(before, scrape(100, 5, (40, 5), 3, time=100))
    assert found.port == ProbedPort("h1", "r1", "0")
    assert sum(found.sent.values()) == sent
    assert found.pairs == tuple(LossyPair(peer, "40000", *counts) for peer, *counts in pairs)
    assert found.dropped == dropped


def test_a_port_that_is_not_in_the_list_reports_nothing() -> None:
    samples = Samples((Series(rows.SENT, (*PORT, "rack", "roce")),), (5,))
    assert port_reports(None, timed_samples([samples], 0)) == ()


def rack(
    number: int, lossy: dict[str, tuple[float, float]], dropped: float = 0, rail: str = ""
) -> list[PortReport]:
    """Four hosts of a rack, which have sent 100 probes each; some lost probes to `lossy` peers."""
    pairs = tuple(LossyPair(peer, "40000", *counts) for peer, counts in lossy.items())
    return [
        PortReport(
            ProbedPort(f"h{number}{one}", f"r{number}", rail),
            {RACK: 50, FABRIC: 50},
            tuple(p for p in pairs if p.peer != f"h{number}{one}"),
            dropped,
        )
        for one in range(4)
    ]


def test_a_peer_that_many_lose_to_is_named() -> None:
    found = blame([*rack(1, {"h13": (20, 4)}), *rack(2, {"h13": (20, 5)})])
    assert [one.component for one in found] == [Component(HOST, "h13")]
    # its own, those of lossy pairs to it, and its part of what the other rack lost nothing of
    assert found[0].sent == 100 + 7 * 20 + (50 - 20)


def test_a_rack_whose_probes_to_all_others_are_lost_has_bad_uplinks() -> None:
    lossy = {f"h{other}{one}": (5.0, 1.0) for other in (2, 3, 4) for one in range(2)}
    found = blame([*rack(1, lossy), *rack(2, {}), *rack(3, {}), *rack(4, {})])
    assert [one.component for one in found] == [Component(LINK, "r1")]


def drawn(seed: int, kind: str) -> tuple[list[PortReport], Component]:
    """The reports of four racks with eight hosts in which a port loses a quarter, or one of two uplinks of a rack does; and which one."""
    rng = Random(seed)  # noqa: S311 - the same drawing in every run
    hosts = [ProbedPort(f"h{rack}{one}", f"r{rack}", "") for rack in range(4) for one in range(8)]
    bad = rng.choice(hosts)
    reports = []
    for own in hosts:
        pairs = []
        for scope in (RACK, FABRIC):
            others = [one for one in hosts if one != own and (one.rack == own.rack) == (scope == RACK)]
            for other, source in itertools.product(rng.sample(others, 2), range(8)):
                ends = (own, other)
                passed = bad in ends
                if kind == LINK:
                    crossed = scope == FABRIC and bad.rack in (own.rack, other.rack)
                    passed = crossed and rng.random() < 0.5
                if lost := sum(rng.random() < 0.25 for _ in range(20 * passed)):
                    pairs.append(LossyPair(other.host, str(40000 + source), 20, lost))
        reports.append(PortReport(own, {RACK: 320, FABRIC: 320}, tuple(pairs)))
    return reports, Component(kind, bad.rack if kind == LINK else bad.host)


@pytest.mark.parametrize("kind", [HOST, LINK])
def test_one_bad_part_is_named_and_nothing_else(kind) -> None:
    """Half of the paths of a rack pass its bad uplink: what arrives by the others counts for the ports below it, too."""
    drawings = [drawn(seed, kind) for seed in range(20)]
    right = [[one.component for one in blame(reports)] == [truth] for reports, truth in drawings]
    assert sum(right) >= 19


@pytest.mark.parametrize("lost", [12, 4])
def test_one_source_port_is_a_path_and_not_the_port(lost) -> None:
    """To all peers behind it; a broken port loses from every source port."""
    pairs = tuple(LossyPair(f"h2{number}", "40003", 12, lost) for number in range(4))
    own, *others = [*rack(1, {}), *rack(2, {})]
    own = own._replace(sent={RACK: 72, FABRIC: 384}, pairs=pairs)
    assert [one.component for one in blame([own, *others])] == [Component(PATH, "h10 source port 40003")]
    more = tuple(LossyPair(f"h2{number}", "40004", 12, lost) for number in range(4))
    assert [one.component for one in blame([own._replace(pairs=pairs + more), *others])] == [
        Component(HOST, "h10")
    ]


def test_racks_that_all_lose_to_all_others_have_a_bad_spine() -> None:
    reports = [
        one
        for own in range(1, 5)
        for one in rack(own, {f"h{other}{own % 4}": (5.0, 1.0) for other in range(1, 5) if other != own})
    ]
    assert [one.component for one in blame(reports)] == [Component(SPINE, "fabric")]


def slow(number: int, times: list[float]) -> list[PortReport]:
    return [one._replace(network={RACK: time}) for one, time in zip(rack(number, {}), times, strict=True)]


@pytest.mark.parametrize(
    ("times", "named"),
    [
        ([1e-5, 1e-5, 1.4e-5, 3e-5], []),
        ([4e-5, 4e-5, 4e-5, 2e-3], [Component(HOST, "h13")]),
        ([5e-4, 5e-4, 5e-4, 2e-3], [Component(HOST, "h13")]),
        ([2e-3, 2e-3, 2e-3, 4e-5], [Component(TOR, "r1")]),
    ],
    ids=["noise", "port", "port-and-its-peers", "tor"],
)
def test_what_is_far_slower_than_its_rail_is_named(times, named) -> None:
    others = [one for number in (2, 3) for one in slow(number, [2e-5] * 4)]
    assert [one.component for one in slow_parts([*slow(1, times), *others])] == named

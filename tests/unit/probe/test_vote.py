"""The vote names the component that loses probes, and no host that is only busy. `bench/probe_vote.py` prints the whole table."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from roce_exporter.probe.vote import HOST, LINK, SPINE, TOR, Component, PathCount, vote

ONE, TWO, THREE = (Component(HOST, name) for name in ("h1", "h2", "h3"))
HERE, THERE = Component(TOR, "t1"), Component(TOR, "t2")


sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
import probe_vote as bench  # noqa: E402 - benchmarks are no package


def test_nothing_lost_names_nothing() -> None:
    assert vote([PathCount((ONE, TWO, HERE), 100, 0)], {}) == ()
    assert vote([], {}) == ()


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
def test_a_host_whose_own_drops_explain_its_losses_is_not_the_network(dropped: int, named: bool) -> None:
    others = [Component(HOST, f"o{number}") for number in range(6)]
    healthy = [PathCount((one, other, HERE), 100, 0) for one in others for other in others if one < other]
    paths = [PathCount((ONE, one, HERE), 100, 10) for one in others]
    assert [one.component for one in vote(healthy + paths, {"h1": dropped})] == ([ONE] if named else [])


def test_of_simulated_faults_each_is_named_and_nothing_else() -> None:
    """Seeds 1 to 3, with busy hosts; the seeds of the judgement are others."""
    for seed in range(1, 4):
        found = bench.run(64, seed, faulty=True)
        assert found.named == (found.broken,), found
        assert bench.run(64, seed, faulty=False).named == ()
    silent = bench.run(64, 1, faulty=True, silent=True, seconds=15)
    assert silent.named == (silent.broken,)


def test_the_simulated_fabric_has_each_kind_of_component() -> None:
    fabric = bench.make_fabric(64, 1)
    way = fabric.way(fabric.targets[0], fabric.targets[-1], 40000)
    assert [one.kind for one in way] == [HOST, HOST, TOR, TOR, LINK, LINK, SPINE]
    assert fabric.way(fabric.targets[0], fabric.targets[1], 1)[2:] == (Component(TOR, "t0"),)

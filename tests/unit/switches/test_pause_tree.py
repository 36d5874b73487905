"""The pause tree over small fabrics: where the walk goes, where it ends, and what it says where it does not know.

Each case of the table is a small fabric; `golden/pause-tree.txt` holds the whole tree of it, worked out by hand.
"""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fabric_views import MadeSwitch, as_kept, leaf_spine, linked, slow_receiver, views

from roce_exporter.switches.interpretation import NO_PLAN, SeriesTable
from roce_exporter.switches.pause import pause_tree as pause_tree_module
from roce_exporter.switches.pause.pause_report import (
    CUT,
    PAUSES,
    SEEN,
    SLOW_RECEIVER,
    PauseChoice,
    PauseTree,
    as_text,
    in_order,
)
from roce_exporter.switches.pause.pause_tree import pause_tree
from roce_exporter.switches.switch_view import SwitchView
from roce_exporter.words import counted

GOLDEN = Path(__file__).parent / "golden/pause-tree.txt"
LLDP, INFO, RECEIVED = "lldp_neighbor_info", "queue_info", "pfc_receive_pause_seconds_total"
ESTIMATED, HELD = "pfc_receive_pause_estimated_seconds_total", "queue_watermark_bytes"
TRIPPED, SENT, THRESHOLD = "pfc_watchdog_tripped", "pfc_transmit_frames_total", "buffer_pause_threshold_bytes"


def ring() -> tuple[MadeSwitch, MadeSwitch, MadeSwitch]:
    """Three switches in a ring that pause each other; gpu-001 is behind the first."""
    one, two, three = (MadeSwitch(name, "Ethernet0", "Ethernet4", "Ethernet8") for name in ("s1", "s2", "s3"))
    for here, there in ((one, two), (two, three), (three, one)):
        linked(here, "Ethernet4", there, "Ethernet8")
        here.paused("Ethernet4", 0.99)
        there.pauses("Ethernet8", 900)
    one.neighbor("Ethernet0", "gpu-001", "eth0").pauses("Ethernet0")
    return one, two, three


def chain(length: int) -> list[MadeSwitch]:
    """Switches in a row, each paused by the next; gpu-001 is behind the first, and the last is paused by gpu-002."""
    switches = [MadeSwitch(f"s{number}", "Ethernet0", "Ethernet4") for number in range(length)]
    for here, there in itertools.pairwise(switches):
        linked(here, "Ethernet4", there, "Ethernet0")
    for switch in switches:
        switch.paused("Ethernet4", 0.5).pauses("Ethernet0")
    switches[0].neighbor("Ethernet0", "gpu-001", "eth0")
    switches[-1].neighbor("Ethernet4", "gpu-002", "eth0")
    return switches


def no_switch() -> tuple[MadeSwitch, ...]:
    return ()


def against_the_order_of_names() -> tuple[MadeSwitch, MadeSwitch]:
    """Pause that reaches no host; the names of the switches are in the opposite order of the pause."""
    end, start = MadeSwitch("a", "Ethernet0", "Ethernet4"), MadeSwitch("z", "Ethernet0", "Ethernet4")
    linked(start, "Ethernet4", end, "Ethernet0")
    start.paused("Ethernet4", 0.5)
    end.pauses("Ethernet0").paused("Ethernet4", 0.6).neighbor("Ethernet4", "gpu-002", "eth0")
    return end, start


def one_leaf() -> tuple[MadeSwitch]:
    return leaf_spine()[:1]


def two_leaves() -> tuple[MadeSwitch, ...]:
    return leaf_spine()[:2]


def changed(view: SwitchView, **more: Any) -> SwitchView:
    fields = {name: getattr(view, name) for name in ("device", "samples", "before", "seconds")}
    return SwitchView(**(fields | more))


def with_estimate(leaf: MadeSwitch, share: float) -> MadeSwitch:
    return leaf.rate(ESTIMATED, "Ethernet12", "3", each_second=share)


def started_again(leaf: MadeSwitch) -> None:
    leaf.now |= {series: 5 for series in leaf.now if series.row.kind == "counter"}


class Case(NamedTuple):
    """A fabric, what is different in it, what is chosen, and how its switches answer."""

    fabric: Callable[[], tuple[MadeSwitch, ...]]
    change: Callable[..., object] = lambda *_: None
    choice: PauseChoice = PauseChoice()
    answers: Callable[[Sequence[MadeSwitch]], list[SwitchView]] = lambda switches: views(*switches)

    def tree(self) -> PauseTree:
        switches = self.fabric()
        self.change(*switches)
        return pause_tree(self.answers(switches), self.choice)


CASES = {
    "no answers at all": Case(no_switch),
    "no pause": Case(leaf_spine, answers=lambda some: [changed(some[0].view(), seconds=5.0, age=120.0)]),
    "a slow receiver, through three switches": Case(slow_receiver),
    "the most paused host first, and one queue is followed once": Case(
        slow_receiver, lambda one, *_: one.pauses("Ethernet4", 500)
    ),
    "a host": Case(slow_receiver, lambda one, *_: one.pauses("Ethernet4", 500), PauseChoice(host="gpu-001")),
    "a host with its domain": Case(slow_receiver, choice=PauseChoice(host="GPU-001.example.com")),
    "a host and its netdev": Case(slow_receiver, choice=PauseChoice(host="gpu-001", netdev="eth0")),
    "a port": Case(slow_receiver, choice=PauseChoice(switch="leaf1", port="Ethernet0")),
    "a port and a priority": Case(
        slow_receiver, choice=PauseChoice(switch="leaf1", port="Ethernet0", priority="3")
    ),
    "a host that no switch knows": Case(slow_receiver, choice=PauseChoice(host="gpu-404")),
    "a switch is no host": Case(slow_receiver, choice=PauseChoice(host="spine1")),
    "another netdev": Case(slow_receiver, choice=PauseChoice(host="gpu-001", netdev="eth9")),
    "another priority": Case(
        slow_receiver, choice=PauseChoice(switch="leaf1", port="Ethernet0", priority="4")
    ),
    "a host, and no switch": Case(no_switch, choice=PauseChoice(host="gpu-001")),
    "a host that is not paused": Case(slow_receiver, choice=PauseChoice(host="gpu-002")),
    "a host that sends pause": Case(slow_receiver, choice=PauseChoice(host="gpu-007")),
    "a full queue that is not paused is incast": Case(
        leaf_spine,
        lambda one, two, spine: (
            two.full("Ethernet16").pauses("Ethernet48"),
            spine.paused("Ethernet4", 0.4).pauses("Ethernet0"),
            one.paused("Ethernet48", 0.3).set(TRIPPED, "Ethernet48", "3", value=1).pauses("Ethernet0"),
        ),
    ),
    "ECN marks next to a watermark": Case(
        two_leaves,
        lambda _, two: two.pauses("Ethernet16").rate(
            "queue_ecn_marked_packets_total", "Ethernet12", "3", each_second=5000
        ),
    ),
    "ECN marks show a filled queue without a watermark": Case(
        two_leaves,
        lambda _, two: (
            two.pauses("Ethernet16")
            .rate("queue_ecn_marked_packets_total", "Ethernet12", "3", each_second=5000)
            .drop(HELD)
        ),
    ),
    "the ECN maximum where the pause threshold was not read": Case(
        two_leaves,
        lambda _, two: (
            two.pauses("Ethernet16")
            .full("Ethernet12", 400_000)
            .drop(THRESHOLD)
            .set("config_ecn_maximum_bytes", "Ethernet12", "3", value=300_000)
        ),
    ),
    "the ECN maximum where the pause threshold is higher": Case(
        two_leaves,
        lambda _, two: (
            two.pauses("Ethernet16")
            .full("Ethernet12", 400_000)
            .set("config_ecn_maximum_bytes", "Ethernet12", "3", value=300_000)
            .set(THRESHOLD, "Ethernet12", "3", value=30_000_000)
        ),
    ),
    "the lowest pause threshold of the switch": Case(
        one_leaf,
        lambda one: (
            one.set(THRESHOLD, "Ethernet0", "3", value=100_000).pauses("Ethernet0").full("Ethernet4", 60_000)
        ),
    ),
    "a full queue whose pause is known": Case(
        one_leaf, lambda one: one.pauses("Ethernet0").full("Ethernet4")
    ),
    "a full queue whose pause was not read": Case(
        one_leaf,
        lambda one: one.pauses("Ethernet0").full("Ethernet4").drop("pfc_receive_frames_total").drop(RECEIVED),
    ),
    "a loop of three switches is a deadlock": Case(ring),
    "a loop that pauses no host": Case(ring, lambda one, *_: one.pauses("Ethernet0", 0)),
    "a loop is as paused as its least paused port": Case(
        ring, lambda _, two, __: two.paused("Ethernet4", 0.2)
    ),
    "a link that is paused both ways is no loop": Case(
        slow_receiver,
        lambda one, _, spine: (
            one.pauses("Ethernet48").paused("Ethernet0", 0.2),
            spine.paused("Ethernet0", 0.2),
        ),
    ),
    "a host that sends and receives pause": Case(slow_receiver, lambda _, two, __: two.pauses("Ethernet12")),
    "whether the host receives pause was not read": Case(slow_receiver, lambda _, two, __: two.drop(SENT)),
    "an estimated time": Case(slow_receiver, lambda _, two, __: with_estimate(two.drop(RECEIVED), 0.6)),
    "a measured time and an estimate": Case(slow_receiver, lambda _, two, __: with_estimate(two, 1.2)),
    "an estimate above the whole time": Case(
        slow_receiver, lambda _, two, __: with_estimate(two.drop(RECEIVED), 1.2)
    ),
    "frames where there is no time": Case(slow_receiver, lambda _, two, __: two.drop(RECEIVED)),
    "less than a thousandth": Case(
        leaf_spine, lambda _, two, __: two.paused("Ethernet12", 0.0005).paused("Ethernet16", 0.0015)
    ),
    "no LLDP": Case(slow_receiver, lambda _, two, __: two.drop(LLDP)),
    "ends without a reason are apart": Case(
        slow_receiver, lambda one, *_: one.paused("Ethernet0", 0.1).drop(LLDP)
    ),
    "a port without a neighbour": Case(
        one_leaf, lambda one: (one.port("Ethernet8"), one.paused("Ethernet8", 0.5))
    ),
    "an end without a reason after a reason": Case(
        slow_receiver, lambda one, *_: (one.port("Ethernet8"), one.paused("Ethernet8", 0.99))
    ),
    "a switch that did not answer": Case(
        slow_receiver,
        answers=lambda switches: [
            *views(*switches[:2]),
            SwitchView("spine1", faults={"": "connection refused"}),
        ],
    ),
    "a switch that is not in the configuration": Case(
        slow_receiver, answers=lambda switches: views(*switches[:2])
    ),
    "a tripped watchdog": Case(
        slow_receiver, lambda _, two, __: two.set(TRIPPED, "Ethernet12", "3", value=1)
    ),
    "a tripped queue no longer obeys pause, and is followed": Case(
        slow_receiver,
        lambda _, two, __: two.paused("Ethernet12", 0).set(TRIPPED, "Ethernet12", "3", value=1),
    ),
    "one answer gives states and no rates": Case(
        slow_receiver,
        lambda _, two, __: two.set("queue_paused", "Ethernet12", "3", value=1),
        answers=lambda switches: [one.view(answers=1) for one in switches],
    ),
    "a host in one answer": Case(
        slow_receiver,
        choice=PauseChoice(host="gpu-001"),
        answers=lambda switches: [switches[0].view(answers=1)],
    ),
    "counters that started again": Case(slow_receiver, lambda _, two, __: started_again(two)),
    "no known reason": Case(leaf_spine, lambda one, *_: one.pauses("Ethernet0")),
    "no known reason, without thresholds": Case(
        leaf_spine, lambda one, *_: one.pauses("Ethernet0").drop(THRESHOLD).full("Ethernet48", 12_345)
    ),
    "no known reason, without watermarks": Case(
        leaf_spine, lambda one, *_: one.pauses("Ethernet0").drop(HELD)
    ),
    "no known reason, without queues": Case(leaf_spine, lambda one, *_: one.pauses("Ethernet0").drop(INFO)),
    "all neighbours paused for no known reason are one finding": Case(
        one_leaf, lambda one: one.pauses("Ethernet0", 300).pauses("Ethernet4", 200)
    ),
    "sources that failed, and an old answer": Case(
        one_leaf,
        lambda one: one.set("source_up", "lldp", value=0).set("source_up", "port_counters", value=1),
        answers=lambda switches: [changed(switches[0].view(), faults={"watermarks": "no reply"}, age=600)],
    ),
    "a failed source is named once": Case(
        one_leaf,
        lambda one: one.set("source_up", "lldp", value=0),
        answers=lambda switches: [changed(switches[0].view(), faults={"lldp": "no reply"})],
    ),
    "answers that are close together": Case(
        one_leaf, answers=lambda switches: [changed(switches[0].view(), seconds=1.5)]
    ),
    "a neighbour that denies the frames": Case(slow_receiver, lambda *all: all[2].pauses("Ethernet0", 0)),
    "a neighbour that does not count them": Case(slow_receiver, lambda *all: all[2].drop(SENT)),
    "another priority is another tree": Case(
        slow_receiver, lambda one, *_: one.paused("Ethernet4", 0.9, priority="4")
    ),
    "the longest pause first": Case(
        slow_receiver,
        lambda one, two, _: (
            one.pauses("Ethernet4", 400),
            two.paused("Ethernet16", 0.9).rate("pfc_receive_frames_total", "Ethernet16", "3", each_second=1),
        ),
    ),
    "pause that reaches no host": Case(against_the_order_of_names),
    "a host that pauses as those of healthy fabrics do": Case(
        one_leaf, lambda one: one.paused("Ethernet0", 0.8).paused("Ethernet4", 0.01)
    ),
    "a queue that is full now": Case(
        one_leaf,
        lambda one: (
            one.pauses("Ethernet0").drop(HELD).set("queue_occupancy_bytes", "Ethernet4", "3", value=900_000)
        ),
    ),
    "a port at its speed": Case(
        one_leaf,
        lambda one: (
            one.pauses("Ethernet0")
            .drop(HELD)
            .rate("phy_transmit_bytes_total", "Ethernet4", each_second=48e9)
            .set("link_speed_bytes_per_second", "Ethernet4", value=50e9)
        ),
    ),
    "a tripped watchdog in a loop": Case(
        ring, lambda _, two, __: two.set(TRIPPED, "Ethernet4", "3", value=1).drop(RECEIVED)
    ),
    "a port of the neighbour that is not known": Case(
        slow_receiver,
        lambda _, two, spine: (
            spine.drop(LLDP),
            two.drop(LLDP)
            .neighbor("Ethernet48", "spine1", "p9")
            .paused("Ethernet48", 0.3)
            .set(TRIPPED, "Ethernet48", "3", value=1),
        ),
    ),
}


def shown(tree: PauseTree) -> str:
    """The text, and the fields of each step that it rounds or leaves out."""
    fields = [
        f"{step.kind} {step.place} {step.place.priority}, {step.neighbor} {step.neighbor_port}: share {step.pause_ratio and round(step.pause_ratio, 4)}"
        f" estimated {step.pause_ratio_estimated} frames {step.frames_per_second} held {step.queue_bytes} tripped {step.watchdog_tripped} ports {', '.join(step.ports)}".rstrip()
        for step in in_order(tree)
    ]
    ends = [f"cause: {step.kind} {step.place}" for step in tree.causes]
    return as_text(tree) + "".join(f"{line}\n" for line in (*fields, *ends))


def test_every_tree_is_as_worked_out_by_hand(golden) -> None:
    text = "".join(f"## {name}\n{shown(case.tree())}\n" for name, case in CASES.items())
    golden(GOLDEN, text)


def causes(tree: PauseTree) -> list[tuple[str, str]]:
    return [(step.kind, str(step.place)) for step in tree.causes]


def test_a_switch_of_a_thousand_ports_that_all_pause_each_other_is_bounded() -> None:
    ports = [f"Ethernet{number}" for number in range(1000)]
    switch = MadeSwitch("leaf1", *ports)
    for port in ports:
        switch.paused(port, 0.5).pauses(port).neighbor(port, f"gpu-{port}", "eth0")
    tree = pause_tree([switch.view()])
    assert len(tree.steps) <= pause_tree_module.MOST_STEPS + 1000
    assert len(tree.causes) == 1000
    assert tree.steps[0].place.port == "Ethernet0"
    last = tree.steps[-1]
    assert (last.kind, len(last.ports)) == (SEEN, pause_tree_module.MOST_NAMED)
    assert "and 99" in last.sentence


@pytest.mark.parametrize(("choice", "cut"), [(PauseChoice(), 2), (PauseChoice(host="gpu-001"), 1)])
def test_what_is_beyond_the_bound_is_counted(monkeypatch, choice, cut) -> None:
    monkeypatch.setattr(pause_tree_module, "MOST_STEPS", 2)
    tree = pause_tree(views(*slow_receiver()), choice)
    assert (len(tree.steps), tree.cut) == (2, cut)
    line = f"  {counted(cut, 'more paused port is', 'more paused ports are')} not shown; choose one by host, or by switch and port."
    assert line in as_text(tree).splitlines()


def test_the_bound_cuts_off_victims_and_no_causes(monkeypatch) -> None:
    ports = [f"Ethernet{number}" for number in range(40)]
    switches = [MadeSwitch(f"leaf{number}", *ports) for number in range(3)]
    for switch in switches:
        for port in ports:
            switch.pauses(port).neighbor(port, f"{switch.name}-{port}", "eth0")
        switch.pauses("Ethernet9", 0).paused("Ethernet9", 0.7)
    monkeypatch.setattr(pause_tree_module, "MOST_STEPS", 20)
    tree = pause_tree(views(*switches))
    assert causes(tree) == [(SLOW_RECEIVER, f"leaf{number} Ethernet9") for number in range(3)]
    assert len({step.place for step in tree.steps if step.kind == PAUSES}) + tree.cut == 3 * 39


def test_a_chain_longer_than_the_bound_is_cut_and_goes_on_from_there() -> None:
    depth = pause_tree_module.MOST_DEPTH
    tree = pause_tree(views(*chain(depth + 10)))
    assert max(step.depth for step in tree.steps) == depth + 1
    assert [step.kind for step in tree.steps].count(CUT) == 1
    assert causes(tree) == [(SLOW_RECEIVER, f"s{depth + 9} Ethernet4")], "followed as a start of its own"


def test_no_length_of_a_chain_exhausts_the_stack(monkeypatch) -> None:
    monkeypatch.setattr(pause_tree_module, "MOST_DEPTH", 10_000)
    tree = pause_tree(views(*chain(1500)))
    assert max(step.depth for step in tree.steps) == 1500
    assert causes(tree) == [(SLOW_RECEIVER, "s1499 Ethernet4")]


def test_the_answer_before_may_have_other_series() -> None:
    switches = slow_receiver()
    usual = pause_tree(views(*switches))
    for switch in switches:
        switch.before = dict(reversed(switch.before.items()))
        del switch.before[switch.series("info", "sonic", "1", "model", "asic")]
    assert pause_tree(views(*switches)) == usual


def test_kept_series_have_the_values_of_each_answer() -> None:
    switches = slow_receiver()
    tables = [SeriesTable(one.name, tuple(one.now), NO_PLAN) for one in switches]
    for frames in (310, 0):
        switches[0].pauses("Ethernet0", frames)
        found = [*map(as_kept, views(*switches), tables)]
        assert pause_tree(found) == pause_tree(views(*switches))
    other = pause_tree([changed(one, device=f"{one.device}x") for one in found])
    assert {step.switch[-1] for step in other.steps} == {"x"}

"""The pause tree over small fabrics: where the walk goes, where it ends, and what it says where it does not know."""

from __future__ import annotations

import itertools
import random

import pytest
from fabric_views import ROWS, MadeSwitch, leaf_spine, linked, slow_receiver, views

from roce_exporter.switches.pause import pause_tree as pause_tree_module
from roce_exporter.switches.pause import port_pause
from roce_exporter.switches.pause.pause_steps import (
    CUT,
    INCAST,
    LEAVES,
    LOOP,
    NOT_PAUSED,
    PAUSED,
    PAUSED_RECEIVER,
    PAUSES,
    SEEN,
    SLOW_RECEIVER,
    UNEXPLAINED,
)
from roce_exporter.switches.pause.pause_tree import PauseChoice, PauseTree, pause_tree
from roce_exporter.switches.switch_view import SwitchView, view_values


def lines(tree: PauseTree) -> list[tuple[int, str, str]]:
    return [(step.depth, step.kind, str(step.place)) for step in tree.steps]


def causes(tree: PauseTree) -> list[tuple[str, str]]:
    return [(step.kind, str(step.place)) for step in tree.causes]


def test_the_rows_that_it_reads_are_in_the_catalogue() -> None:
    names = {value for name, value in vars(port_pause).items() if str(value).startswith("roce_switch_")}
    assert len(names) == 11
    assert names <= ROWS.keys()


def test_a_slow_receiver_is_found_through_three_switches() -> None:
    tree = pause_tree(views(*slow_receiver()))
    assert lines(tree) == [
        (0, PAUSES, "leaf1 Ethernet0"),
        (1, PAUSED, "leaf1 Ethernet48"),
        (2, PAUSED, "spine1 Ethernet4"),
        (3, SLOW_RECEIVER, "leaf2 Ethernet12"),
    ]
    (cause,) = tree.causes
    assert cause.sentence == (
        "gpu-007 eth2 sends pause on priority 3 to leaf2 Ethernet12 for 84 % of the time and receives none: "
        "it is where the pause starts."
    )
    assert (cause.share, cause.neighbor, cause.neighbor_port) == (pytest.approx(0.84), "gpu-007", "eth2")
    assert tree.gaps == ()
    assert tree.switches == 3


@pytest.mark.parametrize("host", ["gpu-001", "GPU-001.example.com"])
def test_a_host_is_chosen_by_its_name_with_or_without_domain(host: str) -> None:
    switches = slow_receiver()
    switches[0].pauses("Ethernet4", 500)
    assert [root for depth, _, root in lines(pause_tree(views(*switches))) if depth == 0] == [
        "leaf1 Ethernet4",
        "leaf1 Ethernet0",
    ], "the most paused host first"
    tree = pause_tree(views(*switches), PauseChoice(host=host))
    assert [root for depth, _, root in lines(tree) if depth == 0] == ["leaf1 Ethernet0"]
    assert causes(tree) == [(SLOW_RECEIVER, "leaf2 Ethernet12")]


@pytest.mark.parametrize(
    "choice",
    [
        PauseChoice(host="gpu-001", netdev="eth0"),
        PauseChoice(switch="leaf1", port="Ethernet0"),
        PauseChoice(switch="leaf1", port="Ethernet0", priority="3"),
    ],
)
def test_a_port_is_chosen(choice: PauseChoice) -> None:
    assert lines(pause_tree(views(*slow_receiver()), choice))[0] == (0, PAUSES, "leaf1 Ethernet0")


@pytest.mark.parametrize(
    "choice",
    [
        PauseChoice(host="gpu-404"),
        PauseChoice(host="spine1"),
        PauseChoice(host="gpu-001", netdev="eth9"),
        PauseChoice(switch="leaf1", port="Ethernet0", priority="4"),
    ],
)
def test_a_choice_that_fits_nothing_is_said(choice: PauseChoice) -> None:
    tree = pause_tree(views(*slow_receiver()), choice)
    assert tree.steps == ()
    assert tree.gaps[0].switch == ""
    assert choice[0 if choice.host else 2] in tree.gaps[0].text


def test_a_chosen_port_that_is_not_paused_is_said() -> None:
    tree = pause_tree(views(*slow_receiver()), PauseChoice(host="gpu-002"))
    assert lines(tree) == [(0, NOT_PAUSED, "leaf1 Ethernet4")]
    assert tree.steps[0].sentence == "leaf1 Ethernet4 does not pause gpu-002 eth0 on priority 3 now."


def test_a_chosen_host_that_sends_pause_is_shown() -> None:
    tree = pause_tree(views(*slow_receiver()), PauseChoice(host="gpu-007"))
    assert lines(tree) == [(0, SLOW_RECEIVER, "leaf2 Ethernet12")]


def test_a_full_queue_that_is_not_paused_is_incast() -> None:
    leaf1, leaf2, spine = leaf_spine()
    leaf2.full("Ethernet16").pauses("Ethernet48")
    spine.paused("Ethernet4", 0.4).pauses("Ethernet0")
    leaf1.paused("Ethernet48", 0.3).pauses("Ethernet0")
    tree = pause_tree(views(leaf1, leaf2, spine))
    assert causes(tree) == [(INCAST, "leaf2 Ethernet16")]
    assert "held up to 900 kB, more than half of the pause threshold (500 kB), and is not paused" in (
        tree.causes[0].sentence
    )


def test_ecn_marks_show_a_filled_queue_only_without_a_watermark() -> None:
    leaf1, leaf2, _ = leaf_spine()
    leaf2.pauses("Ethernet16")
    leaf2.rate("queue_ecn_marked_packets_total", "Ethernet12", "3", each_second=5000)
    assert causes(pause_tree(views(leaf1, leaf2))) == [(UNEXPLAINED, "leaf2 Ethernet16")]
    leaf2.drop("queue_watermark_bytes")
    tree = pause_tree(views(leaf1, leaf2))
    assert causes(tree) == [(INCAST, "leaf2 Ethernet12")]
    assert "marks 5e+03 packets per second with ECN" in tree.causes[0].sentence


def test_the_ecn_maximum_is_the_limit_where_the_pause_threshold_is_higher_or_not_read() -> None:
    leaf1, leaf2, _ = leaf_spine()
    leaf2.pauses("Ethernet16").full("Ethernet12", 400_000).drop("buffer_pause_threshold_bytes")
    leaf2.set("config_ecn_maximum_bytes", "Ethernet12", "3", value=300_000)
    tree = pause_tree(views(leaf1, leaf2))
    assert "more than the ECN maximum (300 kB)" in tree.causes[0].sentence
    leaf2.set("buffer_pause_threshold_bytes", "Ethernet12", "3", value=30_000_000)
    assert pause_tree(views(leaf1, leaf2)).causes == tree.causes, (
        "the highest that a dynamic threshold can have"
    )


def ring() -> tuple[MadeSwitch, MadeSwitch, MadeSwitch]:
    """Three switches in a ring that pause each other; gpu-001 is behind the first."""
    one, two, three = (MadeSwitch(name, "Ethernet0", "Ethernet4", "Ethernet8") for name in ("s1", "s2", "s3"))
    for here, there in ((one, two), (two, three), (three, one)):
        linked(here, "Ethernet4", there, "Ethernet8")
        here.paused("Ethernet4", 0.99)
        there.pauses("Ethernet8", 900)
    one.neighbor("Ethernet0", "gpu-001", "eth0").pauses("Ethernet0")
    return one, two, three


def test_a_loop_of_three_switches_is_a_deadlock() -> None:
    tree = pause_tree(views(*ring()))
    assert lines(tree) == [
        (0, PAUSES, "s1 Ethernet0"),
        (1, PAUSED, "s1 Ethernet4"),
        (2, PAUSED, "s2 Ethernet4"),
        (3, PAUSED, "s3 Ethernet4"),
        (4, LOOP, "s1 Ethernet4"),
    ]
    assert causes(tree) == [(LOOP, "s1 Ethernet4")]
    assert tree.causes[0].ports == ("s1 Ethernet4", "s2 Ethernet4", "s3 Ethernet4")
    assert tree.causes[0].share == pytest.approx(0.99)
    assert "a loop: s1 Ethernet4 -> s2 Ethernet4 -> s3 Ethernet4 -> s1 Ethernet4" in tree.causes[0].sentence
    assert "for 99 % of the time" in tree.causes[0].sentence


def test_a_loop_that_pauses_no_host_is_found() -> None:
    one, two, three = ring()
    one.pauses("Ethernet0", 0)
    tree = pause_tree(views(one, two, three))
    assert lines(tree)[0] == (0, PAUSED, "s1 Ethernet4")
    assert [kind for kind, _ in causes(tree)] == [LOOP]


def test_a_link_that_is_paused_both_ways_is_no_loop() -> None:
    """No switch sends packets back to the port from which they came."""
    leaf1, leaf2, spine = slow_receiver()
    leaf1.pauses("Ethernet48")
    spine.paused("Ethernet0", 0.2)
    leaf1.paused("Ethernet0", 0.2)
    tree = pause_tree(views(leaf1, leaf2, spine))
    assert LOOP not in {kind for kind, _ in causes(tree)}
    assert set(causes(tree)) == {(SLOW_RECEIVER, "leaf2 Ethernet12"), (PAUSED_RECEIVER, "leaf1 Ethernet0")}


def test_a_host_that_sends_and_receives_pause_is_not_called_the_start() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.pauses("Ethernet12")
    tree = pause_tree(views(leaf1, leaf2, spine))
    assert (PAUSED_RECEIVER, "leaf2 Ethernet12") in causes(tree)
    assert "receives pause as well" in tree.causes[0].sentence


def test_whether_the_host_receives_pause_may_be_unknown() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.drop("pfc_transmit_frames_total")
    sentence = pause_tree(views(leaf1, leaf2, spine)).causes[0].sentence
    assert "whether it receives any is not known" in sentence
    assert "receives none" not in sentence


def test_estimated_pause_time_is_said_to_be_an_estimate() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.drop("pfc_receive_pause_seconds_total")
    leaf2.rate("pfc_receive_pause_estimated_seconds_total", "Ethernet12", "3", each_second=0.6)
    tree = pause_tree(views(leaf1, leaf2, spine))
    assert tree.causes[0].estimated
    assert "for about 60 % of the time (estimated by the switch)" in tree.causes[0].sentence
    assert ("leaf2", "pause time is estimated by the switch on Ethernet12") in tree.gaps


def test_a_measured_time_is_preferred_to_an_estimate() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.rate("pfc_receive_pause_estimated_seconds_total", "Ethernet12", "3", each_second=1.2)
    (cause,) = pause_tree(views(leaf1, leaf2, spine)).causes
    assert (cause.share, cause.estimated) == (pytest.approx(0.84), False)


def test_an_estimate_above_the_whole_time_is_the_whole_time() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.drop("pfc_receive_pause_seconds_total")
    leaf2.rate("pfc_receive_pause_estimated_seconds_total", "Ethernet12", "3", each_second=1.2)
    assert pause_tree(views(leaf1, leaf2, spine)).causes[0].share == 1


def test_frames_count_where_there_is_no_pause_time() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.drop("pfc_receive_pause_seconds_total")
    (cause,) = pause_tree(views(leaf1, leaf2, spine)).causes
    assert "with 840 pause frames per second" in cause.sentence
    assert (cause.share, cause.frames) == (None, 840)


def test_less_pause_than_a_thousandth_is_not_followed() -> None:
    leaf1, leaf2, spine = leaf_spine()
    leaf2.paused("Ethernet12", 0.0005).paused("Ethernet16", 0.0015)
    assert causes(pause_tree(views(leaf1, leaf2, spine))) == [(SLOW_RECEIVER, "leaf2 Ethernet16")]


def test_missing_lldp_ends_the_walk_with_what_is_known() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.drop("lldp_neighbor_info")
    tree = pause_tree(views(leaf1, leaf2, spine))
    assert (LEAVES, "leaf2 Ethernet12") in causes(tree)
    assert "leaves what is known at leaf2 Ethernet12" in tree.causes[0].sentence
    assert "no neighbour is known for this port" in tree.causes[0].sentence
    assert ("leaf2", "reports no LLDP neighbours") in tree.gaps


def test_a_port_without_neighbour_among_others_is_a_gap() -> None:
    switch = MadeSwitch("leaf1", "Ethernet0", "Ethernet4").neighbor("Ethernet0", "gpu-001", "eth0")
    switch.paused("Ethernet4", 0.5)
    assert pause_tree(views(switch)).gaps == (
        ("leaf1", "no neighbour is known on Ethernet4, which have pause"),
    )


def test_a_switch_that_did_not_answer_ends_the_walk() -> None:
    leaf1, leaf2, _ = slow_receiver()
    away = SwitchView("spine1", faults={"": "connection refused"})
    tree = pause_tree([*views(leaf1, leaf2), away])
    assert (LEAVES, "leaf1 Ethernet48") in causes(tree)
    assert any("spine1 has not answered" in step.sentence for step in tree.causes)
    assert ("spine1", "connection refused") in tree.gaps
    assert tree.switches == 2


def test_a_switch_that_is_not_in_the_configuration_is_no_host() -> None:
    leaf1, leaf2, _ = slow_receiver()
    tree = pause_tree(views(leaf1, leaf2))
    (end,) = (step for step in tree.causes if step.kind == LEAVES)
    assert "spine1 Ethernet0 is a switch that is not in the configuration" in end.sentence


def test_a_tripped_watchdog_is_said() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.set("pfc_watchdog_tripped", "Ethernet12", "3", value=1)
    (cause,) = pause_tree(views(leaf1, leaf2, spine)).causes
    assert cause.tripped is True
    assert cause.sentence.endswith(
        "The PFC watchdog of this queue is tripped: the pause is not obeyed, and packets are discarded."
    )


def test_a_tripped_queue_is_followed_although_it_no_longer_obeys_pause() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.paused("Ethernet12", 0).set("pfc_watchdog_tripped", "Ethernet12", "3", value=1)
    assert causes(pause_tree(views(leaf1, leaf2, spine))) == [(SLOW_RECEIVER, "leaf2 Ethernet12")]


def test_one_answer_gives_states_and_no_rates() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.set("queue_paused", "Ethernet12", "3", value=1)
    tree = pause_tree([switch.view(answers=1) for switch in (leaf1, leaf2, spine)])
    assert lines(tree) == [(0, SLOW_RECEIVER, "leaf2 Ethernet12")]
    assert "at the time of the answer" in tree.steps[0].sentence
    assert "whether it receives any is not known" in tree.steps[0].sentence
    assert [gap.switch for gap in tree.gaps] == ["leaf1", "leaf2", "spine1"]
    chosen = pause_tree([leaf1.view(answers=1)], PauseChoice(host="gpu-001"))
    assert "that needs two answers" in chosen.steps[0].sentence


def test_counters_that_started_again_are_no_rate() -> None:
    leaf1, leaf2, spine = slow_receiver()
    for series in leaf2.now:
        if series.row.kind == "counter":
            leaf2.now[series] = 5
    assert SLOW_RECEIVER not in {kind for kind, _ in causes(pause_tree(views(leaf1, leaf2, spine)))}


def test_pause_without_a_known_reason_says_what_was_not_read() -> None:
    leaf1, leaf2, spine = leaf_spine()
    leaf1.pauses("Ethernet0")
    tree = pause_tree(views(leaf1, leaf2, spine))
    assert causes(tree) == [(UNEXPLAINED, "leaf1 Ethernet0")]
    assert "the pause threshold of Ethernet0 is too low" in tree.causes[0].sentence
    leaf1.drop("buffer_pause_threshold_bytes").full("Ethernet48", 12_345)
    sentence = pause_tree(views(leaf1, leaf2, spine)).causes[0].sentence
    assert (
        "the fullest is that of Ethernet48 with 12 kB, but neither pause nor ECN thresholds were read"
        in sentence
    )
    leaf1.drop("queue_watermark_bytes")
    tree = pause_tree(views(leaf1, leaf2, spine))
    assert "how full its queues are was not read" in tree.causes[0].sentence
    assert ("leaf1", "how full its queues are is not read: incast there cannot be seen") in tree.gaps
    leaf1.drop("queue_info")
    assert (
        "leaf1",
        "which queue a priority has is not read: full queues and its watchdog are not known",
    ) in (pause_tree(views(leaf1, leaf2, spine)).gaps)


def test_a_switch_that_pauses_all_its_neighbours_for_no_known_reason_is_one_finding() -> None:
    leaf1, *_ = leaf_spine()
    leaf1.pauses("Ethernet0", 300).pauses("Ethernet4", 200)
    tree = pause_tree(views(leaf1))
    assert causes(tree) == [(UNEXPLAINED, "leaf1 Ethernet0")]
    assert lines(tree)[-1] == (1, SEEN, "leaf1 Ethernet4")
    assert tree.steps[-1].sentence == "no reason is known, as for Ethernet0."


def test_sources_that_failed_and_old_answers_are_said() -> None:
    leaf1, *_ = leaf_spine()
    leaf1.set("source_up", "lldp", value=0).set("source_up", "port_counters", value=1)
    view = leaf1.view()
    old = SwitchView(
        view.device, view.samples, view.before, view.seconds, {"watermarks": "no reply"}, age=600
    )
    assert [gap.text for gap in pause_tree([old]).gaps] == [
        "source watermarks: no reply",
        "source lldp could not be used",
        "the last answer is 600 s old",
    ]


def test_a_receive_count_that_the_neighbour_denies_is_said() -> None:
    leaf1, leaf2, spine = slow_receiver()
    spine.pauses("Ethernet0", 0)
    (step,) = (
        one for one in pause_tree(views(leaf1, leaf2, spine)).steps if one.kind == PAUSED and one.depth == 1
    )
    assert "spine1 Ethernet0 counts no pause frames sent" in step.sentence


def test_priorities_are_apart() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf1.paused("Ethernet4", 0.9, priority="4")
    tree = pause_tree(views(leaf1, leaf2, spine))
    assert lines(tree)[-1] == (0, SLOW_RECEIVER, "leaf1 Ethernet4")
    assert tree.steps[-1].place.priority == "4"


def test_causes_are_in_the_order_of_their_pause() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.paused("Ethernet16", 0.9)
    assert [step.share for step in pause_tree(views(leaf1, leaf2, spine)).causes] == [
        pytest.approx(0.9),
        pytest.approx(0.84),
    ]


def test_the_same_queue_is_followed_once() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf1.pauses("Ethernet4", 200)
    tree = pause_tree(views(leaf1, leaf2, spine))
    assert lines(tree)[-2:] == [(0, PAUSES, "leaf1 Ethernet4"), (1, SEEN, "leaf1 Ethernet48")]
    assert "followed elsewhere" in tree.steps[-1].sentence
    assert len(tree.causes) == 1


def test_the_order_of_answers_changes_nothing() -> None:
    switches = [*slow_receiver(), *ring()]
    expected = pause_tree(views(*switches))
    for seed in range(5):
        made = views(*switches)
        random.Random(seed).shuffle(made)  # noqa: S311 - not for secrets
        assert pause_tree(made).steps == expected.steps


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


def test_what_is_beyond_the_bound_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pause_tree_module, "MOST_STEPS", 2)
    tree = pause_tree(views(*slow_receiver()))
    assert len(tree.steps) == 2
    assert tree.cut == 2, "spine1 Ethernet4 and leaf2 Ethernet12"


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


def test_a_chain_longer_than_the_bound_is_cut_and_goes_on_from_there() -> None:
    depth = pause_tree_module.MOST_DEPTH
    tree = pause_tree(views(*chain(depth + 10)))
    assert max(step.depth for step in tree.steps) == depth + 1
    assert [step.kind for step in tree.steps].count(CUT) == 1
    assert causes(tree) == [(SLOW_RECEIVER, f"s{depth + 9} Ethernet4")], "followed as a start of its own"


def test_no_length_of_a_chain_exhausts_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pause_tree_module, "MOST_DEPTH", 10_000)
    tree = pause_tree(views(*chain(1500)))
    assert max(step.depth for step in tree.steps) == 1500
    assert causes(tree) == [(SLOW_RECEIVER, "s1499 Ethernet4")]


def test_no_answers_at_all() -> None:
    tree = pause_tree([])
    assert (tree.steps, tree.causes, tree.gaps, tree.switches) == ((), (), (), 0)


def test_a_counter_that_started_again_has_no_rate() -> None:
    switch = MadeSwitch("leaf1", "Ethernet0")
    switch.now[switch.series("pfc_receive_frames_total", "Ethernet0", "3")] = 5
    values = view_values(switch.view())
    assert values.rate("roce_switch_pfc_receive_frames_total", "Ethernet0", "3") is None
    assert values.rate("roce_switch_pfc_transmit_frames_total", "Ethernet0", "3") == 0


def test_the_lowest_pause_threshold_of_the_switch_decides() -> None:
    leaf1, *_ = leaf_spine()
    leaf1.set("buffer_pause_threshold_bytes", "Ethernet0", "3", value=100_000).pauses("Ethernet0")
    leaf1.full("Ethernet4", 60_000)
    assert causes(pause_tree(views(leaf1))) == [(INCAST, "leaf1 Ethernet4")]
    assert "(50 kB)" in pause_tree(views(leaf1)).causes[0].sentence


def test_the_bound_cuts_off_victims_and_no_causes(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_a_chosen_tree_leaves_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pause_tree_module, "MOST_STEPS", 2)
    tree = pause_tree(views(*slow_receiver()), PauseChoice(host="gpu-001"))
    assert (len(tree.steps), tree.cut) == (2, 1)


def test_pause_that_reaches_no_host_starts_where_nothing_else_explains_it() -> None:
    """The names of the switches are in the opposite order of the pause."""
    end, start = MadeSwitch("a", "Ethernet0", "Ethernet4"), MadeSwitch("z", "Ethernet0", "Ethernet4")
    linked(start, "Ethernet4", end, "Ethernet0")
    start.paused("Ethernet4", 0.5)
    end.pauses("Ethernet0").paused("Ethernet4", 0.6).neighbor("Ethernet4", "gpu-002", "eth0")
    assert lines(pause_tree(views(end, start))) == [
        (0, PAUSED, "z Ethernet4"),
        (1, SLOW_RECEIVER, "a Ethernet4"),
    ]


def test_a_neighbour_that_does_not_count_its_pause_denies_nothing() -> None:
    leaf1, leaf2, spine = slow_receiver()
    spine.drop("pfc_transmit_frames_total")
    assert not [
        step
        for step in pause_tree(views(leaf1, leaf2, spine)).steps
        if "counts no pause frames" in step.sentence
    ]


def test_a_loop_is_as_paused_as_its_least_paused_port() -> None:
    one, two, three = ring()
    two.paused("Ethernet4", 0.2)
    (cause,) = pause_tree(views(one, two, three)).causes
    assert cause.share == pytest.approx(0.2)
    assert "The least paused of them is paused for 20 % of the time." in cause.sentence


def test_an_end_without_a_reason_comes_after_a_reason() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf1.port("Ethernet8")
    leaf1.paused("Ethernet8", 0.99)
    assert [kind for kind, _ in causes(pause_tree(views(leaf1, leaf2, spine)))] == [SLOW_RECEIVER, LEAVES]


def test_candidates_are_in_the_order_of_time_not_of_frames() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf2.paused("Ethernet16", 0.9).rate("pfc_receive_frames_total", "Ethernet16", "3", each_second=1)
    assert [place for depth, _, place in lines(pause_tree(views(leaf1, leaf2, spine))) if depth == 3] == [
        "leaf2 Ethernet16",
        "leaf2 Ethernet12",
    ]


def test_answers_that_are_close_together_are_said() -> None:
    made = leaf_spine()[0].view()
    close = SwitchView(made.device, made.samples, made.before, 1.5)
    assert [gap.text for gap in pause_tree([close]).gaps] == [
        "the last two answers are 1.5 s apart: its rates are rough"
    ]


def test_a_failed_source_is_named_once() -> None:
    leaf1, *_ = leaf_spine()
    made = leaf1.set("source_up", "lldp", value=0).view()
    failed = SwitchView(made.device, made.samples, made.before, made.seconds, {"lldp": "no reply"})
    assert [gap.text for gap in pause_tree([failed]).gaps] == ["source lldp: no reply"]


def test_a_full_queue_of_which_pause_is_not_read_is_not_called_unpaused() -> None:
    leaf1, *_ = leaf_spine()
    leaf1.pauses("Ethernet0").full("Ethernet4")
    assert "and is not paused" in pause_tree(views(leaf1)).causes[0].sentence
    leaf1.drop("pfc_receive_frames_total").drop("pfc_receive_pause_seconds_total")
    assert "and is not known to be paused" in pause_tree(views(leaf1)).causes[0].sentence

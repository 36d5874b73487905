"""The pause tree as text and as a document."""

from __future__ import annotations

import json

from fabric_views import leaf_spine, slow_receiver, views

from roce_exporter.switches.pause.pause_report import as_document, as_json, as_text, in_order
from roce_exporter.switches.pause.pause_tree import PauseChoice, pause_tree
from roce_exporter.switches.switch_view import SwitchView


def test_the_text_has_the_start_first_then_the_way_then_what_is_not_known() -> None:
    away = SwitchView("leaf9", faults={"": "connection refused"})
    lines = as_text(pause_tree([*views(*slow_receiver()), away])).splitlines()
    assert lines[0] == "Where it starts (3 switches answered):"
    assert lines[1].startswith("  gpu-007 eth2 sends pause")
    assert lines[3] == "How the pause gets there:"
    assert [len(line) - len(line.lstrip()) for line in lines[4:8]] == [2, 4, 6, 8]
    assert lines[-2:] == ["What is not known:", "  leaf9: connection refused"]


def test_ends_without_a_reason_are_apart() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf1.paused("Ethernet0", 0.1).drop("lldp_neighbor_info")
    text = as_text(pause_tree(views(leaf1, leaf2, spine)))
    certain, uncertain = text.split("Where the walk ends without a reason")
    assert "gpu-007" in certain
    assert "leaves what is known at leaf1 Ethernet0" in uncertain


def test_a_calm_fabric_is_said_to_be_calm() -> None:
    assert as_text(pause_tree(views(*leaf_spine()))) == "No pause is known on 3 switches.\n"


def test_each_step_follows_its_parent() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf1.pauses("Ethernet4", 400).paused("Ethernet0", 0.3)
    tree = pause_tree(views(leaf1, leaf2, spine))
    known: dict[int | None, int] = {None: -1}
    for step in in_order(tree):
        assert step.depth == known[step.parent] + 1
        known[step.number] = step.depth
    assert len(known) == len(tree.steps) + 1


def test_the_document_is_complete_and_versioned() -> None:
    document = json.loads(as_json(pause_tree(views(*slow_receiver()), PauseChoice(host="gpu-001"))))
    assert document["version"] == 1
    assert document["switches"] == 3
    assert document["unknown"] == []
    assert document["not_shown"] == 0
    (cause,) = document["causes"]
    assert [step["id"] for step in document["steps"]] == [0, 1, 2, 3]
    assert document["steps"][cause] == {
        "id": 3,
        "parent": 2,
        "depth": 3,
        "kind": "slow_receiver",
        "sentence": document["steps"][3]["sentence"],
        "switch": "leaf2",
        "port": "Ethernet12",
        "priority": "3",
        "neighbor": "gpu-007",
        "neighbor_port": "eth2",
        "pause_ratio": document["steps"][3]["pause_ratio"],
        "pause_ratio_estimated": False,
        "frames_per_second": 840.0,
        "queue_bytes": 1000,
        "watchdog_tripped": None,
        "ports": [],
    }


def test_what_is_about_no_switch_has_no_switch() -> None:
    document = as_document(pause_tree([], PauseChoice(host="gpu-001")))
    assert document["unknown"][0]["switch"] is None


def test_starts_and_siblings_keep_their_order() -> None:
    leaf1, leaf2, spine = slow_receiver()
    leaf1.pauses("Ethernet4", 400)
    leaf2.paused("Ethernet16", 0.9)
    tree = pause_tree(views(leaf1, leaf2, spine))
    assert [str(step.place) for step in in_order(tree)] == [
        "leaf1 Ethernet4",
        "leaf1 Ethernet48",
        "spine1 Ethernet4",
        "leaf2 Ethernet16",
        "leaf2 Ethernet12",
        "leaf1 Ethernet0",
        "leaf1 Ethernet48",
    ]

"""The pause tree as a document; `golden/pause-tree.txt` has it as text."""

from __future__ import annotations

import json

from fabric_views import slow_receiver, views

from roce_exporter.switches.pause.pause_report import PauseChoice, as_document, as_json
from roce_exporter.switches.pause.pause_tree import pause_tree


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

"""The pause tree as a document (`golden/pause-tree.txt` has it as text), and what is no root of pause."""

import json

import pytest
from fabric_views import slow_receiver, views

from roce_exporter.switches.pause.fabric import PortPause, QueueFill
from roce_exporter.switches.pause.pause_report import (
    PauseChoice,
    as_document,
    as_json,
    bytes_text,
    share_text,
)
from roce_exporter.switches.pause.pause_tree import pause_tree


def test_the_document_is_complete_and_versioned() -> None:
    text = as_json(pause_tree(views(*slow_receiver()), PauseChoice(host="gpu-001")))
    assert text.startswith('{\n  "version": 1,\n')
    document = json.loads(text)
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
    assert " fits host é: " in as_json(pause_tree([], PauseChoice(host="é")))


@pytest.mark.parametrize(
    ("pause", "is_paused", "transmits"),
    [
        (PortPause(), None, None),
        (PortPause(queue_paused=False, transmit_frames=0), False, False),
        (PortPause(tripped=True, receive_frames=0), True, None),
        (PortPause(receive_share=0.001, receive_frames=0), True, None),
        (PortPause(receive_share=0.0009, receive_frames=5), False, None),
        (PortPause(receive_frames=0, queue_paused=False), False, None),
    ],
)
def test_which_side_pauses(pause, is_paused, transmits) -> None:
    assert (pause.is_paused, pause.transmits) == (is_paused, transmits)


def test_amounts_in_words() -> None:
    assert [bytes_text(number) for number in (999, 1000, 1e6)] == ["999 bytes", "1 kB", "1.0 MB"]
    shares = [share_text(share, estimated=False) for share in (0, 0.005, 0.01, 0.84)]
    assert shares == [f"{share} % of the time" for share in ("0", "less than 1", "1", "84")]


def test_a_watermark_of_minutes_ago_is_no_full_queue_if_the_queue_is_empty_now() -> None:
    assert QueueFill(held=900, recent=True, full_at=500).is_full
    assert not QueueFill(held=900, now=10, recent=True, full_at=500).is_full
    assert QueueFill(held=900, now=600, recent=True, full_at=500).is_full
    assert QueueFill(held=900, now=10, recent=True, full_at=500, marks=1.0).is_full


def test_a_port_at_its_speed_is_full_where_the_switch_reports_no_fill_level() -> None:
    assert QueueFill(busy=0.97).is_full
    assert QueueFill(busy=0.5).is_full is False
    assert QueueFill().is_full is None
    assert not QueueFill(held=1, full_at=500, busy=0.97).is_full

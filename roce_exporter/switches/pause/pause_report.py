"""The pause tree as text for a terminal, and as a JSON document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from roce_exporter.switches.pause.pause_steps import OPEN_ENDS
from roce_exporter.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.switches.pause.pause_steps import PauseStep
    from roce_exporter.switches.pause.pause_tree import PauseTree

VERSION = 1
"""Of the document. New keys do not change it; a key that is removed or means something else does."""


def as_text(tree: PauseTree) -> str:
    """The tree, its causes first, indented by distance from the start."""
    return "\n".join(_lines(tree)) + "\n"


def _lines(tree: PauseTree) -> Iterator[str]:
    switches = counted(tree.switches, "switch", "switches")
    if not tree.steps:
        yield f"No pause is known on {switches}."
    for heading, ends in (
        (f"Where it starts ({switches} answered):", _certain(tree)),
        (
            f"Where the walk ends without a reason ({switches} answered):",
            _uncertain(tree),
        ),
    ):
        if ends:
            yield heading
            yield from (f"  {step.sentence}" for step in ends)
            yield ""
    if tree.steps:
        yield "How the pause gets there:"
        yield from ("  " * (step.depth + 1) + step.sentence for step in in_order(tree))
    if tree.cut:
        yield f"  {tree.cut} more paused ports are not shown; choose one by host, or by switch and port."
    if tree.gaps:
        yield ""
        yield "What is not known:"
        yield from (f"  {gap.switch}: {gap.text}" if gap.switch else f"  {gap.text}" for gap in tree.gaps)


def _certain(tree: PauseTree) -> list[PauseStep]:
    return [step for step in tree.causes if step.kind not in OPEN_ENDS]


def _uncertain(tree: PauseTree) -> list[PauseStep]:
    return [step for step in tree.causes if step.kind in OPEN_ENDS]


def in_order(tree: PauseTree) -> Iterator[PauseStep]:
    """The steps, each directly followed by the steps below it."""
    below: dict[int | None, list[PauseStep]] = {}
    for step in tree.steps:
        below.setdefault(step.parent, []).append(step)
    stack = below.get(None, [])[::-1]
    while stack:
        step = stack.pop()
        yield step
        stack += below.get(step.number, [])[::-1]


def as_document(tree: PauseTree) -> dict[str, Any]:
    """The document that `as_json` prints; docs/switches.md describes its keys."""
    return {
        "version": VERSION,
        "switches": tree.switches,
        "causes": [step.number for step in tree.causes],
        "steps": [_object(step) for step in in_order(tree)],
        "unknown": [{"switch": gap.switch or None, "text": gap.text} for gap in tree.gaps],
        "not_shown": tree.cut,
    }


def as_json(tree: PauseTree) -> str:
    """The document as text."""
    return json.dumps(as_document(tree), indent=2, ensure_ascii=False) + "\n"


def _object(step: PauseStep) -> dict[str, Any]:
    return {
        "id": step.number,
        "parent": step.parent,
        "depth": step.depth,
        "kind": step.kind,
        "sentence": step.sentence,
        "switch": step.place.switch,
        "port": step.place.port,
        "priority": step.place.priority,
        "neighbor": step.neighbor or None,
        "neighbor_port": step.neighbor_port or None,
        "pause_ratio": step.share,
        "pause_ratio_estimated": step.estimated,
        "frames_per_second": step.frames,
        "queue_bytes": step.held,
        "watchdog_tripped": step.tripped,
        "ports": list(step.ports),
    }

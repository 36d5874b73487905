"""The view without a terminal: a plain line per thing that happened between two moments."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.demo.scene import Scene, Storm


def opening(scene: Scene) -> list[str]:
    """What is said first: what is simulated, and where it can be looked at."""
    return [
        f"simulated host, scenario {scene.scenario}: {scene.description}",
        *(f"{address.name:<12} {address.url}" for address in scene.addresses),
    ]


def changes(before: Scene, after: Scene) -> list[str]:
    """What happened between two moments, each line with the seconds since the beginning."""
    found = (*_notes(before, after), *_storms(before, after), *_alerts(before, after))
    return [f"[{after.seconds:6.1f} s] {text}" for text in found]


def closing(scene: Scene) -> str:
    """What is said at the end."""
    storms = sum(
        pause.storms for found in scene.priorities for pause in (found.receive, found.transmit) if pause
    )
    return f"ended after {scene.seconds:.0f} s with {storms} PFC storm{'' if storms == 1 else 's'} seen"


def _notes(before: Scene, after: Scene) -> tuple[str, ...]:
    return after.notes[len(before.notes) :]


def _storms(before: Scene, after: Scene) -> Iterator[str]:
    known = {storm.identity: storm for storm in before.storms}
    for storm in reversed(after.storms):
        if storm.identity not in known:
            yield f"storm begins: {storm.place}{_hint(storm)}"
        if storm.duration is not None and _goes_on(known.get(storm.identity)):
            yield f"storm ends: {storm.place} after {storm.duration:.1f} s, {storm.reason}"


def _goes_on(storm: Storm | None) -> bool:
    return storm is None or storm.duration is None


def _hint(storm: Storm) -> str:
    return f", hint {storm.hint}" if storm.hint else ""


def _alerts(before: Scene, after: Scene) -> Iterator[str]:
    if after.alerts is None:
        return
    was = {alert.identity for alert in before.firing}
    now = {alert.identity for alert in after.firing}
    for alert in after.firing:
        if alert.identity not in was:
            yield f"alert fires: {alert.name} ({alert.severity}) {alert.summary}"
    for alert in before.firing:
        if alert.identity not in now:
            yield f"alert resolves: {alert.name} ({alert.severity})"

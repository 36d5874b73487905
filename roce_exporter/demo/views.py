"""A scene becomes a full screen on a terminal, and a line per event anywhere else."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO, TypeAlias

from rich.console import Console
from rich.live import Live

from roce_exporter.demo.screen import screen
from roce_exporter.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from roce_exporter.demo.scene import Scene

    Show: TypeAlias = Callable[[Scene], None]


def wants_screen(console: Console, output: TextIO) -> bool:
    """Whether the output is a terminal that can move its cursor and draw the bars."""
    # rich takes everything for a terminal when FORCE_COLOR is set, as CI systems do.
    drawable = (output.encoding or "").lower().startswith("utf")
    return output.isatty() and not console.is_dumb_terminal and drawable


@contextlib.contextmanager
def view(output: TextIO) -> Iterator[Show]:
    """A function that shows a scene on this output. The last line, at the end, sums up."""
    console = Console(file=output)
    lines = _Lines(output)
    if not wants_screen(console, output):
        yield lines.show
    else:
        with Live(
            console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        ) as live:

            def show(scene: Scene) -> None:
                lines.last = scene
                live.update(screen(scene, *console.size), refresh=True)

            yield show
    lines.close()


class _Lines:
    """Writes a line per event between one scene and the next."""

    def __init__(self, output: TextIO) -> None:
        self.last: Scene | None = None
        self._output = output

    def show(self, scene: Scene) -> None:
        if self.last is None:
            self._write(opening(scene))
        before = self.last or replace(scene, storms=(), alerts=(), notes=())
        self.last = scene
        self._write(changes(before, scene))

    def close(self) -> None:
        if self.last is not None:
            self._write([closing(self.last)])

    def _write(self, lines: list[str]) -> None:
        self._output.writelines(f"{line}\n" for line in lines)
        self._output.flush()


def opening(scene: Scene) -> list[str]:
    """The first lines: the scenario, and the pages to open."""
    return [
        f"simulated host, scenario {scene.scenario}: {scene.description}",
        *(f"{address.name:<12} {address.url}" for address in scene.addresses),
    ]


def changes(before: Scene, after: Scene) -> list[str]:
    """The events between two scenes, each line with the seconds since the beginning."""
    found = (
        *after.notes[len(before.notes) :],
        *_storms(before, after),
        *_watchdogs(before, after),
        *_owners(before, after),
        *_alerts(before, after),
    )
    return [f"[{after.seconds:6.1f} s] {text}" for text in found]


def closing(scene: Scene) -> str:
    """The last line."""
    storms = sum(
        pause.storms for found in scene.priorities for pause in (found.receive, found.transmit) if pause
    )
    return f"ended after {scene.seconds:.0f} s with {counted(storms, 'PFC storm')} seen"


def _storms(before: Scene, after: Scene) -> Iterator[str]:
    known = {storm.identity: storm for storm in before.storms}
    for storm in reversed(after.storms):
        if storm.identity not in known:
            yield f"storm begins: {storm.place}" + (f", hint {storm.hint}" if storm.hint else "")
        was = known.get(storm.identity)
        if storm.duration is not None and (was is None or was.duration is None):
            yield f"storm ends: {storm.place} after {storm.duration:.1f} s, {storm.reason}"


def _watchdogs(before: Scene, after: Scene) -> Iterator[str]:
    if before.switch is None or after.switch is None:
        return
    known = {(port.port, port.priority): port for port in before.switch.ports}
    for port in after.switch.ports:
        was = known.get((port.port, port.priority), port)
        place = f"{after.switch.name} {port.place}"
        if port.trips is not None and was.trips is not None and port.trips > was.trips:
            yield f"switch watchdog trips: {place}"
        if was.watchdog == "tripped" != port.watchdog and port.watchdog:
            yield f"switch watchdog restores: {place}"


def _owners(before: Scene, after: Scene) -> Iterator[str]:
    known = {owner.owner: owner.in_error for owner in before.owners}
    for owner in after.owners:
        was = known.get(owner.owner, 0)
        if owner.in_error > 0 == was:
            yield f"queue pairs in error: {owner.in_error} of {owner.queue_pairs} of {owner.place}"
        if owner.in_error == 0 < was:
            yield f"queue pairs work again: {owner.place}"


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

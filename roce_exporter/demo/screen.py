"""The views: a scene becomes one full screen of any size on a terminal, and a line per event anywhere else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO, TypeAlias

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from roce_exporter.words import counted

if TYPE_CHECKING:
    from roce_exporter.demo import figures

    Show: TypeAlias = Callable[[figures.Scene], None]

BARS = " ▁▂▃▄▅▆▇█"
UNMEASURED = "·"

STYLES = {
    "ok": "green",
    "suspect": "yellow",
    "storm": "bold white on red",
    "recovering": "yellow",
    "unknown": "dim",
}
SEVERITY_STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
HOT = 0.5
WARM = 0.01  # shares of the time paused from which on a bar is red, or yellow
OTHER_COLUMNS = 56  # characters of a row without the port and its two sparklines
NARROWEST, WIDEST = 3, 60  # characters of a sparkline
MANY = 1000.0
EVENT_LINES = 8  # lines that owners and switch leave to alerts and storms
HEADING_LINES = 2  # of a further table: an empty line and the headings
OWNER_LINES = 4  # owners on the screen: those that suffer most
OWNER_COLUMNS = 40  # characters of an owner's row without its name
SWITCH_COLUMNS = 42  # characters of a row of the switch without the port and its sparkline
WATCHDOG_STYLES = {"ok": "green", "tripped": "bold white on red", "reports": "yellow", "off": "yellow"}
NEARLY_FULL = 0.8  # share of the headroom from which on it is red


def screen(scene: figures.Scene, width: int, height: int) -> RenderableType:
    """One screen: addresses, priorities, and as many switch ports, alerts, storms and notes as fit."""
    head = _head(scene)
    table = _table(scene.priorities, width)
    room = height - len(head) - len(scene.priorities) - 1
    parts: list[RenderableType] = [*head, table]
    spare = room - EVENT_LINES - len(scene.notes)
    for part, lines in _further_tables(scene, spare, width):
        parts += [Text(), part]
        room -= lines
    return Group(*parts, *_events(scene, room))


def _further_tables(scene: figures.Scene, spare: int, width: int) -> Iterator[tuple[Table, int]]:
    """The owners and the switch ports that fit in the spare lines, with the lines of each table and the one before.

    Owners leave room for the most urgent port of the switch; of its ports those with the most trips and pause are shown.
    """
    ports = scene.switch.ports if scene.switch else ()
    of_switch = HEADING_LINES + 1 if ports else 0
    owners = scene.owners[: min(OWNER_LINES, max(0, spare - of_switch - HEADING_LINES))]
    if owners:
        lines = len(owners) + HEADING_LINES
        spare -= lines
        yield owner_table(owners, width), lines
    urgent = sorted(range(len(ports)), key=lambda number: urgency(ports[number]))
    shown = [ports[number] for number in sorted(urgent[: max(0, spare - HEADING_LINES)])]
    if shown and scene.switch is not None:
        yield switch_table(scene.switch.name, shown, width), len(shown) + HEADING_LINES


def urgency(port: figures.SwitchPriority) -> tuple[bool, int, float]:
    """A key that sorts the ports of a switch: tripped ones first, then by trips and pause."""
    return port.watchdog != "tripped", -(port.trips or 0), -((port.shares or (0.0,))[-1] or 0.0)


def sparkline(history: Iterable[float | None], width: int) -> Text:
    """The last `width` shares, 0 to 1, as bars, the newest to the right; a dot means not measured."""
    shares = list(history)[-width:]
    text = Text(" " * (width - len(shares)), no_wrap=True)
    for share in shares:
        if share is None:
            text.append(UNMEASURED, "dim")
        else:  # even the shortest pause is visible
            text.append(BARS[max(share > 0, round(share * (len(BARS) - 1)))], heat(share))
    return text


def heat(share: float) -> str:
    """The style of a share of the time paused."""
    return "red" if share >= HOT else "yellow" if share >= WARM else "green"


def short_number(value: float | None) -> str:
    """A rate in at most five characters: 0, 0.4, 17, 3.2k, 1.5M; a dash for None."""
    if value is None:
        return "-"
    for unit in ("", "k", "M", "G"):
        if value < MANY or unit == "G":
            break
        value /= MANY
    return f"{value:.1f}{unit}" if 0 < value < 10 else f"{value:.0f}{unit}"  # noqa: PLR2004 - one digit


def _head(scene: figures.Scene) -> list[Text]:
    keys = f", {scene.seconds:.0f} s; Ctrl-C ends it; n, p: other scenarios"
    title = Text.assemble(
        ("roce-exporter demo", "bold"),
        f"  {scene.scenario}",
        (keys, "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )
    addresses = [_line(f"{address.name:<13}{address.url}") for address in scene.addresses]
    return [title, _line(scene.description), *addresses, Text()]


def _line(text: str, style: str = "") -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _grid(left: Mapping[str, int], right: Iterable[str], rows: Iterable[Sequence[RenderableType]]) -> Table:
    """A table: the columns to the left with their least width, those of numbers, and the rows."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for name, width in left.items():
        table.add_column(name, no_wrap=True, overflow="ellipsis", min_width=width)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    for row in rows:
        table.add_row(*row)
    return table


def _table(priorities: Sequence[figures.Priority], width: int) -> Table:
    longest = max((len(_port(found)) for found in priorities), default=0)
    room = min(WIDEST, max(NARROWEST, (width - OTHER_COLUMNS - longest) // 2))
    left = {"port, priority": 0, "pause in": 0, "pause out": 0, "state": len("recovering")}
    rows = (_row(found, room) for found in priorities)
    return _grid(left, ("storms", "ECN/s", "CNP out", "CNP in"), rows)


def _port(found: figures.Priority) -> str:
    return f"{found.netdev} {found.device}/{found.port} p{found.number}"


def _row(found: figures.Priority, room: int) -> list[RenderableType]:
    pauses = [pause for pause in (found.receive, found.transmit) if pause]
    storms = sum(pause.storms for pause in pauses)
    worst = min((pause.state for pause in pauses), key=WORST_FIRST.index, default="unknown")
    return [
        Text(_port(found), "red" if found.up is False else ""),
        _pause(found.receive, room),
        _pause(found.transmit, room),
        Text(worst, STYLES[worst]),
        Text(str(storms), "bold red" if storms else "dim"),
        *(short_number(value) for value in (found.marked, found.notified, found.reacted)),
    ]


def switch_table(name: str, ports: Sequence[figures.SwitchPriority], width: int) -> Table:
    """The ports of a switch: its view of the same links, so pause in is what the host behind the port sends."""
    longest = max(len(name), *(len(_switch_port(port)) for port in ports))
    room = min(WIDEST, max(NARROWEST, width - SWITCH_COLUMNS - longest))
    left = {name: longest, "pause in": 0, "watchdog": len("watchdog")}
    rows = (
        (
            Text(_switch_port(port)),
            _share(port.shares, room, ""),
            Text(port.watchdog or "-", WATCHDOG_STYLES.get(port.watchdog, "")),
            Text("-" if port.trips is None else str(port.trips), "bold red" if port.trips else "dim"),
            short_number(port.marked),
            Text(
                "-" if port.headroom is None else f"{port.headroom:.0%}",
                "red" if (port.headroom or 0) >= NEARLY_FULL else "",
            ),
        )
        for port in ports
    )
    return _grid(left, ("trips", "ECN/s", "headroom"), rows)


def _switch_port(port: figures.SwitchPriority) -> str:
    return f"{port.port} {port.neighbor or '-'} p{port.priority}"


def owner_table(owners: Sequence[figures.ShownOwner], width: int) -> Table:
    """Who uses the devices, and who suffers."""
    rows = (
        (
            Text(owner.place),
            str(owner.queue_pairs),
            Text(str(owner.in_error), "bold red" if owner.in_error else "dim"),
            short_number(owner.cnps),
            short_number(owner.retries),
        )
        for owner in owners
    )
    table = _grid({"owner": 0}, ("queue pairs", "in error", "CNP in", "retries/s"), rows)
    table.columns[0].max_width = max(NARROWEST, width - OWNER_COLUMNS)
    return table


def _pause(pause: figures.PauseHistory | None, room: int) -> Text:
    if pause is None:
        return Text("-")
    return _share(pause.shares, room, "≤" if pause.estimated else "")


def _share(shares: Sequence[float | None], room: int, mark: str) -> Text:
    """A sparkline and the newest share, after `mark`."""
    share = shares[-1] if shares else None
    text = "-" if share is None else f"{mark}{share:.0%}"
    return sparkline(shares, room).append(f"{text:>6}", heat(share) if share is not None else "dim")


WORST_FIRST = ("storm", "recovering", "suspect", "unknown", "ok")


def _events(scene: figures.Scene, room: int) -> list[Text]:
    """All notes, then alerts in at least half of the rest, then storms."""
    notes = [_line(f"! {note}", "yellow") for note in scene.notes]
    alerts = [_alert(alert) for alert in scene.alerts or ()]
    if scene.alerts is not None and not alerts:
        alerts = [_line("none", "dim")]
    storms = [_storm(storm) for storm in scene.storms] or [_line("none yet", "dim")]
    left = max(0, room - len(notes) - (5 if alerts else 2))
    for_alerts = min(len(alerts), max(left - len(storms), left // 2))
    shown = [Text(), *notes] if notes else []
    if alerts:
        shown += [Text(), _line("alerts", "bold"), *alerts[:for_alerts]]
    return [*shown, Text(), _line("storms", "bold"), *storms[: max(0, left - for_alerts)]]


def _alert(alert: figures.Alert) -> Text:
    style = SEVERITY_STYLES.get(alert.severity, "") if alert.state == "firing" else "dim"
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{alert.state:<8}{alert.severity:<9}", style)
    return text.append(f"{alert.name}  ", "bold").append(alert.summary)


def _storm(storm: figures.StormEvent) -> Text:
    lasted = "goes on" if storm.duration is None else f"{storm.duration:.1f} s"
    style = STYLES["storm"] if storm.duration is None else ""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{storm.start[11:19]}  ").append(f"{lasted:<8}", style)
    return text.append(f"  {storm.place}  {storm.hint}")


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

            def show(scene: figures.Scene) -> None:
                lines.last = scene
                live.update(screen(scene, *console.size), refresh=True)

            yield show
    lines.close()


class _Lines:
    """Writes a line per event between one scene and the next."""

    def __init__(self, output: TextIO) -> None:
        self.last: figures.Scene | None = None
        self._output = output

    def show(self, scene: figures.Scene) -> None:
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


def opening(scene: figures.Scene) -> list[str]:
    """The first lines: the scenario, and the pages to open."""
    return [
        f"simulated host, scenario {scene.scenario}: {scene.description}",
        *(f"{address.name:<12} {address.url}" for address in scene.addresses),
    ]


def changes(before: figures.Scene, after: figures.Scene) -> list[str]:
    """The events between two scenes, each line with the seconds since the beginning."""
    found = (
        *after.notes[len(before.notes) :],
        *_storms(before, after),
        *_watchdogs(before, after),
        *_owners(before, after),
        *_alerts(before, after),
    )
    return [f"[{after.seconds:6.1f} s] {text}" for text in found]


def closing(scene: figures.Scene) -> str:
    """The last line."""
    storms = sum(
        pause.storms for found in scene.priorities for pause in (found.receive, found.transmit) if pause
    )
    return f"ended after {scene.seconds:.0f} s with {counted(storms, 'PFC storm')} seen; its servers and files are removed"


def _storms(before: figures.Scene, after: figures.Scene) -> Iterator[str]:
    known = {storm.identity: storm for storm in before.storms}
    for storm in reversed(after.storms):
        if storm.identity not in known:
            yield f"storm begins: {storm.place}" + (f", hint {storm.hint}" if storm.hint else "")
        was = known.get(storm.identity)
        if storm.duration is not None and (was is None or was.duration is None):
            yield f"storm ends: {storm.place} after {storm.duration:.1f} s, {storm.reason}"


def _watchdogs(before: figures.Scene, after: figures.Scene) -> Iterator[str]:
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


def _owners(before: figures.Scene, after: figures.Scene) -> Iterator[str]:
    known = {owner.owner: owner.in_error for owner in before.owners}
    for owner in after.owners:
        was = known.get(owner.owner, 0)
        if owner.in_error > 0 == was:
            yield f"queue pairs in error: {owner.in_error} of {owner.queue_pairs} of {owner.place}"
        if owner.in_error == 0 < was:
            yield f"queue pairs work again: {owner.place}"


def _alerts(before: figures.Scene, after: figures.Scene) -> Iterator[str]:
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

"""The list of causes, everything that a verdict can name, `causes.txt`; and what a rule finds on one port: a symptom of a cause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from roce_exporter.catalog.table import CatalogError, TableLine, parts, sections
from roce_exporter.checks.finding import Finding, Side, Status, Sure, Topic
from roce_exporter.view.host_view import PortView, Rise
from roce_exporter.words import duration, some

SHORT, MEDIUM, LONG = 120.0, 300.0, 1800.0
"""Windows of rates, in seconds: those of the alerts at scrape intervals of 15 s and 30 s."""

SETTLED = 60.0
"""Seconds in which queue pairs give up, and by which counters of one event can be seen apart."""
COUNTERS = "roce-exporter once | grep '\"{device}\"'"
_PARTS = ("likely", "wrong if", "next", "then", "begins", "events", "states")
_BEGIN = re.compile(r"([0-9]+) events(?:, ([0-9e.-]+) of the bits)?")


class End(StrEnum):
    """What ends a cause. One that has ended is reported for half an hour more, except states."""

    EVENT = "event"
    """Nothing shows the end of what was counted: it lasts as long as the window of its rule."""
    STOPS = "stops"
    """Its counters or its detector have stopped: from then on it is not failed."""
    SEEN = "seen"
    """Another state is read: failed no longer from then on."""


class Begin(NamedTuple):
    """How many events of a cause are too few to degrade a port: they are a note."""

    events: float = 1.0
    ratio: float = 0.0
    """Events per bit that passed, which are few as well: what the standard of the link allows."""

    def is_few(self, events: float, bits: float) -> bool:
        """Whether this number of events, while this number of bits passed, is a note."""
        return events < max(self.events, bits * self.ratio)


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of the list of causes."""

    name: str
    """Lower case with underscores; the value of the label `reason`."""
    side: Side
    """The usual one of `sides`."""
    sides: frozenset[Side]
    health: Status
    """What the cause makes of a port: DEGRADED or FAILED; OK if it concerns programs or the load, and the port is fit."""
    title: str
    """One line without a full stop."""
    likely: str
    """The likely cause, and what else it could be."""
    next: tuple[str, ...]
    """The next commands or steps; may contain `{device}`, `{port}` and `{netdev}`."""
    runbook: str
    """Name of a file in alerts/runbooks, without `.md`."""
    sure: Sure
    wrong_if: str
    """The one fact that would prove it wrong."""
    areas: frozenset[str]
    """What of the port it is about: some of `coverage.AREAS`."""
    explains: frozenset[str]
    """Names of causes that can be its consequences on the same port, with a direction or a side behind `/` where only those of it, or
    `unsure` where it keeps its own side."""
    begins: Begin
    ends: End
    acts: str
    """Who acts, a key of `report.ACTS`; empty where that follows from the side."""
    events: tuple[str, ...]
    """Events of the kernel log that are a sign of it."""
    states: tuple[str, ...]
    """Reasons for a link that is down that are a sign of it (`host/kernel/ethtool_netlink.py`)."""

    def is_explained_by(self, other: Cause, direction: str, side: str = "") -> bool:
        """Whether it, in this direction and of this side, can be a consequence of the other one on the same port."""
        ends = ("", "/unsure", f"/{direction}", f"/{side}")
        return not other.explains.isdisjoint(f"{self.name}{end}" for end in ends)

    def finding(
        self,
        device: str,
        port: str,
        evidence: tuple[str, ...] = (),
        *,
        netdev: str = "",
        side: Side | None = None,
        title: str = "",
        note: bool = False,
        ended: bool = False,
        **rest: Any,
    ) -> Finding:
        """This cause on one port, or with an empty port on the whole device; `ended`: it is no failure any more."""
        # A finding of a whole device is not one of its port's network device, and not every device has one.
        names = {"device": device, "port": port, "netdev": netdev}
        steps = self.next if netdev else [step.replace(" -e {netdev}", "") for step in self.next]
        return Finding(
            Topic.HEALTH,
            self.name,
            title or self.title,
            Status.OK if note else min(self.health, Status.DEGRADED) if ended else self.health,
            device,
            port,
            netdev if port else "",
            side or self.side,
            why=self.likely,
            evidence=evidence,
            fix=tuple(step.format_map(names) for step in steps if netdev or "{netdev}" not in step),
            runbook=self.runbook,
            sure=self.sure,
            wrong_if=self.wrong_if,
            areas=self.areas,
            acts=self.acts,
            **rest,
        )


def _cause(entry: TableLine) -> Cause:
    head, _, title = entry.head.partition(": ")
    name, place, health, runbook, sure, areas, end = head.split(" ")
    sides, _, acts = place.partition(":")
    side, *others = map(Side, sides.split("+"))
    found = parts(entry, _PARTS)
    begins = Begin()
    for text in found["begins"]:
        if not (match := _BEGIN.fullmatch(text)):
            raise CatalogError(f"{entry.place}: {text!r} is not N events[, RATIO of the bits]")
        begins = Begin(float(match[1]), float(match[2] or 0))
    return Cause(
        name,
        side,
        frozenset((side, *others)),
        Status[health.upper()],
        title,
        " ".join(found["likely"]),
        tuple(step for line in found["next"] for part in line.split(" // ") for step in _steps(part)),
        runbook,
        Sure(sure),
        " ".join(found["wrong if"]),
        frozenset(areas.split("+")),
        frozenset(_names(" ".join(found["then"]))),
        begins,
        End(end),
        acts,
        tuple(" ".join(found["events"]).split()),
        tuple(one for line in found["states"] for one in line.split("; ")),
    )


def _steps(line: str) -> Iterator[str]:
    word, _, rest = line.partition(" ")
    while word in _STEPS:
        yield _STEPS[word]
        word, _, rest = rest.partition(" ")
    if word:
        yield f"{COUNTERS if word == 'COUNTERS' else word} {rest}".strip()


def _names(text: str) -> Iterator[str]:
    for word in text.split():
        yield from _names(_GROUPS[word]) if word in _GROUPS else (word,)


def causes_of(heading: str) -> dict[str, frozenset[str]]:
    """Of a section of `causes.txt` the names of causes by check."""
    lines = (entry.head.split(": ", 1) for entry in _TABLE[heading])
    return {check: frozenset(_names(names)) for checks, names in lines for check in checks.split()}


_TABLE = dict(sections("causes.txt", Path(__file__).with_name("causes.txt").read_text(encoding="utf-8")))
_STEPS, _GROUPS = (
    dict(entry.head.split(": ", 1) for entry in _TABLE[heading]) for heading in ("steps", "groups")
)
CAUSES = tuple(map(_cause, _TABLE["causes"]))
"""All causes, in order of harm among those of one health."""

NAMED = {cause.name: cause for cause in CAUSES}


class Symptom(NamedTuple):
    """A cause that the facts of one port support."""

    cause: str
    """Its name in the list of causes."""
    evidence: tuple[str, ...]
    against: tuple[str, ...] = ()
    side: Side | None = None
    """A better known side than the cause's own."""
    weight: float = 0.0
    """0 to 1: how bad it is among findings of the same cause."""
    note: bool = False
    """Whether it is too little to degrade a port: it is shown, and the health does not change."""
    until: float | None = None
    """Its last sign, where the rule sees that it has ended, so that it is not a failure now; 0: it lasts. None: follows from the counters."""
    direction: str = ""
    """`receive` or `transmit`, where only what the port receives or sends is affected; or another word for `then` of `causes.txt`."""
    title: str = ""
    """In place of the cause's own, where that would say too much."""


Rule = Callable[[PortView], Iterator[Symptom]]
"""One rule about a port, or about a whole device: pure, and silent where it sees too little."""


def rose(rise: Rise, what: str) -> str:
    """The sentence about a counter that rose."""
    return f"{some(rise.amount, what)} within {duration(rise.seconds)}"


def risen(port: PortView, counters: Iterable[tuple[str, str]], window: float) -> list[tuple[Rise, str]]:
    """Of these counters with what one of their events is, those that rose, by how much, and the sentence about it."""
    rises = ((port.rise(name, window), what) for name, what in counters)
    return [(rise, rose(rise, what)) for rise, what in rises if rise and rise.amount]


def texts(*parts: object) -> tuple[str, ...]:
    """The parts that say something, in place of which others are None, False, 0 or empty."""
    return tuple(str(part) for part in parts if part)

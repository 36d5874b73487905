"""The list of causes, everything that a verdict can name: `causes.txt`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog.table import CatalogError, parts, sections
from roce_exporter.checks.finding import Finding, Side, Status, Sure, Topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.catalog.table import TableLine

STEPS = {
    "COUNTERS": "roce-exporter once | grep 'device=\"{device}\"'",
    "DMESG": "dmesg -T | grep -i -e {device} -e {netdev} -e AER",
}
_PARTS = ("likely", "wrong if", "next", "then", "begins")
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
    area: str
    """What of the port it is about; one of `sight.AREAS`."""
    explains: frozenset[str]
    """Names of causes that can be its consequences on the same port, with `/receive` or `/transmit` where only those of that direction."""
    begins: Begin
    ends: End

    def is_explained_by(self, other: Cause, direction: str) -> bool:
        """Whether it, in this direction, can be a consequence of the other one on the same port."""
        return not other.explains.isdisjoint((self.name, f"{self.name}/{direction}"))

    def finding(
        self,
        device: str,
        port: str,
        evidence: tuple[str, ...] = (),
        against: tuple[str, ...] = (),
        *,
        netdev: str = "",
        side: Side | None = None,
        note: bool = False,
        since: float = 0.0,
        until: float = 0.0,
        harm: float = 0.0,
        direction: str = "",
        ended: bool = False,
    ) -> Finding:
        """This cause on one port, or with an empty port on the whole device; `ended`: it is no failure any more."""
        status = min(self.health, Status.DEGRADED) if ended else self.health
        # A finding of a whole device is not one of its port's network device, and not every device has one.
        names = {"device": device, "port": port, "netdev": netdev}
        steps = self.next if netdev else [step.replace(" -e {netdev}", "") for step in self.next]
        return Finding(
            Topic.HEALTH,
            self.name,
            self.title,
            Status.OK if note else status,
            device,
            port,
            netdev if port else "",
            side or self.side,
            why=self.likely,
            evidence=evidence,
            against=against,
            fix=tuple(step.format_map(names) for step in steps if netdev or "{netdev}" not in step),
            runbook=self.runbook,
            since=since,
            until=until,
            harm=harm,
            sure=self.sure,
            wrong_if=self.wrong_if,
            direction=direction,
        )


def _cause(entry: TableLine) -> Cause:
    head, _, title = entry.head.partition(": ")
    name, side, health, runbook, sure, area, end = head.split(" ")
    found = parts(entry, _PARTS)
    return Cause(
        name,
        Side(side),
        Status[health.upper()],
        title,
        " ".join(found["likely"]),
        tuple(_steps(found["next"])),
        runbook,
        Sure(sure),
        " ".join(found["wrong if"]),
        area,
        frozenset(" ".join(found["then"]).split()),
        _begin(entry.place, found["begins"]),
        End(end),
    )


def _begin(place: str, texts: list[str]) -> Begin:
    if not texts:
        return Begin()
    found = _BEGIN.fullmatch(texts[0])
    if not found:
        raise CatalogError(f"{place}: {texts[0]!r} is not N events[, RATIO of the bits]")
    return Begin(float(found[1]), float(found[2] or 0))


def _steps(found: list[str]) -> Iterator[str]:
    for step in found:
        word, _, rest = step.partition(" ")
        yield f"{STEPS[word]} {rest}".strip() if word in STEPS else step


CAUSES = tuple(
    _cause(entry)
    for _, entries in sections(
        "causes.txt", Path(__file__).with_name("causes.txt").read_text(encoding="utf-8")
    )
    for entry in entries
)
"""All causes, in order of harm among those of one health."""

NAMED = {cause.name: cause for cause in CAUSES}

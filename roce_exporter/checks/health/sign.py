"""The causes that rules can name, what a rule finds on one port, and how it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.checks.finding import Finding, Status, Topic
from roce_exporter.view.host_view import PortView
from roce_exporter.words import duration, number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roce_exporter.checks.finding import Side, Sure
    from roce_exporter.view.host_view import Rise


SHORT, MEDIUM, LONG = 120.0, 300.0, 1800.0
"""Windows of rates, in seconds: those of the alerts at scrape intervals of 15 s and 30 s."""


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
    """Names of causes that can be its consequences on the same port."""

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
    ) -> Finding:
        """This cause on one port, or with an empty port on the whole device."""
        # A finding of a whole device is not one of its port's network device, and not every device has one.
        names = {"device": device, "port": port, "netdev": netdev}
        steps = self.next if netdev else [step.replace(" -e {netdev}", "") for step in self.next]
        return Finding(
            Topic.HEALTH,
            self.name,
            self.title,
            Status.OK if note else self.health,
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
        )


class Sign(NamedTuple):
    """A cause that the facts of one port support."""

    cause: Cause
    evidence: tuple[str, ...]
    against: tuple[str, ...] = ()
    side: Side | None = None
    """A better known side than the cause's own."""
    weight: float = 0.0
    """0 to 1: how bad it is among findings of the same cause."""
    note: bool = False
    """Whether it is too little to degrade a port: it is shown, and the health does not change."""


Rule = Callable[[PortView], Iterator[Sign]]
"""One rule: pure, and silent where it sees too little."""


def rose(rise: Rise, what: str) -> str:
    """The sentence about a counter that rose."""
    return f"{number(rise.amount)} {what} within {duration(rise.seconds)}"


def texts(parts: Iterable[str | None]) -> tuple[str, ...]:
    """The parts that say something."""
    return tuple(part for part in parts if part)

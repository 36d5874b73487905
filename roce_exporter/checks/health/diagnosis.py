"""All rules over one history: findings in order of harm, and what could not be seen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from operator import attrgetter

from roce_exporter.checks.finding import Finding, JudgedPort, NotChecked, Report, Status, Sure
from roce_exporter.checks.health.causes import CAUSES, LONG, MEDIUM, NAMED, SETTLED, End, Rule, Symptom
from roce_exporter.checks.health.congestion_rules import CONGESTION_RULES, WIRE_RULES
from roce_exporter.checks.health.counter_rules import COUNTED_RULES, COUNTER_RULES, DEVICE_COUNTED_RULES
from roce_exporter.checks.health.coverage import fine_of, unseen_of
from roce_exporter.checks.health.device_rules import CONNECTED, DEVICE_RULES, PCIE_RULES
from roce_exporter.checks.health.link_rules import LINK_RULES
from roce_exporter.checks.health.settings_rules import SETTINGS_RULES, settings_first, suspects
from roce_exporter.checks.health.transport_rules import TRANSPORT_RULES
from roce_exporter.checks.thresholds import Thresholds, shipped_thresholds
from roce_exporter.errors import NO_DEVICE
from roce_exporter.view.host_view import History, PortView, View

PORT_RULES: tuple[Rule, ...] = (
    *(*LINK_RULES, *PCIE_RULES, *CONGESTION_RULES),
    *(*TRANSPORT_RULES, *SETTINGS_RULES, *COUNTED_RULES, *WIRE_RULES, *COUNTER_RULES),
)

LOOK_BACK = 120.0
"""Seconds between two times at which the history is judged; the shortest window of a rule."""

_PLACES = {cause.name: place for place, cause in enumerate(CAUSES)}


def diagnose(history: History, limits: Thresholds | None = None, *, past: bool = True) -> Report:
    """What is wrong with the host's ports, the worst first, and what could not be judged.

    With `past`, what the rules said in the last half hour of the history and do not say at its end is part of it, with the time at which it
    ended; the health of the ports is that at the end.

    A history without a moment, or of a host without RDMA devices, has no findings and says so in `not_checked`. `limits`: None for those
    of the package.
    """
    if not history:
        return Report((), (NotChecked("everything: there are no samples", needed=True),))
    host = View(history, shipped_thresholds() if limits is None else limits)
    if not host.devices():
        return Report((), (NotChecked(f"everything: {NO_DEVICE}", needed=True),))
    findings = _found(host)
    unseen = tuple(unseen_of(host))
    now = [*_explained(_led(host, findings), host.begin, host.end)]
    ports = tuple(_judged(port, now, unseen) for port in host.ports())
    if past:
        findings += _ended(history, host, findings)
    findings = _led(host, findings)
    places = {(port.device, port.port): port.place for port in host.ports()}
    findings = [replace(one, place=places.get((one.device, one.port), "")) for one in findings]
    ordered = sorted(
        _explained(findings, host.begin, host.end), key=lambda one: (-one.harm, one.device, one.port)
    )
    return Report(
        tuple(ordered), unseen, ports, fine_of(host, {area for one in ordered for area in one.areas})
    )


def _found(host: View) -> list[Finding]:
    """What the rules say at the end of this history."""
    return [
        *(
            finding
            for device in host.devices()
            for finding in _faults(PortView(host, device), (*DEVICE_RULES, *DEVICE_COUNTED_RULES))
        ),
        *(finding for port in host.ports() for finding in _faults(port, PORT_RULES)),
    ]


def _led(host: View, findings: Sequence[Finding]) -> list[Finding]:
    """With the symptoms of wrong settings, also those that have ended, as evidence of these."""
    return [*settings_first(host, [*suspects(host, findings)])]


def _ended(history: History, host: View, newest: Sequence[Finding]) -> list[Finding]:
    """What the rules said at earlier times and do not say any more: an episode that was total is no middling share of a longer time.

    Causes with a state of their own (a link that is down, a temperature) have ended when the state has.
    """
    known = {(one.device, one.port, one.check) for one in newest}
    ended: dict[tuple[str, str, str], Finding] = {}
    ends = [moment.time for moment in history if moment.time >= max(host.begin + MEDIUM, host.end - LONG)]
    at = 0.0
    for end in ends[:-1]:
        if end < at + LOOK_BACK:
            continue
        at = end
        for one in _found(View(history[: bisect_right(history, end, key=attrgetter("time"))], host.limits)):
            key = one.device, one.port, one.check
            worst = ended.get(key)
            is_over = key not in known and NAMED[one.check].ends is not End.SEEN
            if one.is_wrong and is_over and (not worst or one.harm > worst.harm):
                ended[key] = replace(one, until=one.until or end)
    return [replace(one, status=Status.DEGRADED) for one in ended.values()]


def _judged(port: PortView, findings: Sequence[Finding], unseen: Sequence[NotChecked]) -> JudgedPort:
    """Whether a job can use the port: UNKNOWN if nothing is wrong, and something that is needed was not seen."""
    here = [one.status for one in findings if one.device == port.device and one.port in ("", port.port)]
    blind = any(
        gap.needed and gap.device in ("", port.device) and gap.port in ("", port.port) for gap in unseen
    )
    health = max(here, default=Status.OK)
    if health is Status.OK and (blind or not port.highest("roce_port_up")):
        health = Status.UNKNOWN
    return JudgedPort(port.device, port.port, port.netdev, health)


def _faults(port: PortView, rules: Sequence[Rule]) -> Iterator[Finding]:
    """The findings of these rules, one per cause: signs of the same cause are one finding with all their evidence."""
    merged: dict[str, Symptom] = {}
    times: dict[str, list[tuple[float, float]]] = {}
    for rule in rules:
        moved, told = port.host.moved, 0
        moved.clear()
        for sign in rule(port):
            merged[sign.cause] = _merge(merged.get(sign.cause), sign)
            # of several signs of a rule each has the times that were looked at for it
            times.setdefault(sign.cause, []).extend(moved[told:] or moved)
            told = len(moved)
    for sign in merged.values():
        since, until = _span(port.host, times[sign.cause])
        yield NAMED[sign.cause].finding(
            port.device,
            port.port,
            sign.evidence,
            against=sign.against,
            netdev=port.netdev,
            side=sign.side,
            title=sign.title,
            note=sign.note,
            since=since,
            until=until if sign.until is None else sign.until,
            ended=bool(sign.until),
            direction=sign.direction,
            # Three digits from the health, below which a note is, one per place in the list of causes, and the weight among findings of one cause.
            harm=1000.0 * (Status.OK / 2 if sign.note else NAMED[sign.cause].health)
            + len(CAUSES)
            - _PLACES[sign.cause]
            + min(sign.weight, 1.0) / 2,
        )


def _span(host: View, moved: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Since when, and until when where the last sign is older than the newest two moments."""
    if not moved:
        return 0.0, 0.0
    last = max(until for _, until in moved)
    return min(since for since, _ in moved), 0.0 if host.lasts(last) else last


def _merge(before: Symptom | None, sign: Symptom) -> Symptom:
    if before is None:
        return sign
    return before._replace(
        evidence=tuple(dict.fromkeys((*before.evidence, *sign.evidence))),
        against=tuple(dict.fromkeys((*before.against, *sign.against))),
        side=before.side or sign.side,
        weight=max(before.weight, sign.weight),
        note=before.note and sign.note,
        until=before.until and sign.until and max(before.until, sign.until),
        direction=before.direction if before.direction == sign.direction else "",
    )


def _follows(finding: Finding, other: Finding, begin: float, end: float) -> bool:
    """Whether it can be a consequence: not one that began before its cause or goes on after it, nor of what is only a note."""
    cause = NAMED[finding.check]
    # a state without a begin was there before the first moment; addresses are set, and not by what follows
    unseen = 0.0 if "addresses" in cause.areas else begin if cause.sure is Sure.SEEN else inf
    # a module is read once a minute
    late = SETTLED * (1 + ("optics" in NAMED[other.check].areas))
    began = (finding.since or unseen) < other.since - late
    # connected queue pairs keep the addresses that were resolved for them
    began |= finding.direction == CONNECTED and not other.since and "addresses" in NAMED[other.check].areas
    # a link stays as its cause left it; queue pairs do not: their program makes new ones
    stays = cause.ends is End.SEEN and "link" in cause.areas
    goes_on = not stays and other.until and finding.since and (finding.until or end) > other.until + LOOK_BACK
    slight = finding.is_wrong and not other.is_wrong and NAMED[other.check].health is not Status.OK
    return not (began or goes_on or slight) and cause.is_explained_by(
        NAMED[other.check], finding.direction, finding.side
    )


def _explained(findings: list[Finding], begin: float, end: float) -> Iterator[Finding]:
    """The findings; one that can be a consequence of others on the same port names them, has their side, and comes after them."""
    devices: dict[str, list[Finding]] = {}
    for finding in findings:
        devices.setdefault(finding.device, []).append(finding)
    for finding in findings:
        reasons = [
            other
            for other in devices[finding.device]
            if (not other.port or not finding.port or other.port == finding.port)
            and _follows(finding, other, begin, end)
        ]
        if not reasons:
            yield finding
            continue
        worst, most = max(reasons, key=attrgetter("harm")), max(other.status for other in reasons)
        sure = f"{finding.check}/unsure" not in NAMED[worst.check].explains
        yield replace(
            finding,
            # the side of the worst cause behind it is the better known one, but of less than itself: a hot module leaves a link to repair
            side=worst.side if sure and most >= finding.status else finding.side,
            # what a program or the load does makes no port unfit
            status=min(finding.status, most) if most is Status.OK else finding.status,
            caused_by=tuple(dict.fromkeys((*finding.caused_by, *(other.check for other in reasons)))),
            harm=min(finding.harm, min(other.harm for other in reasons) - 1),
        )

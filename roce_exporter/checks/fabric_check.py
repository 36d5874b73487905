"""What the probes of all hosts, and the highest rates of their ports, say about the fabric.

Probes name a port, a ToR, the uplinks of a ToR or what is above them (`probe.fleet`); a host that drops packets from its own sockets or
answers late is a busy host, and is said to be one. A port that probes cannot judge, because it is slow and clean, has never carried a
tenth of its speed while others of its rail have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.checks.finding import Finding, NotChecked, Report, Side, Status, Topic
from roce_exporter.probe.fleet import PortReport, blame, port_reports, slow_parts
from roce_exporter.probe.plan import FABRIC, RACK
from roce_exporter.probe.vote import HOST, LINK, PATH, SPINE, TOR, Blamed, Component
from roce_exporter.words import counted, duration, few, number, share, some

if TYPE_CHECKING:
    from roce_exporter.view.host_view import History

DEAD_SHARE = 0.9
ONE_WAY = 0.2
"""A port whose own probes lose less than so much of what those of others to it lose has a responder that does not answer: the loss of
a port hits both directions."""
LEAST_CHANGED, CHANGED_SHARE = 4, 0.05
LEAST_DROPPED = 4
LATE_ANSWER, BUSY_ANSWER = 0.02, 0.1
"""Mean seconds that a host holds a probe: a host at rest takes less than a millisecond."""
TENTH = 0.1

TITLES = {
    HOST: "Probes through this port are lost",
    TOR: "Probes through this ToR are lost",
    LINK: "Probes through the uplinks of this ToR are lost",
    SPINE: "Probes between racks are lost, whatever the rack",
    PATH: "Probes from one source port are lost, those from others arrive",
}
SIDES = {HOST: Side.HOST, TOR: Side.FABRIC, LINK: Side.FABRIC, SPINE: Side.FABRIC, PATH: Side.FABRIC}
PLACES = {HOST: "", TOR: "ToR ", LINK: "uplinks of ", SPINE: "spines of ", PATH: "path of "}
NOT_TRACED = "Probes cannot say which one: their paths between racks are not traced"
WHY = {
    HOST: "The port, its NIC or its cable: its counters and those of its switch port show which",
    TOR: "The ToR, or several of its ports. Probes cannot say whether RDMA traffic in another queue is lost too",
    LINK: f"A link between this ToR and a spine. {NOT_TRACED}",
    SPINE: f"A spine, or links of several racks. {NOT_TRACED}",
    PATH: f"One of several equal paths, chosen by the hash of the port. {NOT_TRACED}",
}
JUDGE = "roce-exporter check health --prometheus=URL --target=HOST"
PORTS = "compare drops and CRC errors of its ports: board RoCE / Link, or the switch itself"

UNANSWERED = "The host does not answer probes, and its own are answered"
UNANSWERED_WHY = "Its prober or the whole host is stopped or busy: packets pass its port both ways"


class PortRate(NamedTuple):
    """The highest rate that a port has carried in either direction, and its speed if it is known, in bytes per second."""

    host: str
    device: str
    port: str
    highest: float
    speed: float | None


ODD_LIMIT = 3.3
"""Robust distances from the median of a job's hosts, as in alerts/rules/owners.yml."""
SIGNALS = {
    "pause": "it transmits more pause",
    "loss": "it sends more packets again",
    "speed": "its links are slower",
    "throughput": "it sends less",
}


class OddHost(NamedTuple):
    """A host that differs from the others of its job in one signal."""

    host: str
    job: str
    signal: str
    score: float
    """Robust distance from the median of the job's hosts."""


def fabric_report(
    histories: Iterable[History],
    rates: Sequence[PortRate] | None = None,
    odd: Sequence[OddHost] | None = None,
) -> Report:
    """The findings of all hosts together: the first and the last moment of each, with the metrics of its probes.

    `rates` or `odd` None: they could not be read.
    """
    reports: list[PortReport] = []
    seconds, unlisted = 0.0, 0
    for history in histories:
        before = history[0] if len(history) > 1 else None
        found = port_reports(before, history[-1])
        reports += found
        unlisted += not found
        seconds = max(seconds, history[-1].time - history[0].time)
    gaps = []
    if not reports:
        gaps.append(
            NotChecked("paths: no host exports probes of a listed port (docs/probing.md)", needed=True)
        )
    if unlisted:
        gaps.append(
            NotChecked(f"{counted(unlisted, 'prober')}: the list of targets has none of its addresses")
        )
    if rates is None:
        gaps.append(NotChecked("slow ports: the rates of the last days could not be read"))
    if odd is None:
        gaps.append(
            NotChecked("the odd host of a job: no owners, or no recording rules of alerts/rules/owners.yml")
        )
    findings = [
        *_odd_hosts(odd or ()),
        *_busy(reports),
        *(_lossy(one, reports, seconds) for one in blame(reports)),
        *_slow(reports),
        *_changed(reports),
        *_never_fast(rates or ()),
    ]
    return Report(tuple(sorted(findings, key=lambda one: -one.status)), tuple(gaps))


def _place(component: Component) -> str:
    return f"{PLACES[component.kind]}{component.name}"


def _finding(
    check: str, device: str, title: str, side: Side, status: Status = Status.DEGRADED, **rest: object
) -> Finding:
    return Finding(Topic.FABRIC, check, title, status, device, side=side, **rest)  # type: ignore[arg-type]  # texts of `Finding`


def _lossy(blamed: Blamed, reports: Sequence[PortReport], seconds: float) -> Finding:
    kind = blamed.component.kind
    ratio = blamed.lost / blamed.sent
    within = f" in {duration(seconds)}" if seconds else ""
    found = _finding(
        "probe_loss",
        _place(blamed.component),
        TITLES[kind],
        Side.UNKNOWN if {one.kind for one in blamed.also} - {kind} else SIDES[kind],
        Status.FAILED if kind == HOST and ratio >= DEAD_SHARE else Status.DEGRADED,
        why=WHY[kind],
        fix=(JUDGE if kind == HOST else PORTS,),
        evidence=(
            f"{number(blamed.lost)} of {number(blamed.sent)} probes lost{within} ({share(ratio)})",
            f"losses on {counted(blamed.paths, 'path')} (UDP source ports) through it",
        ),
    )
    if kind == HOST:
        found = _of_host(found, [one for one in reports if one.port.component == blamed.component], reports)
    if blamed.also:
        names = few([_place(one) for one in blamed.also])
        apart = f"every lost probe also passed, and nothing tells apart: {names}"
        found = replace(found, against=(*found.against, apart))
    return found


def _of_host(found: Finding, own: Sequence[PortReport], reports: Sequence[PortReport]) -> Finding:
    """The finding with what the host says itself, which tells its port from its prober."""
    if not own:
        gone = "it exports nothing of its own: the host is down, or its prober does not run"
        return replace(found, evidence=(*found.evidence, gone))
    evidence, against = [*found.evidence], [*found.against]
    for one in own:
        mine, sent = sum(pair.lost for pair in one.pairs), sum(one.sent.values())
        there = [
            pair
            for other in reports
            if other.port.rail == one.port.rail
            for pair in other.pairs
            if pair.peer == one.port.host
        ]
        to_it, asked = sum(pair.lost for pair in there), sum(pair.sent for pair in there)
        evidence.append(
            f"lost: {number(mine)} of its own {number(sent)} probes, {number(to_it)} of {number(asked)} to it"
        )
        if sent and asked and mine / sent < ONE_WAY * to_it / asked:
            found = replace(found, title=UNANSWERED, why=UNANSWERED_WHY)
        if one.dropped or one.late:
            against.append(
                f"a busy host: {some(one.dropped, 'packets')} dropped from its sockets, {some(one.late, 'late replies')}"
            )
        classes = [name for name, lost in one.lost.items() if lost]
        if len(classes) == 1 < len(one.lost) and mine >= LEAST_CHANGED:
            evidence.append(f"only the class {classes[0]} loses: a queue rather than a cable")
    return replace(found, evidence=tuple(evidence), against=tuple(against))


def _busy(reports: Sequence[PortReport]) -> Iterable[Finding]:
    """Hosts that answer late or drop packets themselves."""
    for host, one in {one.port.host: one for one in reports}.items():
        answer = one.answer or 0.0
        if one.dropped < LEAST_DROPPED and answer < LATE_ANSWER:
            continue
        busy = one.dropped >= LEAST_DROPPED or answer >= BUSY_ANSWER
        title = "The host is busy: it answers probes late or drops them"
        why = "Its processors are busy, or its prober gets too little time; what it drops is not lost in the network"
        late = f"it held a probe for {1e3 * answer:.3g} ms on average"
        dropped = f"{some(one.dropped, 'packets')} dropped from its sockets"
        status = Status.DEGRADED if busy else Status.OK
        yield _finding("probe_busy_host", host, title, Side.HOST, status, why=why, evidence=(late, dropped))


def _slow(reports: Sequence[PortReport]) -> Iterable[Finding]:
    for one in slow_parts(reports):
        place, title = _place(one.component), "Probes through it take much longer than through others"
        why = "A queue or a detour in the network; the time within both hosts is left out. Probes cannot say which direction is slow"
        said = f"{1e6 * one.seconds:.0f} us there and back on average; {1e6 * one.usual:.0f} us is usual on its rail"
        yield _finding("probe_delay", place, title, SIDES[one.component.kind], why=why, evidence=(said,))


def _changed(reports: Sequence[PortReport]) -> Iterable[Finding]:
    """Whether switches change the DSCP or mark probes: of which racks, inside or between them."""
    changes = (
        ("remarked", "changes the DSCP of probes", "The port does not trust DSCP, or a policy rewrites it"),
        ("marked", "marks probes as congested", "A queue of the class is above its ECN threshold"),
    )
    for field, title, why in changes:
        sums: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for one in reports:
            changed = getattr(one, field)
            place = one.port.rack or one.port.component.name
            for scope, sent in one.sent.items():
                sums[place, scope][0] += changed.get(scope, 0.0)
                sums[place, scope][1] += sent
        hit = {key: one for key, one in sums.items() if one[0] >= max(LEAST_CHANGED, CHANGED_SHARE * one[1])}
        if not hit:
            continue
        inside = sorted(place for place, scope in hit if scope == RACK)
        racks = sorted({place for place, _ in hit})
        yield _finding(
            f"probe_{field}",
            f"ToR {inside[0]}" if len(inside) == 1 else f"racks {few(racks)}",
            f"A switch {title}",
            Side.FABRIC,
            why=f"{why}. Where only probes between racks are affected, they cannot say which switch",
            evidence=tuple(
                f"{place}: {number(count)} of {number(sent)} probes {'to other racks' if scope == FABRIC else 'inside the rack'}"
                for (place, scope), (count, sent) in sorted(hit.items(), key=lambda one: -one[1][0])[:8]
            ),
        )


def _odd_hosts(odd: Sequence[OddHost]) -> Iterable[Finding]:
    for host, job in dict.fromkeys((one.host, one.job) for one in odd):
        signals = [one for one in odd if (one.host, one.job) == (host, job)]
        yield _finding(
            "odd_host",
            host,
            f"The host differs from the others of its job {job}",
            Side.HOST,
            why="A job waits for its slowest host",
            fix=(JUDGE,),
            evidence=tuple(
                f"{SIGNALS.get(one.signal, one.signal)}: {one.score:.1f} times as far from the job's median as is usual; the limit is {ODD_LIMIT}"
                for one in sorted(signals, key=lambda one: -one.score)
            ),
        )


def _never_fast(rates: Sequence[PortRate]) -> Iterable[Finding]:
    """Ports that never carried a tenth of their speed while most others of their rail, the devices of their name, did."""
    rails: defaultdict[str, list[PortRate]] = defaultdict(list)
    for one in rates:
        rails[one.device].append(one)
    for rail in rails.values():
        fastest = max(one.highest for one in rail)
        # Where no speed is exported, it is at least what a port of the rail has carried.
        slow = [one for one in rail if one.highest < TENTH * (one.speed or fastest)]
        good = [one for one in rail if one not in slow]
        if len(good) <= len(slow):
            continue
        for one in slow:
            why = "A link that is slow and clean: PCIe, a limit, a wrong path, or no job has used it"
            most, speed = f"{8e-9 * one.highest:.3g}", f"{8e-9 * (one.speed or fastest):.3g}"
            evidence = (
                f"at most {most} Gbit/s of {speed} Gbit/s in 7 days",
                f"{len(good)} of {len(rail) - 1} other ports of its rail carried up to {8e-9 * fastest:.3g} Gbit/s",
            )
            place, title = f"{one.host} {one.device}", "The port has never carried a tenth of its speed"
            measure = ("measure it with ib_write_bw (perftest) to another port of the rail",)
            yield _finding(
                "port_never_fast",
                place,
                title,
                Side.HOST,
                why=why,
                evidence=evidence,
                port=one.port,
                fix=measure,
            )

"""How often `check fabric` names the component that was broken: python bench/probe_vote.py [HOSTS [FAULTS [SEED]]].

A simulated Clos fabric of one rail is probed by the plan of `roce_exporter.probe.plan` for 60 s, with one fault or none. In every run 1 %
of the hosts lose 3 % of what they receive (their kernel counts it), and 3 % hold probes up to 50 ms and in one burst of ten between 2 and
3.9 s, which the sender calls late. Each port counts as `roce_exporter.probe.outcomes` does, and its samples at the beginning and at the end
are judged as those of a Prometheus: the paths above the ToRs are not known, so of a link the uplinks of its ToR are to be named, and of a
spine all spines. Whatever else is named is wrong, but for a busy host that is said to be busy. The seeds of the judgement (from 60,000 on)
are not those with which limits were chosen.
"""

from __future__ import annotations

import ipaddress
import random
import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.checks.fabric_check import PLACES, fabric_report
from roce_exporter.checks.finding import Status
from roce_exporter.normalise.series import Histogram
from roce_exporter.probe.outcomes import BOUNDS, PortTally, ProcessCounts, probe_samples
from roce_exporter.probe.plan import Probe, ProbeTarget, SendRate, plan
from roce_exporter.probe.sender import LATE, LOST
from roce_exporter.probe.service import ProbeSettings
from roce_exporter.probe.vote import HOST, LINK, SPINE, TOR, Component
from roce_exporter.view.host_view import TimedSamples

if TYPE_CHECKING:
    from roce_exporter.normalise.series import Samples
    from roce_exporter.probe.sender import TrafficClass

BACKGROUND = 1e-5
BUSY_SHARE, BUSY_LOSS = 0.01, 0.03
SLOW_SHARE, SLOW_SECONDS = 0.03, 0.05
"""Hosts that hold a probe between 0 and so many seconds."""
STALL_SHARE, STALL_SECONDS = 0.1, (LATE, LOST - 0.1)
"""Of their bursts so many are held by seconds, as a host with a full processor does now and then."""
HELD = 2e-4
"""Mean seconds of all other hosts."""
NETWORK, NOISE = 1e-5, 5e-6
LOSSES = (0.02, 0.05, 0.1, 0.3)
START = 1_700_000_000
JUDGEMENT = 60_000
SETTINGS = ProbeSettings()


def _tor(number: int) -> Component:
    return Component(TOR, f"r{number:02}")


def _link(tor: int, spine: int) -> Component:
    return Component(LINK, f"r{tor:02} {spine}")


def _as_named(broken: Component | None) -> Component | None:
    """What is to be named: without traced paths the uplinks of a ToR are one, and the spines are."""
    if broken is None or broken.kind in (HOST, TOR):
        return broken
    return Component(LINK, broken.name.split()[0]) if broken.kind == LINK else Component(SPINE, "fabric")


class Fabric(NamedTuple):
    """Ports of one rail below ToRs and spines."""

    targets: tuple[ProbeTarget, ...]
    tors: dict[ProbeTarget, int]
    spines: int
    salt: int

    def spine(self, one: ProbeTarget, other: ProbeTarget, port: int) -> int:
        """The spine that the switches choose for a flow."""
        return random.Random(f"{self.salt} {one.address} {other.address} {port}").randrange(self.spines)  # noqa: S311

    def way(self, one: ProbeTarget, other: ProbeTarget, port: int) -> tuple[Component, ...]:
        """What a packet passes in one direction."""
        ends = (Component(HOST, one.host), Component(HOST, other.host))
        here, there = self.tors[one], self.tors[other]
        if here == there:
            return (*ends, _tor(here))
        spine = self.spine(one, other, port)
        return (
            *ends,
            _tor(here),
            _tor(there),
            _link(here, spine),
            _link(there, spine),
            Component(SPINE, f"s{spine}"),
        )


class SimulatedHost:
    """A host with one port, and what it counts."""

    def __init__(self, target: ProbeTarget, dice: random.Random, *, broken: Component | None) -> None:
        spared = broken is not None and target.host == broken.name
        self.drops = dice.random() < BUSY_SHARE and not spared
        self.is_slow = dice.random() < SLOW_SHARE and not spared
        self.ports = [dice.randrange(32768, 61000) for _ in range(8)]
        self.now = 0.0
        self.stall = 0.0
        """Seconds for which it holds the probes of this burst."""
        self.tally = PortTally("mlx5_0", "1", SETTINGS.classes, lambda: self.now)
        self.tally.target = target
        self._requests_dropped: Counter[str] = Counter()
        self._held = Histogram(BOUNDS)
        self._dice = dice

    def begin(self, now: float) -> None:
        """A burst begins."""
        self.now = now
        stalls = self.is_slow and self._dice.random() < STALL_SHARE
        self.stall = self._dice.uniform(*STALL_SECONDS) if stalls else 0.0

    def takes(self) -> bool:
        """Whether the queue of its socket drops what arrives."""
        return self.drops and self._dice.random() < BUSY_LOSS

    def answer(self) -> float | None:
        """The seconds for which it holds a probe; None: its queue dropped it."""
        if self.takes():
            self._requests_dropped["queue"] += 1
            return None
        held = self.stall or (
            self._dice.uniform(0, SLOW_SECONDS) if self.is_slow else self._dice.expovariate(1 / HELD)
        )
        self._held.observe(held)
        return held

    def samples(self) -> TimedSamples:
        """What a scrape reads now."""
        counts = ProcessCounts(self._requests_dropped, int(self._held.values()[-1]), 0, 0, self._held)
        return scraped(probe_samples([self.tally], counts, whole=False), self.now)


def scraped(samples: Samples, now: float) -> TimedSamples:
    """The samples as `check fabric` has them from a Prometheus."""
    values: defaultdict[str, dict[tuple[str, ...], float]] = defaultdict(dict)
    for series, value in zip(*samples, strict=True):
        labels = series.labels[:-1] if series.suffix in ("_sum", "_count") else series.labels
        values[series.row.name + series.suffix][labels] = value or 0
    return TimedSamples(now, values)


class Run(NamedTuple):
    """One simulated minute and what was named."""

    broken: Component | None
    loss: float
    named: tuple[str, ...]
    """Places as findings have them, but for busy hosts that are said to be busy."""
    busy: int
    """Hosts that drop or hold probes."""
    said_busy: int
    """Of these, how many a finding calls busy."""

    @property
    def right(self) -> set[str]:
        """What is to be named."""
        return {f"{PLACES[self.broken.kind]}{self.broken.name}"} if self.broken else set()


def make_fabric(hosts: int, seed: int) -> Fabric:
    """64 hosts below 8 ToRs and 4 spines, or as many times more."""
    tors = {}
    for number in range(hosts):
        rack = number * 8 // 64
        address = ipaddress.ip_address("10.0.0.0") + number + 1
        tors[ProbeTarget(f"r{rack:02}", f"h{number:03}", "", address, 10124)] = rack
    return Fabric(tuple(tors), tors, max(4, hosts // 64), seed)


def run(hosts: int, seed: int, *, faulty: bool, seconds: int = 60, silent: bool = False) -> Run:
    """Probe for some seconds, then judge."""
    dice = random.Random(seed)  # noqa: S311
    fabric = make_fabric(hosts, seed)
    parts = sorted({one for target in fabric.targets for one in _all_parts(fabric, target)})
    by_kind = {kind: [one for one in parts if one.kind == kind] for kind in (HOST, TOR, LINK, SPINE)}
    broken, loss = None, 0.0
    if faulty:
        broken = dice.choice(by_kind[HOST if silent else dice.choice((HOST, HOST, LINK, LINK, TOR, SPINE))])
        loss = 1.0 if silent else dice.choice(LOSSES)
    members = {target: SimulatedHost(target, dice, broken=broken) for target in fabric.targets}

    def loses(way: tuple[Component, ...]) -> bool:
        return (broken in way and dice.random() < loss) or dice.random() < BACKGROUND

    before = [one.samples() for one in members.values()]
    ways = [
        (
            members[own],
            members[probe.target],
            Probe(probe.target, port, probe.scope),
            fabric.way(own, probe.target, port),
            fabric.way(probe.target, own, port),
        )
        for own in fabric.targets
        for probe in plan(own, fabric.targets, START)
        for port in (members[own].ports[probe.path],)
    ]
    for turn in range(int(seconds / SendRate().interval)):
        kind = SETTINGS.kind(turn)
        for one in members.values():
            one.begin(turn * SendRate().interval)
        for own, other, probe, there, back in ways:
            own.tally.sent(probe, kind)
            held = None if loses(there) else other.answer()
            if held is None or loses(back):
                own.tally.lost(probe, kind)
            elif own.takes():
                own.tally.dropped("queue", 1)
                own.tally.lost(probe, kind)
            else:
                _arrives(own.tally, probe, kind, held, NETWORK + dice.expovariate(1 / NOISE))
    for one in members.values():
        one.now = float(seconds)
    report = fabric_report(list(zip(before, (one.samples() for one in members.values()), strict=True)))
    busy = {target.host for target, one in members.items() if one.drops or one.is_slow}
    said = {one.device for one in report.findings if one.check == "probe_busy_host"}
    named = tuple(
        one.device
        for one in report.findings
        if one.status > Status.OK and not (one.check == "probe_busy_host" and one.device in busy)
    )
    return Run(_as_named(broken), loss, named, len(busy), len(said & busy))


def _arrives(tally: PortTally, probe: Probe, kind: TrafficClass, held: float, network: float) -> None:
    if network + held > LATE:
        tally.late(probe)
    else:
        tally.answered(probe, kind, kind.tos, kind.tos)
    tally.measured(probe, network, held)


def _all_parts(fabric: Fabric, target: ProbeTarget) -> tuple[Component, ...]:
    tor = fabric.tors[target]
    links = tuple(
        part for spine in range(fabric.spines) for part in (_link(tor, spine), Component(SPINE, f"s{spine}"))
    )
    return (Component(HOST, target.host), _tor(tor), *links)


def main() -> None:
    """Print the table."""
    hosts, faults, seed = (
        int(one) for one in (*sys.argv[1:], *("64", "200", str(JUDGEMENT))[len(sys.argv) - 1 :])
    )
    rows: Counter[str] = Counter()
    busy = said_busy = 0
    for number in range(faults):
        for kind, one in (
            ("loss of 2 % or more, 60 s", run(hosts, seed + number, faulty=True)),
            ("silent host, 15 s", run(hosts, seed + number, faulty=True, silent=True, seconds=15)),
            ("healthy", run(hosts, seed + number, faulty=False)),
        ):
            busy, said_busy = busy + one.busy, said_busy + one.said_busy
            part = one.broken.kind if one.broken else ""
            for row in (kind, f"{kind}: {part}") if "loss" in kind else (kind,):
                rows[row] += 1
                rows[f"{row} found"] += one.right <= set(one.named)
                rows[f"{row} named"] += len(one.named)
            if set(one.named) != one.right:
                print(f"  {seed + number}, {kind}: {one}", file=sys.stderr)
    print(f"{hosts} hosts, seeds {seed} to {seed + faults - 1}\n")
    print("| fault | runs | named | recall | precision |\n| --- | ---: | ---: | ---: | ---: |")
    for row in sorted(one for one in rows if f"{one} named" in rows):
        runs, found, named = rows[row], rows[f"{row} found"], rows[f"{row} named"]
        shares = " | " if row == "healthy" else f"{found / runs:.3f} | {found / max(1, named):.3f}"
        print(f"| {row} | {runs} | {named} | {shares} |")
    print(f"\nHosts that drop or hold probes: {busy}; a finding calls {said_busy} of them busy.")


if __name__ == "__main__":
    main()

"""How often the vote over lost probes names the component that was broken: python bench/probe_vote.py [HOSTS [FAULTS [SEED]]].

A simulated Clos fabric of one rail is probed by the plan of `roce_exporter.probe.plan` for 60 s, with one fault or none, and with hosts
that lose 3 % of their packets by themselves (their kernel counts them). What each port reports of it is judged by `roce_exporter.probe.fleet`,
as `check fabric` does: the paths above the ToRs are not known, so of a link the uplinks of its ToR are to be named, and of a spine all
spines. The seeds of the judgement (from 20,000 on) are not those with which the limits of the vote were chosen.
"""

from __future__ import annotations

import ipaddress
import random
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from roce_exporter.probe.fleet import LossyPair, PortReport, ProbedPort, blame
from roce_exporter.probe.plan import FABRIC, RACK, ProbeTarget, plan
from roce_exporter.probe.vote import HOST, LINK, SPINE, TOR, Component

BACKGROUND = 1e-5
BUSY_SHARE, BUSY_LOSS = 0.01, 0.03
LOSSES = (0.02, 0.05, 0.1, 0.3)
START = 1_700_000_000
JUDGEMENT = 20_000
INTERVAL = 5


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


@dataclass
class Trouble:
    """What goes wrong in one run."""

    dice: random.Random
    broken: Component | None
    loss: float
    busy: set[str]
    dropped: Counter[str] = field(default_factory=Counter)
    """What busy hosts dropped, as their kernels count it."""

    def takes(self, way: tuple[Component, ...], receiver: str) -> bool:
        """Whether a packet is lost on its way to a host."""
        if (self.broken in way and self.dice.random() < self.loss) or self.dice.random() < BACKGROUND:
            return True
        if receiver in self.busy and self.dice.random() < BUSY_LOSS:
            self.dropped[receiver] += 1
            return True
        return False


class Run(NamedTuple):
    """One simulated minute and what was named."""

    broken: Component | None
    loss: float
    named: tuple[Component, ...]


def make_fabric(hosts: int, seed: int) -> Fabric:
    """64 hosts below 8 ToRs and 4 spines, or as many times more."""
    tors = {}
    for number in range(hosts):
        rack = number * 8 // 64
        address = ipaddress.ip_address("10.0.0.0") + number + 1
        tors[ProbeTarget(f"r{rack:02}", f"h{number:03}", "", address, 10124)] = rack
    return Fabric(tuple(tors), tors, max(4, hosts // 64), seed)


def run(hosts: int, seed: int, *, faulty: bool, seconds: int = 60, silent: bool = False) -> Run:
    """Probe for some seconds, then vote."""
    reports, broken, loss = probed(hosts, seed, faulty=faulty, seconds=seconds, silent=silent)
    return Run(broken, loss, tuple(one.component for one in blame(reports)))


def probed(
    hosts: int, seed: int, *, faulty: bool, seconds: int, silent: bool
) -> tuple[list[PortReport], Component | None, float]:
    """What the ports report, what is to be named, and how much that loses."""
    dice = random.Random(seed)  # noqa: S311
    fabric = make_fabric(hosts, seed)
    parts = sorted({one for target in fabric.targets for one in _all_parts(fabric, target)})
    by_kind = {kind: [one for one in parts if one.kind == kind] for kind in (HOST, TOR, LINK, SPINE)}
    broken, loss = None, 0.0
    if faulty:
        broken = dice.choice(by_kind[HOST if silent else dice.choice((HOST, HOST, LINK, LINK, TOR, SPINE))])
        loss = 1.0 if silent else dice.choice(LOSSES)
    busy = {
        target.host
        for target in fabric.targets
        if dice.random() < BUSY_SHARE and (broken is None or target.host != broken.name)
    }
    trouble = Trouble(dice, broken, loss, busy)
    ports = {target: [dice.randrange(32768, 61000) for _ in range(8)] for target in fabric.targets}
    ways = {
        (own, probe.target, ports[own][probe.path]): (
            fabric.way(own, probe.target, ports[own][probe.path]),
            fabric.way(probe.target, own, ports[own][probe.path]),
        )
        for own in fabric.targets
        for probe in plan(own, fabric.targets, START)
    }
    turns = seconds // INTERVAL
    lost = Counter(
        key
        for _ in range(turns)
        for key, (there, back) in ways.items()
        if trouble.takes(there, key[1].host) or trouble.takes(back, key[0].host)
    )
    sent: defaultdict[ProbeTarget, Counter[str]] = defaultdict(Counter)
    pairs: defaultdict[ProbeTarget, list[LossyPair]] = defaultdict(list)
    for key in ways:
        own, target, port = key
        sent[own][RACK if own.rack == target.rack else FABRIC] += turns
        if lost[key]:
            pairs[own].append(LossyPair(target.host, str(port), turns, lost[key]))
    reports = [
        PortReport(
            ProbedPort(one.host, one.rack, ""), sent[one], tuple(pairs[one]), trouble.dropped[one.host]
        )
        for one in fabric.targets
    ]
    return reports, _as_named(broken), loss


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
    for number in range(faults):
        for kind, one in (
            ("loss of 2 % or more, 60 s", run(hosts, seed + number, faulty=True)),
            ("silent host, 15 s", run(hosts, seed + number, faulty=True, silent=True, seconds=15)),
            ("healthy", run(hosts, seed + number, faulty=False)),
        ):
            part = one.broken.kind if one.broken else ""
            for row in (kind, f"{kind}: {part}") if "loss" in kind else (kind,):
                rows[row] += 1
                rows[f"{row} found"] += one.broken in one.named
                rows[f"{row} named"] += len(one.named)
            if set(one.named) - {one.broken} or (one.broken and one.broken not in one.named):
                print(f"  {seed + number}, {kind}: {one}", file=sys.stderr)
    print(f"{hosts} hosts, seeds {seed} to {seed + faults - 1}\n")
    print("| fault | runs | named | recall | precision |\n| --- | ---: | ---: | ---: | ---: |")
    for row in [one for one in rows if f"{one} named" in rows]:
        runs, found, named = rows[row], rows[f"{row} found"], rows[f"{row} named"]
        shares = f"{found / runs:.3f} | {found / named:.3f}" if found else " | "
        print(f"| {row} | {runs} | {named} | {shares} |")


if __name__ == "__main__":
    main()

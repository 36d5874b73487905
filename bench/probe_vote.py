"""How often the vote over lost probes names the component that was broken: python bench/probe_vote.py [HOSTS [FAULTS [SEED]]].

A simulated Clos fabric of one rail is probed by the plan of `roce_exporter.probe.plan` for 60 s, with one fault or none, and with hosts
that lose 3 % of their packets by themselves (their kernel counts them). The seeds of the judgement (from 10,000 on) are not those with
which the limits of the vote were chosen.
"""

from __future__ import annotations

import ipaddress
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from roce_exporter.probe.plan import ProbeTarget, plan
from roce_exporter.probe.vote import HOST, LINK, SPINE, TOR, Component, PathCount, vote

BACKGROUND = 1e-5
BUSY_SHARE, BUSY_LOSS = 0.01, 0.03
LOSSES = (0.02, 0.05, 0.1, 0.3)
START = 1_700_000_000
JUDGEMENT = 10_000
INTERVAL = 5


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
            return (*ends, Component(TOR, f"t{here}"))
        spine = self.spine(one, other, port)
        return (
            *ends,
            Component(TOR, f"t{here}"),
            Component(TOR, f"t{there}"),
            Component(LINK, f"t{here}-s{spine}"),
            Component(LINK, f"t{there}-s{spine}"),
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
        tors[ProbeTarget(f"r{rack:02}", f"h{number:03}", "0", address, 10124)] = rack
    return Fabric(tuple(tors), tors, max(4, hosts // 64), seed)


def run(hosts: int, seed: int, *, faulty: bool, seconds: int = 60, silent: bool = False) -> Run:
    """Probe for some seconds, then vote."""
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
    sent: Counter[tuple[Component, ...]] = Counter()
    lost: Counter[tuple[Component, ...]] = Counter()
    ports = {target: [dice.randrange(32768, 61000) for _ in range(8)] for target in fabric.targets}
    ways = {
        (own, probe.target, probe.path): (
            fabric.way(own, probe.target, ports[own][probe.path]),
            fabric.way(probe.target, own, ports[own][probe.path]),
        )
        for own in fabric.targets
        for probe in plan(own, fabric.targets, START)
    }
    for _ in range(seconds // INTERVAL):
        for (own, target, _), (there, back) in ways.items():
            path = (*there, *back)
            sent[path] += 1
            lost[path] += trouble.takes(there, target.host) or trouble.takes(back, own.host)
    found = vote([PathCount(path, count, lost[path]) for path, count in sent.items()], trouble.dropped)
    return Run(broken, loss, tuple(one.component for one in found))


def _all_parts(fabric: Fabric, target: ProbeTarget) -> tuple[Component, ...]:
    tor = fabric.tors[target]
    links = tuple(
        part
        for spine in range(fabric.spines)
        for part in (Component(LINK, f"t{tor}-s{spine}"), Component(SPINE, f"s{spine}"))
    )
    return (Component(HOST, target.host), Component(TOR, f"t{tor}"), *links)


def main() -> None:
    """Print the table."""
    hosts, faults, seed = (
        int(one) for one in (*sys.argv[1:], *("64", "200", str(JUDGEMENT))[len(sys.argv) - 1 :])
    )
    rows: Counter[str] = Counter()
    for number in range(faults):
        for kind, one in (
            ("fault", run(hosts, seed + number, faulty=True)),
            ("silent", run(hosts, seed + number, faulty=True, silent=True, seconds=15)),
            ("healthy", run(hosts, seed + number, faulty=False)),
        ):
            rows[kind] += 1
            rows[f"{kind} found"] += one.broken in one.named
            rows[f"{kind} named"] += len(one.named)
            if (one.broken and one.broken not in one.named) or len(one.named) > 1:
                print(f"  {kind} {seed + number}: {one}")
    found, named = rows["fault found"], rows["fault named"]
    print(
        f"{hosts} hosts, {faults} faults of 2 % or more, 60 s: recall {found / faults:.3f}, precision {found / max(1, named):.3f}"
    )
    print(
        f"silent hosts, 15 s: recall {rows['silent found'] / faults:.3f}, precision {rows['silent found'] / max(1, rows['silent named']):.3f}"
    )
    print(f"healthy runs: {rows['healthy named']} components named in {faults}")


if __name__ == "__main__":
    main()

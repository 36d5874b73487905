"""From lost probes to the component that loses them: a greedy vote over all hosts.

A probe passes components: the ports of two hosts, their ToRs, and between racks two links and a spine, there and back. Of the components
that could explain most losses the one with the highest share of lost probes is named; its probes are removed, and the rest is judged
again. What hosts lose by themselves must not be called network: a probe that the kernel of a busy host dropped from its socket's queue
is counted there, so paths of a host whose own drops explain its losses are left out of the vote.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LEAST_LOST = 4
"""Fewer lost probes name no component."""
LEAST_SHARE = 0.006
"""A component that loses less is not named; the goal is 2 %, and cables are renewed at far less, which counters show."""
NEARLY_ALL = 0.9
"""Components that explain so much of what the best one explains are compared by their share."""
MOST = 16
"""Components that one vote names."""
SIGMAS = 4.0
"""A host loses more than its own drops explain if the rest is so many standard deviations of them."""

HOST, TOR, LINK, SPINE = "host", "tor", "link", "spine"


class Component(NamedTuple):
    """A part of the fabric."""

    kind: str
    """`host` (the port, its NIC and its cable), `tor`, `link` (between a ToR and a spine) or `spine`."""
    name: str


class PathCount(NamedTuple):
    """The probes of one source port between two ports."""

    components: tuple[Component, ...]
    """All that a probe and its reply pass; what is not known is left out."""
    sent: int
    lost: int


class Blamed(NamedTuple):
    """A component that the vote names."""

    component: Component
    sent: int
    lost: int
    paths: int
    """Source ports and pairs of ports that lost probes there."""
    also: tuple[Component, ...]
    """Components that these probes cannot tell from it: every lost probe passes them too, and no other probe does."""


def vote(paths: Sequence[PathCount], dropped: Mapping[str, int]) -> tuple[Blamed, ...]:
    """The components that lose probes, the worst first.

    `dropped` has, by host, the probes and replies that its own kernel dropped because a queue was full.
    """
    left = list(paths)
    found: list[Blamed] = []
    while len(found) < MOST:
        left = _without_busy(left, dropped)
        blamed = _worst(left)
        if blamed is None:
            break
        found.append(blamed)
        left = [path for path in left if blamed.component not in path.components]
    return tuple(found)


def _without_busy(paths: Sequence[PathCount], dropped: Mapping[str, int]) -> list[PathCount]:
    """The paths without those of hosts whose own drops explain the losses that are left."""
    lost = {host: 0 for host, own in dropped.items() if own}
    for path in paths:
        if path.lost:
            for one in set(path.components):
                if one.kind == HOST and one.name in lost:
                    lost[one.name] += path.lost
    busy = {
        host for host, count in lost.items() if count - dropped[host] <= SIGMAS * math.sqrt(dropped[host])
    }
    return [
        path for path in paths if not any(one.kind == HOST and one.name in busy for one in path.components)
    ]


def _worst(paths: Iterable[PathCount]) -> Blamed | None:
    sent: Counter[Component] = Counter()
    lost: Counter[Component] = Counter()
    lossy: defaultdict[Component, int] = defaultdict(int)
    for path in paths:
        for one in set(path.components):
            sent[one] += path.sent
            if path.lost:
                lost[one] += path.lost
                lossy[one] += 1
    candidates = [
        one for one, count in lost.items() if count >= LEAST_LOST and count > LEAST_SHARE * sent[one]
    ]
    if not candidates:
        return None
    most = max(lost[one] for one in candidates)
    near = [one for one in candidates if lost[one] >= NEARLY_ALL * most]
    # With equal shares the one that explains more, and then a fixed order.
    worst = max(near, key=lambda one: (lost[one] / sent[one], lost[one], one))
    same = (one for one in near if (lost[one], sent[one]) == (lost[worst], sent[worst]) and one != worst)
    return Blamed(worst, sent[worst], lost[worst], lossy[worst], tuple(sorted(same)))

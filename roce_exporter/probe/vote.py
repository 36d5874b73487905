"""From lost probes to the component that loses them: a greedy vote over all hosts.

A probe passes components: the ports of two hosts, their ToRs, and between racks two links and a spine, there and back. Of the components
that could explain most losses the one with the highest share of lost probes is named; its probes are removed, and the rest is judged
again. What hosts lose by themselves must not be called network: a probe that the kernel of a busy host dropped from its socket's queue
is counted there, so paths of a host whose own drops explain its losses are left out of the vote.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

LEAST_LOST = 4  # fewer lost probes name no component
LEAST_SHARE = 0.006
"""A component that loses less is not named; the goal is 2 %, and cables are renewed at far less, which counters show."""
LEAST_SHARE_OF_MANY = LEAST_SHARE / 4
"""Of the uplinks of a ToR or of all spines: one that is bad carries a part of the probes."""
NEARLY_ALL = 0.9
"""Components that explain so much of what the best one explains are compared by their share."""
MOST = 16  # components that one vote names
SIGMAS = 4.0  # this number of standard deviations above what is expected is no chance

HOST, TOR, LINK, SPINE, PATH = "host", "tor", "link", "spine", "path"


class Component(NamedTuple):
    """A part of the fabric."""

    kind: str
    """`host` (the port, its NIC and its cable), `tor`, `link` (between a ToR and a spine), `spine`, or `path` (a source port of a port)."""
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


class _Sums:
    """Probes sent and lost, and paths with losses, by component."""

    def __init__(self, paths: Iterable[PathCount]) -> None:
        self.sent: Counter[Component] = Counter()
        self.lost: Counter[Component] = Counter()
        self.lossy: Counter[Component] = Counter()
        for path in paths:
            for one in set(path.components):
                self.sent[one] += path.sent
                if path.lost:
                    self.lost[one] += path.lost
                    self.lossy[one] += 1

    def share(self, one: Component) -> float:
        """The part of the probes through it that was lost."""
        return self.lost[one] / self.sent[one]


def _worst(paths: Sequence[PathCount]) -> Blamed | None:
    sums = _Sums(paths)
    candidates = [
        one
        for one, count in sums.lost.items()
        if one.kind != PATH
        and count >= LEAST_LOST
        and count > (LEAST_SHARE_OF_MANY if one.kind in (LINK, SPINE) else LEAST_SHARE) * sums.sent[one]
    ]
    if not candidates:
        return None
    most = max(sums.lost[one] for one in candidates)
    near = [one for one in candidates if sums.lost[one] >= NEARLY_ALL * most]
    # With equal shares the one that explains more, and then a fixed order.
    worst = max(near, key=lambda one: (sums.share(one), sums.lost[one], one))
    while (whole := _wider(paths, worst, near, sums)) is not None:
        worst = whole
    while (part := _concentrated(paths, worst, sums)) is not None and sums.share(part) > sums.share(worst):
        worst = part
    same = (
        one
        for one in sums.lost
        if (sums.lost[one], sums.sent[one]) == (sums.lost[worst], sums.sent[worst]) and one != worst
    )
    return Blamed(worst, sums.sent[worst], sums.lost[worst], sums.lossy[worst], tuple(sorted(same)))


def _wider(
    paths: Sequence[PathCount], part: Component, near: Iterable[Component], sums: _Sums
) -> Component | None:
    """The component that also loses where it does not pass `part`, as a ToR loses inside its rack what its uplinks do not carry."""
    for whole in near:
        if sums.lost[whole] > sums.lost[part]:
            rest = _Sums(path for path in paths if whole in path.components and part not in path.components)
            if rest.lost[whole] >= LEAST_LOST and rest.share(whole) > sums.share(part) / 4:
                return whole
    return None


def _concentrated(paths: Iterable[PathCount], worst: Component, sums: _Sums) -> Component | None:
    """The component on whose paths the losses of another are concentrated, as those of a ToR are on two broken ports below it.

    Not one that loses much less elsewhere, as a port does whose flows happen to pass a broken link; and a source port only if nearly all
    losses are there, because a broken uplink hits many, each of them wholly.
    """
    inside = _Sums(path for path in paths if worst in path.components)
    found: list[tuple[float, Component]] = []
    for one, lost in inside.lost.items():
        sent, of_worst = inside.sent[one], inside.lost[worst]
        if lost < (NEARLY_ALL * of_worst if one.kind == PATH else LEAST_LOST):
            continue
        expected = sent * inside.share(worst)
        rest, outside = inside.sent[worst] - sent, sums.sent[one] - sent
        others = (of_worst - lost) / rest if rest else inside.share(worst)
        spread = not outside or (sums.lost[one] - lost) / outside > lost / sent / 4
        if lost - expected > SIGMAS * math.sqrt(expected) and others < lost / sent / 3 and spread:
            found.append(((lost - expected) / math.sqrt(expected), one))
    return max(found)[1] if found else None

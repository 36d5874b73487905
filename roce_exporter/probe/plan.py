"""Who probes whom: computed on every host from one list of targets, without a controller.

A port probes its two neighbours in the ring of its rack, and two partners elsewhere that change every minute; up to `MESH` ports form
a full mesh instead. Source ports stay the same for a window, because a path must be seen more than once. Rails do not share switches,
so a port talks to its own rail. All functions are pure; the same list gives the same plan everywhere.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MESH = 32  # a rail with at most this number of ports is a full mesh
NEAR_PATHS, FAR_PATHS = 2, 8
"""Source ports towards a neighbour in the rack, whose only path is the ToR, and towards a partner in another rack."""
FAR_PARTNERS = 2
PARTNER_SECONDS = 60  # partners in other racks change that often
RACK, FABRIC = "rack", "fabric"


class ProbeTarget(NamedTuple):
    """One port that can be probed. Its order is that of the ring."""

    rack: str
    """Empty if the list does not say."""
    host: str
    rail: str
    address: Address
    port: int
    """UDP port of its responder."""

    @property
    def name(self) -> str:
        """Of the host, or else the address."""
        return self.host or str(self.address)


class Probe(NamedTuple):
    """One path to one target: what a burst sends a packet on."""

    target: ProbeTarget
    path: int
    """Number of the source port, from 0 on."""
    scope: str
    """`rack` or `fabric`."""


@dataclass(frozen=True, slots=True)
class SendRate:
    """How much is sent."""

    interval: float = 5.0
    """Seconds from one burst to the next."""
    most: float = 50.0
    """Probes per second of the process."""
    burst: int = 32
    """Packets in one burst of a port."""
    per_target: float = 2.0
    """Probes per second to one target."""


def ring_order(target: ProbeTarget) -> tuple[str, str, str, int, bytes]:
    """The same on every host, whatever the order of the list."""
    return target.rack, target.host, target.rail, target.address.version, target.address.packed


def plan(own: ProbeTarget, targets: Iterable[ProbeTarget], now: float) -> tuple[Probe, ...]:
    """What a port sends in each burst of this minute; `now` in seconds since 1970."""
    minute = int(now // PARTNER_SECONDS)
    version = own.address.version
    # The own rail first: a list may have a hundred thousand ports, and an address is slow to compare.
    alike = (one for one in targets if one.rail == own.rail)
    rail = sorted(
        {one for one in alike if one.address.version == version and one.address != own.address},
        key=ring_order,
    )
    if len(rail) < MESH:
        return tuple(
            Probe(one, path, _scope(own, one))
            for one in rail
            for path in range(NEAR_PATHS if _scope(own, one) == RACK else FAR_PATHS)
        )
    rack = [one for one in rail if one.rack == own.rack]
    near = _neighbours(own, rack)
    far = [one for one in rail if one.rack != own.rack] or [one for one in rack if one not in near]
    partners = set()
    for turn in range(FAR_PARTNERS if far else 0):
        digest = hashlib.blake2b(f"{own.address} {minute} {turn}".encode(), digest_size=8).digest()
        partners.add(far[int.from_bytes(digest, "big") % len(far)])
    return (
        *(Probe(one, path, _scope(own, one)) for one in near for path in range(NEAR_PATHS)),
        *(
            Probe(one, path, _scope(own, one))
            for one in sorted(partners, key=ring_order)
            for path in range(FAR_PATHS)
        ),
    )


def _scope(own: ProbeTarget, other: ProbeTarget) -> str:
    return RACK if own.rack and own.rack == other.rack else FABRIC


def _neighbours(own: ProbeTarget, rack: Sequence[ProbeTarget]) -> tuple[ProbeTarget, ...]:
    """The next and the one before in the ring of the rack, which is sorted and does not contain `own`."""
    if not rack:
        return ()
    after = sum(ring_order(one) < ring_order(own) for one in rack)
    return tuple(dict.fromkeys((rack[after % len(rack)], rack[after - 1])))


def bursts(
    plans: Mapping[ProbeTarget, Sequence[Probe]], rate: SendRate, turn: int
) -> dict[ProbeTarget, list[Probe]]:
    """What each own port sends in burst number `turn`, cut to the burst and to the rate of a target.

    What does not fit in a burst comes in the next one, so that each path has its turn.
    """
    found: dict[ProbeTarget, list[Probe]] = {}
    for own, probes in plans.items():
        if not probes:
            continue
        size = min(len(probes), rate.burst)
        # By identity: the probes of a plan share the object of their target, and an address is slow to hash.
        left: dict[int, float] = {}
        chosen = islice(cycle(probes), turn * size % len(probes), turn * size % len(probes) + size)
        found[own] = []
        for one in chosen:
            allowed = left.get(id(one.target), max(1.0, rate.per_target * rate.interval))
            if allowed >= 1:
                left[id(one.target)] = allowed - 1
                found[own].append(one)
    return found


def interval(plans: Mapping[ProbeTarget, Sequence[Probe]], rate: SendRate) -> float:
    """Seconds between two bursts: longer than asked for where the process would send more than it may per second."""
    sent = sum(min(len(probes), rate.burst) for probes in plans.values())
    return max(rate.interval, sent / rate.most)

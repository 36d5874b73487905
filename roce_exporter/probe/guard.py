"""Whom the responder answers, and how often: allowed networks, token buckets, and a bounded table of sources.

Nothing is logged per packet: what is dropped is counted by reason. While more packets arrive than may be answered in all, sources that
have been answered over some time come first, so a flood with forged source addresses does not silence an honest sender.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from roce_exporter.net import TokenBucket
from roce_exporter.words import word_list

if TYPE_CHECKING:
    from roce_exporter.probe.plan import Address, Network
    from roce_exporter.probe.stamp import FollowUp

UNPRIVILEGED_PORT = 1024
SOURCES = 4096
"""Sources that are remembered: half of them known, half new. Of each half the one that was silent longest is forgotten first."""
FOLLOW_UPS = 16  # send times that a session waits to report: more than a burst has to one target
OF_SOURCE, BURST = 20.0, 64.0
"""Requests that are answered of one source address, per second and at once."""
TOTAL = 500.0  # per second, of all sources: half for known ones, half for new ones
KNOWN_BURST, NEW_BURST = 200.0, 300.0
"""At once, of known and of new sources: a host with 8 ports begins with 256 packets."""
SESSIONS = 4096
"""Whose send times are kept, of known and of new sources each: in ten minutes 8 own ports have 2,000 in a full mesh, and less in others."""
KNOWN_SECONDS = 30.0  # a source is known from this time after its first answer on

REASONS = word_list(
    "port not_allowed source_rate total_rate short long authentication malformed no_request send"
)
"""Why a request was not answered; `send`: the kernel refused the reply."""


@dataclass(slots=True)
class Requester:
    """What is remembered of one address that sends requests."""

    bucket: TokenBucket
    first: float
    """When it was answered first."""
    session: Callable[[str, int, int, str], deque[FollowUp]]
    """Send times of replies that no later reply has reported yet, by source address and port, identifier and own address."""


def _waiting(*_: object) -> deque[FollowUp]:
    return deque(maxlen=FOLLOW_UPS)


class Guard:
    """Decides about each request; only the responder's task uses it."""

    def __init__(self, allowed: Sequence[Network], clock: Callable[[], float]) -> None:
        """Networks that are answered, next to the `listed` addresses. `clock` returns monotonic seconds."""
        self._is_allowed = lru_cache(SOURCES)(self._decide)
        self.allow(allowed)
        self.dropped: Counter[str] = Counter()
        """By reason: packets that were not answered."""
        self._clock = clock
        now = clock()
        self._known = TokenBucket(TOTAL / 2, KNOWN_BURST, now)
        self._unknown = TokenBucket(TOTAL / 2, NEW_BURST, now)
        # Apart, so that a flood of new sources forgets no known one.
        self._old: OrderedDict[str, Requester] = OrderedDict()
        self._new: OrderedDict[str, Requester] = OrderedDict()
        self._sessions = {known: lru_cache(SESSIONS)(_waiting) for known in (False, True)}

    def __len__(self) -> int:
        return len(self._old) + len(self._new)

    def allow(self, networks: Sequence[Network], listed: Iterable[Address] = ()) -> None:
        """Answer these networks and the addresses of the list of targets from now on: who is probed, probes."""
        self._allowed, self._listed = tuple(networks), frozenset(listed)
        self._is_allowed.cache_clear()

    def _decide(self, address: str) -> bool:
        place = ipaddress.ip_address(address.partition("%")[0])
        allowed = place in self._listed or any(place in one for one in self._allowed)
        return allowed and not (place.is_multicast or place.is_unspecified)

    def admit_address(self, address: str, port: int) -> bool:
        """Whether a request from there may be looked at: a reply can neither loop nor go to a service, and its network is allowed."""
        if port < UNPRIVILEGED_PORT:
            self.dropped["port"] += 1
            return False
        if not self._is_allowed(address):
            self.dropped["not_allowed"] += 1
            return False
        return True

    def admit(self, address: str) -> Requester | None:
        """The source to answer, or None if it is above its rate or all are. Called for requests that are valid."""
        now = self._clock()
        source = self._old.get(address) or self._new.pop(address, None)
        if source is None:
            source = Requester(TokenBucket(OF_SOURCE, BURST, now), now, self._sessions[False])
        known = now - source.first >= KNOWN_SECONDS
        source.session = self._sessions[known]
        table = self._old if known else self._new
        table[address] = source
        table.move_to_end(address)
        if len(table) > SOURCES // 2:
            table.popitem(last=False)
        if not source.bucket.take(now):
            self.dropped["source_rate"] += 1
            return None
        if not (known and self._known.take(now)) and not self._unknown.take(now):
            self.dropped["total_rate"] += 1
            return None
        return source

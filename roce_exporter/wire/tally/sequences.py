"""What PSNs say: retransmissions, gaps and duplicates, per flow (InfiniBand specification 9.7.1 and 9.7.5).

A flow is one direction of a queue pair, and of it the requests, the read responses or the ACKs: each has PSNs that only
grow. `SequenceTrack` follows one flow exactly, packet by packet. It sees what the receiver of the flow would see at the place of
the capture: `duplicate_requests` and `out_of_sequence` are what a go-back-N responder counts there, such as `check_psn` in
drivers/infiniband/sw/rxe/rxe_resp.c of Linux.

Whether a responder goes back n or keeps packets that came out of order is not in its packets. It shows when the sender
returns to a PSN that had arrived already: then the responder did not keep it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

MODULUS = 1 << 24
HALF = 1 << 23
RESTART = 1 << 18
"""PSNs that differ by more belong to another connection of the same queue pair."""
MOST_HOLES = 64
EXPECTED_FOR = 8192
"""Packets after which a PSN is not expected any more: the capture missed it, the responder had kept it, or the connection is
unreliable."""
SMALLEST_MTU, LARGEST_MTU = 256, 4096
ANY_STEP = 1 << 22
"""The next PSN after a complete read response or an ACK: any later one."""


@dataclass(slots=True)
class SequenceCounts:
    """Counts of one flow, in the order of `pair_counts.SEQUENCE_COUNTS`."""

    retransmissions: int = 0
    """Packets with a PSN below the highest."""
    gaps: int = 0
    """Times that PSNs were skipped."""
    missing: int = 0
    """PSNs that were skipped."""
    duplicate_requests: int = 0
    """Packets that the responder had accepted before."""
    out_of_sequence: int = 0
    """Times that a go-back-N responder sends a NAK for a sequence error."""
    go_back_n: int = 0
    """Retransmissions that began at a PSN and continued up to the highest."""
    selective: int = 0
    """Retransmissions that did not."""
    restarts: int = 0
    """Times that PSNs began somewhere else: a new connection."""
    not_captured: int = 0
    """PSNs that were skipped, and acknowledged without being sent again: the capture missed them, the receiver did not."""


class Hole(NamedTuple):
    """PSNs that were skipped."""

    first: int
    after: int
    """The first PSN after it."""
    whole: bool
    """Whether none of what was skipped has come."""


@dataclass(slots=True)
class SequenceTrack:
    """The state of one flow: what comes next, and what is missing."""

    low: int
    high: int
    """The PSN that follows the highest one: from `low` to `high`, since a read request takes as many as its response has
    packets, which depends on an MTU that packets do not name."""
    expected: int
    """The PSN that a go-back-N responder accepts next (its lowest value; the range is as wide as that of `low`)."""
    expected_high: int
    waiting: bool = False
    """Whether the responder has sent a NAK and waits."""
    doubtful: bool = False
    """Whether that NAK is not counted yet, because the expected PSN had arrived before: a responder that kept it sends none."""
    holes: list[Hole] = field(default_factory=list)
    rewound: int = -1
    """The PSN after the last retransmitted packet; -1 while there is no retransmission."""
    since: int = 0
    """Packets since the responder accepted one, as far as it goes back n."""
    excused: int = 0
    """Gaps that are not counted, because they were acknowledged."""
    counts: SequenceCounts = field(default_factory=SequenceCounts)

    @property
    def settled(self) -> bool:
        """Whether nothing is missing, so that the batch path can continue."""
        return not self.holes and not self.waiting and self.rewound < 0 and self.expected == self.low

    def advance(self, psn: int, least: int, most: int) -> None:
        """The next packet; `least` and `most` are the PSNs that it takes."""
        ahead = distance(psn, self.low)
        if not -RESTART < ahead < RESTART + (self.high - self.low) % MODULUS:
            self.counts.restarts += 1
            self._give_up()
            self._accept(psn, least, most)
            self.low, self.high = self.expected, self.expected_high
        elif ahead >= 0:
            self._new(psn, ahead, least, most)
        else:
            self._repeated(psn, least, most)
        self.since += 1
        if self.since > EXPECTED_FOR and (self.holes or self.waiting):
            self._give_up()

    def acknowledge(self, psn: int) -> None:
        """An ACK of the receiver: everything up to `psn` has arrived there (9.7.5.1.1)."""
        if not 0 <= distance(self.low, psn) - 1 < RESTART:
            return  # an ACK of what was not captured yet, or of an earlier connection
        arrived = [hole for hole in self.holes if distance(psn, hole.after) >= -1]
        self.holes = self.holes[len(arrived) :]
        for first, after, whole in arrived:
            skipped = distance(after, first)
            if self.counts.missing >= skipped:
                self.excuse(skipped, whole)
        if arrived and not self.holes:
            if self.waiting and not self.doubtful and self.counts.out_of_sequence:
                self.counts.out_of_sequence -= 1
            self._give_up()

    def excuse(self, skipped: int, gaps: int) -> None:
        """These PSNs arrived and were not captured; negative numbers take it back."""
        self.counts.missing -= skipped
        self.counts.not_captured += skipped
        self.counts.gaps -= gaps
        self.excused += gaps

    def _new(self, psn: int, ahead: int, least: int, most: int) -> None:
        if self.rewound >= 0:
            self._end_retransmission()
        skipped = ahead - (self.high - self.low) % MODULUS
        if skipped > 0:
            self.counts.gaps += 1
            self.counts.missing += skipped
            self.holes = [*self.holes, Hole(self.high, psn, True)][-MOST_HOLES:]
        if skipped <= 0 and self._accepts(psn):
            self._accept(psn, least, most)
        else:
            self._refuse()
        self.low, self.high = (psn + least) % MODULUS, (psn + most) % MODULUS

    def _repeated(self, psn: int, least: int, most: int) -> None:
        self.counts.retransmissions += 1
        if self.rewound >= 0 and distance(psn, self.rewound) < 0:
            self._end_retransmission()
        self.rewound = (psn + least) % MODULUS
        self._fill(psn)
        if self._accepts(psn):
            self.counts.out_of_sequence += self.doubtful
            self._accept(psn, least, most)
        elif distance(psn, self.expected) < 0:
            self.counts.duplicate_requests += 1
        else:
            self._refuse()

    def _refuse(self) -> None:
        """A PSN behind the expected one: one NAK until that arrives."""
        if not self.waiting:
            self.waiting = True
            self.doubtful = not any(
                distance(self.expected, hole.first) >= 0 > distance(self.expected, hole.after)
                for hole in self.holes
            )
            self.counts.out_of_sequence += not self.doubtful

    def _accepts(self, psn: int) -> bool:
        return 0 <= distance(psn, self.expected) <= (self.expected_high - self.expected) % MODULUS

    def _accept(self, psn: int, least: int, most: int) -> None:
        self.expected, self.expected_high = (psn + least) % MODULUS, (psn + most) % MODULUS
        self.waiting = self.doubtful = False
        self.since = 0

    def _fill(self, psn: int) -> None:
        for at, (first, after, _) in enumerate(self.holes):
            if distance(psn, first) >= 0 > distance(psn, after):
                rest = [Hole(first, psn, False), Hole((psn + 1) % MODULUS, after, False)]
                self.holes[at : at + 1] = [hole for hole in rest if hole.first != hole.after]
                return

    def _end_retransmission(self) -> None:
        if distance(self.rewound, self.low) >= 0:
            self.counts.go_back_n += 1
        else:
            self.counts.selective += 1
        self.rewound = -1

    def _give_up(self) -> None:
        """Continue from the highest PSN."""
        if self.rewound >= 0:
            self._end_retransmission()
        self.holes.clear()
        self.waiting = self.doubtful = False
        self.since = 0
        self.expected, self.expected_high = self.low, self.high


def distance(psn: int, other: int) -> int:
    """How far `psn` is after `other`, negative before it: PSNs have 24 bits and wrap."""
    return (psn - other + HALF) % MODULUS - HALF

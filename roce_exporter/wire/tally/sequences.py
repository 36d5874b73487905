"""What PSNs say: retransmissions, gaps and duplicates, per flow (InfiniBand specification 9.7.1 and 9.7.5).

A flow is one direction of a queue pair, and of it the requests, the read responses or the ACKs: each has PSNs that only
grow. `SequenceTrack` follows one flow exactly, packet by packet. It sees what the receiver of the flow would see at the place of
the capture: `duplicate_requests` and `out_of_sequence` are what a go-back-N responder counts there, such as `check_psn` in
drivers/infiniband/sw/rxe/rxe_resp.c of Linux.

Whether a responder goes back n or keeps packets that came out of order is not in its packets. It shows when the sender
returns to a PSN that had arrived already: then the responder did not keep it.

In a batch, flows in order are counted at once, and only the others packet by packet (`FlowStates`).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roce_exporter.wire.decode import infiniband
from roce_exporter.wire.decode.invariant_crc import WRONG

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roce_exporter.wire.decode.columns import Columns
    from roce_exporter.wire.frames import Integers

UNNUMBERED = 0  # the number of a key that has no place
MODULUS = 1 << 24
HALF = 1 << 23
RESTART = 1 << 18  # PSNs that differ by more belong to another connection of the same queue pair
MOST_HOLES = 64
EXPECTED_FOR = 8192
"""Packets after which a PSN is not expected any more: the capture missed it, the responder had kept it, or the connection is
unreliable."""
SMALLEST_MTU, LARGEST_MTU = 256, 4096
ANY_STEP = 1 << 22  # the next PSN after a complete read response or an ACK: any later one


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


REQUESTS, RESPONSES, ACKS, UNTRACKED = range(4)  # classes of packets whose PSNs grow together
NO_STATE = -1
NEAR = 1 << 16  # PSNs: two flows between the same addresses that are nearer may be confused
LAST_ACK = 0x1F  # syndromes up to this are ACKs with a number of credits

_TRANSPORTS = (infiniband.RC, infiniband.UC, infiniband.XRC)
_REPLIES = (infiniband.ACKNOWLEDGE, infiniband.ATOMIC_ACKNOWLEDGE)
CLASSES: Integers = np.select(
    [
        infiniband.opcodes_of(_TRANSPORTS, _REPLIES),
        infiniband.opcodes_of(
            _TRANSPORTS,
            (infiniband.READ_FIRST, infiniband.READ_MIDDLE, infiniband.READ_LAST, infiniband.READ_ONLY),
        ),
        infiniband.opcodes_of(_TRANSPORTS, infiniband.OPERATIONS),
    ],
    [ACKS, RESPONSES, REQUESTS],
    UNTRACKED,
)
"""The class of each opcode."""
OPEN_END = infiniband.opcodes_of(_TRANSPORTS, (infiniband.READ_LAST, infiniband.READ_ONLY, *_REPLIES))
"""Opcodes after which any later PSN may follow in their class."""


def classes_of(columns: Columns) -> Integers:
    """The class of each packet. NAKs repeat a PSN that is acknowledged later, so they belong to none.

    Nor do packets with a wrong CRC: receivers drop them, and their fields may be wrong.
    """
    found = CLASSES[columns.opcodes]
    refused = (found == ACKS) & (columns.syndromes > LAST_ACK)
    return np.where(refused | (columns.icrc == WRONG), UNTRACKED, found)


class Acknowledgements(NamedTuple):
    """The ACKs of a batch, and which flow they are about.

    An ACK does not name the queue pair that it answers, only the pair of addresses and the PSN. So it is used where one flow of
    requests between these addresses is near its PSN.
    """

    pairs: Integers
    """The pair of addresses of each packet of the batch."""
    reverse: Integers
    """The opposite direction of each pair."""
    flow_pairs: Integers
    """The pair of each flow."""
    classes: Integers
    """The class of each flow."""


class FlowStates:
    """The state of every flow between two batches."""

    def __init__(self) -> None:
        self._low: NDArray[np.int64] = np.full(1, NO_STATE, np.int64)
        self._high: NDArray[np.int64] = np.full(1, NO_STATE, np.int64)
        self._tracks: dict[int, SequenceTrack] = {}
        """Flows in which something is missing."""

    def retain(self, renamed: Integers) -> None:
        """Flows have new numbers; forgotten ones have UNNUMBERED."""
        kept = np.flatnonzero(renamed)
        count = len(kept) + 1
        for name in ("_low", "_high"):
            fresh = np.full(count, NO_STATE, np.int64)
            known = kept[kept < len(getattr(self, name))]
            fresh[renamed[known]] = getattr(self, name)[known]
            setattr(self, name, fresh)
        self._tracks = {
            int(renamed[flow]): track for flow, track in self._tracks.items() if renamed[flow] != UNNUMBERED
        }

    def add(
        self, columns: Columns, flows: Integers, known: Acknowledgements
    ) -> list[tuple[int, tuple[int, ...]]]:
        """Follow a batch; `flows` numbers the flow of each packet, UNNUMBERED is not followed.

        Flows that have counts, each with these in the order of SEQUENCE_COUNTS.
        """
        count = len(known.flow_pairs)
        if (more := count - len(self._low)) > 0:
            self._low = np.concatenate((self._low, np.full(more, NO_STATE, np.int64)))
            self._high = np.concatenate((self._high, np.full(more, NO_STATE, np.int64)))
        classes = known.classes[flows]
        rows = np.flatnonzero((flows != UNNUMBERED) & (classes != UNTRACKED))
        if not len(rows):
            return []
        rows = rows[np.argsort(flows[rows].astype(np.uint16), kind="stable")]
        # The fewest and most PSNs that each packet takes.
        reads = columns.read_lengths
        least = np.where(reads > 0, -(-reads // LARGEST_MTU), 1)
        most = np.where(reads > 0, -(-reads // SMALLEST_MTU), 1)
        most = np.where(OPEN_END[columns.opcodes], ANY_STEP, most)
        batch = _Sorted(rows, flows[rows], columns.sequences[rows], least[rows], most[rows])
        begins = np.flatnonzero(np.concatenate(([True], np.diff(batch.flows) != 0)))
        fits = self._in_order(batch, begins)
        ordered = np.logical_and.reduceat(fits, begins)
        ends = np.append(begins[1:], len(rows))
        last = ends[ordered] - 1
        self._low[batch.flows[last]] = (batch.sequences[last] + batch.least[last]) % MODULUS
        self._high[batch.flows[last]] = (batch.sequences[last] + batch.most[last]) % MODULUS
        found = []
        replies = np.flatnonzero(classes == ACKS)
        for begin, end in zip(begins[~ordered].tolist(), ends[~ordered].tolist(), strict=True):
            acks = self._acks_of(int(batch.flows[begin]), replies, columns, known)
            odd = (np.flatnonzero(~fits[begin:end]) + begin).tolist()
            counts = self._follow(_Flow(batch, begin, end, odd, acks))
            found.append((int(batch.flows[begin]), counts))
        return found

    def _acks_of(
        self, flow: int, replies: Integers, columns: Columns, known: Acknowledgements
    ) -> list[tuple[int, int]]:
        """Place in the batch and PSN of the ACKs of one flow."""
        if known.classes[flow] != REQUESTS:
            return []
        pair = known.flow_pairs[flow]
        others = np.flatnonzero((known.flow_pairs == pair) & (known.classes == REQUESTS))
        near = (self._low[others] - self._low[flow] + HALF) % MODULUS - HALF
        if np.count_nonzero((self._low[others] == NO_STATE) | (np.abs(near) < NEAR)) > 1:
            return []
        mine = replies[known.pairs[replies] == known.reverse[pair]]
        return list(zip(mine.tolist(), columns.sequences[mine].tolist(), strict=True))

    def _in_order(self, batch: _Sorted, begins: Integers) -> NDArray[np.bool_]:
        """Whether each packet has a PSN that may follow the one before it in its flow."""
        low = np.empty_like(batch.sequences)
        width = np.empty_like(batch.sequences)
        low[1:] = batch.sequences[:-1] + batch.least[:-1]
        width[1:] = batch.most[:-1] - batch.least[:-1]
        first = batch.flows[begins]
        low[begins] = self._low[first]
        width[begins] = self._high[first] - self._low[first]
        fits = (batch.sequences - low) % MODULUS <= width % MODULUS
        fits[begins] |= self._low[first] == NO_STATE
        if self._tracks:
            fits[begins] &= ~np.isin(first, list(self._tracks))
        return fits

    def _follow(self, part: _Flow) -> tuple[int, ...]:
        """One flow: packet by packet from each one that is out of order until nothing is missing."""
        batch, at, end = part.batch, part.begin, part.end
        flow = int(batch.flows[at])
        track = self._tracks.pop(flow, None)
        if track is None:
            low, high = int(self._low[flow]), int(self._high[flow])
            track = SequenceTrack(low, high, low, high)
        while at < end:
            if track.settled:
                following = bisect_left(part.odd, at)
                until = part.odd[following] if following < len(part.odd) else end
                if until > at:  # continue behind packets that are in order
                    psn = int(batch.sequences[until - 1])
                    track.low = track.expected = (psn + int(batch.least[until - 1])) % MODULUS
                    track.high = track.expected_high = (psn + int(batch.most[until - 1])) % MODULUS
                at = until
            at = _walk(part, track, at)
        if track.holes:
            # Something is missing that no ACK covers, so what else was lost is not known to be the mirror's.
            track.excuse(-track.counts.not_captured, -track.excused)
        track.excused = 0
        counts, track.counts = astuple(track.counts), SequenceCounts()
        self._low[flow], self._high[flow] = track.low, track.high
        if not track.settled:
            self._tracks[flow] = track
        return counts


def _walk(part: _Flow, track: SequenceTrack, at: int) -> int:
    """Packet by packet, with the ACKs in between, until nothing is missing; where that is."""
    if at >= part.end:
        return at
    batch, acks, rest = part.batch, part.acks, slice(at, part.end)
    following = bisect_left(acks, (int(batch.rows[at]), 0))
    packets = zip(batch.rows[rest], batch.sequences[rest], batch.least[rest], batch.most[rest], strict=True)
    for row, psn, least, most in packets:
        while following < len(acks) and acks[following][0] < row:
            track.acknowledge(acks[following][1])
            following += 1
        track.advance(int(psn), int(least), int(most))
        at += 1
        if track.settled:
            return at
    for _, psn in acks[following:]:
        track.acknowledge(psn)
    return at


class _Sorted(NamedTuple):
    """The packets of a batch by flow, in the order of the capture within each."""

    rows: Integers
    """Places in the batch."""
    flows: Integers
    sequences: Integers
    least: Integers
    most: Integers


class _Flow(NamedTuple):
    """One flow of a sorted batch in which not all is in order."""

    batch: _Sorted
    begin: int
    end: int
    odd: list[int]
    """Where a PSN does not follow the one before it."""
    acks: list[tuple[int, int]]
    """Place in the batch and PSN of its ACKs."""

"""Counts per pair of addresses, and of pause frames and neighbours of the mirrored link: what a batch adds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roce_exporter.wire.decode.infiniband import CNP_GROUP, GROUP_OF, NAK, RNR
from roce_exporter.wire.decode.invariant_crc import WRONG
from roce_exporter.wire.tally import pair_counts, sequences
from roce_exporter.wire.tally.copies import CopyFilter
from roce_exporter.wire.tally.incasts import IncastWatch
from roce_exporter.wire.tally.round_trips import PendingRequests

if TYPE_CHECKING:
    from roce_exporter.wire.decode.columns import Columns, Decoded
    from roce_exporter.wire.decode.link_frames import LinkNeighbour
    from roce_exporter.wire.frames import Flags, Integers

MOST_FLOWS = 60_000  # below 65,536: flows are sorted as 16-bit numbers
BOUNDS = np.array([round(bound * 1e9) for bound in pair_counts.ROUND_TRIP_BOUNDS], np.int64)
GLOBAL = -1  # instead of a priority: global pause
MOST_SENDERS = 1024
MOST_NEIGHBOURS = 64
OTHER_SENDER = "other"


@dataclass(slots=True)
class WirePauseCounts:
    """Pause frames of one sender for one priority."""

    frames: int = 0
    xoff: int = 0
    """Frames that pause; the others end a pause."""
    quanta: int = 0
    """Sum of the requested pauses in units of 512 bit times."""


class LinkEvents:
    """Counts per sender and priority, and the last LLDP frame of each sender."""

    def __init__(self) -> None:
        self.pauses: dict[tuple[str, int], WirePauseCounts] = {}
        self.neighbours: dict[str, LinkNeighbour] = {}

    def add(self, decoded: Decoded) -> None:
        """The pause frames and neighbours of a batch."""
        for _, frame in decoded.pauses:
            for priority, quanta in enumerate(frame.quanta):
                if quanta is None:
                    continue
                key = (frame.source, priority if frame.per_priority else GLOBAL)
                if key not in self.pauses and len(self.pauses) >= MOST_SENDERS:
                    self._forget_half()
                self._count(key, WirePauseCounts(1, int(quanta > 0), quanta))
        for neighbour in decoded.neighbours:
            self.neighbours.pop(neighbour.source, None)
            self.neighbours[neighbour.source] = neighbour
        for oldest in list(self.neighbours)[: max(0, len(self.neighbours) - MOST_NEIGHBOURS)]:
            del self.neighbours[oldest]

    def _count(self, key: tuple[str, int], more: WirePauseCounts) -> None:
        counts = self.pauses.setdefault(key, WirePauseCounts())
        counts.frames += more.frames
        counts.xoff += more.xoff
        counts.quanta += more.quanta

    def _forget_half(self) -> None:
        """Add the senders with the fewest frames to `other`, so that invented addresses keep no real one out."""
        ordered = sorted(self.pauses.items(), key=lambda one: (one[0][0] == OTHER_SENDER, one[1].frames))
        for key, counts in ordered[: MOST_SENDERS // 2]:
            del self.pauses[key]
            self._count((OTHER_SENDER, key[1]), counts)


class Tally:
    """All counts of one capture."""

    def __init__(self, *, most_flows: int = MOST_FLOWS, pairs: pair_counts.PairTable | None = None) -> None:
        self.frames = 0
        self.roce = 0
        """RoCE packets, each counted once."""
        self.copies = 0
        """Packets that were captured before."""
        self.others: Counter[str] = Counter()
        """Frames of other kinds, by what they are."""
        self.first = 0
        """Time of the first frame, nanoseconds since 1970; 0 while there is none with a valid time."""
        self.last = 0
        self.pairs = pairs or pair_counts.PairTable()
        self.link = LinkEvents()
        self.incasts = IncastWatch()
        self._most_flows = most_flows
        self._flows = pair_counts.KeyTable(5, most_flows)
        self._flow_pairs = np.zeros(1, np.int64)
        self._flow_active = np.zeros(1, np.int64)
        self.flow_counts = np.zeros((1, 2 + len(pair_counts.SEQUENCE_COUNTS)), np.int64)
        """Packets, bytes and SEQUENCE_COUNTS per flow."""
        self._states = sequences.FlowStates()
        self._pending = PendingRequests()
        self._copies = CopyFilter()
        self._batches = 0

    def add(self, decoded: Decoded) -> None:
        """Count a batch."""
        self._batches += 1
        self.frames += decoded.frames
        self.link.add(decoded)
        if decoded.last:
            self.first = min(self.first or decoded.first, decoded.first)
            self.last = max(self.last, decoded.last)
        self.others += decoded.others
        columns = decoded.columns
        if not len(columns.times):
            return
        flows = self._number_flows(columns)
        pairs = self._flow_pairs[flows]
        copies = self._copies.copies(columns, flows, pairs, self.pairs.reverse)
        if copies.any():
            self.copies += int(np.count_nonzero(copies))
            columns, flows, pairs = columns.where(~copies), flows[~copies], pairs[~copies]
        self.roce += len(columns.times)
        self.incasts.add(columns, pairs, self.pairs)
        self.pairs.touch(pairs, self._batches)
        self._count_packets(columns, pairs)
        self._count_flows(columns, flows, pairs)
        self._count_round_trips(columns, pairs)

    def _number_flows(self, columns: Columns) -> Integers:
        """The number of each packet's flow, as those that are not known are added with their pairs."""
        if len(self._flows) > self._most_flows // 2:
            self._forget_flows()
        if self.pairs.full:
            renamed = self.pairs.forget_half()
            self._flow_pairs = renamed[self._flow_pairs]
            self._pending = PendingRequests()
            self._copies.forget()
        low = columns.queues << 2 | sequences.classes_of(columns)
        numbers = self._flows.number(np.column_stack((columns.addresses, low.astype(np.uint64))))
        known = len(self._flow_pairs)
        if more := len(self._flows) - known:
            words = self._flows.keys[known:, :4].astype(">u8").tobytes()
            fresh = [self.pairs.number(words[at : at + 32]) for at in range(0, len(words), 32)]
            self._flow_pairs = np.concatenate((self._flow_pairs, np.array(fresh, np.int64)))
            self._flow_active = np.concatenate((self._flow_active, np.zeros(more, np.int64)))
            room = np.zeros((more, self.flow_counts.shape[1]), np.int64)
            self.flow_counts = np.concatenate((self.flow_counts, room))
        self._flow_active[numbers] = self._batches
        return numbers

    def _forget_flows(self) -> None:
        """Forget the half that was not active for longest; their packets stay counted in their pairs."""
        order = np.argsort(self._flow_active[1:], kind="stable") + 1
        kept = np.sort(order[len(order) // 2 :])
        self._states.retain(self._flows.retain(kept))
        rows = np.concatenate(([sequences.UNNUMBERED], kept))
        self._flow_pairs, self._flow_active = self._flow_pairs[rows], self._flow_active[rows]
        self.flow_counts = self.flow_counts[rows]

    def _count_flows(self, columns: Columns, flows: Integers, pairs: Integers) -> None:
        count = len(self._flow_pairs)
        self.flow_counts[:, 0] += np.bincount(flows, minlength=count)
        self.flow_counts[:, 1] += np.bincount(flows, columns.lengths, minlength=count).astype(np.int64)
        classes = self._flows.keys[:, 4].astype(np.int64) & 3
        known = sequences.Acknowledgements(pairs, self.pairs.reverse, self._flow_pairs, classes)
        found = self._states.add(columns, flows, known)
        if not found:
            return
        rows, counts = (np.array(part, np.int64) for part in zip(*found, strict=True))
        self.flow_counts[rows, 2:] += counts
        acks = classes[rows] == sequences.ACKS
        pairs = self._flow_pairs[rows]
        place = pair_counts.BLOCKS["duplicate_acks"].start
        np.add.at(self.pairs.counts, (pairs[acks], place), counts[acks, 0])
        for at, name in enumerate(pair_counts.SEQUENCE_COUNTS):
            np.add.at(self.pairs.counts, (pairs[~acks], pair_counts.BLOCKS[name].start), counts[~acks, at])

    def _count_round_trips(self, columns: Columns, pairs: Integers) -> None:
        """In the row of the request's direction."""
        back = self.pairs.reverse[pairs]
        replies, nanoseconds = self._pending.add(columns, pairs, back)
        rows = back[replies]
        known = rows != pair_counts.OTHER
        buckets = pair_counts.BLOCKS["round_trips"].start + np.searchsorted(BOUNDS, nanoseconds)
        np.add.at(self.pairs.counts, (rows[known], buckets[known]), 1)
        place = pair_counts.BLOCKS["round_trip_nanoseconds"].start
        np.add.at(self.pairs.counts, (rows[known], place), nanoseconds[known])

    def _count_packets(self, columns: Columns, pairs: Integers) -> None:
        """Count what does not depend on earlier packets."""
        counts, first = self.pairs.counts.reshape(-1), pairs * pair_counts.WIDTH

        def count(block: str, column: Integers | int = 0, chosen: Flags | None = None) -> None:
            """One more in the column of each packet, of those chosen."""
            places = first + (pair_counts.BLOCKS[block].start + column)
            if chosen is None or chosen.any():
                np.add.at(counts, places if chosen is None else places[chosen], 1)

        groups = GROUP_OF[columns.opcodes]
        cnp = groups == CNP_GROUP
        second = columns.versions == 2  # noqa: PLR2004 - RoCE v2
        priority = np.where(columns.priorities < 0, pair_counts.UNTAGGED, columns.priorities)
        count("operation_packets", groups)
        count("ecn", columns.ecn)
        count("becn", 0, columns.becn & ~cnp)
        count("icrc", columns.icrc + 1)
        count("dscp", columns.dscp, second & ~cnp)
        count("cnp_dscp", columns.dscp, second & cnp)
        count("priority", priority)
        count("version_1_priority", priority, ~second)
        correct = columns.icrc != WRONG
        kinds, codes = columns.syndromes >> 5, columns.syndromes & 0x1F
        count("rnr_naks", 0, (kinds == RNR) & correct)
        count("naks", np.minimum(codes, len(pair_counts.NAK_REASONS) - 1), (kinds == NAK) & correct)
        np.add.at(counts, first + (pair_counts.BLOCKS["operation_bytes"].start + groups), columns.lengths)

    def queue_pairs(self) -> list[tuple[int, int, Integers]]:
        """Row of the pair, destination QP and counts (packets, bytes, SEQUENCE_COUNTS) of the flows that are followed."""
        words = self._flows.keys[1:, 4].astype(np.int64)
        keys = np.stack((self._flow_pairs[1:], words >> 2), axis=1)
        unique, inverse = np.unique(keys, axis=0, return_inverse=True)
        sums = np.zeros((len(unique), self.flow_counts.shape[1]), np.int64)
        counts = self.flow_counts[1:].copy()
        counts[words & 3 == sequences.ACKS, 2:] = 0
        np.add.at(sums, inverse.reshape(-1), counts)
        return [(int(pair), int(queue), row) for (pair, queue), row in zip(unique, sums, strict=True)]

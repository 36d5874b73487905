"""Incasts: several senders whose packets to one receiver arrive marked at the same time (RFC 3168, DCQCN).

Time is cut into steps of STEP. In a step, a receiver has an incast when packets of at least SENDERS addresses reach it and some are
marked CE. Steps that are no more than JOIN apart are one incast.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from roce_exporter.wire.decode.infiniband import GROUP_OF, RESPONSE, SEND, WRITE
from roce_exporter.wire.tally.pair_counts import BLOCKS, MOST_PAIRS, OTHER, PairTable

if TYPE_CHECKING:
    from roce_exporter.wire.decode.columns import Columns
    from roce_exporter.wire.frames import Integers

STEP = 1_000_000
JOIN = 20  # steps
SENDERS = 3
CE = 3
MOST_INCASTS = 256
RETRANSMISSIONS = BLOCKS["retransmissions"].start
DATA = np.isin(GROUP_OF, (SEND, WRITE, RESPONSE))


@dataclass(slots=True)
class Incast:
    """One receiver for as long as several senders congest it."""

    receiver: bytes
    """16 bytes, as in the table of pairs."""
    first: int
    last: int
    """Times of the first and last packet, nanoseconds since 1970."""
    senders: set[bytes]
    packets: int = 0
    marked: int = 0
    retransmissions: int = 0
    """Of these senders, up to the end of the batch that the incast ends in."""
    before: int = 0
    """Retransmissions to the receiver when it began."""


class IncastWatch:
    """Finds incasts, batch by batch."""

    def __init__(self) -> None:
        self.found: list[Incast] = []
        self._open: dict[bytes, Incast] = {}

    def add(self, columns: Columns, pairs: Integers, table: PairTable) -> None:
        """The packets of a batch, before their retransmissions are counted."""
        self.end_batch(table)
        chosen = np.flatnonzero(DATA[columns.opcodes] & (pairs != OTHER))
        if not (columns.ecn[chosen] == CE).any():
            return
        names = {row: key for key, row in table.pairs()}
        receivers = {row: key[16:] for row, key in names.items()}
        numbers = {address: at for at, address in enumerate(dict.fromkeys(receivers.values()))}
        receiver = np.zeros(len(table.reverse), np.int64)
        receiver[list(receivers)] = [numbers[address] for address in receivers.values()]
        steps = np.unique(columns.times[chosen] // STEP, return_inverse=True)[1]
        width = len(table.reverse)
        keys = (steps * len(numbers) + receiver[pairs[chosen]]) * width + pairs[chosen]
        # By step, receiver and sender; all of one step and receiver follow each other.
        found, which, packets = np.unique(keys, return_inverse=True, return_counts=True)
        marked = np.bincount(which, columns.ecn[chosen] == CE).astype(np.int64)
        begins = np.flatnonzero(np.diff(found // width, prepend=-1))
        ends = np.append(begins[1:], len(found))
        all_packets, all_marked = np.add.reduceat(packets, begins), np.add.reduceat(marked, begins)
        order = np.argsort(which, kind="stable")
        times, firsts = columns.times[chosen[order]], np.searchsorted(which[order], begins)
        earliest, latest = np.minimum.reduceat(times, firsts), np.maximum.reduceat(times, firsts)
        again = np.bincount(receiver[1:], table.counts[1:, RETRANSMISSIONS])
        for at in np.flatnonzero((ends - begins >= SENDERS) & (all_marked > 0)).tolist():
            begin, end = begins[at], ends[at]
            mine = [names[row] for row in (found[begin:end] % width).tolist()]
            part = Incast(
                mine[0][16:], int(earliest[at]), int(latest[at]), {name[:16] for name in mine},
                int(all_packets[at]), int(all_marked[at]), before=int(again[numbers[mine[0][16:]]]),
            )  # fmt: skip
            self._join(part)

    def _join(self, part: Incast) -> None:
        known = self._open.pop(part.receiver, None)
        if known is None or part.first - known.last > JOIN * STEP:
            self._open[part.receiver] = part
            if len(self._open) > MOST_INCASTS:
                del self._open[next(iter(self._open))]  # the one that ended first
            if len(self.found) < MOST_INCASTS:
                self.found.append(part)
            return
        self._open[part.receiver] = known
        known.last = max(known.last, part.last)
        known.senders |= set(islice(part.senders, MOST_PAIRS - len(known.senders)))
        known.packets += part.packets
        known.marked += part.marked

    def end_batch(self, table: PairTable) -> None:
        """Count what was sent again since."""
        again: Counter[bytes] = Counter()
        for key, row in table.pairs() if self._open else ():
            if key[16:] in self._open:
                again[key[16:]] += int(table.counts[row, RETRANSMISSIONS])
        for one in self._open.values():
            one.retransmissions = max(one.retransmissions, again[one.receiver] - one.before)

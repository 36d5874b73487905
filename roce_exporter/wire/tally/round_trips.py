"""Time from a request to its ACK, matched by PSN between a pair of addresses.

BTH names only the destination's queue pair, so a request and its ACK share the addresses and the PSN. A PSN that two
packets wait for (a retransmission, as in Karn's algorithm, or two queue pairs at the same PSN) is not timed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roce_exporter.wire.decode import opcodes
from roce_exporter.wire.decode.invariant_crc import WRONG
from roce_exporter.wire.tally.flow_batch import CLASSES, LAST_ACK, REQUESTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roce_exporter.wire.decode.columns import Columns
    from roce_exporter.wire.frames import Integers

MOST_PENDING = 1 << 16
"""Requests that wait for an ACK at once; the oldest are given up."""
LONGEST = 10_000_000_000
"""Nanoseconds after which an ACK belongs to another request. Also the two clocks of a capture on a Soft-RoCE device, where
the kernel stamps packets it sends with the time since boot, differ by more."""

REPLIES = np.zeros(256, np.bool_)
ALWAYS_ANSWERED = np.zeros(256, np.bool_)
"""Requests that are answered without the bit that requests an ACK."""
for _transport in (opcodes.RC, opcodes.XRC):
    for _low in (opcodes.ACKNOWLEDGE, opcodes.ATOMIC_ACKNOWLEDGE, opcodes.READ_FIRST, opcodes.READ_ONLY):
        REPLIES[_transport << 5 | _low] = True
    for _low in (opcodes.READ_REQUEST, opcodes.COMPARE_SWAP, opcodes.FETCH_ADD):
        ALWAYS_ANSWERED[_transport << 5 | _low] = True


class RoundTrips(NamedTuple):
    """Packets of a batch that were answered or waited for, and the time in nanoseconds."""

    rows: Integers
    """The replies."""
    nanoseconds: Integers


class _Waiting(NamedTuple):
    """Requests that wait, in the order of their keys."""

    keys: NDArray[np.uint64]
    times: Integers
    single: NDArray[np.bool_]
    """Whether one packet waits for the key, and not several."""

    def where(self, chosen: NDArray[np.bool_] | Integers) -> _Waiting:
        """These of them."""
        return _Waiting(self.keys[chosen], self.times[chosen], self.single[chosen])


class PendingRequests:
    """Requests of earlier batches that have no ACK yet."""

    def __init__(self) -> None:
        self._waiting = _Waiting(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.bool_))

    def add(self, columns: Columns, there: Integers, back: Integers) -> RoundTrips:
        """The round trips that end in a batch. `there` numbers the pair of each packet, `back` the reverse pair."""
        rc = columns.opcodes >> 5
        asked = (columns.ack_requests | ALWAYS_ANSWERED[columns.opcodes]) & (
            CLASSES[columns.opcodes] == REQUESTS
        )
        requests = np.flatnonzero(asked & ((rc == opcodes.RC) | (rc == opcodes.XRC)))
        correct = columns.icrc != WRONG
        replies = np.flatnonzero(REPLIES[columns.opcodes] & (columns.syndromes <= LAST_ACK) & correct)
        waiting = _merged(self._waiting, _key(there, columns, requests), columns.times[requests])
        answered = _key(back, columns, replies)
        if not len(waiting.keys):
            return RoundTrips(replies[:0], replies[:0])
        places = np.minimum(np.searchsorted(waiting.keys, answered), len(waiting.keys) - 1)
        matched = waiting.keys[places] == answered
        taken = columns.times[replies] - waiting.times[places]
        timed = matched & waiting.single[places] & (taken >= 0) & (taken <= LONGEST)
        _, first = np.unique(places[timed], return_index=True)  # the first ACK of each request
        self._keep(waiting, places[matched])
        chosen = np.flatnonzero(timed)[np.sort(first)]
        return RoundTrips(replies[chosen], taken[chosen])

    def _keep(self, waiting: _Waiting, answered: Integers) -> None:
        left = np.ones(len(waiting.keys), np.bool_)
        left[answered] = False
        kept = waiting.where(left)
        if len(kept.keys) > MOST_PENDING:
            kept = kept.where(np.sort(np.argpartition(kept.times, -MOST_PENDING)[-MOST_PENDING:]))
        self._waiting = kept


def _key(pairs: Integers, columns: Columns, rows: Integers) -> NDArray[np.uint64]:
    return (pairs[rows] << 24 | columns.sequences[rows]).astype(np.uint64)


def _merged(waiting: _Waiting, keys: NDArray[np.uint64], times: Integers) -> _Waiting:
    """The requests that waited before and new ones; of several with one key the first, marked."""
    keys, times = np.concatenate((waiting.keys, keys)), np.concatenate((waiting.times, times))
    single = np.concatenate((waiting.single, np.ones(len(keys) - len(waiting.keys), np.bool_)))
    order = np.argsort(keys, kind="stable")
    found = _Waiting(keys, times, single).where(order)
    equal = found.keys[1:] == found.keys[:-1]
    found.single[1:] &= ~equal
    found.single[:-1] &= ~equal
    return found.where(np.concatenate(([True], ~equal))[: len(keys)])

"""Time from a request to its ACK, matched by PSN between a pair of addresses.

BTH names only the destination's queue pair, so a request and its ACK share the addresses and the PSN. A PSN that two
packets wait for (a retransmission, as in Karn's algorithm, or two queue pairs at the same PSN) is not timed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from roce_exporter.wire.decode import infiniband
from roce_exporter.wire.decode.invariant_crc import WRONG
from roce_exporter.wire.tally.sequences import CLASSES, LAST_ACK, REQUESTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roce_exporter.wire.decode.columns import Columns
    from roce_exporter.wire.frames import Flags, Integers

    Keys = NDArray[np.uint64]

MOST_PENDING = 1 << 14  # requests that wait for an ACK at once; the oldest are given up
LONGEST = 10_000_000_000
"""Nanoseconds after which an ACK belongs to another request. Also the two clocks of a capture on a Soft-RoCE device, where
the kernel stamps packets it sends with the time since boot, differ by more."""

_ACKNOWLEDGED = (infiniband.RC, infiniband.XRC)  # the transports whose receivers answer
REPLIES = infiniband.opcodes_of(
    _ACKNOWLEDGED,
    (infiniband.ACKNOWLEDGE, infiniband.ATOMIC_ACKNOWLEDGE, infiniband.READ_FIRST, infiniband.READ_ONLY),
)
ALWAYS_ANSWERED = infiniband.opcodes_of(
    _ACKNOWLEDGED, (infiniband.READ_REQUEST, infiniband.COMPARE_SWAP, infiniband.FETCH_ADD)
)
"""Requests that are answered without the bit that requests an ACK."""
ANSWERED = infiniband.opcodes_of(_ACKNOWLEDGED, range(32)) & (CLASSES == REQUESTS)


class PendingRequests:
    """Requests of earlier batches that have no ACK yet."""

    def __init__(self) -> None:
        self._keys = np.zeros(0, np.uint64)
        """Pair and PSN, in the order of the capture."""
        self._times = np.zeros(0, np.int64)

    def add(self, columns: Columns, there: Integers, back: Integers) -> tuple[Integers, Integers]:
        """The replies of a batch that are timed, and the nanoseconds of each.

        `there` numbers the pair of each packet, `back` the reverse pair.
        """
        asked = columns.ack_requests | ALWAYS_ANSWERED[columns.opcodes]
        requests = np.flatnonzero(asked & ANSWERED[columns.opcodes])
        correct = columns.icrc != WRONG
        replies = np.flatnonzero(REPLIES[columns.opcodes] & (columns.syndromes <= LAST_ACK) & correct)
        keys = np.concatenate((self._keys, _key(there, columns, requests)))
        times = np.concatenate((self._times, columns.times[requests]))
        timed, nanoseconds, left = replies[:0], replies[:0], np.ones(len(keys), np.bool_)
        if len(keys) and len(replies):
            answered = _key(back, columns, replies)
            timed, nanoseconds, left = _match(keys, times, replies, answered, columns.times)
        self._keys, self._times = keys[left][-MOST_PENDING:], times[left][-MOST_PENDING:]
        return timed, nanoseconds


def _match(
    keys: Keys, times: Integers, replies: Integers, answered: Keys, now: Integers
) -> tuple[Integers, Integers, Flags]:
    """The replies that are timed, the time of each, and which requests still wait."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    places = np.minimum(np.searchsorted(ordered, answered), len(keys) - 1)
    matched = ordered[places] == answered
    following = np.minimum(places + 1, len(keys) - 1)
    single = (following == places) | (ordered[following] != answered)
    taken = now[replies] - times[order[places]]
    timed = matched & single & (taken >= 0) & (taken <= LONGEST)
    _, first = np.unique(places[timed], return_index=True)  # the first ACK of each request
    chosen = np.flatnonzero(timed)[np.sort(first)]
    left: Flags = ~np.isin(keys, answered[matched])
    return replies[chosen], taken[chosen], left


def _key(pairs: Integers, columns: Columns, rows: Integers) -> Keys:
    return (pairs[rows] << 24 | columns.sequences[rows]).astype(np.uint64)

"""Packets that were captured more than once: a mirror of ingress and egress, or of several switches on the path.

A copy has the same invariant CRC, PSN and flow: routers change neither. So may a packet that was sent again, but then only a few of a
pair's packets are, and their ACKs are not. A pair is copied when at least COPIED of the packets of each direction are there again
within WINDOW. CNPs are equal by nature, so they are no evidence; of a copied pair each one counts as often as its other packets do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from roce_exporter.wire.decode.infiniband import CNP_GROUP, GROUP_OF
from roce_exporter.wire.tally.pair_counts import OTHER

if TYPE_CHECKING:
    from roce_exporter.wire.decode.columns import Columns
    from roce_exporter.wire.frames import Flags, Integers

WINDOW = 1_000_000
"""Nanoseconds between two copies: mirrored packets wait in queues. A NIC needs half a second until it sends again without a NAK."""
COPIED = 0.8
FEWEST = 4  # packets of a pair from which copies can be told
MOST_KEPT = 8192  # packets of the last batch that a copy may follow


class CopyFilter:
    """Finds copies, batch by batch."""

    def __init__(self) -> None:
        self._keys, self._times = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._seen = np.zeros((1, 2), np.int64)
        """Per row of the table of pairs: packets that were first, and copies; CNPs are in neither."""

    def forget(self) -> None:
        """Rows of pairs have new numbers."""
        self._seen = np.zeros((1, 2), np.int64)

    def copies(self, columns: Columns, flows: Integers, pairs: Integers, reverse: Integers) -> Flags:
        """Which packets of a batch are copies. `reverse` is the opposite direction of each pair."""
        keys = (flows << 24 | columns.sequences) * 0x1E3779B97F4A7C15 + columns.crcs  # a product that wraps
        places = _places(keys, columns.times, self._keys, self._times)
        self._keys, self._times = keys[-MOST_KEPT:], columns.times[-MOST_KEPT:]
        cnps = GROUP_OF[columns.opcodes] == CNP_GROUP
        count = len(reverse)
        if count > len(self._seen):
            self._seen = np.concatenate((self._seen, np.zeros((count - len(self._seen), 2), np.int64)))
        for column, mine in enumerate((~cnps & (places == 0), ~cnps & (places > 0))):
            self._seen[:count, column] += np.bincount(pairs[mine], minlength=count)
        if not (places[~cnps] > 0).any():
            return np.zeros(len(keys), np.bool_)
        first, again = self._seen[:count].T
        both = first + first[reverse]
        # A direction without packets says nothing; one direction alone is told by many packets only.
        each = (first == 0) | (again >= COPIED * first)
        enough = np.where((first == 0) | (first[reverse] == 0), both >= 4 * FEWEST, both >= FEWEST)
        copied = (each & each[reverse] & enough)[pairs] & (pairs != OTHER)
        times = np.where(both > 0, np.rint((both + again + again[reverse]) / np.maximum(both, 1)), 1).astype(
            np.int64
        )
        found: Flags = copied & np.where(cnps, places % times[pairs] > 0, places > 0)
        return found


def _places(keys: Integers, times: Integers, keys_before: Integers, times_before: Integers) -> Integers:
    """How many equal packets are before each one, each within WINDOW of the next."""
    keys, times = np.concatenate((keys_before, keys)), np.concatenate((times_before, times))
    found = np.zeros(len(keys), np.int64)
    # Few keys are there again, and to sort all of them is quick while it does not have to keep their order.
    ordered = np.sort(keys)
    again = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(again):
        return found[len(keys_before) :]
    order = np.flatnonzero(again[np.minimum(np.searchsorted(again, keys), len(again) - 1)] == keys)
    order = order[np.argsort(keys[order], kind="stable")]
    keys, times = keys[order], times[order]
    chained = np.concatenate(([False], (keys[1:] == keys[:-1]) & (np.abs(np.diff(times)) <= WINDOW)))
    at = np.arange(len(keys))
    found[order] = at - np.maximum.accumulate(np.where(chained, 0, at))
    return found[len(keys_before) :]

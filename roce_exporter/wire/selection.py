"""Which RoCE packets are counted, those of some addresses and queue pairs, and in which intervals of time."""

from __future__ import annotations

from ipaddress import IPv4Address, ip_address
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roce_exporter.wire.decode.columns import MAPPED
from roce_exporter.wire.frames import InputError
from roce_exporter.wire.tally.pair_counts import PairCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from roce_exporter.wire.decode.columns import Columns, Decoded
    from roce_exporter.wire.tally.tally import Tally

QUEUE = "qp="
MOST_INTERVALS = 100_000


class PacketFilter(NamedTuple):
    """Packets from or to these addresses, with both ends among them if there are several, and to these queue pairs."""

    addresses: frozenset[bytes]
    queues: frozenset[int]

    @classmethod
    def parse(cls, words: Iterable[str]) -> PacketFilter:
        """From IPv4 or IPv6 addresses, and numbers of destination queue pairs as `qp=18` or `qp=0x12`. Raises InputError: a word is neither."""
        addresses, queues = set(), set()
        for word in words:
            try:
                if word.startswith(QUEUE):
                    queues.add(int.from_bytes(int(word.removeprefix(QUEUE), 0).to_bytes(3)))
                else:
                    address = ip_address(word)
                    addresses.add((MAPPED if isinstance(address, IPv4Address) else b"") + address.packed)
            except (ValueError, OverflowError):
                raise InputError(f"{word}: neither an address nor a queue pair such as qp=0x12") from None
        return cls(frozenset(addresses), frozenset(queues))

    def chosen(self, columns: Columns) -> Columns:
        """The packets that pass."""
        if self.addresses:
            words = [np.frombuffer(one, ">u8") for one in self.addresses]
            ends = [
                np.logical_or.reduce(
                    [(columns.addresses[:, at : at + 2] == one).all(axis=1) for one in words]
                )
                for at in (0, 2)
            ]
            columns = columns.where(ends[0] & ends[1] if len(words) > 1 else ends[0] | ends[1])
        if self.queues:
            columns = columns.where(np.isin(columns.queues, list(self.queues)))
        return columns


EVERYTHING = PacketFilter(frozenset(), frozenset())


class Interval(NamedTuple):
    """What was captured in an interval."""

    start: float
    """Seconds since 1970."""
    packets: int
    bytes: int
    ce: int
    cnps: int
    retransmissions: int
    missing: int
    naks: int
    """With those of a receiver that is not ready."""
    pauses: int
    """Frames that pause a priority or all traffic."""


class Intervals:
    """Cuts batches where an interval ends, and keeps the difference of the counts."""

    def __init__(self, seconds: float) -> None:
        self._length = round(seconds * 1e9)
        self._seconds = seconds
        self._first = 0
        self._totals: dict[int, tuple[int, ...]] = {}
        """The counts at the end of each interval in which there was a packet."""

    def cut(self, decoded: Decoded) -> Iterator[tuple[Decoded, int]]:
        """The parts of a batch, each with the number of its interval. Raises InputError: there are more than MOST_INTERVALS intervals."""
        times = decoded.columns.times
        if not len(times):
            yield decoded, max(self._totals, default=0)
            return
        self._first = self._first or int(times[0]) // self._length
        numbers = np.maximum.accumulate(np.maximum(times // self._length - self._first, 0))
        if numbers[-1] >= MOST_INTERVALS:
            raise InputError(
                f"--interval: the capture has more than {MOST_INTERVALS:,} intervals of {self._seconds:g} s"
            )
        for place, number in enumerate(np.unique(numbers).tolist()):
            part = decoded._replace(columns=decoded.columns.where(numbers == number))
            yield (part if place == 0 else part.packets_only()), number

    def note(self, number: int, tally: Tally) -> None:
        """The counts after a part of this interval."""
        counts = PairCounts(tally.pairs.counts.sum(axis=0))
        self._totals[number] = (
            counts.packets,
            counts.wire_bytes,
            counts.named("ecn")["ce"],
            counts.cnps,
            counts.one("retransmissions"),
            counts.one("missing"),
            sum(counts.block("naks")) + counts.one("rnr_naks"),
            sum(one.xoff for one in tally.link.pauses.values()),
        )

    def rows(self) -> list[Interval]:
        """All intervals from the first packet to the last one, also those without a packet."""
        found: list[Interval] = []
        before = (0,) * (len(Interval._fields) - 1)
        for number in range(max(self._totals, default=-1) + 1):
            after = self._totals.get(number, before)
            start = (self._first + number) * self._length / 1e9
            found.append(Interval(start, *(new - old for new, old in zip(after, before, strict=True))))
            before = after
        return found

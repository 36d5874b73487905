"""One run: an input that a thread reads, which of its RoCE packets are counted, the tally that it fills, and consistent views of it at any time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, ip_address
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from roce_exporter.wire.decode.columns import MAPPED, Columns, Decoded, decode_frames
from roce_exporter.wire.frames import Frames, InputError
from roce_exporter.wire.inputs.capture_file import CaptureFile
from roce_exporter.wire.tally.pair_counts import LosslessMarks, PairCounts
from roce_exporter.wire.tally.tally import Tally
from roce_exporter.wire.wire_summary import FILTERED, Interval, WireSummary, summarise

if TYPE_CHECKING:
    from roce_exporter.normalise.series import Samples
    from roce_exporter.wire.inputs.packet_socket import PacketSocket
    from roce_exporter.wire.wire_samples import ShownPairs

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


POLL = 0.2
"""Seconds that a live input is waited for at once: longer than the kernel keeps a block that is not full."""
MOST_WAITS = 25
"""Times in succession that frames which the kernel has counted are waited for in vain, on a machine that is overloaded."""


class WireSession:
    """A capture that is being read."""

    def __init__(
        self,
        source: CaptureFile | PacketSocket,
        lossless: LosslessMarks,
        top: int,
        *,
        interval: float = 0,
        chosen: PacketFilter = EVERYTHING,
    ) -> None:
        """`interval`: seconds; 0 for none."""
        self._source = source
        self._lossless = lossless
        self._tally = Tally()
        self._top = top
        self._shown: ShownPairs | None = None
        self._lock = threading.Lock()
        self._stopped = False
        self._ending = False
        self.dropped: int | None = None  # frames, by the ring; None for a file
        self._samples: Samples | None = None
        self._intervals = Intervals(interval) if interval else None
        self._filter = chosen
        self._failure: BaseException | None = None
        self.fault = ""
        """Why the input ended early; empty while it did not."""

    def read(self, ended: Callable[[], None]) -> None:
        """Read the input until it ends or `stop`; `ended` is called in any case."""
        try:
            if not isinstance(self._source, CaptureFile):
                self._read_live(self._source)
                return
            for frames in self._source:
                if self._stopped:
                    return
                self._add(frames)
            self.fault = self._source.fault
        except InputError as error:
            self.fault = str(error)
        except BaseException as error:  # noqa: BLE001 - the main thread raises it: see check
            self._failure = error
        finally:
            ended()

    def _read_live(self, source: PacketSocket) -> None:
        ending, waits = False, 0
        while not ending or (source.left() and waits < MOST_WAITS):
            if self._ending and not ending:
                source.end()
                ending = True
                continue
            frames = source.read(POLL)
            if frames is not None:
                self._add(frames)
            self.dropped = source.drops()[1]
            waits = waits + 1 if frames is None and ending else 0

    def _add(self, frames: Frames) -> None:
        decoded = decode_frames(frames)
        chosen = self._filter.chosen(decoded.columns)
        decoded.others[FILTERED] += len(decoded.columns.times) - len(chosen.times)
        decoded = decoded._replace(columns=chosen, others=+decoded.others)
        with self._lock:
            if self._stopped:
                return
            if self._intervals is None:
                self._tally.add(decoded)
                return
            for part, number in self._intervals.cut(decoded):
                self._tally.add(part)
                self._intervals.note(number, self._tally)

    def check(self) -> None:
        """Raise in this thread what ended the reading thread: an error of ours."""
        if self._failure is not None:
            raise self._failure

    def finish(self) -> None:
        """Count what a live capture already holds, then end it."""
        self._ending = True

    def stop(self) -> None:
        """Count no more; the input ends with its next batch."""
        with self._lock:
            self._stopped = True

    def summary(self, *, queues: bool = False) -> WireSummary:
        """The counts now."""
        with self._lock:
            intervals = self._intervals.rows() if self._intervals else []
            return summarise(self._tally, self._lossless, intervals, queues=queues)

    def samples(self) -> Samples:
        """The counts now, for the pairs that are shown."""
        # They need the catalogue, which the command does without.
        from roce_exporter.normalise.series import NO_SAMPLES  # noqa: PLC0415
        from roce_exporter.wire.wire_samples import ShownPairs, wire_samples  # noqa: PLC0415

        with self._lock:
            self._shown = self._shown or ShownPairs(self._top)
            shown = self._shown.choose(self._tally.pairs)
            found = wire_samples(self._tally, shown, self._lossless, self.dropped)
            self._samples = (self._samples or NO_SAMPLES).replace(found)
            return self._samples

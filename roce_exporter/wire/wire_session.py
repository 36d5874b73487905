"""One run: an input that a thread reads, the tally that it fills, and consistent views of it at any time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from roce_exporter.wire.decode.columns import decode_frames
from roce_exporter.wire.frames import InputError
from roce_exporter.wire.inputs.capture_file import CaptureFile
from roce_exporter.wire.selection import EVERYTHING, Intervals, PacketFilter
from roce_exporter.wire.tally.tally import Tally
from roce_exporter.wire.wire_summary import summarise

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.normalise.series import Samples
    from roce_exporter.wire.frames import Frames
    from roce_exporter.wire.inputs.packet_socket import PacketSocket
    from roce_exporter.wire.tally.pair_counts import LosslessMarks
    from roce_exporter.wire.wire_samples import ShownPairs
    from roce_exporter.wire.wire_summary import WireSummary

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
        self._dropped: int | None = None
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
            self._dropped = source.drops()[1]
            waits = waits + 1 if frames is None and ending else 0

    def _add(self, frames: Frames) -> None:
        decoded = decode_frames(frames)
        decoded = decoded._replace(columns=self._filter.chosen(decoded.columns))
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

    @property
    def dropped(self) -> int | None:
        """Frames that the ring dropped; None for a file."""
        return self._dropped

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
            found = wire_samples(self._tally, shown, self._lossless, self._dropped)
            self._samples = (self._samples or NO_SAMPLES).replace(found)
            return self._samples

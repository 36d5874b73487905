"""Files of one device: read together, but each can fail independently, and those that keep failing are read less often."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import compress, count
from operator import ne
from types import MappingProxyType

from roce_exporter.host.kernel import Absent, Kernel
from roce_exporter.model import WHOLE_DEVICE, Reading
from roce_exporter.model.values import (
    FILE_BYTES,
    NOT_ERRORS,
    QUARANTINED,
    make_reading,
    parse_counter,
    parse_counters,
    reason_of,
)

MOST_FAILURES = 3  # failures in a row before a file is put in quarantine
FIRST_SECONDS = 30.0
LONGEST_SECONDS = 3600.0


class Quarantine:
    """The positions of files that are not read, and until when (monotonic seconds)."""

    def __init__(self) -> None:
        self._failures: dict[int, int] = {}
        self._until: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def __bool__(self) -> bool:
        """Whether any file failed recently, in quarantine or not."""
        return bool(self._failures)

    def skipped(self, now: float) -> Collection[int]:
        """The positions of the files not to be read at `now`."""
        return [position for position, until in self._until.items() if now < until]

    def failed(self, position: int, reason: str, now: float) -> None:
        """Enter a failure of this file at `now`; the driver's own `not available` does not count."""
        if reason in NOT_ERRORS:
            return
        failures = self._failures[position] = self._failures.get(position, 0) + 1
        if failures >= MOST_FAILURES:
            rounds = min(failures - MOST_FAILURES, 20)
            self._until[position] = now + min(FIRST_SECONDS * 2**rounds, LONGEST_SECONDS)

    def recovered(self, position: int) -> None:
        """Enter a successful read of this file."""
        self._failures.pop(position, None)
        self._until.pop(position, None)


class CounterFiles:
    """The files `names` in one sysfs directory, read as counters of one port."""

    def __init__(self, kernel: Kernel, port: int, directory: str, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._port = port
        self._files = kernel.open_files([f"{directory}/{name}" for name in self.names])
        self._quarantine = Quarantine()
        self._texts: Sequence[bytes | OSError | None] = ()
        """The content of the files when every one was a number, and the reading that this led to."""
        self._reading: Reading | None = None

    @property
    def quarantined(self) -> int:
        return len(self._quarantine)

    def read(self, source: str, device: str, now: float, netdev: str = "") -> Reading:
        """The content of the files at `now` (monotonic seconds). A file that fails becomes a loss."""
        calm = not self._quarantine
        texts = self._files.read(() if calm else self._quarantine.skipped(now))
        if calm and self._reading is not None and texts == self._texts:
            return self._reading
        if calm and (values := self._numbers(texts)) is not None:
            self._texts = texts
            self._reading = Reading(source, device, self._port, self.names, values, (), netdev)
            return self._reading
        found = [
            parse_counter(content)
            if isinstance(content, bytes)
            else reason_of(content)
            if content
            else QUARANTINED
            for content in texts
        ]
        reading = make_reading(source, device, self._port, self.names, found, netdev=netdev)
        if reading.losses or self._quarantine:
            for position, value in enumerate(found):
                if isinstance(value, str):
                    self._quarantine.failed(position, value, now)
                else:
                    self._quarantine.recovered(position)
        return reading

    def _numbers(self, texts: Sequence[bytes | OSError | None]) -> Sequence[int | None] | None:
        """The numbers in the files, of which some have changed; None if any has no number.

        Equal bytes are an equal number, so only what differs from the last reading is parsed.
        """
        if self._reading is None:
            return parse_counters(texts)
        changed = [*compress(count(), map(ne, texts, self._texts))]
        numbers = parse_counters([texts[position] for position in changed])
        if numbers is None:
            return None
        values = list(self._reading.values)
        for position, number in zip(changed, numbers, strict=True):
            values[position] = number
        return tuple(values)

    def close(self) -> None:
        self._files.close()


FileParser = tuple[str, "Callable[[bytes], int | str]"]  # the path of a file, and what parses its content


class ParsedFiles:
    """Files of a port or of a whole device that are not plain counters, each with its own parser."""

    quarantined = 0

    def __init__(
        self,
        kernel: Kernel,
        files: Mapping[str, FileParser],
        port: int = WHOLE_DEVICE,
        size: int = FILE_BYTES,
        derived: Mapping[str, Callable[[Sequence[int | str]], int | str]] = MappingProxyType({}),
    ) -> None:
        """`files` maps names to paths and parsers; `size` is the number of bytes to read; `derived` are values of those before them."""
        self._names = (*files, *derived)
        self._port = port
        self._parsers = tuple(parse for _, parse in files.values())
        self._derived = tuple(derived.values())
        self._files = kernel.open_files([path for path, _ in files.values()], size)
        self._texts: Sequence[bytes | OSError | None] = ()
        self._reading: Reading | None = None
        """What these texts led to."""

    def read(self, source: str, device: str, now: float, netdev: str = "") -> Reading:  # noqa: ARG002 - as of `CounterFiles`
        """The current content of the files. A file that fails becomes a loss."""
        texts = self._files.read()
        if self._reading is not None and texts == self._texts:
            return self._reading
        found = [
            parse(content) if isinstance(content, bytes) else reason_of(content or OSError())
            for parse, content in zip(self._parsers, texts, strict=True)
        ]
        found += [derive(found) for derive in self._derived]
        self._texts = texts
        self._reading = make_reading(source, device, self._port, self._names, found, netdev=netdev)
        return self._reading

    def close(self) -> None:
        self._files.close()


class FileReader:
    """A source whose values are in files, which are opened at the first read."""

    def __init__(
        self,
        source: str,
        device: str,
        open_files: Callable[[], Iterable[CounterFiles | ParsedFiles]],
        netdev: str = "",
        *,
        missing: str,
    ) -> None:
        """`missing` says what a device without any of these files lacks."""
        self.source = source
        self.netdev = netdev
        self._device = device
        self._open = open_files
        self._missing = missing
        self._files: tuple[CounterFiles | ParsedFiles, ...] = ()

    @property
    def quarantined(self) -> int:
        return sum([files.quarantined for files in self._files])

    def read(self, now: float) -> tuple[Reading, ...]:
        """One reading per port or directory, or for the whole device."""
        self._files = self._files or tuple(self._open())
        if not self._files:
            raise Absent(errno.ENOENT, self._missing, self.netdev or self._device)
        # Lists instead of generators here and in the other readers: for one or two items a generator takes longer than all of them.
        return tuple([files.read(self.source, self._device, now, self.netdev) for files in self._files])

    def close(self) -> None:
        for files in self._files:
            files.close()

"""Files of one device: read together, but each can fail independently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.kernel import FILE_BYTES
from roce_exporter.model import WHOLE_DEVICE, Reading
from roce_exporter.sources.quarantine import Quarantine
from roce_exporter.sources.values import QUARANTINED, make_reading, parse_counter, parse_counters, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from roce_exporter.kernel import Kernel


class CounterFiles:
    """The files `names` in one sysfs directory, read as counters of one port."""

    def __init__(self, kernel: Kernel, directory: str, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._files = kernel.open_files([f"{directory}/{name}" for name in self.names])
        self._quarantine = Quarantine()

    @property
    def quarantined(self) -> int:
        return len(self._quarantine)

    def read(self, source: str, device: str, port: int, now: float, *, netdev: str = "") -> Reading:
        """The content of the files at `now` (monotonic seconds). A file that fails becomes a loss."""
        texts = self._files.read(self._quarantine.skipped(now))
        if not self._quarantine and (values := parse_counters(texts)) is not None:
            return Reading(source, device, port, self.names, values, (), netdev)
        found = [_value(content) for content in texts]
        reading = make_reading(source, device, port, self.names, found, netdev=netdev)
        if reading.losses or self._quarantine:
            self._judge(found, now)
        return reading

    def _judge(self, found: Sequence[int | str], now: float) -> None:
        for position, value in enumerate(found):
            if isinstance(value, str):
                self._quarantine.failed(position, value, now)
            else:
                self._quarantine.recovered(position)

    def close(self) -> None:
        self._files.close()


def _value(content: bytes | OSError | None) -> int | str:
    if isinstance(content, bytes):
        return parse_counter(content)
    return reason_of(content) if content else QUARANTINED


class ParsedFiles:
    """Files of a whole device that are not plain counters, each with its own parser."""

    def __init__(
        self,
        kernel: Kernel,
        files: Mapping[str, tuple[str, Callable[[bytes], int | str]]],
        size: int = FILE_BYTES,
    ) -> None:
        """`files` maps the name of each value to its path and parser; `size` is the number of bytes to read."""
        self._names = tuple(files)
        self._parsers = tuple(parse for _, parse in files.values())
        self._files = kernel.open_files([path for path, _ in files.values()], size)

    def read(self, source: str, device: str) -> Reading:
        """The current content of the files. A file that fails becomes a loss."""
        found = [
            parse(content) if isinstance(content, bytes) else reason_of(content or OSError())
            for parse, content in zip(self._parsers, self._files.read(), strict=True)
        ]
        return make_reading(source, device, WHOLE_DEVICE, self._names, found)

    def close(self) -> None:
        self._files.close()

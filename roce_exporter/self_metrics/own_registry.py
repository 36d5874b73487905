"""The metrics of the process as text: prometheus_client renders them once per set of series, later only the values are filled in.

`generate_latest` takes a quarter of a millisecond for twenty lines, as much as the counters of seven ports. Names, texts, labels
and their order are still its own: the template is made from its output. Its `ProcessCollector` opens two files at each scrape and
lists every descriptor; with a thousand files of counters this takes longer than reading the counters of three hosts.
"""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from prometheus_client import CollectorRegistry, Metric
from prometheus_client import openmetrics as openmetrics_text
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.utils import floatToGoString

from roce_exporter import __version__
from roce_exporter.catalog import named
from roce_exporter.catalog.row import COUNTER, Row

PROCESS_ROWS = (
    named.PROCESS_CPU,
    named.PROCESS_MAX_FDS,
    named.PROCESS_VIRTUAL_MEMORY,
    named.PROCESS_RESIDENT_MEMORY,
    named.PROCESS_START,
    named.PROCESS_OPEN_FDS,
)
"""In the order of the values. From the third on they are from /proc."""

DESCRIPTORS = "/proc/self/fd"
MEMORY = "/proc/self/statm"
STARTED = 19
"""Position of the start time among the fields of /proc/self/stat that follow the name (proc(5): field 22)."""


class ProcessFamilies:
    """The collector of the `process_` metrics (proc(5)): opens one file once, and omits metrics if /proc is unavailable."""

    def __init__(self) -> None:
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._memory = -1
        self._started = 0.0
        with contextlib.suppress(OSError):
            # In this order: if the start time cannot be read, all /proc metrics are omitted, rather than report 0.
            self._started = started()
            self._memory = os.open(MEMORY, os.O_RDONLY | os.O_CLOEXEC)

    def collect(self) -> Iterator[Metric]:
        """CPU time and start in seconds, memory in bytes, descriptors."""
        for row, value in zip(PROCESS_ROWS, self.values(), strict=False):
            yield _family(row, [((), value)])

    def values(self) -> tuple[float, ...]:
        """The values of `PROCESS_ROWS`, or only the first two if /proc is unavailable."""
        own = (time.process_time(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        try:
            size, resident = os.pread(self._memory, 64, 0).split()[:2]
            opened = open_descriptors()
        except OSError:
            return own
        return (*own, int(size) * self._page, int(resident) * self._page, self._started, opened)


def started() -> float:
    """Start time of this process, in seconds since 1970."""
    with open("/proc/self/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[STARTED])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")


def open_descriptors(place: str = DESCRIPTORS) -> int:
    """Number of open descriptors: since Linux 6.2 it is the size of the folder, so that no listing is needed."""
    return os.stat(place).st_size or len(os.listdir(place)) - 1


MOST_TEMPLATES = 4  # two formats, each before and after a series was added

go_spelling = lru_cache(maxsize=256)(floatToGoString)


class OwnFamilies(Protocol):
    """A collector of prometheus_client that can also report only its values."""

    def collect(self) -> Iterator[Metric]:
        """The families with their samples."""

    def values(self) -> tuple[float, ...]:
        """The values of these samples, in the same order. The number of values identifies the set of series."""


def _family(row: Row, samples: Iterable[tuple[Sequence[str], float]]) -> Metric:
    """The family of a row, with these label values and values."""
    family = (CounterMetricFamily if row.kind == COUNTER else GaugeMetricFamily)(
        row.name, row.help, labels=row.labels
    )
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


class CountedEvents:
    """A counter with labels. A combination of labels that has been counted once is never removed."""

    def __init__(self, row: Row) -> None:
        self._row = row
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, *labels: str) -> None:
        """Count one event."""
        self._counts[labels] = self._counts.get(labels, 0) + 1

    def collect(self) -> Iterator[Metric]:
        """The family with one sample per combination of labels."""
        yield _family(self._row, self._counts.items())

    def values(self) -> tuple[float, ...]:
        """The counts, in the order in which the combinations appeared."""
        return tuple(self._counts.values())


class MeasuredValue:
    """A gauge that is read when it is rendered, with labels that never change."""

    def __init__(self, row: Row, read: Callable[[], float], *labels: str) -> None:
        self._row = row
        self._read = read
        self._labels = labels

    def collect(self) -> Iterator[Metric]:
        """The family with its sample."""
        yield _family(self._row, [(self._labels, self._read())])

    def values(self) -> tuple[float, ...]:
        """The value now."""
        return (self._read(),)


class OwnRegistry:
    """The metrics of one process: build, CPU time, memory, descriptors, and what is added with `register`."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._parts: list[OwnFamilies] = []
        self._templates: dict[tuple[bool, tuple[int, ...]], bytes] = {}
        self.register(ProcessFamilies())
        self.gauge(named.BUILD_INFO, lambda: 1, __version__, platform.python_version())
        self.gauge(named.KERNEL_INFO, lambda: 1, platform.release())

    def register(self, part: OwnFamilies) -> None:
        """Add families at the end."""
        self._registry.register(part)
        self._parts.append(part)

    def counter(self, row: Row) -> CountedEvents:
        """A new counter at the end."""
        made = CountedEvents(row)
        self.register(made)
        return made

    def gauge(self, row: Row, read: Callable[[], float], *labels: str) -> None:
        """A new gauge at the end."""
        self.register(MeasuredValue(row, read, *labels))

    def render(self, *, openmetrics: bool) -> bytes:
        """The metrics as text; in OpenMetrics with the closing `# EOF`."""
        found = [part.values() for part in self._parts]
        shape = (openmetrics, tuple(map(len, found)))
        template = self._templates.get(shape)
        if template is None:
            if len(self._templates) >= MOST_TEMPLATES:
                self._templates.clear()
            template = self._templates[shape] = self._template(openmetrics=openmetrics)
        return template % tuple([go_spelling(value).encode() for values in found for value in values])

    def _template(self, *, openmetrics: bool) -> bytes:
        """The text with a placeholder for the value of each sample."""
        generate = openmetrics_text.exposition.generate_latest if openmetrics else generate_latest
        lines = generate(self._registry).replace(b"%", b"%%").splitlines(keepends=True)
        return b"".join(
            line if line.startswith(b"#") else line.rpartition(b" ")[0] + b" %b\n" for line in lines
        )

"""Metrics of this process, with the names used by every Prometheus client.

`prometheus_client.ProcessCollector` opens two files at each scrape and lists every open descriptor. With a thousand
descriptors of counter files, this listing takes longer than reading the counters of three hosts.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

DESCRIPTORS = "/proc/self/fd"
MEMORY = "/proc/self/statm"
STARTED = 19
"""Position of the start time among the fields of /proc/self/stat that follow the name (proc(5): field 22)."""

FAMILIES = (
    (CounterMetricFamily, "process_cpu_seconds_total", "Total user and system CPU time spent in seconds."),
    (GaugeMetricFamily, "process_max_fds", "Maximum number of open file descriptors."),
    (GaugeMetricFamily, "process_virtual_memory_bytes", "Virtual memory size in bytes."),
    (GaugeMetricFamily, "process_resident_memory_bytes", "Resident memory size in bytes."),
    (
        GaugeMetricFamily,
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
    ),
    (GaugeMetricFamily, "process_open_fds", "Number of open file descriptors."),
)
"""Kind, name and HELP, in the order of the values. From the third on they are from /proc."""


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
        for (family, name, text), value in zip(FAMILIES, self.values(), strict=False):
            yield family(name, text, value)

    def values(self) -> tuple[float, ...]:
        """The values of `FAMILIES`, or only the first ones if /proc is unavailable."""
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

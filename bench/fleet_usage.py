"""Processor time and memory of processes and of the machine, from /proc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """Seconds of processor time since the start of a process, and its resident memory in bytes, now and at most."""

    cpu: float
    resident: int
    most: int


class Machine(NamedTuple):
    """Seconds of processor time that all processes have used, and bytes of available memory."""

    cpu: float
    available: int


def _kibibytes(text: str, key: str) -> int:
    (line,) = (line for line in text.splitlines() if line.startswith(f"{key}:"))
    return int(line.split()[1]) * 1024


def usage(process: int) -> Usage:
    """Of a process.

    Raises:
        OSError: it has ended.
    """
    stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{process}/status").read_text()
    return Usage(
        (int(stat[11]) + int(stat[12])) / TICKS, _kibibytes(status, "VmRSS"), _kibibytes(status, "VmHWM")
    )


def machine() -> Machine:
    """Of the whole machine."""
    user, nice, system, _, _, irq, softirq, *_ = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    )
    busy = user + nice + system + irq + softirq
    return Machine(busy / TICKS, _kibibytes(Path("/proc/meminfo").read_text(), "MemAvailable"))


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

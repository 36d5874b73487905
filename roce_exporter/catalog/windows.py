"""Windows: how its counters and settings are spelt, and which public source has the spelling (`tables/windows.txt`).

The exporter does not run on Windows. windows_exporter reads these counters under the configuration in `deploy/windows/`, which
is generated from the raw names of these dialects: object and counter name separated by a backslash, as in a counter path. No
RDMA device of Linux has one of the dialects, so a host never searches for them. A setting is a row without series: no counter of
Windows has its value. `roce-exporter explain NAME` prints what it means and what a Linux host reports for it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from roce_exporter.catalog.table import sections

WINOF2 = "winof2"
"""NVIDIA's driver for ConnectX-4 and newer. ConnectX-3 has the driver WinOF, whose objects have other names."""
WINDOWS = "windows"
"""Windows itself: names that are the same for the NICs of all vendors."""

WINDOWS_DIALECTS = (WINOF2, WINDOWS)

PERFORMANCE_COUNTER = "performance_counter"
"""The source: a counter of the Performance Data Helper (PDH), by its English name."""

SEPARATOR = "\\"

PORT_TRAFFIC = "Mellanox WinOF-2 Port Traffic"
OBJECTS = (
    "Mellanox WinOF-2 Congestion Control",
    "Mellanox WinOF-2 Port QoS",
    PORT_TRAFFIC,
    "Mellanox WinOF-2 Diagnostics",
    "Mellanox WinOF-2 Diagnostics Ext 1",
    "Mellanox WinOF-2 VF Diagnostics",
    "RDMA Activity",
)


def counter_path(raw: str) -> tuple[str, str]:
    """The object and the counter of a raw name."""
    counter_object, _, counter = raw.partition(SEPARATOR)
    return counter_object, counter


class WindowsSetting(NamedTuple):
    """One setting of Windows."""

    name: str
    """As the manual spells it; a placeholder stands for the number of a priority, traffic class or port."""
    place: str
    """Where Windows keeps or prints it."""
    meaning: str
    values: str = ""
    """Its values, unit and default, as far as the manual has them."""
    source: str = ""
    """The catalogue's source of the same setting on Linux; empty where Linux has no such setting."""
    raw: str = ""
    """The setting's name in that source."""

    def matches(self, name: str) -> re.Match[str] | None:
        """Whether this name is the setting's, in any case."""
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>\\d+)", re.escape(self.name))
        return re.fullmatch(pattern, name, re.IGNORECASE)


class PublicSource(NamedTuple):
    """A public text that spells names of counters. None of them was seen on a machine of ours."""

    title: str
    used: bool
    """Whether programs use the names (scripts, configurations) or a manual lists them."""
    names: tuple[str, ...]
    """Raw names: object and counter."""


def _read() -> tuple[tuple[WindowsSetting, ...], tuple[PublicSource, ...]]:
    settings, sources = [], []
    for heading, entries in sections("windows.txt"):
        by, _, title = heading.partition(" by ")
        if by in ("used", "listed"):
            listed = [one.head.split(SEPARATOR, 1) for one in entries]
            names = (f"{place}{SEPARATOR}{name}" for place, parts in listed for name in parts.split(" | "))
            sources.append(PublicSource(title, by == "used", tuple(names)))
            continue
        for entry in entries:
            name, _, linux = entry.head.partition(" = ")
            source, _, raw = linux.partition(" ")
            meaning, _, values = " ".join(line.strip() for _, line in entry.more).partition(" | ")
            settings.append(WindowsSetting(name, heading, meaning, values, source, raw))
    return tuple(settings), tuple(sources)


WINDOWS_SETTINGS, PUBLIC_SOURCES = _read()

UNPROVED = "no public source has the spelling"


def proof_of(raw: str) -> str:
    """The public source of a raw name's spelling, or that there is none."""
    return next((f"spelling of {one.title}" for one in PUBLIC_SOURCES if raw in one.names), UNPROVED)

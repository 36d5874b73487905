r"""Names of Windows for `explain`: performance counters and settings, in any case, with or without their object.

Windows' own tools print a counter as `\\HOST\Object(instance)\Counter` and ignore case: all parts but the counter may be missing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roce_exporter.catalog import INDEX, windows
from roce_exporter.catalog.left_out import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.catalog.row import Row

_PATH = re.compile(r"(?:\\\\[^\\]+)?\\?(?:([^\\(]+?)(?:\(.*\))?\\)?([^\\]+)")
"""Host, object with instance, counter; only the counter is needed."""


def windows_names() -> Iterator[str]:
    """The names of counters without their object, and those of settings."""
    for raw, _ in _counters():
        yield windows.counter_path(raw)[1]
    for setting in windows.WINDOWS_SETTINGS:
        yield setting.name


def rows_of_counter(name: str) -> list[Row]:
    """The rows that a counter of Windows belongs to; several where objects have counters of the same name."""
    path = _split(name)
    if not path:
        return []
    wanted, counter = path
    rows = {}
    for raw, row in _counters():
        known_object, known = windows.counter_path(raw)
        if known.casefold() == counter and wanted in ("", known_object.casefold()):
            rows[row.name] = row
    return list(rows.values())


def left_out_counter(name: str) -> Iterator[str]:
    """Lines about a counter of Windows that deliberately has no metric; none for any other name."""
    path = _split(name)
    for counter_object in windows.OBJECTS if path else ():
        if path and path[0] in ("", counter_object.casefold()):
            yield from _reasons(name, f"{counter_object}{windows.SEPARATOR}{path[1]}")


def about_setting(name: str) -> Iterator[str]:
    """Lines about a setting of Windows; none for any other name."""
    for setting in windows.WINDOWS_SETTINGS:
        if match := setting.matches(name.strip()):
            yield f"{setting.name} (setting of WinOF-2, {setting.place})"
            yield f"  {setting.meaning}"
            if setting.values:
                yield f"  values: {setting.values}"
            if match.groupdict():
                numbers = ", ".join(f"{label} {number}" for label, number in match.groupdict().items())
                yield f"  {name}: {numbers}"
            yield f"  {on_linux(setting)}"


def on_linux(setting: windows.WindowsSetting) -> str:
    """The metric of the same setting on Linux, with the labels that name it."""
    if not setting.source:
        return "no metric: Linux has no such setting, and no counter of Windows has its value"
    row = row_of(setting)
    labels = ""
    if setting.raw.count(".") == len(("role", "parameter")):
        role, parameter, _ = setting.raw.split(".")
        labels = f'{{role="{role}", parameter="{parameter}"}}'
    return f"on Linux: {row.name}{labels}; no counter of Windows has its value, so Windows hosts have no such series"


def row_of(setting: windows.WindowsSetting) -> Row:
    """The row of the same setting on Linux.

    Raises:
        LookupError: the setting names no row.
    """
    row = INDEX.claimed("", setting.source, re.sub(r"\{\w+\}", "0", setting.raw))
    if row is None:
        raise LookupError(f"{setting.name}: no row has {setting.raw} in {setting.source}")
    return row


def _counters() -> Iterator[tuple[str, Row]]:
    for row in INDEX.rows:
        for spelling in row.spellings:
            if spelling.source == windows.PERFORMANCE_COUNTER:
                for raw in spelling.raw:
                    yield raw, row


def _split(name: str) -> tuple[str, str] | None:
    """Object (empty if not given) and counter in lower case; None for a text that cannot be a counter's path."""
    match = _PATH.fullmatch(name.strip())
    return ((match[1] or "").strip().casefold(), match[2].strip().casefold()) if match else None


def _reasons(name: str, raw: str) -> Iterator[str]:
    for entry in LEFT_OUT:
        pattern = re.compile(entry.pattern, re.IGNORECASE)
        if entry.source == windows.PERFORMANCE_COUNTER and pattern.fullmatch(raw):
            counter_object, _ = windows.counter_path(raw)
            yield f"{name} ({entry.dialect}, {counter_object}): not exported: {entry.reason.text}"

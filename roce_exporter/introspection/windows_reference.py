"""The settings of Windows, as a section of docs/metrics.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.windows import WINDOWS_SETTINGS
from roce_exporter.introspection.windows_explain import row_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def windows_settings() -> Iterator[str]:
    """The lines of the section."""
    yield "## Windows settings"
    yield ""
    yield (
        "Settings of WinOF-2, and the metric that a Linux host has for the same setting. No counter of Windows has their values, "
        "so Windows hosts have no such series."
    )
    yield ""
    yield "| setting | where | meaning | values | on Linux |"
    yield "| --- | --- | --- | --- | --- |"
    for one in WINDOWS_SETTINGS:
        metric = f"`{row_of(one).name}`" if one.source else "-"
        yield f"| `{one.name}` | {one.place} | {one.meaning} | {one.values} | {metric} |"
    yield ""

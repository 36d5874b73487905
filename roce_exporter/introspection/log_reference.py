"""The events of the kernel log, as a section of docs/metrics.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.kernel_events import EVENTS, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterator


def kernel_log_events() -> Iterator[str]:
    """The lines of the section."""
    yield "## Kernel log events"
    yield ""
    yield "Values of the label `event` of `roce_kernel_log_events_total`; `catalog/tables/kernel_log.txt` has the text of each message."
    yield ""
    yield "| event | severity | meaning | drivers |"
    yield "| --- | --- | --- | --- |"
    for event in EVENTS:
        yield f"| {event.name} | {event.severity} | {event.meaning} | {_drivers(event.name)} |"
    yield ""


def _drivers(event: str) -> str:
    rows = [one for one in MESSAGES if one.event == event]
    drivers = dict.fromkeys(driver for one in rows for driver in one.drivers if driver.islower())
    if all(one.drivers for one in rows):
        return ", ".join(drivers)
    return "any"

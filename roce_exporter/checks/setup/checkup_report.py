"""The check of a new host as one page for people, at most 100 columns wide, and as JSON for provisioning."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

from roce_exporter.checks.setup.checkup_item import Status, Topic, is_fit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.checks.setup.checkup_item import CheckupItem

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)

COLUMNS = 100

MARKS = {Status.OK: "ok", Status.ATTENTION: "FIX", Status.OPTIONAL: "more", Status.UNKNOWN: "?"}

TITLES = {
    Topic.DEVICES: "Devices",
    Topic.COUNTERS: "Counters",
    Topic.SETTINGS: "Settings",
    Topic.PRIVILEGES: "Privileges",
    Topic.CLOCK: "Clock",
    Topic.SCRAPING: "Scraping",
}

AFTERWARDS = "roce-exporter diagnose"
"""The command that looks for faults once the host can be watched."""


def checkup_text(items: tuple[CheckupItem, ...], source: str) -> str:
    """The page. `source` says which host was checked."""
    lines = [source, ""]
    for topic in Topic:
        found = [item for item in items if item.topic is topic]
        if found:
            lines += [TITLES[topic], *(line for item in found for line in _lines(item)), ""]
    return "\n".join([*lines, *textwrap.wrap(_conclusion(items), COLUMNS)]) + "\n"


def checkup_json(items: tuple[CheckupItem, ...], source: str) -> str:
    """The document of `doctor --format=json`: whether the host is fit, and the results."""
    document = {
        "host": source,
        "fit": is_fit(items),
        "items": [
            {"topic": item.topic.value, "status": item.status.value, "text": item.text, "next": item.next}
            for item in items
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _lines(item: CheckupItem) -> Iterator[str]:
    mark = f"  {MARKS[item.status]:<5}"
    yield from textwrap.wrap(item.text, COLUMNS, initial_indent=mark, subsequent_indent=" " * len(mark))
    if item.next:
        indent = " " * len(mark)
        yield from textwrap.wrap(
            f"-> {item.next}", COLUMNS, initial_indent=indent, subsequent_indent=f"{indent}   "
        )


def _conclusion(items: tuple[CheckupItem, ...]) -> str:
    number = sum(item.status is Status.ATTENTION for item in items)
    if not number:
        return f"Nothing needs attention. Next: `{AFTERWARDS}` looks for faults."
    return f"{number} {'results need' if number > 1 else 'result needs'} attention, marked FIX. Then: `{AFTERWARDS}`."

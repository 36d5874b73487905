"""Values in the replies of NVUE, the management interface of Cumulus Linux.

NVUE's JSON has plain numbers; its tables print bytes with a unit, and both forms are accepted. The unit is binary: the default
thresholds of ECN, 150000 and 1500000 bytes, are printed as `146.48 KB` and `1.43 MB`. A printed number with a unit above bytes is rounded,
which is good enough for a threshold and useless for a counter. Counters of discards count frames, also where a table prints `Bytes`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from roce_exporter.switches.numbers import number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.switches.readings import RawNumber

EXACT = re.compile(r"([0-9,]{1,26})(?:\s*(?:B|Bytes))?", re.ASCII)
SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(KB|MB|GB)", re.ASCII)
BYTES = {"KB": 1024, "MB": 1024**2, "GB": 1024**3}
ON = frozenset({"on", "enable", "enabled", "yes", "true"})
OFF = frozenset({"off", "disable", "disabled", "no", "false"})


def below(node: Any, *keys: str) -> Any:
    """The value below these keys; None where a level is missing or is no object."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def members(node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of an object, by key."""
    for key, value in node.items() if isinstance(node, dict) else ():
        if isinstance(value, dict):
            yield key, value


def classes(node: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of an object that are numbered 0 to 7: priorities, traffic classes, priority groups."""
    return ((key, value) for key, value in members(node) if len(key) == 1 and key in "01234567")


def exact(value: Any) -> RawNumber:
    """A counter: a number, or a text like `12 Bytes`. None for a rounded text."""
    found = EXACT.fullmatch(value.strip()) if isinstance(value, str) else None
    return number(found[1] if found else value)


def size(value: Any) -> RawNumber:
    """Bytes: a number, `40000 B`, or a rounded `153.00 KB`."""
    found = SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    return round(float(found[1]) * BYTES[found[2]]) if found else exact(value)


def switched(value: Any) -> int | None:
    """1 for on, 0 for off, in the words of any version; None for others."""
    if isinstance(value, bool):
        return int(value)
    word = value.strip().lower() if isinstance(value, str) else ""
    return 1 if word in ON else 0 if word in OFF else None


def state(value: Any) -> int | None:
    """As `switched`; NVUE also writes a state as an object with one key: `{"enabled": {}}`."""
    return switched(next(iter(value))) if isinstance(value, dict) and len(value) == 1 else switched(value)

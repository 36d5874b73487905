"""Numbers in the replies of switches, most of which are text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roce_exporter.host.sources.values import check_counter

if TYPE_CHECKING:
    from roce_exporter.switches.readings import RawNumber

DIGITS = re.compile(r"[0-9]{1,20}", re.ASCII)
GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3})+", re.ASCII)
ABSENT = frozenset({"", "-", "--", "N/A", "n/a", "NA", "None", "none", "null"})
"""How switches say that they do not have a value."""


def is_absent(value: object) -> bool:
    """Whether a value of a reply says that the switch does not have it."""
    return value is None or (isinstance(value, str) and value.strip() in ABSENT)


def number(value: object) -> RawNumber:
    """The unsigned 64-bit number in a value of a reply; None if it is not one.

    Text may have commas between thousands, as NX-OS prints them. NaN, negative numbers, fractions and 2^64 are not valid.
    """
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        checked: int | str = check_counter(value)
        return checked if isinstance(checked, int) else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    if GROUPED.fullmatch(text):
        text = text.replace(",", "")
    return number(int(text)) if DIGITS.fullmatch(text) else None

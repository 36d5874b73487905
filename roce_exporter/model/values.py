"""Parse counter files: the result is a number, or the reason why it is missing."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from roce_exporter.model import Loss, Reading

FILE_BYTES = 64  # bytes read of a counter file: a 64-bit number needs 21

NOT_AVAILABLE = "not_available"
"""The driver itself reports that it has no such value, which is not a failure: `N/A (no PMA)` of mlx4 VFs and old iWARP
drivers, and all ones for ionic's unreadable descriptors."""
QUARANTINED = "quarantined"
EMPTY = "empty"
GARBAGE = "garbage"
TOO_LONG = "too_long"
OUT_OF_RANGE = "out_of_range"

DERIVED = "derived"
"""Derived from another value of the same reading, which is missing and is counted itself."""

NOT_ERRORS = frozenset({NOT_AVAILABLE, QUARANTINED, DERIVED})
"""Reasons that are not counted as read errors."""

ALL_ONES = (1 << 64) - 1
_ONES = b"\xff" * 8
"""`ALL_ONES` in memory, in any byte order."""


def unreadable(text: bytes | str) -> str:
    """Why there is no value in a text: it has none, or something else."""
    return GARBAGE if text.strip() else EMPTY


def parse_counter(text: bytes) -> int | str:
    """The unsigned 64-bit number in a counter file, or the reason (a string) why it is missing."""
    digits = text.strip()
    if digits.isdigit() and len(text) < FILE_BYTES:
        return check_counter(int(digits))
    if digits and len(text) >= FILE_BYTES:
        return TOO_LONG
    return NOT_AVAILABLE if digits.startswith(b"N/A") else unreadable(digits)


def parse_counters(texts: Sequence[bytes | OSError | None]) -> tuple[int, ...] | None:
    """The numbers in counter files, all at once; None if any is missing: `parse_counter` then returns the reason."""
    try:
        digits = b"".join(texts)  # type: ignore[arg-type]  # what is no text is a TypeError
        if not digits.translate(None, b"\n").isdigit() or max(map(len, texts)) >= FILE_BYTES:  # type: ignore[arg-type]  # all are texts here
            return None
        values = tuple(map(int, texts))  # type: ignore[arg-type]  # the same
    except (TypeError, ValueError):
        return None
    return values if max(values) < ALL_ONES else None


def check_counter(value: int | str) -> int | str:
    """The value, or the reason why it is not valid; what is a reason already stays."""
    if isinstance(value, str) or 0 <= value < ALL_ONES:
        return value
    return NOT_AVAILABLE if value == ALL_ONES else OUT_OF_RANGE


def check_counters(values: Sequence[int]) -> Sequence[int | str]:
    """Apply `check_counter` to numeric values; returns the same object if all are valid."""
    # A view of the kernel's numbers is searched as bytes: no Python number is made of values that no row uses.
    if isinstance(values, memoryview) and values.format == UNSIGNED_64 and _ONES not in values.tobytes():
        return values
    return values if max(values, default=0) < ALL_ONES else [check_counter(value) for value in values]


def reason_of(error: OSError) -> str:
    """The errno's name, such as `EINVAL`."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


NUMBERS = {int}

UNSIGNED_64 = "Q"
"""The format of a view of the kernel's 64-bit numbers."""


def make_reading(
    source: str,
    device: str,
    port: int,
    names: tuple[str, ...],
    found: Sequence[int | str],
    *,
    netdev: str = "",
) -> Reading:
    """A reading from the result for each name: a number, or the reason (a string) why it is missing."""
    if isinstance(found, memoryview):
        return Reading(
            source, device, port, names, found, (), netdev
        )  # numbers only, and never copied one by one
    if {*map(type, found)} <= NUMBERS:
        return Reading(source, device, port, names, tuple(found), (), netdev)  # type: ignore[arg-type]  # just checked
    values = tuple(value if isinstance(value, int) else None for value in found)
    losses = tuple(
        Loss(name, value) for name, value in zip(names, found, strict=True) if isinstance(value, str)
    )
    return Reading(source, device, port, names, values, losses, netdev)

"""What the text of a counter file means: a number, or the reason why there is none."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from roce_exporter.kernel import FILE_BYTES
from roce_exporter.model import Loss, Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_exporter.model import Device

NOT_AVAILABLE = "not_available"
"""The driver says itself that it has no such value: `N/A (no PMA)` of mlx4 VFs and old iWARP drivers, and the all
ones of ionic's unreadable descriptors. No failure."""
QUARANTINED = "quarantined"
EMPTY = "empty"
GARBAGE = "garbage"
TOO_LONG = "too_long"
OUT_OF_RANGE = "out_of_range"

DERIVED = "derived"
"""Made of another value of the same reading, which was lost and counted itself."""

NOT_ERRORS = frozenset({NOT_AVAILABLE, QUARANTINED, DERIVED})
"""Reasons that are not counted as read errors."""

ALL_ONES = (1 << 64) - 1


def parse_counter(text: bytes) -> int | str:
    """The unsigned 64-bit number that a counter file holds, or the reason (a text) why it holds none."""
    digits = text.strip()
    if digits.isdigit() and len(text) < FILE_BYTES:
        return check_counter(int(digits))
    if not digits:
        return EMPTY
    if len(text) >= FILE_BYTES:
        return TOO_LONG
    return NOT_AVAILABLE if digits.startswith(b"N/A") else GARBAGE


def parse_counters(texts: Sequence[bytes | OSError | None]) -> tuple[int, ...] | None:
    """The numbers that counter files hold, all at once; None where one holds none: then `parse_counter` knows why."""
    try:
        digits = b"".join(texts)  # type: ignore[arg-type]  # what is no text is a TypeError
        if not digits.translate(None, b"\n").isdigit() or max(map(len, texts)) >= FILE_BYTES:  # type: ignore[arg-type]  # all are texts here
            return None
        values = tuple(map(int, texts))  # type: ignore[arg-type]  # the same
    except (TypeError, ValueError):
        return None
    return values if max(values) < ALL_ONES else None


def check_counter(value: int) -> int | str:
    """The value, or the reason why it is none."""
    if 0 <= value < ALL_ONES:
        return value
    return NOT_AVAILABLE if value == ALL_ONES else OUT_OF_RANGE


def check_counters(values: Sequence[int]) -> Sequence[int | str]:
    """The values of counters that came as numbers, by the rule of `check_counter`; the same object when all are numbers."""
    return values if max(values, default=0) < ALL_ONES else [check_counter(value) for value in values]


def reason_of(error: OSError) -> str:
    """The errno's name (`EINVAL`), which is what an operator looks up."""
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


NUMBERS = {int}


def make_reading(
    source: str,
    device: str,
    port: int,
    names: tuple[str, ...],
    found: Sequence[int | str],
    *,
    netdev: str = "",
) -> Reading:
    """The reading of what was found under each name: a number, or the reason (a text) why there is none."""
    if {*map(type, found)} <= NUMBERS:
        return Reading(source, device, port, names, tuple(found), (), netdev)  # type: ignore[arg-type]  # just checked
    values = tuple(value if isinstance(value, int) else None for value in found)
    losses = tuple(
        Loss(name, value) for name, value in zip(names, found, strict=True) if isinstance(value, str)
    )
    return Reading(source, device, port, names, values, losses, netdev)


def check_netlink(device: Device) -> None:
    """Refuse to go on where RDMA netlink should answer and does not.

    Raises:
        OSError: with the errno that it failed with when the device was described.
    """
    if device.netlink_errno:
        raise OSError(device.netlink_errno, os.strerror(device.netlink_errno), "RDMA netlink")

"""The times of a recording's moments: the optional file `time` of each, seconds since 1970."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from roce_exporter.host.recorded.tree import RecordingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_exporter.host.recorded.tree import Tree

TIME = "time"
"""The name of the file."""

APART = 15.0
"""Seconds between the moments of a recording without times."""

_SECONDS = re.compile(rb"[0-9]{1,11}(\.[0-9]{1,9})?")


def print_time(seconds: float) -> str:
    """The content of the file."""
    return f"{seconds:.6f}\n"


def moment_times(trees: Sequence[Tree], path: str) -> tuple[float, ...]:
    """The time of each moment, increasing; without files the first is 0 and the others follow 15 s apart.

    Raises:
        RecordingError: a file is not a time, one is missing, or a moment is not later than the one before.
    """
    named = [tree.files.get(TIME) for tree in trees]
    if all(content is None for content in named):
        return tuple(APART * number for number in range(len(trees)))
    times = tuple(_time(content, number, path) for number, content in enumerate(named))
    for number, (before, after) in enumerate(pairwise(times), 1):
        if after <= before:
            raise RecordingError(
                f"recording {path}: moment {number}: its time {after:.3f} is not after {before:.3f}, the one before; "
                f"correct the files `{TIME}`"
            )
    return times


def _time(content: bytes | None, number: int, path: str) -> float:
    if content is None:
        raise RecordingError(
            f"recording {path}: moment {number} has no file `{TIME}`, but others have; add it, or remove the others"
        )
    text = content.strip()
    if not _SECONDS.fullmatch(text):
        shown = ascii(text[:20].decode("utf-8", "replace"))
        raise RecordingError(
            f"recording {path}: moment {number}: `{TIME}` is {shown}; write seconds since 1970, as `date +%s.%N` prints them"
        )
    return float(text)

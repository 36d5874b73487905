"""Which files this process has open, for tests that close what they opened."""

import gc
import os
from contextlib import suppress
from pathlib import Path


def open_descriptors() -> list[str]:
    """Return the numbers of all open descriptors, sorted as text.

    What earlier tests left to the garbage collector is closed first: it would otherwise be closed between two calls.
    """
    gc.collect()
    return sorted(os.listdir("/proc/self/fd"))


def open_below(folder: str | Path) -> list[str]:
    """The files at or below this folder that this process has open, sorted; others may be opened and closed by what earlier tests left to threads."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(one for one in found if Path(one).is_relative_to(folder))


def is_open(path: str) -> bool:
    """Whether this process has the file open."""
    return open_below(path) != []

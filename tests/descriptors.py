"""Which files this process has open, for tests that close what they opened."""

import gc
import os


def open_descriptors() -> list[str]:
    """Return the numbers of all open descriptors, sorted as text.

    What earlier tests left to the garbage collector is closed first: it would otherwise be closed between two calls.
    """
    gc.collect()
    return sorted(os.listdir("/proc/self/fd"))


def is_open(path: str) -> bool:
    """Whether this process has the file open; other files may be closed meanwhile by what earlier tests have left to threads."""
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return path in [os.readlink(link) for link in links if os.path.lexists(link)]

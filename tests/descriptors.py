"""Which files this process has open, for tests that close what they opened."""

import gc
import os


def open_descriptors() -> list[str]:
    """Return the numbers of all open descriptors, sorted as text.

    What earlier tests left to the garbage collector is closed first: it would otherwise be closed between two calls.
    """
    gc.collect()
    return sorted(os.listdir("/proc/self/fd"))

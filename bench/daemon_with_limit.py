"""roce_exporter as a daemon that also measures its physical limit: its own `pread`s alone, in the same process.

For each line on standard input it reads every counter file that the daemon has open, from a thread that does nothing else, and prints
the thread's CPU time in nanoseconds and the number of files.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from roce_exporter.cli import main
from roce_exporter.host.kernel import FILE_BYTES


def open_counter_files(tree: str) -> list[int]:
    """The descriptors of this process for files of the tree."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(link)
        except OSError:
            continue  # the descriptor of this listing
        if target.startswith(tree) and os.path.isfile(target):
            found.append(int(link.name))
    return sorted(found)


def measure(tree: str) -> None:
    """Answer each line of standard input."""
    descriptors: list[int] = []
    pread = os.pread
    for _ in sys.stdin:
        if not descriptors:
            descriptors = open_counter_files(tree)
        begun = time.thread_time_ns()
        for descriptor in descriptors:
            pread(descriptor, FILE_BYTES, 0)
        print(time.thread_time_ns() - begun, len(descriptors), flush=True)


if __name__ == "__main__":
    root = next(one.partition("=")[2] for one in sys.argv if one.startswith("--path.sysfs="))
    threading.Thread(target=measure, args=(os.path.realpath(root),), daemon=True).start()
    sys.exit(main())

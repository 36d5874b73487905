"""Which system calls does a scrape make? Counted by strace over some scrapes of a warm process."""

from __future__ import annotations

import collections
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from processes import start
from rivals import node_exporters
from scrape import ALL, SAME_COUNTERS
from tables import host, print_head, print_row

if TYPE_CHECKING:
    from processes import Running

PORTS = 16
SCRAPES = 10
OPENS = ("open", "openat")
FOLDERS = ("getdents64",)
READS = ("read", "pread64")
SCHEDULING = (
    "futex",
    "epoll_pwait",
    "epoll_wait",
    "nanosleep",
    "sched_yield",
    "tgkill",
    "rt_sigreturn",
    "getpid",
)
"""Calls of threads among themselves: strace slows everything down and so inflates them, and they reach no device."""

CALL = re.compile(r"^(?:\[pid +\d+\] |\d+ +)?(\w+)\(")


def count(running: Running) -> collections.Counter[str]:
    """How often `SCRAPES` scrapes made each system call."""
    with tempfile.NamedTemporaryFile("r") as trace:
        command = ["strace", "-f", "-qq", "-o", trace.name, "-p", str(running.process.pid)]
        tracer = subprocess.Popen(command)  # noqa: S603 - strace on a process of ours
        _wait_until_traced(running.process.pid)
        for _ in range(SCRAPES):
            running.scrape()
        tracer.send_signal(signal.SIGINT)
        tracer.wait()
        return collections.Counter(match[1] for line in trace if (match := CALL.match(line)))


def _wait_until_traced(process: int) -> None:
    tasks = Path(f"/proc/{process}/task")
    while any("TracerPid:\t0\n" in (task / "status").read_text() for task in tasks.iterdir()):
        time.sleep(0.01)


def main() -> None:
    """Print the table."""
    if not shutil.which("strace"):
        print("left out: needs strace (apt-get install strace)")
        return
    print_head("per scrape", "series", "calls", "of these opens", "folders", "reads", "calls per series")
    with host(PORTS) as tree:
        for rival in (*node_exporters("infiniband"), SAME_COUNTERS, ALL):
            with start(rival, tree) as running:
                for _ in range(5):
                    body = running.scrape().body
                counted = count(running)
                series = sum(not line.startswith(b"#") for line in body.splitlines())
                made = sum(number for name, number in counted.items() if name not in SCHEDULING) / SCRAPES
                groups = [sum(counted[name] for name in group) / SCRAPES for group in (OPENS, FOLDERS, READS)]
                print_row(rival.name, series, made, *groups, made / series)


if __name__ == "__main__":
    main()

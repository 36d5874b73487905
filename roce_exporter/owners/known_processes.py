"""Processes that were read for one device, known to the next ones for a short time.

The devices of a host are used by the same processes: eight ranks with sixteen NICs are 128 reads of /proc per round, for
eight processes. A process is read once; afterwards one file says whether its ID is still the same process.

**Why no owner is stale.** A process ID is a process only together with its start time. The start time is read before the
rest, and again each time that the rest is used. While it is equal the process has lived all the time in between, so what
was read is of that process. What a process can change while it lives (its cgroup, its command) is at most `LIFE` seconds old.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.owners.identify import owner_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from roce_exporter.host.kernel import ObjectKernel
    from roce_exporter.model.owner import Owner

LIFE = 10.0
"""Seconds for which a process is known. The first rounds of all devices begin within five."""

MOST = 4096
"""Processes that are known at once, some 2 MB; the one read first makes room."""


class KnownProcess(NamedTuple):
    """Who a process is."""

    process: int
    """The process ID; that of its process for a thread."""
    created: float
    """Seconds since 1970."""
    owner: Owner


class _Entry(NamedTuple):
    start: float
    until: float
    known: KnownProcess


class KnownProcesses:
    """The processes of a host. Used by the threads of all devices: no lock is held while /proc is read."""

    def __init__(
        self, kernel: ObjectKernel, clock: Callable[[], float], life: float = LIFE, *, anonymous: bool = False
    ) -> None:
        """`clock` returns monotonic seconds; `life` is in seconds; with `anonymous` owners have no command and user."""
        self._kernel = kernel
        self._clock = clock
        self._life = life
        self._anonymous = anonymous
        self._lock = threading.Lock()
        self._entries: dict[int, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def find(self, pid: int) -> KnownProcess:
        """The process or thread that has this ID now.

        Raises:
            Absent: there is none.
            OSError: /proc hides it, or cannot be read.
        """
        start, now = self._kernel.process_start(pid), self._clock()
        entry = self._entries.get(pid)
        if entry is not None and entry.start == start and now < entry.until:
            return entry.known
        facts = self._kernel.process(pid)
        known = KnownProcess(facts.pid, facts.created, owner_of(facts, anonymous=self._anonymous))
        self._keep(pid, _Entry(start, now + self._life, known))
        return known

    def forget(self) -> None:
        """Forget the processes whose time is over."""
        now = self._clock()
        with self._lock:
            self._entries = {pid: entry for pid, entry in self._entries.items() if now < entry.until}

    def clear(self) -> None:
        """Forget all processes."""
        with self._lock:
            self._entries = {}

    def _keep(self, pid: int, entry: _Entry) -> None:
        with self._lock:
            self._entries.pop(pid, None)
            while len(self._entries) >= MOST:
                del self._entries[next(iter(self._entries))]
            self._entries[pid] = entry

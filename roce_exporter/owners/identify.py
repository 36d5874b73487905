"""Who a process is: from its cgroup, command and user to an owner, with a guard against process IDs that were reused."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import Absent
from roce_exporter.model.owner import UNKNOWN_OWNER, Owner
from roce_exporter.owners.cgroup_path import ROOT, parse_cgroups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from roce_exporter.model.owner import ProcessFacts
    from roce_exporter.owners.known_processes import KnownProcess

PROCESS = "process"

LONGEST = 128
"""Characters of a label. Longer texts are cut and end in a hash of the whole."""


def label_text(text: str) -> str:
    """A text of the host as a label: every character printable, at most `LONGEST` characters."""
    safe = "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in text)
    return safe if len(safe) <= LONGEST else f"{safe[: LONGEST - 9]}-{_hash(safe)}"


def owner_of(facts: ProcessFacts, *, anonymous: bool = False) -> Owner:
    """The owner that a process belongs to. With `anonymous` neither its command nor its user is in the result."""
    place = parse_cgroups(facts.cgroups)
    command, user = ("", "") if anonymous else (facts.command, facts.user)
    if place.kind == ROOT:
        kind, name = PROCESS, _hash(facts.command) if anonymous else facts.command
    else:
        kind, name = place.kind, place.name
    texts = (f"{kind}/{name}", kind, command, user, *place[2:])
    return Owner(*map(label_text, texts))


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


class Roll:
    """Who the kernel's process IDs of one round are. Used by one thread at a time.

    The kernel reports the thread that created an object. Its ID works in /proc like that of its process.
    """

    def __init__(self, find: Callable[[int], KnownProcess], before: Mapping[int, float]) -> None:
        """`find` is that of `KnownProcesses`; `before` is `created` of the last round of the same device."""
        self.owners: dict[int, Owner] = {}
        """Per ID."""
        self.processes: dict[int, int] = {}
        """Per ID of a thread its process; IDs of which /proc reports nothing are missing."""
        self.created: dict[int, float] = {}
        """Creation time per ID."""
        self.hidden = 0
        """IDs that exist and of which /proc reports nothing."""
        self._find = find
        self._before = before

    def learn(self, pids: Iterable[int], listed: float) -> None:
        """Find the owners of IDs that the kernel listed at the Unix time `listed`, where they are not known yet."""
        for pid in pids:
            if pid and pid not in self.owners:
                self.owners[pid] = self._identify(pid, listed)

    def _identify(self, pid: int, listed: float) -> Owner:
        try:
            known = self._find(pid)
        except Absent:
            return UNKNOWN_OWNER
        except OSError:
            self.hidden += 1
            return UNKNOWN_OWNER
        self.created[pid] = known.created
        # One that an earlier round met is older than this list, even if the clock was set back since.
        if known.created > listed and self._before.get(pid) != known.created:
            return UNKNOWN_OWNER
        self.processes[pid] = known.process
        return known.owner

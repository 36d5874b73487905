"""Who a process is: the owner that its cgroup, command and user make it part of, and for how long that is known.

A cgroup is a container, a job step or a systemd unit by the text of /proc/PID/cgroup (cgroups(7)). Path forms of the kubelet with
the cgroupfs and systemd drivers, containerd, CRI-O, Docker and Podman, of Slurm's plugins cgroup/v1 and cgroup/v2, and of systemd
(systemd.slice(5), CGROUP_DELEGATION.md). A workload can be nested in another: the innermost one decides.

The devices of a host are used by the same processes: eight ranks with sixteen NICs are 128 reads of /proc per round, for
eight processes. A process is read once; afterwards one file says whether its ID is still the same process.

**Why no owner is stale.** A process ID is a process only together with its start time. The start time is read before the
rest, and again each time that the rest is used. While it is equal the process has lived all the time in between, so what
was read is of that process. What a process can change while it lives (its cgroup, its command) is at most `LIFE` seconds old.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

from roce_exporter.host.kernel import Absent, ObjectKernel
from roce_exporter.model.owner import UNKNOWN_OWNER, Owner, ProcessFacts

POD = "pod"
CONTAINER = "container"
SLURM = "slurm"
UNIT = "unit"
CGROUP = "cgroup"
ROOT = "root"

WORKLOADS = (POD, CONTAINER, SLURM)

_UID = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32}"
"""UID of a pod. Static pods have a hash of their file instead of a UUID. systemd's driver writes `_` for `-`."""

_POD = re.compile(rf"(?:^|[/-])pod(?P<pod>{_UID})(?=\.slice|[/:]|$)")
_CONTAINER = re.compile(r"(?:^|[/:-])(?P<container>[0-9a-f]{64}|[0-9a-f]{32}-[0-9]{5,})(?=\.scope|/|$)")
"""The ID is the whole component or follows the name of its runtime: `crio-ID.scope`. ECS on Fargate has the short form."""
_SLURM = re.compile(
    r"(?:^|/)(?=[^/]*slurm)[^/]+(?:/uid_\d+)?/job_(?P<job>\d+)(?:/step_(?P<step>[^/]+))?(?=/|$)"
)

_USERS = re.compile(r"(?:^|/)user@[^/]*\.service(?=/|$)")
"""The systemd of a user, who names everything below it."""
_MANAGER = re.compile(
    r"containerd|docker|kube|k3s|k0s|rke2|crio|cri-o|slurm|podman|libpod|nomad|ecs|yarn|hadoop|microk8s"
)
"""In the name of a unit below which pods and jobs are believed."""
_JOB_FOLDER = re.compile(r"(?:^|/)(?:jobs|jobid)/|(?:job|slot|task|alloc|container)[^/0-9]{0,3}[0-9]")
"""A folder below a unit that is one of many: a batch system has the jobs of a host below its service."""
_COMMON_SLICES = re.compile(r"(?:(?:system|machine|user|user-[0-9]+)\.slice(?:/|$))+")

_UNIT = re.compile(r"[^/]*\.(?:service|scope)")

_DELETED = " (deleted)"  # appended by the kernel to the path of a removed cgroup of version 2

_SYSTEMD = "name=systemd"
_UNIFIED = ""
_FIRST_CONTROLLERS = (_SYSTEMD, _UNIFIED, "memory", "devices", "freezer", "pids", "cpu", "cpuacct", "cpuset")
"""systemd keeps its hierarchy complete; the other controllers of version 1 may leave a process in a parent cgroup."""


class CgroupPlace(NamedTuple):
    """What a cgroup belongs to. Fields that do not apply are empty."""

    kind: str
    """One of the kinds above."""
    name: str = ""
    """Unique on the host among places of this kind."""
    pod_uid: str = ""
    """With dashes, as the API server prints it."""
    container_id: str = ""
    slurm_job: str = ""
    slurm_step: str = ""
    """`0`, `batch`, `extern`, `interactive`; `0+1` of a heterogeneous job."""
    unit: str = ""
    """As systemd prints it: escapes such as `\\x2d` are part of the unit's name."""


def parse_cgroups(text: str) -> CgroupPlace:
    """The place of a process by the content of its /proc/PID/cgroup, for version 1, version 2 and both mixed.

    A workload in any hierarchy wins: Slurm's plugin for version 1, for one, does not use systemd's hierarchy. So does a folder that only
    other controllers have, of a batch system that is a service to systemd.
    """
    places = {path: place_of(path) for path in _paths(text)}
    best = [place for place in places.values() if place.kind in WORKLOADS]
    known = [*list(places)[:1], *(path for path, place in places.items() if place.kind == UNIT)]
    jobs = [
        place
        for path, place in places.items()
        if place.kind == CGROUP
        and not _COMMON_SLICES.fullmatch(place.name)
        and not any(one.startswith(path) for one in known)
    ]
    other = [place for place in places.values() if place.kind != ROOT]
    return next(iter((*best, *jobs, *other)), CgroupPlace(ROOT))


def place_of(path: str) -> CgroupPlace:
    """The place that one path belongs to. `..` (seen from a cgroup namespace) is left out."""
    path = "/".join(part for part in path.split("/") if part not in ("", ".."))
    users = _USERS.search(path)
    believed = path[: users.end()] if users else path
    found = [match for form in (_POD, _CONTAINER, _SLURM) for match in form.finditer(believed)]
    if workload := _workload(believed, sorted(found, key=lambda match: match.end())):
        return workload
    parts = path.split("/")
    units = [position for position, part in enumerate(parts) if _UNIT.fullmatch(part)]
    if units and (users or not _JOB_FOLDER.search("/".join(parts[units[-1] + 1 :]))):
        # Slices are no part of the name: a unit has one name wherever its slice is. Units of a user's systemd, or of a container that
        # runs systemd, exist once per user or container: there the name has the outer units as well. systemd puts `_` before a
        # name that the kernel could confuse with a file of a cgroup.
        outer = parts[: units[-1] + 1]
        named = [part.removeprefix("_") for part in outer if not part.endswith(".slice")]
        return CgroupPlace(UNIT, "/".join(named), unit=named[-1])
    return CgroupPlace(CGROUP, path) if path else CgroupPlace(ROOT)


def _paths(text: str) -> list[str]:
    """The path of each hierarchy, those first that are most specific."""
    # A name of a cgroup may have any character but a line feed.
    fields = [line.split(":", 2) for line in text.split("\n")]
    lines = [(one[1].split(","), one[2]) for one in fields if len(one) == 3]  # noqa: PLR2004 - hierarchy, controllers, path

    def rank(line: tuple[list[str], str]) -> int:
        places = [_FIRST_CONTROLLERS.index(one) for one in line[0] if one in _FIRST_CONTROLLERS]
        return min(places, default=len(_FIRST_CONTROLLERS))

    return [path.removesuffix(_DELETED) for _, path in sorted(lines, key=rank)]


def _workload(path: str, found: list[re.Match[str]]) -> CgroupPlace | None:
    """The place of those of these workloads, of which each one is nested in the one before, whose names are believed; None without any."""
    pod = container = job = step = kind = ""
    end = 0
    for match in found:
        outer = path[: match.start()]
        inside = outer[end:].partition("/")[2]
        # Not through a unit that does not manage pods or jobs.
        outermost = not kind and not any(
            _UNIT.fullmatch(part) and not _MANAGER.search(part) for part in outer.split("/")
        )
        if match.re is _POD:
            if not (outermost or (kind == CONTAINER and not job and inside.startswith("kube"))):
                continue
            kind, pod, container = POD, match["pod"].replace("_", "-"), ""
        elif match.re is _CONTAINER:
            if container:
                continue
            kind, container = POD if kind == POD else CONTAINER, match["container"]
        else:
            if not (outermost or (kind in (POD, CONTAINER) and inside.startswith("system.slice"))):
                continue
            kind, job, step = SLURM, match["job"], match["step"] or ""
        end = match.end()
    if not kind:
        return None
    names = {
        POD: (pod, container[:12]),
        CONTAINER: (container[:12],),
        SLURM: (".".join(filter(None, (job, step))),),
    }
    return CgroupPlace(kind, "/".join(filter(None, names[kind])), pod, container, job, step)


PROCESS = "process"

LONGEST = 128  # characters of a label. Longer texts are cut and end in a hash of the whole.


def label_text(text: str) -> str:
    """A text of the host as a label: every character printable, at most `LONGEST` characters."""
    safe = "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in text)
    return safe if len(safe) <= LONGEST else f"{safe[: LONGEST - 9]}-{_hash(safe)}"


def owner_of(facts: ProcessFacts, *, anonymous: bool = False) -> Owner:
    """The owner that a process belongs to.

    With `anonymous` neither its command nor its user is in the result, and names that users may have chosen or that may hold a
    user's name (units, folders) are hashes: pods, containers and jobs of Slurm have numbers.
    """
    place = parse_cgroups(facts.cgroups)
    if place.kind == ROOT:
        place = CgroupPlace(PROCESS, facts.command)
    command, user = facts.command, facts.user
    if anonymous:
        command = user = ""
        if place.kind not in WORKLOADS:
            place = CgroupPlace(place.kind, _hash(place.name))
    return Owner(*map(label_text, (f"{place.kind}/{place.name}", place.kind, command, user, *place[2:])))


def _hash(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()


class ProcessOwners:
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
            if not pid or pid in self.owners:
                continue
            self.owners[pid] = UNKNOWN_OWNER
            try:
                known = self._find(pid)
            except Absent:
                continue
            except OSError:
                self.hidden += 1
                continue
            self.created[pid] = known.created
            # One that an earlier round met is older than this list, even if the clock was set back since.
            if known.created <= listed or self._before.get(pid) == known.created:
                self.processes[pid], self.owners[pid] = known.process, known.owner


LIFE = 10.0
"""Seconds for which a process is known. The first rounds of all devices begin within five."""

MOST = 4096  # processes that are known at once, some 2 MB; the one read first makes room


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
        with self._lock:
            self._entries.pop(pid, None)  # what is read again is not the one read first
            while len(self._entries) >= MOST:
                del self._entries[next(iter(self._entries))]
            self._entries[pid] = _Entry(start, now + self._life, known)
        return known

    def forget(self) -> None:
        """Forget the processes whose time is over."""
        now = self._clock()
        with self._lock:
            self._entries = {pid: entry for pid, entry in self._entries.items() if now < entry.until}

"""What a process belongs to, from the text of /proc/PID/cgroup (cgroups(7)): a container, a job step, a systemd unit.

Path forms of the kubelet with the cgroupfs and systemd drivers, containerd, CRI-O, Docker and Podman, of Slurm's plugins
cgroup/v1 and cgroup/v2, and of systemd (systemd.slice(5), CGROUP_DELEGATION.md). A workload can be nested in another:
the innermost one decides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

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
_SLURM = re.compile(r"(?:^|/)[^/]*slurm[^/]*(?:/uid_\d+)?/job_(?P<job>\d+)(?:/step_(?P<step>[^/]+))?(?=/|$)")

_PBS = re.compile(r"(?:^|/)pbs_jobs\.service/jobid/[^/]+")
"""OpenPBS has the jobs of a host below one unit. They are different owners, known by their path."""

_UNIT = re.compile(r"[^/]*\.(?:service|scope)")

_DELETED = " (deleted)"
"""Appended by the kernel to the path of a removed cgroup of version 2."""

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

    A workload in any hierarchy wins: Slurm's plugin for version 1, for one, does not use systemd's hierarchy.
    """
    places = [place_of(path) for path in _paths(text)]
    best = [place for place in places if place.kind in WORKLOADS]
    other = [place for place in places if place.kind != ROOT]
    return next(iter((*best, *other)), CgroupPlace(ROOT))


def place_of(path: str) -> CgroupPlace:
    """The place that one path belongs to. `..` (seen from a cgroup namespace) is left out."""
    path = "/".join(part for part in path.split("/") if part not in ("", ".."))
    found = [match for form in (_POD, _CONTAINER, _SLURM) for match in form.finditer(path)]
    if found:
        return _workload(sorted(found, key=lambda match: match.end()))
    units = [position for position, part in enumerate(path.split("/")) if _UNIT.fullmatch(part)]
    if units and not _PBS.search(path):
        return _unit(path.split("/")[: units[-1] + 1])
    return CgroupPlace(CGROUP, path) if path else CgroupPlace(ROOT)


def _paths(text: str) -> Iterable[str]:
    """The path of each hierarchy, those first that are most specific."""
    # A name of a cgroup may have any character but a line feed.
    fields = [line.split(":", 2) for line in text.split("\n")]
    lines = [(controllers.split(","), path) for _, controllers, path in (f for f in fields if len(f) == 3)]  # noqa: PLR2004 - hierarchy, controllers, path

    def rank(line: tuple[list[str], str]) -> int:
        places = [_FIRST_CONTROLLERS.index(one) for one in line[0] if one in _FIRST_CONTROLLERS]
        return min(places, default=len(_FIRST_CONTROLLERS))

    return [path.removesuffix(_DELETED) for _, path in sorted(lines, key=rank)]


def _workload(found: list[re.Match[str]]) -> CgroupPlace:
    """The place of these workloads, of which each one is nested in the one before."""
    pod = container = job = step = kind = ""
    for match in found:
        if match.re is _POD:
            kind, pod, container = POD, match["pod"].replace("_", "-"), ""
        elif match.re is _CONTAINER:
            # A container in a container of a pod belongs to the pod as well.
            kind, container = POD if kind == POD else CONTAINER, match["container"]
        else:
            kind, job, step = SLURM, match["job"], match["step"] or ""
    names = {
        POD: (pod, container[:12]),
        CONTAINER: (container[:12],),
        SLURM: (".".join(filter(None, (job, step))),),
    }
    return CgroupPlace(kind, "/".join(filter(None, names[kind])), pod, container, job, step)


def _unit(parts: list[str]) -> CgroupPlace:
    """The place of a unit: the last part. Slices are no part of the name: a unit has one name wherever its slice is.

    Units of a user's systemd, or of a container that runs systemd, exist once per user or container: there the name
    has the outer units as well.
    """
    named = [_unescape(part) for part in parts if not part.endswith(".slice")]
    return CgroupPlace(UNIT, "/".join(named), unit=named[-1])


def _unescape(part: str) -> str:
    """The unit's name. systemd puts `_` before a name that the kernel could confuse with a file of a cgroup."""
    return part.removeprefix("_")

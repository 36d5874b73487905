"""Replacements in what /proc reports of processes: users, and the names of pods, containers, jobs and instances in cgroups.

Each keeps its form, so that the owner of a cgroup is found in the recording as on the host. Commands are kept. A part of
a path that has no known form may be the name of a project or a person, so it is replaced, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roce_exporter.host.recorded.scrub import Scrubber
    from roce_exporter.model.owner import ProcessFacts

ROOT = "root"

_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_POD = re.compile(r"(?<=pod)[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}(?![0-9a-f])")
_STATIC_POD = re.compile(r"(?<=pod)[0-9a-f]{32}(?![0-9a-f])")
"""The UID of a static pod is a hash without hyphens."""
_JOB = re.compile(r"(?<=^job_)\d+$", re.ASCII)
_UID = re.compile(r"(?<=^uid_)\d+$|(?<=^user-)\d+(?=\.slice$)|(?<=^user@)\d+(?=\.service$)", re.ASCII)
_INSTANCE = re.compile(r"(?<=@)[^@]+(?=\.(?:service|socket|slice)$)")
_MACHINE = re.compile(r"(?<=^machine-).+(?=\.(?:scope|slice)$)")

_NODE = re.compile(r"(?<=^slurm_).+|.+(?=_slurmstepd\.scope$)")
"""Slurm puts the name of the node there if one host has several."""

_UNIT = re.compile(r".+\.(?:service|scope|slice|socket|mount|swap)")
_KNOWN = re.compile(
    r"|\.\.|init|user|system|slurm(?:_.+)?|docker|lxc|libpod|kubepods|besteffort|burstable|guaranteed"
    r"|(?:step|task|job|uid)_[\w.+]+|pod[0-9a-f_-]{32,36}"
    r"|(?:(?:crio|docker|libpod|cri-containerd)-|[\w.-]+:cri-containerd:)?[0-9a-f]{64}"
)
_DELETED = " (deleted)"
"""Appended by the kernel to the path of a removed cgroup of version 2."""

_LOCAL_UIDS = 60_000
"""Replaced user numbers are above it."""


def scrub_user(scrub: Scrubber, user: str) -> str:
    """The replacement of a user's name or number; `root` stays."""
    return user if user in ("", ROOT) else scrub.numbered("user", user, lambda number: f"user{number}")


def scrub_process(scrub: Scrubber, facts: ProcessFacts) -> ProcessFacts:
    """The process with everything replaced that names a user, a pod, a container, a job or an instance."""
    lines = (_line(scrub, line, facts.user) for line in facts.cgroups.splitlines())
    return facts._replace(user=scrub_user(scrub, facts.user), cgroups="".join(f"{line}\n" for line in lines))


def _line(scrub: Scrubber, line: str, user: str) -> str:
    """A line of /proc/PID/cgroup: `HIERARCHY:CONTROLLERS:PATH`."""
    head, colon, path = line.partition(":/")
    here = path.removesuffix(_DELETED)
    parts = (_part(scrub, part, user) for part in here.split("/"))
    return f"{head}{colon}{'/'.join(parts)}{path.removeprefix(here)}"


def _part(scrub: Scrubber, part: str, user: str) -> str:
    if not (_UNIT.fullmatch(part) or _KNOWN.fullmatch(part)):
        return scrub.numbered("cgroup", part, lambda number: f"group{number}")
    part = _CONTAINER.sub(lambda found: scrub.numbered("container", found[0], _container), part)
    part = _POD.sub(lambda found: _pod(scrub, found[0]), part)
    part = _STATIC_POD.sub(lambda found: scrub.numbered("pod", found[0], lambda n: f"{n:032x}"), part)
    part = _NODE.sub(lambda found: scrub.numbered("node", found[0], lambda n: f"node{n}"), part)
    part = _JOB.sub(lambda found: scrub.numbered("job", found[0], str), part)
    part = _UID.sub(lambda found: scrub.numbered("uid", found[0], lambda n: str(_LOCAL_UIDS + n)), part)
    if not _UID.search(part):
        for pattern in (_INSTANCE, _MACHINE):
            part = pattern.sub(lambda found: scrub.numbered("instance", found[0], _instance), part)
    return _without_name(scrub, part, user)


def _without_name(scrub: Scrubber, part: str, user: str) -> str:
    """The part without this user's name where it is a word of it: units such as `jupyter-alice.service`."""
    if user in ("", ROOT) or user.isdecimal():
        return part
    word = rf"(?<![^\W_]){re.escape(user)}(?![^\W_])"
    return re.sub(word, scrub_user(scrub, user), part)


def _container(number: int) -> str:
    # The first twelve digits name a container.
    return f"{number:012x}".ljust(64, "0")


def _pod(scrub: Scrubber, uid: str) -> str:
    separator = "_" if "_" in uid else "-"
    made = scrub.numbered(
        "pod", uid.replace("_", "-"), lambda number: f"00000000-0000-4000-8000-{number:012x}"
    )
    return made.replace("-", separator)


def _instance(number: int) -> str:
    return f"instance{number}"

"""Cgroups of the shapes of kubelet (both drivers), Slurm and systemd, and the labels that their owners must have."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from daemon import wait_until
from nic import run

CGROUPS = Path("/sys/fs/cgroup")
POD, OTHER_POD = "8d3b1c6e-52a7-4f0e-9c1d-6b2f0a7e4d11", "1f4e0a92-7c35-4b1d-8e60-2a9d5c3b7f08"
CONTAINER, OTHER_CONTAINER = "3e" * 32, "a7" * 32


class Place(NamedTuple):
    """A cgroup, and the labels that its owner must have."""

    path: str
    owner: str
    labels: dict[str, str]


SYSTEMD_DRIVER = Place(
    f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD.replace('-', '_')}.slice"
    f"/cri-containerd-{CONTAINER}.scope",
    f"pod/{POD}/{CONTAINER[:12]}",
    {"kind": "pod", "pod_uid": POD, "container_id": CONTAINER},
)
CGROUPFS_DRIVER = Place(
    f"kubepods/burstable/pod{OTHER_POD}/{OTHER_CONTAINER}",
    f"pod/{OTHER_POD}/{OTHER_CONTAINER[:12]}",
    {"kind": "pod", "pod_uid": OTHER_POD, "container_id": OTHER_CONTAINER},
)
STEP = Place(
    "system.slice/slurmstepd.scope/job_4711/step_0/user/task_0",
    "slurm/4711.0",
    {"kind": "slurm", "slurm_job": "4711", "slurm_step": "0"},
)
TARGET = Place(
    "system.slice/storage-target.service",
    "unit/storage-target.service",
    {"kind": "unit", "unit": "storage-target.service"},
)
PLACES = (SYSTEMD_DRIVER, CGROUPFS_DRIVER, STEP, TARGET)


@contextmanager
def made() -> Iterator[None]:
    """All of them exist until the block ends."""
    run("mount", "-t", "cgroup2", "cgroup2", str(CGROUPS))
    for place in PLACES:
        (CGROUPS / place.path).mkdir(parents=True)
    yield
    for place in PLACES:
        wait_until(lambda place=place: not members(place))
        for folder in (place.path, *map(str, Path(place.path).parents[:-1])):
            if not any((CGROUPS / folder).glob("*/")):
                (CGROUPS / folder).rmdir()
    run("umount", str(CGROUPS))


def members(place: Place) -> list[str]:
    """Processes in the cgroup, by their IDs on the host."""
    return (CGROUPS / place.path / "cgroup.procs").read_text().split()


def into(place: Place, *then: str) -> tuple[str, ...]:
    """A command that runs another in the cgroup."""
    return ("sh", "-c", f'echo $$ > {CGROUPS}/{place.path}/cgroup.procs && exec "$@"', "sh", *then)


@contextmanager
def frozen(*places: Place) -> Iterator[None]:
    """All processes in these cgroups are stopped: their objects stay as they are."""
    for place in places:
        freeze(place)
    try:
        yield
    finally:
        for place in places:
            freeze(place, 0)


def freeze(place: Place, how: int = 1) -> None:
    """Freeze or, with 0, thaw all processes in a cgroup, and wait until they are."""
    (CGROUPS / place.path / "cgroup.freeze").write_text(str(how))
    events = CGROUPS / place.path / "cgroup.events"
    wait_until(lambda: f"frozen {how}" in events.read_text())

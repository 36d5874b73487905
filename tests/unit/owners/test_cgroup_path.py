"""What /proc/PID/cgroup says on hosts of every kind: kubelets, container engines, Slurm, systemd, cgroup namespaces.

Constructed, with invented IDs: each group names the program, and where it is known the file, that makes such paths. The
forms were compared with the tests of other readers of these paths (ceems, containerd, opentelemetry, podman).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.owners.identify import (
    CGROUP,
    CONTAINER,
    POD,
    ROOT,
    SLURM,
    UNIT,
    CgroupPlace,
    parse_cgroups,
)

UID = "2b801b7a-5266-4386-864e-45ed71136371"
UNDERSCORES = UID.replace("-", "_")
STATIC = "8bc9ba2e02ab9dbb6eb3f7fd4ea8a1b3"
"""The UID of a static pod: a hash."""
ID = "20e061fc708d3b66dfe257b19552b34a1307a7347ed6b5bd0d8c5e76afb1a870"
SHORT = "20e061fc708d"
OTHER_ID = "bd4a8d1fa5e1b2cd8d1f0c3e9a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b"

IN_POD = CgroupPlace(POD, f"{UID}/{SHORT}", UID, ID)
IN_STATIC_POD = CgroupPlace(POD, f"{STATIC}/{SHORT}", STATIC, ID)
IN_CONTAINER = CgroupPlace(CONTAINER, SHORT, container_id=ID)


def step(job: str, step: str = "") -> CgroupPlace:
    return CgroupPlace(SLURM, f"{job}.{step}" if step else job, slurm_job=job, slurm_step=step)


def unit(name: str, inside: str = "") -> CgroupPlace:
    return CgroupPlace(UNIT, f"{inside}{name}", unit=name)


KUBEPODS = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORES}.slice"

KUBELET = {
    # kubelet, --cgroup-driver=systemd: pkg/kubelet/cm/cgroup_manager_linux.go (ToSystemd), runtimes' own scopes
    "systemd, containerd, burstable": (f"0::{KUBEPODS}/cri-containerd-{ID}.scope", IN_POD),
    "systemd, CRI-O": (f"0::{KUBEPODS}/crio-{ID}.scope", IN_POD),
    "systemd, CRI-O's monitor": (f"0::{KUBEPODS}/crio-conmon-{ID}.scope", IN_POD),
    "systemd, static pod": (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{STATIC}.slice/cri-containerd-{ID}.scope",
        IN_STATIC_POD,
    ),
    "systemd, a pod that runs systemd": (
        f"0::{KUBEPODS}/cri-containerd-{ID}.scope/system.slice/sshd.service",
        IN_POD,
    ),
    "systemd, the pod's own cgroup": (f"0::{KUBEPODS}", CgroupPlace(POD, UID, UID)),
    # kubelet, --cgroup-driver=cgroupfs
    "cgroupfs, burstable": (f"0::/kubepods/burstable/pod{UID}/{ID}", IN_POD),
    "cgroupfs, guaranteed": (f"0::/kubepods/pod{UID}/{ID}", IN_POD),
    "cgroupfs, static pod": (f"0::/kubepods/burstable/pod{STATIC}/{ID}", IN_STATIC_POD),
    "cgroupfs, CRI-O": (f"0::/kubepods/burstable/pod{UID}/crio-{ID}", IN_POD),
    "cgroupfs, below --cgroup-root": (f"0::/prod/kubepods/burstable/pod{UID}/{ID}", IN_POD),
    # kubelet with systemd and containerd without SystemdCgroup: the runtime takes systemd's triple as a name
    "colons, at the root": (f"0::/kubepods-burstable-pod{UNDERSCORES}.slice:cri-containerd:{ID}", IN_POD),
    "colons, below the runtime": (
        f"0::/system.slice/containerd.service/kubepods-burstable-pod{UNDERSCORES}.slice:cri-containerd:{ID}",
        IN_POD,
    ),
    # cgroup version 1: the same path in every hierarchy
    "version 1": (
        "\n".join(
            f"{number}:{name}:/kubepods/besteffort/pod{UID}/{ID}"
            for number, name in ((11, "pids"), (10, "cpuset"), (9, "cpu,cpuacct"), (1, "name=systemd"))
        )
        + "\n0::/system.slice/containerd.service",
        IN_POD,
    ),
    # a cluster in containers: kind and k3d start nodes with Docker
    "kind": (
        (
            f"0::/system.slice/docker-{OTHER_ID}.scope/kubelet.slice/kubelet-kubepods.slice"
            f"/kubelet-kubepods-pod{UNDERSCORES}.slice/cri-containerd-{ID}.scope"
        ),
        IN_POD,
    ),
    "kind, cgroupfs": (f"0::/docker/{OTHER_ID}/kubelet/kubepods/besteffort/pod{UID}/{ID}", IN_POD),
    "k3s in Docker": (f"0::/docker/{OTHER_ID}/kubepods/burstable/pod{UID}/{ID}", IN_POD),
    "Docker in a pod": (
        f"0::/kubepods/burstable/pod{UID}/{ID}/docker/{OTHER_ID}",
        IN_POD,
    ),
}

ENGINES = {
    # moby: daemon/oci_linux.go, native.cgroupdriver
    "Docker, systemd": (f"0::/system.slice/docker-{ID}.scope", IN_CONTAINER),
    "Docker, cgroupfs": (f"0::/docker/{ID}", IN_CONTAINER),
    "Docker, version 1": (
        f"12:devices:/docker/{ID}\n3:memory:/docker/{ID}\n1:name=systemd:/docker/{ID}\n0::/",
        IN_CONTAINER,
    ),
    "Docker, --cgroup-parent": (f"0::/batch.slice/docker-{ID}.scope", IN_CONTAINER),
    "Docker, rootless": (
        f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{ID}.scope",
        unit(f"docker-{ID}.scope", "user@1000.service/"),
    ),
    "Docker, a container that runs systemd": (
        f"0::/system.slice/docker-{ID}.scope/system.slice/nginx.service",
        IN_CONTAINER,
    ),
    # podman: pkg/specgen/generate/oci_linux.go, libpod/container_internal_linux.go
    "Podman, systemd": (f"0::/machine.slice/libpod-{ID}.scope", IN_CONTAINER),
    "Podman, a pod": (
        f"0::/machine.slice/machine-libpod_pod_{OTHER_ID}.slice/libpod-{ID}.scope",
        IN_CONTAINER,
    ),
    "Podman, cgroupfs": (f"0::/libpod_parent/libpod-{ID}", IN_CONTAINER),
    "Podman, its monitor": (f"0::/machine.slice/libpod-conmon-{ID}.scope", IN_CONTAINER),
    "Podman, rootless": (
        f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container",
        unit(f"libpod-{ID}.scope", "user@1000.service/"),
    ),
    "Podman, --cgroups=split in a service": (
        f"0::/system.slice/web.service/libpod-payload-{ID}",
        IN_CONTAINER,
    ),
    # nerdctl, ECS
    "nerdctl": (f"0::/system.slice/nerdctl-{ID}.scope", IN_CONTAINER),
    "nerdctl, cgroupfs": (f"0::/default/{ID}", IN_CONTAINER),
    "ECS": (f"9:perf_event:/ecs/cluster/{STATIC}/{ID}", IN_CONTAINER),
    "ECS on Fargate": (
        f"1:name=systemd:/ecs/{STATIC}/{STATIC}-2531612879",
        CgroupPlace(CONTAINER, STATIC[:12], container_id=f"{STATIC}-2531612879"),
    ),
    # engines that name cgroups after the container, not after an ID
    "LXC": ("0::/lxc.payload.web", CgroupPlace(CGROUP, "lxc.payload.web")),
    "LXC that runs systemd": (
        "0::/lxc.payload.web/system.slice/ssh.service",
        unit("ssh.service", "lxc.payload.web/"),
    ),
    "ctr run": ("0::/default/redis", CgroupPlace(CGROUP, "default/redis")),
}

SLURM_PLUGINS = {
    # src/plugins/cgroup/v1/cgroup_v1.c and xcgroup.c
    "version 1, a task": ("4:cpuset:/slurm/uid_1000/job_42/step_0/task_3", step("42", "0")),
    "version 1, a step": ("4:freezer:/slurm/uid_1000/job_42/step_0", step("42", "0")),
    "version 1, the batch script": ("4:memory:/slurm/uid_0/job_42/step_batch/task_0", step("42", "batch")),
    "version 1, a heterogeneous step": ("4:memory:/slurm/uid_0/job_42/step_1+2/task_0", step("42", "1+2")),
    "version 1, several slurmd": ("4:memory:/slurm_host-17/uid_0/job_42/step_0/task_0", step("42", "0")),
    "version 1, the job alone": ("4:memory:/slurm/uid_0/job_42", step("42")),
    "version 1, the user alone": ("4:memory:/slurm/uid_0", CgroupPlace(CGROUP, "slurm/uid_0")),
    "version 1, with systemd's hierarchy": (
        (
            "12:pids:/system.slice/slurmd.service\n11:freezer:/slurm/uid_1000/job_42/step_0\n10:blkio:/system.slice\n"
            "5:memory:/slurm/uid_1000/job_42/step_0/task_0\n1:name=systemd:/system.slice/slurmd.service\n0::/"
        ),
        step("42", "0"),
    ),
    # src/plugins/cgroup/v2/cgroup_v2.c
    "version 2, a task": ("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", step("42", "0")),
    "version 2, slurmstepd of a step": (
        "0::/system.slice/slurmstepd.scope/job_42/step_0/slurm",
        step("42", "0"),
    ),
    "version 2, several slurmd": (
        "0::/system.slice/node17_slurmstepd.scope/job_42/step_extern/user/task_0",
        step("42", "extern"),
    ),
    "version 2, no job": ("0::/system.slice/slurmstepd.scope/system", unit("slurmstepd.scope")),
    # slurmd in a pod (Slinky): the job is inside
    "in a pod": (
        f"0::{KUBEPODS}/cri-containerd-{ID}.scope/system.slice/slurmstepd.scope/job_7/step_0/user/task_0",
        CgroupPlace(SLURM, "7.0", UID, ID, "7", "0"),
    ),
    # a container in a job, by the engine's cgroup parent
    "a container in a job": (
        f"4:memory:/slurm/uid_1000/job_42/step_0/{ID}",
        CgroupPlace(CONTAINER, SHORT, "", ID, "42", "0"),
    ),
}

SYSTEMD = {
    # systemd: man pages systemd.slice and systemd.scope, docs/CGROUP_DELEGATION.md
    "a service": ("0::/system.slice/nvmet.service", unit("nvmet.service")),
    "a service in a slice of its own": (
        "0::/system.slice/system-getty.slice/getty@tty1.service",
        unit("getty@tty1.service"),
    ),
    "a delegated subgroup": (
        "0::/system.slice/ceph-osd@3.service/supervisor/worker-1",
        unit("ceph-osd@3.service"),
    ),
    "an escaped instance": (
        "0::/system.slice/system-systemd\\x2dfsck.slice/systemd-fsck@dev-disk-by\\x2duuid-1.service",
        unit("systemd-fsck@dev-disk-by\\x2duuid-1.service"),
    ),
    "a name that the kernel could confuse": ("0::/system.slice/_cpu.service", unit("cpu.service")),
    "a session": ("0::/user.slice/user-1000.slice/session-3.scope", unit("session-3.scope")),
    "a service of a user": (
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service",
        unit("jupyter.service", "user@1000.service/"),
    ),
    "the systemd of a user": (
        "0::/user.slice/user-1000.slice/user@1000.service/init.scope",
        unit("init.scope", "user@1000.service/"),
    ),
    "a virtual machine": (
        "0::/machine.slice/machine-qemu\\x2d1\\x2dtrain.scope/libvirt/vcpu0",
        unit("machine-qemu\\x2d1\\x2dtrain.scope"),
    ),
    "systemd-nspawn": (
        "0::/machine.slice/machine-web.scope/payload/system.slice/nginx.service",
        unit("nginx.service", "machine-web.scope/payload/"),
    ),
    "systemd itself": ("0::/init.scope", unit("init.scope")),
    "a slice alone": ("0::/user.slice/user-1000.slice", CgroupPlace(CGROUP, "user.slice/user-1000.slice")),
    "both versions": (
        "9:memory:/system.slice\n4:rdma:/\n1:name=systemd:/system.slice/ibacm.service\n0::/system.slice/ibacm.service",
        unit("ibacm.service"),
    ),
    "version 1, only systemd's hierarchy is complete": (
        "9:memory:/user.slice\n1:name=systemd:/user.slice/user-0.slice/session-1.scope",
        unit("session-1.scope"),
    ),
    "version 1 without systemd": ("3:cpuset:/torque/12.host\n2:cpu:/", CgroupPlace(CGROUP, "torque/12.host")),
    # other batch systems: one owner per job, known by its path
    "OpenPBS": (
        "0::/pbs_jobs.service/jobid/1042.head/child",
        CgroupPlace(CGROUP, "pbs_jobs.service/jobid/1042.head/child"),
    ),
    "LSF": ("0::/lsf/site/job.1042.1", CgroupPlace(CGROUP, "lsf/site/job.1042.1")),
    "libvirt without systemd": (
        "0::/machine/qemu-1-train.libvirt-qemu/libvirt",
        CgroupPlace(CGROUP, "machine/qemu-1-train.libvirt-qemu/libvirt"),
    ),
    "a removed cgroup": ("0::/system.slice/old.service (deleted)", unit("old.service")),
}

BY_SERVICE = "1:name=systemd:/system.slice/{}.service\n2:pids:/system.slice/{}.service\n3:blkio:/\n4:cpuset:{}\n5:memory:{}"
BATCH = (
    {
        # batch systems whose jobs systemd does not know: version 1, then folders below their service with version 2
        name: (
            BY_SERVICE.format(service, service, path, path),
            CgroupPlace(CGROUP, path.strip("/")),
        )
        for name, service, path in (
            ("TORQUE", "pbs_mom", "/torque/999.pbs"),
            ("PBS Pro with slices", "pbs", "/pbspro.slice/pbspro-5012.server.slice"),
            ("LSF", "lsfd", "/lsf/site/job.1234.2211.1700000000"),
            ("HTCondor", "condor", "/htcondor/condor_var_lib_condor_execute_slot1_1@n01"),
            ("Grid Engine", "sgeexecd", "/UGE/5321.1"),
            ("Nomad", "nomad", "/nomad/5b13ab7d-8f2e-4d0e-9b0b-0a1f2c3d4e5f.start"),
            ("one that nobody knows", "flux", "/flux/f2bGBg"),
        )
    }
    | {
        name: (f"0::/{path}", CgroupPlace(CGROUP, path))
        for name, path in (
            ("OpenPBS, version 2", "pbs_jobs.service/jobs/12345.pbs"),
            ("LSF, version 2", "system.slice/lsfd.service/lsf/site/job.1234.2211.17"),
            ("HTCondor, version 2", "system.slice/condor.service/condor_execute_slot1_3@n01"),
        )
    }
    | {
        "Mesos": (
            "6:pids:/user.slice/user-0.slice/session-38.scope\n5:cpu,cpuacct:/mesos/3e84fc0b\n3:memory:/\n1:name=systemd:/mesos_executors.slice",
            CgroupPlace(CGROUP, "mesos/3e84fc0b"),
        ),
    }
)

MINE = "/user.slice/user-1000.slice/user@1000.service/app.slice"
ANOTHER = UID.replace("2", "3")
FORGED = {
    # who may make the folder is not whose name it has
    "a pod below a user": (f"0::{MINE}/pod{UID}/{ID}", unit("user@1000.service")),
    "kubepods below a user": (f"0::{MINE}/kubepods/burstable/pod{UID}/{ID}", unit("user@1000.service")),
    "a job below a user": (
        f"0::{MINE}/x.service/slurm/uid_0/job_1/step_0",
        unit("x.service", "user@1000.service/"),
    ),
    "a job's scope below a user": (
        f"0::{MINE}/slurmstepd.scope/job_4711/step_0",
        unit("slurmstepd.scope", "user@1000.service/"),
    ),
    "a job below a service": (
        "0::/system.slice/web.service/slurm/uid_0/job_1/step_0",
        CgroupPlace(CGROUP, "system.slice/web.service/slurm/uid_0/job_1/step_0"),
    ),
    "a pod below a service": (f"0::/system.slice/web.service/pod{UID}", unit("web.service")),
    "a job in a pod without systemd": (
        f"0::/kubepods/pod{UID}/{ID}/slurmstepd.scope/job_4711/step_0",
        IN_POD,
    ),
    "another pod in a pod": (f"0::/kubepods/pod{UID}/{ID}/pod{ANOTHER}/{OTHER_ID}", IN_POD),
    "a kubelet in a pod": (f"0::/kubepods/pod{UID}/{ID}/kubepods/pod{ANOTHER}/{OTHER_ID}", IN_POD),
    "a pod in a container without kubelet": (f"0::/docker/{ID}/pod{ANOTHER}/{OTHER_ID}", IN_CONTAINER),
    "a container in a container": (f"0::/docker/{ID}/docker/{OTHER_ID}", IN_CONTAINER),
    "a pod in a job": (
        f"0::/system.slice/slurmstepd.scope/job_42/step_0/user/kubepods/pod{UID}",
        step("42", "0"),
    ),
    "another job in a job": (
        "0::/system.slice/slurmstepd.scope/job_42/step_0/user/slurm/uid_0/job_1/step_0",
        step("42", "0"),
    ),
}

NAMESPACES = {
    # cgroup_namespaces(7): paths are relative to the root of the reader's namespace
    "another pod": (f"0::/../../kubepods-burstable-pod{UNDERSCORES}.slice/cri-containerd-{ID}.scope", IN_POD),
    "from the root of pods": (f"0::/../../..{KUBEPODS}/cri-containerd-{ID}.scope", IN_POD),
    "another container of the same pod": (f"0::/../cri-containerd-{ID}.scope", IN_CONTAINER),
    "the reader's own cgroup": ("0::/", CgroupPlace(ROOT)),
    "the host's root": ("0::/../../../..", CgroupPlace(ROOT)),
    "a service of the host": ("0::/../../../system.slice/nvmet.service", unit("nvmet.service")),
}

ODD = {
    "no text": ("", CgroupPlace(ROOT)),
    "the root": ("0::/\n", CgroupPlace(ROOT)),
    "no path": ("0::\n", CgroupPlace(ROOT)),
    "garbage": ("garbage\n::\n\0", CgroupPlace(ROOT)),
    "colons in a name": ("0::/a:b:c", CgroupPlace(CGROUP, "a:b:c")),
    "a line separator that is no line feed": ("0::/a\u2028b", CgroupPlace(CGROUP, "a\u2028b")),
    "an ID that is too short": ("0::/docker/20e061fc708d", CgroupPlace(CGROUP, "docker/20e061fc708d")),
    "an ID with another letter": (f"0::/docker/{ID[:-1]}x", CgroupPlace(CGROUP, f"docker/{ID[:-1]}x")),
    "a job of something else": ("0::/batch/job_42/step_0", CgroupPlace(CGROUP, "batch/job_42/step_0")),
}

FORMS = {
    f"{group}: {name}": form
    for group, forms in {
        "kubelet": KUBELET,
        "engines": ENGINES,
        "Slurm": SLURM_PLUGINS,
        "systemd": SYSTEMD,
        "batch systems": BATCH,
        "forged": FORGED,
        "namespaces": NAMESPACES,
        "odd": ODD,
    }.items()
    for name, form in forms.items()
}


@pytest.mark.parametrize(("text", "place"), FORMS.values(), ids=FORMS.keys())
def test_a_path_is_read(text: str, place: CgroupPlace) -> None:
    assert parse_cgroups(text) == place


@given(st.text())
def test_any_text_has_a_place(text: str) -> None:
    """No text raises: a path is whatever a process with CAP_SYS_ADMIN named it."""
    place = parse_cgroups(f"0::/{text}\n{text}")
    assert place.kind
    assert bool(place.name) == (place.kind != ROOT)

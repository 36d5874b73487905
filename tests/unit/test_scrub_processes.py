"""Users, pods, containers, jobs and instances in cgroups are replaced, and the owner keeps its kind."""

from __future__ import annotations

import pytest

from roce_exporter.owner_model import ProcessFacts
from roce_exporter.owners.cgroup_path import parse_cgroups
from roce_exporter.recording.scrub import Scrubber
from roce_exporter.recording.scrub_processes import scrub_process, scrub_user

UID = "7f1d4e02-5c38-4b6a-9d10-0123456789ab"
STATIC = "0123456789abcdef0123456789abcdef"
ID = "ab" * 32
NEW_UID = "00000000-0000-4000-8000-000000000001"
NEW_ID = "000000000001" + "0" * 52


def scrubbed(path: str, user: str = "alice") -> str:
    facts = ProcessFacts(7, 1.0, "python3", user, f"0::{path}\n")
    return scrub_process(Scrubber(), facts).cgroups.removeprefix("0::").removesuffix("\n")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/"),
        (
            (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
            f"/cri-containerd-{ID}.scope"),
            (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{NEW_UID.replace('-', '_')}.slice"
            f"/cri-containerd-{NEW_ID}.scope"),
        ),
        (f"/kubepods/besteffort/pod{UID}/{ID}", f"/kubepods/besteffort/pod{NEW_UID}/{NEW_ID}"),
        (f"/kubepods/pod{STATIC}/crio-{ID}", f"/kubepods/pod{1:032x}/crio-{NEW_ID}"),
        (
            f"/system.slice/containerd.service/kubepods-burstable-pod{UID.replace('-', '_')}.slice:cri-containerd:{ID}",
            ("/system.slice/containerd.service/kubepods-burstable-pod"
            f"{NEW_UID.replace('-', '_')}.slice:cri-containerd:{NEW_ID}"),
        ),
        (f"/docker/{ID}", f"/docker/{NEW_ID}"),
        (f"/machine.slice/libpod-{ID}.scope/container", f"/machine.slice/libpod-{NEW_ID}.scope/group1"),
        ("/slurm/uid_1234/job_987/step_0/task_3", "/slurm/uid_60001/job_1/step_0/task_3"),
        ("/slurm_gpu17/uid_1234/job_987/step_batch", "/slurm_node1/uid_60001/job_1/step_batch"),
        (
            "/system.slice/gpu17_slurmstepd.scope/job_987/step_extern/user",
            "/system.slice/node1_slurmstepd.scope/job_1/step_extern/user",
        ),
        ("/system.slice/nvmf.service", "/system.slice/nvmf.service"),
        ("/system.slice/jupyter-alice.service", "/system.slice/jupyter-user1.service"),
        ("/system.slice/alicebob.service", "/system.slice/alicebob.service"),
        ("/system.slice/db@customer.service", "/system.slice/db@instance1.service"),
        ("/machine.slice/machine-acme.scope", "/machine.slice/machine-instance1.scope"),
        (
            "/user.slice/user-1234.slice/user@1234.service/app.slice/run-u3.scope",
            "/user.slice/user-60001.slice/user@60001.service/app.slice/run-u3.scope",
        ),
        ("/project-x/alice (deleted)", "/group1/group2 (deleted)"),
        ("/../../other", "/../../group1"),
    ],
)  # fmt: skip
def test_a_path_keeps_its_form(path: str, expected: str) -> None:
    assert scrubbed(path) == expected
    before, after = parse_cgroups(f"0::{path}\n"), parse_cgroups(f"0::{expected}\n")
    filled = [[bool(field) for field in place] for place in (before, after)]
    assert before.kind == after.kind
    assert filled[0] == filled[1]


def test_lines_of_version_1_keep_hierarchy_and_controllers() -> None:
    text = f"12:cpu,cpuacct:/docker/{ID}\n1:name=systemd:/docker/{ID}\n0::/\n"
    facts = scrub_process(Scrubber(), ProcessFacts(7, 1.0, "a", "0", text))
    assert facts.cgroups == text.replace(ID, NEW_ID)


def test_one_value_has_one_replacement_and_two_have_two() -> None:
    scrub = Scrubber()
    first, again, second = (
        scrub_process(scrub, ProcessFacts(7, 1.0, "a", user, f"0::/docker/{one * 32}\n"))
        for user, one in (("alice", "ab"), ("alice", "ab"), ("bob", "ac"))
    )
    assert first == again
    assert (first.user, second.user) == ("user1", "user2")
    assert parse_cgroups(first.cgroups).name != parse_cgroups(second.cgroups).name


def test_root_and_an_unknown_user_stay_and_commands_are_kept() -> None:
    scrub = Scrubber()
    assert [scrub_user(scrub, user) for user in ("root", "", "1000")] == ["root", "", "user1"]
    assert scrub_process(scrub, ProcessFacts(7, 1.0, "train.py", "root", "0::/\n")).command == "train.py"


def test_a_peer_has_the_same_replacement_as_the_address_of_a_gid() -> None:
    scrub = Scrubber()
    gid = scrub.gid("10.1.2.3")
    assert scrub.peer("10.1.2.3") == "198.18.0.1" == scrub.peer("::ffff:10.1.2.3")
    assert gid.endswith("ffff:c612:0001")
    assert scrub.peer("10.1.2.4") == "198.18.0.2"
    assert scrub.peer("2a00:1450::7") == "2001:db8::1"
    assert scrub.peer("fe80::7").startswith("fe80::200:ff:fe00:")

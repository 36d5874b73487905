"""Who a process is: names and labels of owners, reused process IDs, hidden processes."""

import errno

import pytest
from clock import EPOCH, Clock
from hypothesis import given
from hypothesis import strategies as st
from owner_fakes import FakeHost, process

from roce_exporter.model.owner import UNKNOWN_OWNER, Owner, ProcessFacts
from roce_exporter.owners.identify import LONGEST, KnownProcesses, ProcessOwners, label_text, owner_of

UID = "2b801b7a-5266-4386-864e-45ed71136371"
ID = "20e061fc708d3b66dfe257b19552b34a1307a7347ed6b5bd0d8c5e76afb1a870"


@pytest.mark.parametrize(
    ("cgroups", "owner"),
    [
        (
            f"0::/kubepods/pod{UID}/{ID}",
            Owner(f"pod/{UID}/20e061fc708d", "pod", "python3", "ada", pod_uid=UID, container_id=ID),
        ),
        (
            "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_3",
            Owner("slurm/42.0", "slurm", "python3", "ada", slurm_job="42", slurm_step="0"),
        ),
        (
            "0::/system.slice/nvmet.service",
            Owner("unit/nvmet.service", "unit", "python3", "ada", unit="nvmet.service"),
        ),
        ("0::/", Owner("process/python3", "process", "python3", "ada")),
    ],
)
def test_the_name_of_an_owner_follows_from_its_cgroup(cgroups, owner) -> None:
    assert owner_of(process(7, cgroups)) == owner


def test_an_anonymous_owner_has_neither_command_nor_user() -> None:
    in_pod = owner_of(process(7, f"0::/kubepods/pod{UID}/{ID}"), anonymous=True)
    assert in_pod == Owner(f"pod/{UID}/20e061fc708d", "pod", pod_uid=UID, container_id=ID)
    alone, same, other = (
        owner_of(process(pid, "0::/", command=command), anonymous=True)
        for pid, command in ((7, "trainer"), (8, "trainer"), (9, "reader"))
    )
    assert alone == same != other
    assert "trainer" not in "".join(alone)


@pytest.mark.parametrize(
    "cgroup",
    [
        "/system.slice/jupyter-ada-singleuser.service",
        "/user.slice/user-1000.slice/user@1000.service/app.slice/ada-training.service",
        "/batch/ada/job.7",
        "/lxc.payload.ada_trainer",
        "/",
    ],
)
def test_no_users_name_is_in_a_label_of_an_anonymous_owner(cgroup) -> None:
    found = owner_of(process(7, f"0::{cgroup}", command="ada-train"), anonymous=True)
    assert not [text for text in found if "ada" in text]


def test_bytes_that_are_no_text_are_escaped_or_hashed() -> None:
    facts = process(7, "0::/lxc/a\udcff\x1b", command="b")
    assert owner_of(facts).name.endswith("a\\xdcff\\x1b")
    assert owner_of(facts, anonymous=True).name.isprintable()


@given(st.text())
def test_any_text_makes_a_safe_label(text) -> None:
    label = label_text(text)
    assert len(label) <= LONGEST
    assert label.isprintable()
    label.encode()


def test_long_texts_that_differ_at_the_end_stay_different() -> None:
    first, second = label_text(500 * "a" + "1"), label_text(500 * "a" + "2")
    assert first != second
    assert len(first) == len(second) == LONGEST
    assert label_text(LONGEST * "a") == LONGEST * "a"


def known(
    processes: dict[int, ProcessFacts | OSError], before: dict[int, float] | None = None
) -> ProcessOwners:
    return ProcessOwners(KnownProcesses(FakeHost(processes=processes), Clock()).find, before or {})


ALIVE = process(7, "0::/system.slice/a.service", created=EPOCH + 100.0)


def test_a_process_is_read_once_per_round() -> None:
    found = known({7: ALIVE})
    found.learn([7, 7, 0], EPOCH + 200)
    found.learn([7], EPOCH + 50)
    assert {pid: owner.name for pid, owner in found.owners.items()} == {7: "unit/a.service"}


@pytest.mark.parametrize(
    ("processes", "before", "listed", "owner"),
    [
        ({7: ALIVE}, {}, 99, UNKNOWN_OWNER.name),  # it began after the list, so it is another one
        ({7: ALIVE}, {7: ALIVE.created}, -3600, "unit/a.service"),  # known, and the clock was set back
        ({7: ALIVE}, {}, 100, "unit/a.service"),
        ({}, {}, 200, UNKNOWN_OWNER.name),  # it ended
    ],
)
def test_processes_that_come_and_go(processes, before, listed, owner) -> None:
    found = known(processes, before)
    found.learn([7], EPOCH + listed)
    assert (found.owners[7].name, found.hidden) == (owner, 0)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EIO])
def test_a_process_that_cannot_be_read_is_hidden(number) -> None:
    found = known({7: OSError(number, "hidden"), 8: ALIVE._replace(pid=8)})
    found.learn([7, 8], EPOCH + 200)
    assert (found.owners[7], found.hidden) == (UNKNOWN_OWNER, 1)
    assert found.owners[8].kind == "unit"

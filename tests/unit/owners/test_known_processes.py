"""Processes read for one device and used for the next: never for another process, never for long, never without bound."""

import errno
import os
import threading

import pytest
from clock import EPOCH, Clock
from owner_fakes import FakeHost, device, following, process, queue_pair, shown
from waiting import Gate

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.owners import identify
from roce_exporter.owners.identify import LIFE, KnownProcesses

HIDDEN = PermissionError(errno.EACCES, "hidden")
JOB = process(7, "0::/slurm/uid_0/job_7")


def found_by(host: FakeHost, clock: Clock | None = None) -> KnownProcesses:
    return KnownProcesses(host, clock or Clock())


def test_a_process_is_read_once_in_its_time() -> None:
    host, clock = FakeHost(processes={7: JOB}), Clock()
    known = found_by(host, clock)
    assert known.find(7) is known.find(7)
    assert known.find(7)[:2] == (7, EPOCH)
    assert known.find(7).owner.name == "slurm/7"
    assert host.processes_read == [7]
    clock.now += LIFE
    known.find(7)
    assert host.processes_read == [7, 7]


@pytest.mark.parametrize("fault", [Absent(errno.ESRCH, "ended"), HIDDEN], ids=["ended", "hidden"])
def test_a_process_that_ended_or_was_hidden_is_not_known_any_more(fault) -> None:
    host = FakeHost(processes={7: JOB})
    known = found_by(host)
    known.find(7)
    host.processes[7] = fault
    with pytest.raises(type(fault)):
        known.find(7)


def test_a_process_that_is_replaced_while_it_is_read_is_read_again() -> None:
    """The facts are then those of the second process, and the start time that of the first one."""
    host = FakeHost(processes={7: JOB})
    read = host.process

    def replace(pid: int) -> object:
        host.processes[7] = process(7, "0::/slurm/uid_0/job_8", created=EPOCH + 1)
        return read(pid)

    host.process = replace  # type: ignore[method-assign, assignment]
    known = found_by(host)
    known.find(7)
    host.process = read  # type: ignore[method-assign]
    host.processes[7] = JOB._replace(created=EPOCH + 2)
    assert known.find(7).owner.name == "slurm/7"


def test_processes_whose_time_is_over_are_forgotten() -> None:
    host, clock = FakeHost(processes={7: JOB, 8: JOB._replace(pid=8)}), Clock()
    known = found_by(host, clock)
    known.find(7)
    clock.now += LIFE / 2
    known.find(8)
    clock.now += LIFE / 2
    known.forget()
    assert len(known) == 1


def test_the_number_of_known_processes_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(identify, "MOST", 3)
    host, clock = FakeHost(processes={pid: process(pid, "0::/") for pid in range(1, 6)}), Clock()
    known = found_by(host, clock)
    for pid in (1, 2, 3, 4, 2, 1):
        known.find(pid)
    assert len(known) == 3
    assert host.processes_read == [1, 2, 3, 4, 1], "the one that was read first makes room"
    clock.now += LIFE
    known.find(4)
    assert len(known) == 3, "one that is read again takes the place of no other"


def test_a_read_that_hangs_does_not_delay_others() -> None:
    host = FakeHost(processes={7: JOB, 8: JOB._replace(pid=8)})
    gate, read = Gate(), host.process
    host.process = lambda pid: (gate() if pid == 7 else None, read(pid))[1]  # type: ignore[method-assign, func-returns-value]
    known = found_by(host)
    stuck = threading.Thread(target=known.find, args=(7,))
    stuck.start()
    gate.wait()
    assert known.find(8).process == 8
    known.forget()
    gate.release()
    stuck.join()


def test_a_process_of_this_machine() -> None:
    known = KnownProcesses(LiveKernel(), Clock())
    assert known.find(os.getpid()) is known.find(os.getpid())


async def test_a_clock_that_is_set_back_makes_no_process_younger_than_its_objects() -> None:
    host, clock = FakeHost({"mlx5_0": [queue_pair(1, 7)]}, {7: JOB._replace(created=EPOCH + 900)}), Clock()
    found = following(host, clock=clock)
    for now in (1000, 500, 200):
        clock.now = now
        await found.read_once()
        assert "queue_pairs{device=mlx5_0,owner=slurm/7,state=RTS,type=RC}" in shown(found)


async def test_an_id_that_is_reused_between_two_devices_is_unknown_for_the_second() -> None:
    host = FakeHost({"mlx5_0": [queue_pair(1, 7)]}, {7: JOB})
    clock = Clock()
    found = following(host, clock=clock)
    await found.read_once()
    assert "queue_pairs{device=mlx5_0,owner=slurm/7,state=RTS,type=RC}" in shown(found)
    # Listed at this time; the process that has the number since is younger.
    host.objects["mlx5_1"] = [queue_pair(2, 7)]
    host.processes[7] = process(7, "0::/slurm/uid_0/job_8", created=clock.wall() + 1)
    found.follow([device("mlx5_0"), device("mlx5_1")])
    await found.read_once()
    assert "queue_pairs{device=mlx5_1,owner=unknown,state=RTS,type=RC}" in shown(found)
    assert not [name for name in shown(found) if "slurm" in name]

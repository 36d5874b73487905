"""Devices that hang, fail or go away while their objects are listed: what that costs, and that nothing of it remains."""

import asyncio
import errno
import logging
from collections.abc import Iterator, Mapping

import pytest
from owner_fakes import FakeHost, device, following, process, queue_pair, region, shown, survey
from waiting import Gate, until

from roce_exporter.host.kernel import Absent
from roce_exporter.model import RdmaDevice
from roce_exporter.model.owner import CounterSet, ObjectKind, RdmaObject
from roce_exporter.owners import SurveyLimits

QUEUE_PAIR = ObjectKind.QUEUE_PAIR
IMPATIENT = SurveyLimits(timeout=0.01)
"""Used only while a device hangs, so that giving up does not depend on the speed of the machine."""

JOB = "slurm/7"


GATES: list[Gate] = []


def stick(host: FakeHost) -> Gate:
    """The parts of the queue pairs of mlx5_0 hang until the gate is released."""
    GATES.append(gate := Gate())
    host.before_part = lambda name, kind: gate() if (name, kind) == ("mlx5_0", QUEUE_PAIR) else None
    return gate


def host_of(*names: str) -> FakeHost:
    host = FakeHost({name: [queue_pair(1, 7), region(7, 4096)] for name in names})
    host.processes[7] = process(7, "0::/slurm/uid_0/job_7")
    return host


@pytest.fixture(autouse=True)
def no_thread_remains(worker_threads) -> Iterator[None]:
    yield
    while GATES:
        GATES.pop().release()
    worker_threads.wait_until(0)


async def test_a_device_that_hangs_is_broken_until_it_responds_and_leaves_nothing_open(
    worker_threads,
) -> None:
    host = host_of("mlx5_0")
    found = following(host)
    await found.read_once()
    whole = shown(found)
    stuck = stick(host)
    patient, found.limits = found.limits, IMPATIENT
    await found.read_once()
    (state,) = found.states()
    assert (state.up, state.errors_total) == (False, 1)
    assert "0.01 s" in state.error
    while not stuck.begun.is_set():
        await found.read_once()  # a slow machine gives up before it reaches the queue pairs
    found.limits = patient
    await found.read_once()
    assert "an earlier call has not returned" in found.states()[0].error
    assert {name for name in shown(found) if "survey_" not in name} == set()
    assert sum(not one.closed for one in host.lists) == 1, "the list in use is not closed"
    # A stuck device is not called again; the thread of an earlier round may need a moment to end.
    worker_threads.wait_until(1)
    stuck.release()
    worker_threads.wait_until(0)
    assert all(one.closed for one in host.lists)
    assert await survey(found) == whole
    assert [(state.up, state.error) for state in found.states()] == [(True, "")]


async def test_a_call_that_has_not_returned_is_not_made_again(worker_threads) -> None:
    host = host_of("mlx5_0")
    stuck = stick(host)
    found = following(host)
    surveying = asyncio.create_task(found.read_once())
    await stuck.entered()
    surveying.cancel()
    await until(surveying.done)
    lists = len(host.lists)
    await found.read_once()
    assert "an earlier call has not returned" in found.states()[0].error
    assert len(host.lists) == lists
    assert worker_threads.running() == ["roce-call"]


async def test_a_kind_that_fails_leaves_the_others() -> None:
    host = host_of("mlx5_0")
    for kind in (QUEUE_PAIR, ObjectKind.CONTEXT):
        host.faults["mlx5_0", kind] = OSError(errno.EINVAL, "the driver failed to report an object")
    found = following(host)
    series = await survey(found)
    assert series[f"memory_region_bytes{{device=mlx5_0,owner={JOB}}}"] == 4096
    assert not [name for name in series if name.startswith(("queue_pairs", "remote", "survey"))]
    assert "unseen_objects{device=mlx5_0,kind=qp}" not in series
    (state,) = found.states()
    assert (state.up, state.errors_total) == (False, 2)
    line = f"ctx: EINVAL: [Errno {errno.EINVAL}] the driver failed to report an object and 1 more"
    assert state.error == line
    host.faults.clear()
    assert (await survey(found))[f"queue_pairs{{device=mlx5_0,owner={JOB},state=RTS,type=RC}}"] == 1
    assert found.states()[0].errors_total == 2


@pytest.mark.parametrize("failing", range(3))
async def test_numbers_of_the_kernel_that_cannot_be_read_leave_the_lists(failing) -> None:
    host = host_of("mlx5_0")
    read, calls = host.rdma_resources, iter(range(3))

    def fail_once(one: RdmaDevice) -> Mapping[str, int]:
        if next(calls) == failing:
            raise OSError(errno.EIO, "firmware")
        return read(one)

    host.rdma_resources = fail_once  # type: ignore[method-assign]
    found = following(host)
    assert (await survey(found))[f"queue_pairs{{device=mlx5_0,owner={JOB},state=RTS,type=RC}}"] == 1
    assert found.states()[0].error == "summary: EIO: [Errno 5] firmware"


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (OSError(errno.ENODEV, "removed"), "ENODEV: removed"),
        (TimeoutError("no answer"), "ETIMEDOUT: no answer in 600 s"),
    ],
)
async def test_a_device_that_is_gone_or_does_not_answer_is_asked_nothing_more(fault, line) -> None:
    host = host_of("mlx5_0")
    host.faults["mlx5_0", ObjectKind.CONNECTION] = fault
    found = following(host)
    lists: list[ObjectKind] = []
    host.before_part = lambda _, kind: lists.append(kind)
    assert await survey(found) == {}
    assert QUEUE_PAIR not in lists
    assert found.states()[0].error == line


@pytest.mark.parametrize("failing", [QUEUE_PAIR, ObjectKind.CONNECTION])
async def test_a_list_that_fails_in_the_middle_is_not_shown_in_part(failing) -> None:
    host = host_of("mlx5_0")
    host.objects["mlx5_0"] += [queue_pair(number, 7) for number in range(2, 200)]
    host.objects["mlx5_0"] += [RdmaObject(ObjectKind.CONNECTION, pid=7, peer="10.0.0.2")] * 200
    parts = iter((None, None, OSError(errno.EIO, "firmware")))

    def fail_in_the_third_part(_: str, kind: ObjectKind) -> None:
        if kind is failing and (fault := next(parts)) is not None:
            raise fault

    host.before_part = fail_in_the_third_part
    found = following(host)
    await found.read_once()
    complete = "connections" if failing is QUEUE_PAIR else "queue_pairs"
    names = {name.partition("{")[0] for name in shown(found)}
    assert names & {"connections", "queue_pairs"} == {complete}
    assert all(one.closed for one in host.lists)


async def test_a_kind_that_the_kernel_does_not_list_has_no_series() -> None:
    host = host_of("mlx5_0")
    host.faults["mlx5_0", ObjectKind.CONTEXT] = Absent(errno.EOPNOTSUPP, "older than 5.12")
    found = following(host)
    await found.read_once()
    assert not [name for name in shown(found) if name.startswith("contexts")]
    assert found.states()[0].up is True


async def test_a_device_that_is_removed_in_the_middle_leaves_nothing() -> None:
    host = host_of("mlx5_0", "mlx5_1")
    found = following(host, "mlx5_0", "mlx5_1")
    stuck = stick(host)
    running = asyncio.create_task(found.run())
    await stuck.entered()
    found.follow([device("mlx5_1")])
    assert not [name for name in shown(found) if "mlx5_0" in name]
    stuck.release()
    await until(lambda: bool(host.lists) and all(one.closed for one in host.lists) and bool(found.states()))
    assert {state.device for state in found.states()} == {"mlx5_1"}
    assert not [name for name in shown(found) if "mlx5_0" in name]
    # The clock does not wait between rounds, so a task that was not cancelled would begin many.
    listed: list[str] = []
    host.before_part = lambda name, _: listed.append(name)
    await until(lambda: len(listed) > 100)
    running.cancel()
    assert set(listed[20:]) == {"mlx5_1"}


async def test_a_replugged_device_is_surveyed_while_its_predecessor_is_stuck() -> None:
    host = host_of("mlx5_0")
    stuck = stick(host)
    found = following(host)
    surveying = asyncio.create_task(found.read_once())
    await stuck.entered()
    host.before_part = lambda *_: None
    found.follow([device("mlx5_0", incarnation=2)])
    await found.read_once()
    assert f"memory_regions{{device=mlx5_0,owner={JOB}}}" in shown(found)
    stuck.release()
    await surveying
    assert [(state.up, state.errors_total) for state in found.states()] == [(True, 0)]
    assert all(one.closed for one in host.lists)


async def test_a_fault_of_the_exporter_costs_one_device_and_is_logged(caplog) -> None:
    host = host_of("mlx5_0", "mlx5_1")

    def fail(name: str, _: ObjectKind) -> None:
        if name == "mlx5_0":
            raise ValueError("a bug")

    host.before_part = fail
    found = following(host, "mlx5_0", "mlx5_1")
    with caplog.at_level(logging.WARNING):
        await found.read_once()
    assert [state.up for state in found.states()] == [False, True]
    assert "fault in the exporter" in found.states()[0].error
    assert "fault in source owners of mlx5_0" in caplog.text


async def test_counters_continue_after_a_round_that_failed() -> None:
    host = host_of("mlx5_0")
    host.processes[8] = process(8, "0::/slurm/uid_0/job_7")  # it has a set, and no objects
    found = following(host)
    series = f"transport_ack_timeouts_total{{device=mlx5_0,owner={JOB},port=1}}"
    for count in (100, 110):
        host.sets["mlx5_0", 1] = (CounterSet(1, 1, 8, "", {"local_ack_timeout_err": count}),)
        await found.read_once()
    assert shown(found)[series] == 10
    host.sets["mlx5_0", 1] = OSError(errno.EIO, "firmware")
    await found.read_once()
    assert series not in shown(found)
    assert "counter sets of port 1: EIO" in found.states()[0].error
    host.sets["mlx5_0", 1] = (CounterSet(1, 1, 8, "", {"local_ack_timeout_err": 125}),)
    assert (await survey(found))[series] == 25


async def test_a_round_of_once_that_takes_too_long_is_given_up() -> None:
    """Each part answers, but there is no end."""
    host = host_of("mlx5_0")
    host.open_objects = lambda *_: Endless()  # type: ignore[method-assign]
    found = following(host, limits=IMPATIENT)
    await found.read_once()
    Endless.over = True
    assert shown(found) == {}
    (state,) = found.states()
    assert (state.up, state.errors_total) == (False, 1)
    assert state.error == f"not finished after {IMPATIENT.timeout:g} s"


class Endless:
    """A list without an end."""

    over = False
    closed = 0

    def next_part(self) -> tuple[RdmaObject, ...] | None:
        return None if Endless.over else ()

    def close(self) -> None:
        self.closed += 1


async def test_the_end_of_the_exporter_closes_what_is_open() -> None:
    host = host_of("mlx5_0")
    stuck = stick(host)
    found = following(host)
    running = asyncio.create_task(found.run())
    await stuck.entered()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [one.closed for one in host.lists][-1] == 0
    stuck.release()
    await until(lambda: all(one.closed for one in host.lists))

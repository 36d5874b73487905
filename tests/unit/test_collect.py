"""Collections over sources whose replies and clock the test sets."""

import asyncio
import errno
import logging
import re
import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest
from clock import Clock
from waiting import HUNG_SECONDS, Gate, until

from roce_exporter.collect import collector, device_work
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.collect.device_work import INVENTORY, DeviceWork
from roce_exporter.collect.reads import (
    NO_ANSWER,
    NOT_REACHED,
    TOO_MANY_STUCK,
    Account,
    Finished,
    Outcome,
    ReadKey,
    Task,
    attempt,
)
from roce_exporter.collect.workers import InFlight
from roce_exporter.host.inventory import Listed
from roce_exporter.host.kernel import Absent
from roce_exporter.host.sources import AGED, SLOW
from roce_exporter.model import WHOLE_DEVICE, Device, Loss, Port, Reading, Snapshot, SourceState
from roce_exporter.model.values import DERIVED, NOT_AVAILABLE, QUARANTINED

QUICK = "counters"
AGING = next(iter(AGED))
SEDATE = next(iter(sorted(SLOW - AGED.keys())))
REFRESH = Settings().refresh


def reading(value: int | None = 7, *losses: Loss, source: str = QUICK, port: int = 1) -> Reading:
    return Reading(source, "mlx5_0", port, ("packets",), (value,), losses)


class Source:
    """One source of one device: its reply, the times of its reads, and how often it was closed."""

    quarantined = 0

    def __init__(self, source: str = QUICK, netdev: str = "") -> None:
        self.source = source
        self.netdev = netdev
        self.answer: tuple[Reading, ...] | Exception | Callable[[], tuple[Reading, ...]] = (
            reading(source=source),
        )
        self.reads: list[float] = []
        self.closed = 0

    def read(self, now: float) -> tuple[Reading, ...]:
        self.reads.append(now)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer() if callable(self.answer) else self.answer

    def close(self) -> None:
        self.closed += 1


class Host:
    """A fake kernel: the listed devices, the description of each, and the sources of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.clock = Clock()
        self.listed: tuple[Listed, ...] = tuple(Listed(name, 1) for name in names)
        self.devices = {
            name: Device(name, "mlx5_core", "mlx5", ports=(Port(1, "Ethernet"),)) for name in names
        }
        self.sources: dict[str, list[Source]] = {name: [Source()] for name in names}
        self.failure: Exception | None = None
        self.begun = self.described = 0
        self.disabled: Collection[str] = ()
        monkeypatch.setattr(collector, "list_devices", self._list)
        monkeypatch.setattr(device_work, "describe", self._describe)
        monkeypatch.setattr(device_work, "open_readers", self._open)

    def begin(self) -> None:
        self.begun += 1

    def _list(self, kernel: object) -> tuple[Listed, ...]:
        assert kernel is self
        if self.failure:
            raise self.failure
        return self.listed

    def _describe(self, kernel: object, listed: Listed) -> Device:
        assert kernel is self
        self.described += 1
        return replace(self.devices[listed.name], incarnation=listed.incarnation)

    def _open(self, kernel: object, device: Device, disabled: Collection[str]) -> tuple[Source, ...]:
        assert kernel is self
        self.disabled = disabled
        return tuple(self.sources[device.name])

    def collector(self, **settings: object) -> Collector:
        return Collector(self, Settings(**settings), self.clock)  # type: ignore[arg-type]

    def work(self) -> DeviceWork:
        """The work of the only device."""
        return DeviceWork(self, self.listed[0], (), InFlight(self.clock), self.clock)  # type: ignore[arg-type]


@pytest.fixture
def host(monkeypatch) -> Host:
    return Host(monkeypatch, "mlx5_0")


def do(work: DeviceWork, clock: Clock, tasks: tuple[Task, ...]) -> dict[ReadKey, Outcome]:
    """The outcomes of tasks and of the tasks that follow from them."""
    outcomes = {}
    waiting = list(tasks)
    while waiting:
        task = waiting.pop(0)
        outcomes[task.key], more = attempt(clock, task)
        waiting += more
    return outcomes


def collect(work: DeviceWork, clock: Clock) -> None:
    work.settle(do(work, clock, work.tasks(REFRESH)))


def sources(tasks: tuple[Task, ...]) -> list[str]:
    return [task.key.source for task in tasks]


def value(work: DeviceWork) -> object:
    (one,) = work.readings
    return one.values[0]


# One read.


def key(source: str = QUICK, device: str = "mlx5_0", netdev: str = "") -> ReadKey:
    return ReadKey(device, 1, source, netdev)


def failing(error: Exception) -> Callable[[], Finished]:
    def run() -> Finished:
        raise error

    return run


def test_a_read_is_timed_and_returns_the_following_tasks() -> None:
    clock, after = Clock(5.0), Task(key("after"), failing(AssertionError()))

    def run() -> Finished:
        clock.now = 7.5
        return Finished(Outcome(up=True, quarantined=3), (after,))

    assert attempt(clock, Task(key(), run)) == (
        Outcome(up=True, quarantined=3, seconds=2.5, begun=5.0),
        (after,),
    )


@pytest.mark.parametrize(
    ("error", "up", "text"),
    [
        (Absent(errno.ENOENT, "no folder"), None, ""),
        (OSError(errno.EIO, "firmware", "file"), False, "EIO: [Errno 5] firmware: 'file'"),
    ],
)
def test_an_error_of_the_kernel_is_an_outcome(error, up, text) -> None:
    found = attempt(Clock(5.0), Task(key(), failing(error)))
    assert found == (Outcome(up=up, error=text, begun=5.0), ())


@pytest.mark.parametrize(
    ("where", "name"), [(key(netdev="eth0"), "eth0"), (key(), "mlx5_0"), (key(device=""), "the host")]
)
def test_a_fault_of_the_exporter_is_an_outcome_and_a_record(caplog, where, name) -> None:
    found = attempt(Clock(5.0), Task(where, failing(ValueError("bug"))))
    assert found == (Outcome(up=False, error="fault in the exporter: ValueError('bug')", begun=5.0), ())
    (record,) = caplog.records
    assert (record.levelno, record.message) == (logging.ERROR, f"fault in source {QUICK} of {name}")
    assert record.exc_info


# The account of a device.


def whole(**changed: Any) -> SourceState:
    return SourceState(QUICK, "mlx5_0", "", True, 0.5)._replace(**changed)


LOST = Loss("packets", "EIO")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(up=True, readings=(reading(),), quarantined=2), whole(quarantined=2)),
        (Outcome(up=None), whole(up=None)),
        (Outcome(up=False, error="EIO: bad"), whole(up=False, error="EIO: bad", errors_total=1)),
        (
            Outcome(up=True, readings=(reading(None, LOST),), quarantined=2),
            whole(up=False, error="port 1 packets: EIO", errors_total=1, unreadable=1, quarantined=2),
        ),
        (
            Outcome(up=True, readings=(reading(7, LOST, Loss("more", "EIO")), reading(8, port=2))),
            whole(error="port 1 packets: EIO and 1 more", errors_total=2, unreadable=2),
        ),
        (
            Outcome(up=True, readings=(reading(7, Loss("", "EIO"), port=WHOLE_DEVICE),)),
            whole(up=False, error=": EIO", errors_total=1, unreadable=1),
        ),
        (
            Outcome(up=True, readings=(reading(None, Loss("packets", QUARANTINED)),)),
            whole(up=False, error=QUARANTINED, unreadable=1),
        ),
        (Outcome(up=True, readings=(reading(7, Loss("packets", QUARANTINED)),)), whole(unreadable=1)),
        (Outcome(up=True, readings=(reading(None, Loss("packets", NOT_AVAILABLE)),)), whole(unreadable=1)),
        (Outcome(up=True, readings=(reading(None, Loss("packets", DERIVED)),)), whole()),
    ],
)
def test_the_state_of_a_source_follows_from_its_last_read(outcome, expected) -> None:
    account, outcomes = Account(), {key(): outcome._replace(seconds=0.5)}
    assert account.preview(outcomes) == (expected,)
    assert account.states == ()
    broken = account.settle(outcomes)
    assert account.states == (expected,)
    lost = outcome.error or any(one.losses for one in outcome.readings)
    assert broken == (list(outcomes.values()) if lost else [])


def test_errors_add_up_over_good_and_bad_reads() -> None:
    account = Account()
    bad = {key(): Outcome(up=False, error="EIO")}
    totals = []
    for outcomes in (bad, {key(): Outcome(up=True)}, bad, {key(): Outcome(up=True)}):
        (announced,) = account.preview(outcomes)
        account.settle(outcomes)
        assert account.states == (announced,)
        totals.append(account.states[0].errors_total)
    assert totals == [1, 1, 2, 2]
    account.settle(bad)
    account.settle({key(): Outcome(up=True, readings=(reading(None, Loss("packets", QUARANTINED)),))})
    assert (account.states[0].error, account.states[0].errors_total) == ("EIO", 3), (
        "a quarantined source keeps it"
    )


def test_states_are_chosen_and_dropped_by_source() -> None:
    account = Account()
    account.settle({key(name): Outcome(up=True) for name in ("a", "b", "c")})
    assert [state.source for state in account.states_of({key("c"), key("a"), key("x")})] == ["a", "c"]
    account.keep({key("b"), key("x")})
    assert [state.source for state in account.states] == ["b"]


def test_the_start_and_the_end_of_a_failure_are_logged_once(caplog) -> None:
    caplog.set_level(logging.INFO)
    account, where = Account(), key(netdev="eth0")
    for error in ("", "EIO", "EIO", "", ""):
        account.settle({where: Outcome(up=not error, error=error)})
    account.settle({ReadKey("", 0, "inventory"): Outcome(up=False, error="EACCES")})
    assert [(record.levelno, record.message) for record in caplog.records] == [
        (logging.WARNING, "source counters of eth0 of mlx5_0: EIO"),
        (logging.INFO, "source counters of eth0 of mlx5_0: answers again"),
        (logging.WARNING, "source inventory: EACCES"),
    ]


# One device from collection to collection.


def test_a_new_device_is_described_and_read_at_once(host) -> None:
    work = host.work()
    assert sources(work.tasks(REFRESH)) == [INVENTORY]
    assert work.so_far({}) == (None, ())
    outcomes = do(work, host.clock, work.tasks(REFRESH))
    assert [one.source for one in outcomes] == [INVENTORY, QUICK]
    assert work.device is None, "nothing is stored before the end of the collection"
    work.settle(outcomes)
    assert work.device == replace(host.devices["mlx5_0"], incarnation=1)
    assert value(work) == 7
    assert host.sources["mlx5_0"][0].reads == [host.clock.now]
    assert [state.source for state in work.account.states] == [INVENTORY, QUICK]


def known(host: Host, *sources: Source) -> DeviceWork:
    """The work of the only device after its first collection."""
    if sources:
        host.sources["mlx5_0"] = list(sources)
    work = host.work()
    collect(work, host.clock)
    return work


def describe_again(host: Host, work: DeviceWork, **changed: object) -> None:
    host.devices["mlx5_0"] = replace(host.devices["mlx5_0"], **changed)  # type: ignore[arg-type]
    host.clock.now += REFRESH
    work.settle(do(work, host.clock, work.slow_tasks(REFRESH)))


@pytest.mark.parametrize(
    ("changed", "closed"),
    [
        ({}, 0),
        ({"firmware": "2"}, 1),
        ({"ports": (Port(1, "InfiniBand"),)}, 1),
        ({"ports": (Port(1, "Ethernet", gids=("gid",)),)}, 0),  # type: ignore[arg-type]
    ],
    ids=["nothing", "firmware", "port", "addresses"],
)
def test_only_a_device_that_changed_gets_new_readers(host, changed, closed) -> None:
    """Addresses that come and go cost no reader. The slow chain describes it."""
    work = known(host)
    (old,), device = host.sources["mlx5_0"], work.device
    host.sources["mlx5_0"] = [new := Source("new")]
    host.clock.now += REFRESH
    assert sources(work.tasks(REFRESH)) == [QUICK]
    assert sources(work.slow_tasks(REFRESH)) == [INVENTORY]
    describe_again(host, work, **changed)
    assert (work.device is device) is not bool(changed)
    assert work.device == replace(host.devices["mlx5_0"], incarnation=1)
    assert (old.closed, new.reads) == (closed, []), "a new one is read by the next collection"
    assert sources(work.tasks(REFRESH)) == (["new"] if closed else [QUICK])
    assert [state.source for state in work.account.states] == [INVENTORY] + [QUICK] * (not closed)


def test_a_reader_in_flight_is_closed_after_its_return_and_others_at_once(host) -> None:
    first, second = Source("first"), Source("second")
    work = known(host, first, second)
    tasks = work.tasks(REFRESH)
    call = work._in_flight.begin(key("first"))
    assert call
    work.retire()
    assert (first.closed, second.closed) == (0, 1)
    work._in_flight.end(call)
    assert (first.closed, second.closed) == (1, 1)
    work.retire()
    assert (first.closed, second.closed) == (1, 1)
    with pytest.raises(Absent, match=r"\] the device was removed:") as caught:
        tasks[0].run()
    assert (caught.value.errno, caught.value.filename) == (errno.ENODEV, "mlx5_0")


def test_an_interface_that_is_absent_is_tried_again_after_the_next_description(host) -> None:
    """It does not affect the others."""
    one, two = Source("one"), Source("two")
    one.answer = Absent(errno.ENOENT, "none")
    two.quarantined = 3
    work = known(host, one, two)
    for _ in range(2):
        assert sources(work.tasks(REFRESH)) == ["two"]
        collect(work, host.clock)
    assert [(state.up, state.quarantined) for state in work.account.states] == [
        (True, 0),
        (None, 0),
        (True, 3),
    ]
    one.answer = (reading(8),)
    describe_again(host, work)
    assert sources(work.tasks(REFRESH)) == ["one", "two"]
    collect(work, host.clock)
    assert [found.values for found in work.readings] == [(8,), (7,)]
    one.answer, two.answer = Absent(errno.ENOENT, "none"), OSError(errno.EIO, "firmware")
    collect(work, host.clock)
    assert sources(work.tasks(REFRESH)) == ["two"], "what fails is tried again, what is gone is not"
    assert work.readings == ()


def test_slow_sources_are_due_once_per_refresh_and_waited_for_after_twice_that(host) -> None:
    work = known(host, Source(), Source(SEDATE))
    begun = host.clock.now
    for passed, waited, due in (
        (REFRESH - 1, [QUICK], []),
        (REFRESH, [QUICK], [SEDATE, INVENTORY]),
        (2 * REFRESH - 1, [QUICK], [SEDATE, INVENTORY]),
        (2 * REFRESH, [QUICK, SEDATE, INVENTORY], [SEDATE, INVENTORY]),
    ):
        host.clock.now = begun + passed
        assert sources(work.tasks(REFRESH)) == waited
        assert sources(work.slow_tasks(REFRESH)) == due


def test_the_values_of_an_aging_source_come_with_their_age(host) -> None:
    aging = Source(AGING)
    work = known(host, aging, Source(SEDATE))
    host.clock.now += 12.9
    collect(work, host.clock)
    own, other, age = work.readings
    assert (own.source, other.source) == (AGING, SEDATE)
    assert age == Reading(AGING, "mlx5_0", WHOLE_DEVICE, AGED[AGING], (12,))
    aging.answer = OSError(errno.EIO, "firmware")
    host.clock.now += 2 * REFRESH
    collect(work, host.clock)
    assert [one.source for one in work.readings] == [SEDATE]


@pytest.mark.parametrize(
    ("answer", "changed", "again"),
    [
        (OSError(errno.ENODEV, "gone"), {}, True),
        ((reading(7, Loss("packets", "ENODEV")),), {}, True),
        ((reading(7, Loss("packets", "EIO")),), {}, False),
        ((reading(7),), {"netlink_errno": errno.ENOBUFS}, True),
    ],
)
def test_a_device_that_is_gone_or_not_wholly_described_is_described_again_at_once(
    host, answer, changed, again
) -> None:
    host.sources["mlx5_0"][0].answer = answer
    host.devices["mlx5_0"] = replace(host.devices["mlx5_0"], **changed)  # type: ignore[arg-type]
    assert sources(known(host).tasks(REFRESH)) == [QUICK] + [INVENTORY] * again


def test_a_missing_part_of_a_description_is_an_error_of_the_inventory(host) -> None:
    lost = (Loss("fw_ver", "EIO"), Loss("board_id", "EACCES"))
    host.devices["mlx5_0"] = replace(host.devices["mlx5_0"], losses=lost)
    work, names = host.work(), ("name", "fw_ver", "board_id")
    for _ in range(2):
        outcome = do(work, host.clock, (Task(key(INVENTORY), work._describe),))[key(INVENTORY)]
        assert outcome.up is True
        assert outcome.readings == (Reading(INVENTORY, "mlx5_0", WHOLE_DEVICE, names, (1, None, None), lost),)
        collect(work, host.clock)


def test_a_hurried_caller_gets_names_without_values_and_stores_nothing(host) -> None:
    """Outcomes of sources that the device no longer has are dropped."""
    work = known(host, Source("one"), Source("two"), Source(SEDATE))
    former = {key("former"): Outcome(up=False, error="EIO")}
    work.settle(former)
    assert key("former") not in {key(state.source) for state in work.account.states}
    before = work.account.states, work.readings
    work._slots[key("one")].last = Outcome(up=True, readings=(reading(7, LOST, source="one"),))
    failed = Outcome(up=False, error="EIO", readings=(reading(9, source="two"),))
    found, states = work.so_far({key("two"): failed} | former)
    assert found is not None
    assert found.device is work.device
    assert [(one.source, one.names, one.values, one.losses) for one in found.readings] == [
        ("one", ("packets",), (None,), ()),
        ("two", ("packets",), (9,), ()),
        (SEDATE, ("packets",), (7,), ()),
    ]
    assert [(state.source, state.up, state.errors_total) for state in states] == [
        ("two", False, 1),
        (INVENTORY, True, 0),
        (SEDATE, True, 0),
    ]
    assert (work.account.states, work.readings) == before


# The whole host.


def up(found: Snapshot) -> dict[tuple[str, str], bool | None]:
    return {(state.device, state.source): state.up for state in found.states}


def values(found: Snapshot) -> dict[str, list[object]]:
    return {one.device.name: [each.values[0] for each in one.readings] for one in found.devices}


async def test_a_collection_has_every_device_and_the_state_of_each_source(monkeypatch, caplog) -> None:
    caplog.set_level(logging.INFO)
    host = Host(monkeypatch, "mlx5_1", "mlx5_0", "bnxt_0", "mlx5_x")
    host.sources["mlx5_1"][0].answer = OSError(errno.EIO, "firmware")
    work = host.collector(
        include=re.compile("mlx5_.*"), exclude=re.compile("mlx5_x"), disabled=frozenset({"pcie"})
    )
    found = await work.collect()
    assert values(found) == {"mlx5_0": [7], "mlx5_1": []}
    assert list(values(found)) == ["mlx5_0", "mlx5_1"], "by name"
    assert up(found) == {
        ("", INVENTORY): True,
        ("mlx5_0", INVENTORY): True,
        ("mlx5_0", QUICK): True,
        ("mlx5_1", INVENTORY): True,
        ("mlx5_1", QUICK): False,
    }
    assert (found.excluded, found.unfinished, found.seconds) == (2, 0, 0.0)
    assert host.begun == 1
    assert host.disabled == {"pcie"}
    assert [record.message for record in caplog.records if record.levelno == logging.INFO] == [
        "device mlx5_1 found",
        "device mlx5_0 found",
    ]


async def test_a_removed_device_is_closed_and_added_again_as_another(host, caplog) -> None:
    caplog.set_level(logging.INFO)
    work = host.collector()
    await work.collect()
    (first,) = host.sources["mlx5_0"]
    host.listed, host.sources["mlx5_0"] = (Listed("mlx5_0", 2),), [Source()]
    found = await work.collect()
    assert values(found) == {"mlx5_0": [7]}
    assert first.closed == 1
    host.listed = ()
    assert (await work.collect()).devices == ()
    assert host.sources["mlx5_0"][0].closed == 1
    assert [record.message for record in caplog.records] == [
        "device mlx5_0 found",
        "device mlx5_0 went away",
        "device mlx5_0 found",
        "device mlx5_0 went away",
    ]


async def test_closing_closes_every_reader_and_ends_every_thread(monkeypatch, worker_threads) -> None:
    host = Host(monkeypatch, "mlx5_0", "mlx5_1")
    host.sources["mlx5_0"].append(Source(SEDATE))
    work = host.collector()
    await work.collect()
    host.clock.now += REFRESH
    await work.collect()
    assert worker_threads.running() == ["roce-read", "roce-slow"]
    work.close()
    await at_rest(work)
    assert [source.closed for made in host.sources.values() for source in made] == [1, 1, 1]
    worker_threads.wait_until(0)


async def test_while_the_list_hangs_the_devices_known_last_are_read(host, monkeypatch) -> None:
    work, hung = host.collector(timeout=0.5), Gate()
    await work.collect()
    monkeypatch.setattr(collector, "list_devices", hung)
    running = asyncio.create_task(work.collect())
    await hung.entered()
    host.clock.now += 1.0
    found = await running
    assert [one.device.name for one in found.devices] == ["mlx5_0"]
    assert {state.error for state in found.states if not state.device} == {NO_ANSWER}
    hung.release()
    await at_rest(work)


async def test_reads_that_took_long_are_shared_by_more_workers_in_the_next_collection(monkeypatch) -> None:
    host = Host(monkeypatch, "mlx5_0", "mlx5_1", "mlx5_2")
    work = host.collector()
    (one,), (two,), (three,) = host.sources.values()

    def slow() -> tuple[Reading, ...]:
        host.clock.now += 0.02
        return (reading(),)

    for source in (one, two, three):
        source.answer = slow
    await work.collect()
    together = threading.Barrier(3, timeout=HUNG_SECONDS)

    def meet() -> tuple[Reading, ...]:
        together.wait()
        return (reading(8),)

    for source in (one, two, three):
        source.answer = meet
    assert values(await work.collect()) == {"mlx5_0": [8], "mlx5_1": [8], "mlx5_2": [8]}


def stick(source: Source) -> Gate:
    """A source that does not answer until the test releases the gate."""
    gate = Gate()

    def answer() -> tuple[Reading, ...]:
        gate()
        return (reading(99),)

    source.answer = answer
    return gate


async def at_rest(work: Collector) -> None:
    await until(lambda: not work._in_flight)


async def test_a_caller_without_time_gets_an_unfinished_collection(host) -> None:
    work = host.collector(exclude=re.compile("mlx5_1"))
    assert await work.collect(0.0) == Snapshot(unfinished=1)
    assert (await work.collect()).excluded == 0
    host.listed = (*host.listed, Listed("mlx5_1", 1))
    assert (await work.collect()).excluded == 1
    first, second = host.sources["mlx5_0"][0], Source("second")
    host.sources["mlx5_0"].append(second)
    host.devices["mlx5_0"] = replace(host.devices["mlx5_0"], firmware="2")
    host.clock.now += 2 * REFRESH
    await work.collect()
    stuck = stick(first)
    running = asyncio.create_task(work.collect())
    await stuck.entered()
    hurried = await work.collect(0.001)
    assert (hurried.unfinished, hurried.excluded) == (2, 1)
    stuck.release()
    await running


async def test_a_closed_slow_chain_begins_nothing_more(host) -> None:
    one, other = host.sources["mlx5_0"] = [Source(SEDATE), Source(AGING)]
    work = host.collector()
    await work.collect()
    host.clock.now += REFRESH
    stuck = stick(one)
    await work.collect()
    await stuck.entered()
    work.close()
    assert (one.closed, other.closed) == (0, 1)
    stuck.release()
    await until(lambda: one.closed and not work._in_flight)
    assert len(other.reads) == 1
    assert host.described == 1


async def test_a_read_that_never_returns_costs_its_source_and_not_the_following_ones(host) -> None:
    first, second = host.sources["mlx5_0"] = [Source("first"), Source("second")]
    work = host.collector(timeout=2.0, overtake=0.001)
    await work.collect()
    stuck = stick(first)
    running = asyncio.create_task(work.collect(2.0))
    await stuck.entered()
    host.clock.now += 0.002
    await until(lambda: len(second.reads) == 2)
    assert not running.done()
    host.clock.now += 2.0
    found = await running
    states = {state.source: state for state in found.states if state.device}
    assert (states["first"].up, states["first"].error, states["first"].errors_total) == (False, NO_ANSWER, 1)
    assert states["first"].seconds == pytest.approx(2.002)
    assert states["second"].up is True
    again = await work.collect()
    assert {state.source: state.errors_total for state in again.states if state.device}["first"] == 2
    stuck.release()
    await at_rest(work)
    first.answer = (reading(5),)
    assert values(await work.collect()) == {"mlx5_0": [5, 7]}


async def test_a_network_device_with_three_stuck_reads_is_not_read_further_until_one_returns(
    host, worker_threads
) -> None:
    *hung, last = [Source(name, "eth0") for name in ("first", "second", "third", "last")]
    rdma = Source("rdma")
    host.sources["mlx5_0"] = [*hung, last, rdma]
    work = host.collector(timeout=2.0, overtake=0.001)
    await work.collect()
    gates = [stick(source) for source in hung]
    running = asyncio.create_task(work.collect())
    for gate in gates:
        await gate.entered()
        host.clock.now += 0.002
    await until(lambda: len(rdma.reads) == 2)
    host.clock.now += 2.0
    await running
    reads = len(last.reads)
    for _ in range(3):
        host.clock.now += 2.0
        found = await work.collect()
    states = {state.source: (state.up, state.error) for state in found.states if state.device}
    assert states["first"] == (False, NO_ANSWER)
    assert states["last"] == (False, TOO_MANY_STUCK)
    assert len(last.reads) == reads
    assert states["rdma"] == (True, ""), "it does not wait for the network device"
    assert len(rdma.reads) == 5
    worker_threads.wait_until(len(hung) + 1)  # one thread reads what does not hang
    gates[0].release()
    await until(lambda: len(work._in_flight.since()) == 2)
    hung[0].answer = (reading(5),)
    found = await work.collect()
    states = {state.source: (state.up, state.error) for state in found.states if state.device}
    assert states["first"] == states["last"] == (True, "")
    for gate in gates:
        gate.release()
    await at_rest(work)


async def test_jobs_behind_a_stuck_one_are_not_reached_when_the_time_is_up(host) -> None:
    first, second, slow = host.sources["mlx5_0"] = [Source("first"), Source("second"), Source(SEDATE)]
    work = host.collector(timeout=2.0, overtake=100.0)
    await work.collect()
    stuck, waiting = stick(first), work._wait

    async def hurried(batch: object, done: asyncio.Future[None]) -> None:
        await stuck.entered()
        host.clock.now += 2.0
        await waiting(batch, done)  # type: ignore[arg-type]

    work._wait = hurried  # type: ignore[method-assign]
    host.clock.now += 2 * REFRESH
    found = await work.collect()
    states = {state.source: (state.up, state.error) for state in found.states if state.device}
    assert states["first"] == (False, NO_ANSWER)
    assert states["second"] == states[SEDATE] == (False, NOT_REACHED)
    assert len(second.reads) == 1
    await until(lambda: len(slow.reads) == 2)  # the slow chain reads it right after the collection
    stuck.release()
    await at_rest(work)
    work._wait = waiting  # type: ignore[method-assign]
    first.answer = (reading(5),)
    found = await work.collect()
    assert (len(second.reads), len(slow.reads)) == (2, 2)
    assert {state.source: state.up for state in found.states if state.device}[SEDATE] is True


async def test_the_slow_chain_is_read_after_a_collection_and_stored_by_the_next(host) -> None:
    quick, slow = host.sources["mlx5_0"] = [Source(), Source(SEDATE)]
    work = host.collector()
    await work.collect()
    host.clock.now += REFRESH
    slow.answer = (reading(8, source=SEDATE),)
    assert values(await work.collect()) == {"mlx5_0": [7, 7]}
    await until(lambda: len(slow.reads) == 2 and not work._in_flight)
    assert slow.reads == [1000.0, 1000.0 + REFRESH]
    assert values(await work.collect()) == {"mlx5_0": [7, 8]}
    assert len(slow.reads) == 2
    assert len(quick.reads) == 3
    for times in (3, 4):
        host.clock.now += REFRESH
        await work.collect()
        await until(lambda: len(slow.reads) == times and not work._in_flight)  # noqa: B023 - within this round
    assert len(work._slow._crew._workers) == 1, "one worker for all rounds"


async def test_tasks_behind_a_stuck_slow_read_run_when_it_is_abandoned(host) -> None:
    one, other = host.sources["mlx5_0"] = [Source(SEDATE), Source(AGING)]
    work = host.collector(timeout=5.0)
    await work.collect()
    host.clock.now += REFRESH
    stuck = stick(one)
    await work.collect()
    await stuck.entered()
    host.clock.now += 4.0
    await work.collect()
    assert len(work._slow._crew._workers) == 1, "no second worker before the deadline"
    host.clock.now += 2.0
    for times in (2, 3):
        await work.collect()
        await until(lambda: len(other.reads) == times and len(work._in_flight.since()) == 1)  # noqa: B023 - the same
        host.clock.now += REFRESH
    assert other.reads == [1000.0, 1066.0, 1126.0]
    stuck.release()


async def test_a_host_is_outdated_when_it_is_old_or_its_list_changed(host) -> None:
    work = host.collector()
    assert await work.is_outdated()
    await work.collect()
    assert not await work.is_outdated()
    host.listed = ()
    assert await work.is_outdated()
    host.failure = OSError(errno.EIO, "sysfs")
    assert not await work.is_outdated(), "the next collection reports it"
    host.clock.now += REFRESH
    assert await work.is_outdated()
    assert host.begun == 1


async def test_a_hung_list_is_not_requested_twice_and_not_waited_for_long(host, monkeypatch) -> None:
    work, hung = host.collector(timeout=0.01), Gate()
    await work.collect()
    monkeypatch.setattr(collector, "list_devices", hung)
    first = asyncio.create_task(work.is_outdated())
    await hung.entered()
    assert not await first
    hung.begun.clear()
    assert not await work.is_outdated()
    assert not hung.begun.is_set()
    assert collector.HOST in work._in_flight
    hung.release()
    await at_rest(work)


async def test_a_fault_of_a_collection_without_callers_is_logged(host, caplog) -> None:
    work = host.collector()
    await work.collect()
    stuck = stick(host.sources["mlx5_0"][0])
    assert (await work.collect(0.001)).unfinished >= 1
    await stuck.entered()
    work._settle = lambda _: int("bug")  # type: ignore[method-assign, assignment, return-value]
    assert work._running
    ended = work._running
    stuck.release()
    await asyncio.wait((ended,))
    await asyncio.sleep(0)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.message == "a collection failed"
    assert record.exc_info

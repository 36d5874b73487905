"""Rounds again and again: their pace, what they keep, and which owners they show when there are many."""

import asyncio
import errno
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from clock import EPOCH, Clock
from owner_fakes import PART, FakeHost, device, following, process, queue_pair, region, shown, survey
from waiting import until

from roce_exporter.catalog.owners import SUMMED
from roce_exporter.catalog.row import MetricSet
from roce_exporter.exposition.served_series import ServedSeries, is_sum
from roce_exporter.host.kernel import Absent
from roce_exporter.model import DeviceReadings, Port
from roce_exporter.model.owner import CounterSet, ObjectKind, RdmaObject
from roce_exporter.owners import SurveyLimits
from roce_exporter.owners.identify import owner_of
from roce_exporter.owners.owner_scan import ObjectTotals
from roce_exporter.owners.owner_totals import KEPT_ROUNDS, OwnerNumbers, Round
from roce_exporter.owners.surveyor import identities

QUEUE_PAIR = ObjectKind.QUEUE_PAIR


class Interval(Clock):
    """A clock on which the pause between two rounds lasts until `go_on`."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if seconds > 10:
            self.reached.set()
            await self.go_on.wait()
            self.go_on.clear()
        else:
            self.pauses.append(seconds)


async def test_two_thousand_queue_pairs_take_two_percent_of_the_drivers_time() -> None:
    host = FakeHost({"mlx5_0": [queue_pair(number, 7) for number in range(2000)]})
    host.processes[7] = process(7, "0::/system.slice/a.service")
    clock = Interval()
    busy = 0.0

    def query_firmware(_: str, kind: ObjectKind) -> None:
        nonlocal busy
        if kind is QUEUE_PAIR:
            clock.now += 0.05
            busy += 0.05

    host.before_part = query_firmware
    found = following(host, clock=clock, limits=SurveyLimits(interval=200, timeout=600))
    running = asyncio.create_task(found.run())
    await clock.reached.wait()
    running.cancel()
    parts = 2000 // PART
    assert [round(pause, 6) for pause in clock.pauses if pause] == [49 * 0.05] * (parts + 1)
    assert busy / shown(found)["survey_duration_seconds{device=mlx5_0}"] <= 0.02 + 1e-9
    assert shown(found)["queue_pairs{device=mlx5_0,owner=unit/a.service,state=RTS,type=RC}"] == 2000


async def test_counter_sets_are_paused_for_and_counted_as_reading() -> None:
    host, clock = FakeHost({"mlx5_0": []}), Interval()

    def sets(*_: object) -> tuple[CounterSet, ...]:
        clock.now += 0.1
        return ()

    host.counter_sets = sets  # type: ignore[method-assign]
    host.faults["mlx5_0", ObjectKind.CONNECTION] = Absent(errno.EOPNOTSUPP, "no such list")
    found = following(host, clock=clock, limits=SurveyLimits(interval=200, timeout=600))
    running = asyncio.create_task(found.run())
    await clock.reached.wait()
    running.cancel()
    assert [round(pause, 6) for pause in clock.pauses] == [0, 0, 0, 4.9]
    assert found.documents()[0]["seconds"] == pytest.approx(0.1)


async def test_a_process_is_read_again_after_half_of_a_short_interval() -> None:
    host, clock = FakeHost({"mlx5_0": [queue_pair(1, 7)]}), Clock()
    host.processes[7] = process(7, "0::/slurm/uid_0/job_7")
    found = following(host, clock=clock, limits=SurveyLimits(interval=10, timeout=600))
    reads = []
    for passed in (0, 4.9, 0.2):
        clock.now += passed
        await survey(found)
        reads.append(len(host.processes_read))
    assert reads == [1, 1, 2]


async def test_a_port_that_a_device_gets_later_is_surveyed() -> None:
    host = FakeHost({"mlx5_0": [queue_pair(1, 7)]})
    host.processes[7] = process(7, "0::/slurm/uid_0/job_7")
    for port in (1, 2):
        host.sets["mlx5_0", port] = (CounterSet(1, 1, 7, "", {"local_ack_timeout_err": 5}),)
    found, two = following(host), device("mlx5_0")
    assert not [one for one in await survey(found) if "port=2" in one]
    ports = (*two.device.ports, Port(2, "Ethernet"))
    unlisted = DeviceReadings(replace(two.device, name="mlx5_1", netlink=None), ())
    found.follow([DeviceReadings(replace(two.device, ports=ports), ()), unlisted])
    assert [one for one in await survey(found) if "port=2" in one]
    assert [state.device for state in found.states()] == ["mlx5_0"]


async def test_the_interval_is_from_begin_to_begin() -> None:
    host = FakeHost({"mlx5_0": [queue_pair(1, 7)]})
    clock = Interval()
    begins: list[float] = []

    def note(_: str, kind: ObjectKind) -> None:
        if kind is ObjectKind.CONTEXT:
            begins.append(clock())
        clock.now += 0.1

    host.before_part = note
    found = following(host, clock=clock)
    running = asyncio.create_task(found.run())
    for _ in range(3):
        await clock.reached.wait()
        clock.reached.clear()
        clock.go_on.set()
        await asyncio.sleep(0)
    running.cancel()
    first, second, *_ = begins
    assert round(second - first, 6) == 60


async def test_first_rounds_are_spread_and_a_new_device_is_surveyed_at_once() -> None:
    clock = Interval()
    found = following(FakeHost(), "mlx5_0", "mlx5_1", clock=clock)
    running = asyncio.create_task(found.run())
    await until(lambda: len(found.states()) == 2)
    assert max(clock.pauses) == 2.5
    found.follow([device("mlx5_0"), device("mlx5_1"), device("mlx5_2")])
    await until(lambda: len(found.states()) == 3)
    found.follow([device("mlx5_2")])
    assert [state.device for state in found.states()] == ["mlx5_2"]
    running.cancel()


def many_owners(numbers: range, queue_pairs: Callable[[int], int] = lambda number: number) -> FakeHost:
    """Jobs, each with one process that has this many queue pairs."""
    host, next_number = FakeHost({"mlx5_0": []}), 1
    for number in numbers:
        host.processes[number] = process(number, f"0::/slurm/uid_0/job_{number}")
        for _ in range(queue_pairs(number)):
            host.objects["mlx5_0"].append(queue_pair(next_number, number))
            next_number += 1
    return host


def owners_in(series: dict[str, float]) -> set[str]:
    return {
        name.partition("owner=")[2].partition(",")[0]
        for name, value in series.items()
        if name.startswith("info{") and value == 1
    }


async def test_of_two_hundred_owners_the_largest_have_series() -> None:
    host = many_owners(range(1, 201))
    host.objects["mlx5_0"].append(queue_pair(99999))
    series = await survey(following(host))
    assert owners_in(series) == {"other", "unknown"} | {f"slurm/{number}" for number in range(169, 201)}
    assert series["folded{device=mlx5_0}"] == 168
    assert series["queue_pairs{device=mlx5_0,owner=other,state=RTS,type=RC}"] == sum(range(1, 169))
    assert series["processes{device=mlx5_0,owner=other}"] == 168
    assert series["queue_pairs{device=mlx5_0,owner=unknown,state=RTS,type=RC}"] == 1
    total = sum(value for name, value in series.items() if name.startswith("queue_pairs{"))
    assert total == len(host.objects["mlx5_0"])


async def test_a_state_that_no_queue_pair_has_any_more_is_zero() -> None:
    host = FakeHost({"mlx5_0": [queue_pair(1, 7), queue_pair(2, 7, state="ERR")]})
    host.processes[7] = process(7, "0::/slurm/uid_0/job_7")
    found = following(host)
    assert (await survey(found))["queue_pairs_in_error{device=mlx5_0,owner=slurm/7}"] == 1
    host.objects["mlx5_0"].pop()
    series = await survey(found)
    assert owners_in(series) == {"slurm/7"}
    assert not [name for name in series if "owner=other" in name]
    (one,) = found.documents()[0]["owners"]
    assert one["queue_pairs"] == [{"state": "RTS", "type": "RC", "count": 1}]
    assert series["queue_pairs{device=mlx5_0,owner=slurm/7,state=ERR,type=RC}"] == 0
    assert series["queue_pairs_in_error{device=mlx5_0,owner=slurm/7}"] == 0


async def test_peers_are_bounded_and_listeners_are_no_connections() -> None:
    host = FakeHost({"mlx5_0": [queue_pair(1, 7)]})
    host.processes[7] = process(7, "0::/slurm/uid_0/job_7")
    for number in range(1, 41):
        one = RdmaObject(ObjectKind.CONNECTION, pid=7, peer=f"10.0.0.{number}")
        host.objects["mlx5_0"] += [one] * number
    host.objects["mlx5_0"].append(RdmaObject(ObjectKind.CONNECTION, pid=7, state="LISTEN"))
    series = {
        name: value
        for name, value in (await survey(following(host))).items()
        if name.startswith("connections")
    }
    own = "device=mlx5_0,owner=slurm/7"
    largest = {f"connections{{{own},peer=10.0.0.{number}}}": number for number in range(25, 41)}
    assert series == largest | {f"connections{{{own},peer=other}}": sum(range(1, 25))}


async def test_objects_that_the_kernel_counts_and_does_not_list_are_unseen() -> None:
    host = FakeHost({"mlx5_0": [queue_pair(1, 7)]}, uncounted={"qp": 6, "mr": 3, "pd": 9, "cq": -1})
    series = await survey(following(host))
    unseen = {name: value for name, value in series.items() if name.startswith("unseen")}
    assert unseen == {
        "unseen_objects{device=mlx5_0,kind=ctx}": 0,
        "unseen_objects{device=mlx5_0,kind=cq}": 0,
        "unseen_objects{device=mlx5_0,kind=mr}": 3,
        "unseen_objects{device=mlx5_0,kind=qp}": 6,
    }


async def test_objects_that_the_kernel_lists_without_a_process_are_unseen() -> None:
    """So it lists those of other PID namespaces; those of the kernel itself have no process either."""
    elsewhere = [queue_pair(number, 0) for number in (2, 3)]
    own = RdmaObject(QUEUE_PAIR, kernel="ib_core", number=1, type="GSI", state="RTS")
    host = FakeHost({"mlx5_0": [own, *elsewhere]})
    series = await survey(following(host))
    assert series["unseen_objects{device=mlx5_0,kind=qp}"] == 2
    assert series["queue_pairs{device=mlx5_0,owner=unknown,state=RTS,type=RC}"] == 2


@pytest.mark.parametrize("made", [queue_pair(1000), region(7, 4096)], ids=["qp", "mr"])
async def test_objects_made_while_their_list_is_read_are_not_unseen(made) -> None:
    host = FakeHost({"mlx5_0": [queue_pair(1, 7)]})
    host.before_part = lambda _, kind: host.objects["mlx5_0"].append(made) if kind is made.kind else None
    series = await survey(following(host))
    assert series[f"unseen_objects{{device=mlx5_0,kind={made.kind.value}}}"] == 0


async def test_hidden_processes_are_counted() -> None:
    host = FakeHost({"mlx5_0": [queue_pair(1, 7), queue_pair(2, 8)]})
    host.processes = {7: PermissionError(13, "hidden"), 8: process(8, "0::/slurm/uid_0/job_8")}
    series = await survey(following(host))
    assert series["hidden_processes{device=mlx5_0}"] == 1
    assert series["survey_duration_seconds{device=mlx5_0}"] == 0
    assert series["survey_timestamp_seconds{device=mlx5_0}"] == EPOCH + 1000
    assert owners_in(series) == {"unknown", "slurm/8"}


async def test_the_debug_page_has_the_folded_owners_too() -> None:
    host = many_owners(range(1, 4))
    host.objects["mlx5_0"].append(
        RdmaObject(QUEUE_PAIR, kernel="ib_core", number=77, type="GSI", state="RTS")
    )
    found = following(host, limits=SurveyLimits(most=1, timeout=600))
    (before,) = found.documents()
    host.sets["mlx5_0", 1] = (CounterSet(1, 1, 3, "", {"local_ack_timeout_err": 5}),)
    host.objects["mlx5_0"] += [
        queue_pair(78, 3, "ERR"),
        RdmaObject(ObjectKind.CONNECTION, pid=3, peer="10.0.0.9"),
    ]
    await found.read_once()
    (document,) = found.documents()
    owners = document.pop("owners")
    kinds = ["cm_id", "cq", "ctx", "mr", "qp"]
    unknown = {"device": "mlx5_0", "error": "", "errors_total": 0, "hidden_processes": 0}
    assert before == unknown | {
        **dict.fromkeys(("seconds", "last_complete_survey")),
        "state": "not surveyed yet",
        "listed": [],
        "unseen_objects": {},
        "owners": [],
    }
    assert document == unknown | {
        "state": "up",
        "seconds": 0.0,
        "last_complete_survey": EPOCH + 1000,
        "listed": kinds,
        "unseen_objects": dict.fromkeys(kinds[1:], 0),
    }
    assert [one["kind"] for one in owners] == ["slurm", "slurm", "slurm", "kernel"]
    assert [one["counters"] for one in owners[1:]] == [{}] * 3
    assert {one["owner"]: one["shown_as"] for one in owners} == {
        "slurm/3": "slurm/3",
        "slurm/2": "other",
        "slurm/1": "other",
        "kernel/ib_core": "other",
    }
    numbers = ("completion_queues", "contexts", "memory_regions", "memory_region_bytes", "remote_queue_pairs")
    assert owners[0] == {
        "owner": "slurm/3",
        "shown_as": "slurm/3",
        "kind": "slurm",
        "slurm_job": "3",
        "pids": [3],
        "command": "python3",
        "user": "ada",
        "connections": {"10.0.0.9": 1},
        "queue_pairs": [{"state": state, "type": "RC", "count": n} for state, n in (("ERR", 1), ("RTS", 3))],
        **dict.fromkeys(numbers, 0),
        "counters": {"roce_owner_transport_ack_timeouts_total/1": 0},
    }


async def test_all_steps_of_a_round_run_in_one_thread() -> None:
    """Starting a thread takes longer than most steps, and each thread opens a socket of its own."""
    host = many_owners(range(1, 21))
    native: set[int] = set()

    def note(*_: object) -> None:
        native.add(threading.get_native_id())
        clock.now += 0.1

    host.before_part, clock = note, Clock()
    await survey(following(host, clock=clock))
    assert clock.slept == 0 < clock.now - Clock().now, "a round by itself has no pauses"
    assert len(native - {threading.get_native_id()}) == len(native) == 1


async def test_a_process_that_uses_many_devices_is_read_once() -> None:
    names = [f"mlx5_{number}" for number in range(16)]
    host = FakeHost({name: [queue_pair(pid, pid) for pid in range(1, 9)] for name in names})
    host.processes |= {pid: process(pid, f"0::/slurm/uid_0/job_{pid}") for pid in range(1, 9)}
    clock = Clock()
    # One device first: devices that read a process at the same time do not wait for each other.
    found = following(host, clock=clock)
    await survey(found)
    found.follow(map(device, names))
    series = await survey(found)
    assert sorted(host.processes_read) == [*range(1, 9)]
    assert all(series[f"queue_pairs{{device={name},owner=slurm/8,state=RTS,type=RC}}"] == 1 for name in names)
    clock.now += 60
    host.processes_read.clear()
    await survey(found)
    assert set(host.processes_read) == set(range(1, 9)), "a later round reads them again"


def busy_host(pods: int, devices: int) -> FakeHost:
    """Every pod has objects and a counter set on every device, each device another order of sizes."""
    host = FakeHost()
    for pod in range(1, pods + 1):
        host.processes[pod] = process(pod, f"0::/kubepods/pod{pod:032x}/{pod:064x}")
    for device_number in range(devices):
        name, objects = f"mlx5_{device_number}", []
        for pod in range(1, pods + 1):
            size = 1 + (pod * 7 + device_number * 11) % pods
            objects += [queue_pair(1000 * pod + number, pod, remote=1) for number in range(size)]
            objects += [region(pod, 4096), RdmaObject(ObjectKind.CONTEXT, pid=pod)]
        host.objects[name] = objects
        values = dict.fromkeys(("local_ack_timeout_err", "out_of_sequence", "packet_seq_err", "implied_nak_seq_err",
                                "rnr_nak_retry_err", "duplicate_request", "roce_adp_retrans"), 5)  # fmt: skip
        host.sets[name, 1] = tuple(CounterSet(1, pod, pod, "", values) for pod in range(1, pods + 1))
    return host


async def test_sixty_four_pods_on_sixteen_devices_are_few_series() -> None:
    host, names = busy_host(64, 16), [f"mlx5_{number}" for number in range(16)]
    found = following(host, *names)
    await survey(found)
    served = {
        chosen: [series for part in ServedSeries(chosen).select(found.samples()) for series in part.series]
        for chosen in MetricSet
    }
    assert len(served[MetricSet.STANDARD]) <= 1500
    assert len(served[MetricSet.LEAN]) <= len(served[MetricSet.STANDARD])
    assert len(served[MetricSet.FULL]) > 6000
    per_device = {
        one.row.name for one in served[MetricSet.STANDARD] if one.row.name in SUMMED and one.labels[0]
    }
    assert per_device == set(), "only queue pairs say the device"
    assert not any(is_sum(one) for one in served[MetricSet.FULL]), "nothing is counted twice"
    users = {one.labels[1] for one in served[MetricSet.STANDARD] if is_sum(one)}
    assert len(users) == 33
    rows = {one.row.name for one in served[MetricSet.STANDARD] if is_sum(one)}
    assert rows == {one.row.name for one in served[MetricSet.FULL] if one.row.name in rows}


async def test_the_sum_of_an_owner_is_that_of_its_devices_and_no_counter_falls() -> None:
    connection = RdmaObject(ObjectKind.CONNECTION, pid=7, peer="10.0.0.2")
    held = [queue_pair(1, 7), region(7, 4096), connection]
    host = FakeHost({name: list(held) for name in ("mlx5_0", "mlx5_1")})
    host.processes[7] = process(7, "0::/slurm/uid_0/job_7")

    def count(first: int, second: int) -> None:
        for name, value in (("mlx5_0", first), ("mlx5_1", second)):
            host.sets[name, 1] = (CounterSet(1, 1, 7, "", {"local_ack_timeout_err": value}),)

    found = following(host, "mlx5_0", "mlx5_1")
    timeouts = "transport_ack_timeouts_total{owner=slurm/7}"
    count(100, 200)
    await survey(found)
    count(103, 207)
    await survey(found)
    sums = shown(found, sums=True)
    assert sums[timeouts] == 10
    sizes = ("memory_region_bytes{owner=slurm/7}", "processes{owner=slurm/7}", "connections{owner=slurm/7}")
    assert [sums[one] for one in sizes] == [8192, 1, 2]
    found.follow([device("mlx5_1")])
    assert [shown(found, sums=True)[one] for one in sizes] == [4096, 1, 1]
    assert len(found._host._read) == 1
    count(0, 208)
    await survey(found)
    sums = shown(found, sums=True)
    assert (sums["memory_region_bytes{owner=slurm/7}"], sums[timeouts]) == (4096, 11)
    here, host.objects["mlx5_1"] = host.objects["mlx5_1"], []
    host.sets["mlx5_1", 1] = ()
    for _ in range(KEPT_ROUNDS + 1):
        await survey(found)
    host.objects["mlx5_1"] = here
    for value in (3, 5):
        count(0, value)
        await survey(found)
        assert shown(found, sums=True)[timeouts] == value


async def test_owners_that_come_and_go_leave_nothing() -> None:
    host, clock = FakeHost({"mlx5_0": []}), Clock()
    found = following(host, clock=clock)
    for job in range(100, 100 + 4 * KEPT_ROUNDS):
        clock.now += 60
        host.processes = {job: process(job, f"0::/slurm/uid_0/job_{job}")}
        host.objects["mlx5_0"] = [queue_pair(job, job)]
        host.sets["mlx5_0", 1] = (CounterSet(1, job, job, "", {"local_ack_timeout_err": 5}),)
        await survey(found)
    (read,) = found._host._read.values()
    assert len({total.owner for total in read}) <= KEPT_ROUNDS + 2
    assert len(found.processes) == 1


def test_an_owner_is_what_most_of_its_processes_say_until_none_does() -> None:
    python, shell = (process(7, "0::/slurm/uid_0/job_7", command=command) for command in ("python3", "bash"))
    first, second = map(owner_of, (python, shell))
    per = Round(
        owners={first.name: OwnerNumbers(ObjectTotals(), {})},
        identities={first.name: Counter({first: 2, second: 1})},
    )
    assert identities([per], {}) == {first.name: first}
    assert identities([per], {first.name: second}) == {first.name: second}
    assert identities([per], {first.name: first._replace(user="bob")}) == {first.name: first}

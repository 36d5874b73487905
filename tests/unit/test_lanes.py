"""Lanes and batches: a stuck job is overtaken, its late result dropped, and nothing is done twice."""

from __future__ import annotations

import threading
from typing import NamedTuple

import pytest

from roce_exporter.collect.lanes import Batch, Finished, InFlight, Lane, Lanes


class Job(NamedTuple):
    key: tuple[str, str, str]


class Bench:
    """A batch whose jobs finish when the test says so, and a clock that the test turns. Jobs are written `d.s`."""

    def __init__(self, *chains: str, more: dict[str, str] | None = None) -> None:
        self.now = 0.0
        self.more = more or {}
        names = " ".join((*chains, *self.more.values())).split()
        self.gates = {name: threading.Event() for name in names}
        self.begun = {name: threading.Event() for name in names}
        self.attempts: list[str] = []
        self.done = threading.Event()
        self.in_flight = InFlight()
        self.batch: Batch[Job, str] = Batch(
            [jobs(chain) for chain in chains], self.attempt, self.in_flight, lambda: self.now, self.done.set
        )

    def attempt(self, job: Job) -> Finished[Job, str]:
        name = ".".join(job.key[:2])
        self.attempts.append(name)
        self.begun[name].set()
        assert self.gates[name].wait(20)
        return Finished(f"{name} done", tuple(jobs(self.more.get(name, ""))))

    def open(self, *names: str) -> None:
        for name in names or self.gates:
            self.gates[name].set()


def key(name: str) -> tuple[str, str, str]:
    device, source = name.split(".")
    return device, source, ""


def jobs(chain: str) -> list[Job]:
    return [Job(key(name)) for name in chain.split()]


def wait_for(lane: Lane) -> None:
    """Until the lane has done all it was given."""
    idle = threading.Event()
    lane.submit(idle.set)
    assert idle.wait(20)


@pytest.fixture
def lanes():
    made = [Lane("first"), Lane("second")]
    yield made
    for lane in made:
        lane.retire()


def test_jobs_are_done_in_order_and_what_follows_comes_next(lanes: list[Lane]) -> None:
    bench = Bench("a.1 a.2", "b.1", more={"a.1": "a.3 a.4"})
    bench.open()
    lanes[0].submit(bench.batch.run)
    assert bench.done.wait(20)
    assert bench.attempts == ["a.1", "a.3", "a.4", "a.2", "b.1"]
    results, unreached = bench.batch.close()
    assert results == {key(name): f"{name} done" for name in bench.attempts}
    assert not unreached
    assert not bench.in_flight


def test_two_lanes_never_share_a_chain(lanes: list[Lane]) -> None:
    bench = Bench("a.1 a.2", "b.1 b.2")
    for lane in lanes:
        lane.submit(bench.batch.run)
    assert bench.begun["a.1"].wait(20)
    assert bench.begun["b.1"].wait(20)
    assert sorted(bench.attempts) == ["a.1", "b.1"]
    bench.open()
    assert bench.done.wait(20)
    assert sorted(bench.attempts) == ["a.1", "a.2", "b.1", "b.2"]


def test_what_waits_behind_a_stuck_job_is_freed_and_its_late_result_dropped(lanes: list[Lane]) -> None:
    bench = Bench("a.stuck a.next", "b.1")
    bench.open("a.next", "b.1")
    lanes[0].submit(bench.batch.run)
    assert bench.begun["a.stuck"].wait(20)
    assert bench.batch.overtake(0.25) == 0
    bench.now = 1.0
    assert bench.batch.overtake(0.25) == 1
    lanes[1].submit(bench.batch.run)
    assert bench.begun["b.1"].wait(20)
    wait_for(lanes[1])
    assert bench.attempts == ["a.stuck", "a.next", "b.1"]
    assert bench.batch.overtake(0.25) == 0, "nothing waits any more"
    results, unreached = bench.batch.close()
    assert results == {key("a.next"): "a.next done", key("b.1"): "b.1 done"}
    assert not unreached
    assert bench.in_flight.since() == {key("a.stuck"): 0.0}
    bench.open()
    wait_for(lanes[0])
    assert key("a.stuck") not in results
    assert not bench.in_flight
    assert not bench.done.is_set()


def test_a_closed_batch_begins_nothing_more(lanes: list[Lane]) -> None:
    bench = Bench("a.1 a.2", "b.1", more={"a.1": "a.3"})
    lanes[0].submit(bench.batch.run)
    assert bench.begun["a.1"].wait(20)
    _, unreached = bench.batch.close()
    assert set(unreached) == {key("a.2"), key("b.1")}
    bench.open()
    wait_for(lanes[0])
    assert bench.attempts == ["a.1"]


def test_a_lane_that_is_stuck_is_given_up_and_others_are_kept() -> None:
    lanes, gate, begun = Lanes(), threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        gate.wait(20)

    lanes.start(stuck, 1)
    assert begun.wait(20)
    done = threading.Event()
    lanes.start(done.set, 1)
    assert done.wait(20)
    lanes.settle(stuck=True)
    kept = list(lanes._lanes)
    assert len(kept) <= 1
    again = threading.Event()
    lanes.start(again.set, 1)
    assert again.wait(20)
    gate.set()
    lanes.retire()


def test_a_lane_outlives_work_that_fails() -> None:
    lane, done = Lane("test"), threading.Event()
    lane.submit(lambda: int("no work"))
    lane.submit(done.set)
    assert done.wait(30)
    lane.retire()

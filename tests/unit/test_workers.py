"""Calls that may never return: one per key, abandoned and noticed on return; they leave nothing behind."""

import _thread
import asyncio
import contextlib
import errno
import gc
import re
import subprocess
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from clock import Clock
from waiting import HUNG_SECONDS
from worker_threads import die, refuse

from roce_exporter.collect import workers as workers_module
from roce_exporter.collect.batch import Batch
from roce_exporter.collect.reads import Finished
from roce_exporter.collect.workers import (
    CallThread,
    Crew,
    InFlight,
    Worker,
    call_in_loop,
    call_in_worker,
    has_room,
)


class Job(NamedTuple):
    key: str


class Bench:
    """A batch whose jobs finish when the test says so, and a clock that the test sets. Jobs are written `d.s`."""

    def __init__(self, *chains: str, more: dict[str, str] | None = None) -> None:
        self.clock = Clock(0.0)
        self.more = more or {}
        names = " ".join((*chains, *self.more.values())).split()
        self.gates = {name: threading.Event() for name in names}
        self.begun = {name: threading.Event() for name in names}
        self.attempts: list[str] = []
        self.done = threading.Event()
        self.in_flight: InFlight[str] = InFlight(self.clock)
        self.batch: Batch = Batch(
            [jobs(chain) for chain in chains], self.attempt, self.in_flight, self.done.set
        )

    def attempt(self, job: Job) -> Finished:
        self.attempts.append(job.key)
        self.begun[job.key].set()
        assert self.gates[job.key].wait(HUNG_SECONDS)
        return Finished(f"{job.key} done", tuple(jobs(self.more.get(job.key, ""))))

    def open(self, *names: str) -> None:
        for name in names or self.gates:
            self.gates[name].set()


def jobs(chain: str) -> list[Job]:
    return [Job(name) for name in chain.split()]


def wait_for(worker: Worker) -> None:
    """Wait until the worker has finished its tasks."""
    idle = threading.Event()
    worker.submit(idle.set)
    assert idle.wait(HUNG_SECONDS)


@pytest.fixture
def workers():
    made = [Worker("first"), Worker("second")]
    yield made
    for worker in made:
        worker.retire()


def test_two_workers_never_share_a_chain(workers) -> None:
    bench = Bench("a.1 a.2", "b.1 b.2")
    for worker in workers:
        worker.submit(bench.batch.run)
    assert bench.begun["a.1"].wait(HUNG_SECONDS)
    assert bench.begun["b.1"].wait(HUNG_SECONDS)
    assert sorted(bench.attempts) == ["a.1", "b.1"]
    bench.open()
    assert bench.done.wait(HUNG_SECONDS)
    assert sorted(bench.attempts) == ["a.1", "a.2", "b.1", "b.2"]


def test_jobs_behind_a_stuck_one_are_freed_and_its_late_result_dropped(workers) -> None:
    bench = Bench("a.stuck a.next", "b.1")
    bench.open("a.next", "b.1")
    workers[0].submit(bench.batch.run)
    assert bench.begun["a.stuck"].wait(HUNG_SECONDS)
    assert bench.batch.overtake(0.0) == 0, "it began at 0 and not earlier"
    assert bench.batch.overtake(0.5) == 1
    workers[1].submit(bench.batch.run)
    assert bench.begun["b.1"].wait(HUNG_SECONDS)
    wait_for(workers[1])
    assert bench.attempts == ["a.stuck", "a.next", "b.1"]
    assert bench.batch.overtake(0.5) == 0, "nothing waits any more"
    assert bench.batch.unfinished == 1
    assert bench.batch.results().keys() == {"a.next", "b.1"}
    results, unreached = bench.batch.close()
    assert results == {"a.next": "a.next done", "b.1": "b.1 done"}
    assert not unreached
    assert bench.in_flight.since() == {"a.stuck": 0.0}
    bench.open()
    wait_for(workers[0])
    assert "a.stuck" not in results
    assert not bench.in_flight


def test_a_thing_with_stuck_calls_is_read_further_only_where_there_is_room(workers, monkeypatch) -> None:
    """Each stuck call holds a thread: of one thing a few, of all together no more than `MOST_STUCK`."""
    bench = Bench("a.1 a.2", "b.1")
    workers[0].submit(bench.batch.run)
    assert bench.begun["a.1"].wait(HUNG_SECONDS)
    with monkeypatch.context() as patch:
        patch.setattr("roce_exporter.collect.batch.MOST_STUCK", 1)
        assert bench.batch.overtake(0.5) == 0
    with monkeypatch.context() as patch:
        patch.setattr(workers_module, "MOST_OF_ONE", 1)
        bench.in_flight.thing_of = lambda key: key.partition(".")[0]
        assert bench.batch.overtake(0.5) == 1, "the other device is read"
        workers[1].submit(bench.batch.run)
        assert bench.begun["b.1"].wait(HUNG_SECONDS)
    bench.open()
    assert bench.done.wait(HUNG_SECONDS)
    assert bench.attempts == ["a.1", "b.1", "a.2"], "what waited is read after the call that returned"


@pytest.mark.parametrize(
    ("stuck", "room"),
    [
        ({}, True),
        ({"a": 2}, True),
        ({"a": 3}, False),
        ({"b": 3}, True),
        ({"b": 47, "a": 1}, False),
        ({"b": 48}, True),
        ({"b": 95}, True),
        ({"b": 96}, False),
    ],
)
def test_room_for_another_call_of_a_thing(stuck, room) -> None:
    assert has_room(Counter[Hashable](stuck), "a") is room


def test_every_stuck_job_with_others_behind_it_calls_for_a_further_worker(workers) -> None:
    bench = Bench("a.1 a.2", "b.1 b.2", "c.1")
    for worker in workers:
        worker.submit(bench.batch.run)
    assert bench.begun["a.1"].wait(HUNG_SECONDS)
    assert bench.begun["b.1"].wait(HUNG_SECONDS)
    assert bench.batch.overtake(0.5) == 2
    bench.open()
    assert bench.done.wait(HUNG_SECONDS)
    assert sorted(bench.attempts) == ["a.1", "a.2", "b.1", "b.2", "c.1"]


def test_a_closed_batch_begins_nothing_more(workers) -> None:
    bench = Bench("a.1 a.2", "b.1", more={"a.1": "a.3"})
    workers[0].submit(bench.batch.run)
    assert bench.begun["a.1"].wait(HUNG_SECONDS)
    assert bench.batch.unfinished == 3
    _, unreached = bench.batch.close()
    assert set(unreached) == {"a.2", "b.1"}
    bench.open()
    wait_for(workers[0])
    assert bench.attempts == ["a.1"]
    assert workers[0].error is None


def test_a_job_whose_key_is_in_flight_is_skipped_even_if_another_job_adds_it(workers) -> None:
    """Otherwise a device that was described during one of its reads would be read twice at once."""
    bench = Bench("a.1", more={"a.1": "a.2 a.3"})
    before = bench.in_flight.begin("a.2")
    assert before
    bench.open()
    workers[0].submit(bench.batch.run)
    assert bench.done.wait(HUNG_SECONDS)
    assert bench.attempts == ["a.1", "a.3"]
    assert bench.in_flight.end(before)
    assert not bench.in_flight


def test_results_are_taken_from_a_batch_once(workers) -> None:
    bench = Bench("a.1 a.2")
    bench.open("a.1")
    workers[0].submit(bench.batch.run)
    assert bench.begun["a.2"].wait(HUNG_SECONDS)
    assert bench.batch.take() == {"a.1": "a.1 done"}
    bench.open()
    assert bench.done.wait(HUNG_SECONDS)
    assert bench.batch.take() == {"a.2": "a.2 done"}
    assert bench.batch.take() == {}


def test_a_batch_is_over_when_only_an_abandoned_call_is_left(workers) -> None:
    bench = Bench("a.1 a.2")
    workers[0].submit(bench.batch.run)
    assert bench.begun["a.1"].wait(HUNG_SECONDS)
    assert bench.batch.pending() == {"a.1"}
    bench.clock.now = 2.0
    assert [call.key for call in bench.in_flight.give_up(1.0)] == ["a.1"]
    assert bench.batch.pending() == frozenset()
    assert not bench.batch.is_over, "a.2 still waits"
    assert bench.batch.overtake(1.0) == 1
    bench.open("a.2")
    workers[1].submit(bench.batch.run)
    wait_for(workers[1])
    assert bench.batch.is_over
    bench.open()
    wait_for(workers[0])
    assert bench.batch.take() == {"a.2": "a.2 done"}, "the late result is dropped"


def test_one_call_per_key_is_in_flight() -> None:
    calls: InFlight[str] = InFlight(Clock(0.0))
    first = calls.begin("a")
    assert first
    assert calls.begin("a") is None
    assert calls.begin("b")
    assert calls.end(first)
    assert "a" not in calls
    assert calls.begin("a")


def test_an_abandoned_call_is_reported_once_and_again_on_its_return() -> None:
    clock = Clock(0.0)
    calls: InFlight[str] = InFlight(clock)
    slow = calls.begin("slow")
    clock.now = 1.0
    quick = calls.begin("quick")
    assert slow
    assert quick
    assert calls.give_up(1.0) == (), "not longer than that"
    clock.now = 1.5
    assert calls.give_up(1.0) == (slow,)
    assert calls.give_up(1.0) == (), "once"
    assert calls.since() == {"slow": 0.0, "quick": 1.0}
    assert (calls.end(slow), calls.end(quick)) == (False, True)


def test_files_of_a_call_are_closed_after_its_return_by_its_own_thread(workers, caplog) -> None:
    calls: InFlight[str] = InFlight(Clock(0.0))
    gate, closed, inside = threading.Event(), list[str](), 0

    def call() -> None:
        nonlocal inside
        inside = threading.get_ident()
        under_way = calls.begin("a")
        assert under_way
        begun.set()
        assert gate.wait(HUNG_SECONDS)
        calls.end(under_way)

    begun = threading.Event()
    workers[0].submit(call)
    assert begun.wait(HUNG_SECONDS)
    calls.when_idle("a", lambda: closed.append("later" if threading.get_ident() == inside else "elsewhere"))
    calls.when_idle("a", lambda: int("fails"))
    calls.when_idle("b", lambda: closed.append("at once"))
    assert closed == ["at once"]
    gate.set()
    wait_for(workers[0])
    assert closed == ["at once", "later"]
    (record,) = caplog.records
    assert record.message == "cleaning up after a read failed"
    assert record.exc_info
    calls.when_idle("a", lambda: closed.append("idle"))
    assert closed[-1] == "idle"


def test_a_stuck_worker_is_abandoned_and_others_are_kept() -> None:
    crew, gate, begun = Crew("test"), threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        gate.wait(HUNG_SECONDS)

    crew.start(stuck, 1)
    assert begun.wait(HUNG_SECONDS)
    done = threading.Event()
    crew.start(done.set, 1)
    assert done.wait(HUNG_SECONDS)
    wait_for(crew._workers[1])
    crew.settle(stuck=True)
    assert len(crew._workers) == 1
    again = threading.Event()
    crew.start(again.set, 1)
    assert again.wait(HUNG_SECONDS)
    assert len(crew._workers) == 1
    gate.set()
    crew.retire()


def test_workers_that_a_batch_did_not_need_end_with_it(worker_threads) -> None:
    crew = Crew("test")
    crew.start(lambda: None, 3)
    crew.settle(stuck=False)
    assert worker_threads.running() == ["test"] * 3, "all were needed"
    crew.start(lambda: None, 1)
    crew.settle(stuck=False)
    assert len(crew._workers) == 1
    worker_threads.wait_until(1)
    crew.retire()
    worker_threads.wait_until(0)


def test_a_stuck_thread_does_not_keep_the_process_alive() -> None:
    program = "import time; from roce_exporter.collect.workers import Worker; Worker('w').submit(lambda: time.sleep(3600))"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=HUNG_SECONDS).returncode == 0


def test_fewer_workers_run_if_threads_are_short_and_none_is_an_error(monkeypatch, caplog) -> None:
    crew, done = Crew("test"), threading.Event()
    crew.start(lambda: None, 1)
    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    crew.settle(stuck=False)
    crew.start(done.set, 4)
    assert done.wait(HUNG_SECONDS)
    crew.settle(stuck=False)
    crew.retire()
    assert [record.message for record in caplog.records] == ["cannot start a thread: continuing with 1"]
    with pytest.raises(RuntimeError, match="can't start new thread"):
        crew.start(done.set, 1)


def test_a_closed_event_loop_is_not_notified() -> None:
    loop, called = asyncio.new_event_loop(), list[str]()
    loop.close()
    call_in_loop(loop, lambda: called.append("late"))
    assert not called


def test_a_worker_outlives_work_that_fails_and_keeps_its_error(caplog) -> None:
    worker = Worker("test")
    worker.submit(lambda: int("no work"))
    wait_for(worker)
    assert isinstance(worker.error, ValueError)
    assert [(record.message, bool(record.exc_info)) for record in caplog.records] == [
        ("the thread test failed", True)
    ]
    wait_for(worker)
    worker.retire()


async def test_a_call_in_a_worker_gives_its_result_or_its_error_and_ends_its_thread(worker_threads) -> None:
    calls: InFlight[str] = InFlight(Clock(0.0))
    assert await call_in_worker(calls, "a", lambda: 42, HUNG_SECONDS) == 42
    worker_threads.wait_until(0)
    found = await call_in_worker(calls, "a", lambda: (worker_threads.running(), "a" in calls), HUNG_SECONDS)
    assert found == (["roce-call"], True)
    with pytest.raises(ValueError, match="no number"):
        await call_in_worker(calls, "a", lambda: int("no number"), HUNG_SECONDS)
    assert not calls
    worker_threads.wait_until(0)


async def test_what_a_call_that_fails_has_read_goes_with_its_error() -> None:
    class Reply:
        pass

    replies: list[weakref.ref[Reply]] = []

    def read() -> None:
        reply = Reply()
        replies.append(weakref.ref(reply))
        raise ValueError(f"cannot be read: {reply}")

    thread = CallThread()
    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            await call_in_worker(InFlight(Clock(0.0)), "a", read, HUNG_SECONDS, thread)
        await call_in_worker(
            InFlight(Clock(0.0)), "a", lambda: 42, HUNG_SECONDS, thread
        )  # the first one is over
        assert [one() for one in replies] == [None]
    finally:
        gc.enable()
        thread.retire()


async def test_a_call_that_does_not_return_is_not_repeated(worker_threads) -> None:
    calls: InFlight[str] = InFlight(Clock(0.0))
    gate = threading.Event()
    with pytest.raises(TimeoutError, match=r"\] no answer in 0\.01 s$") as late:
        await call_in_worker(calls, "a", lambda: gate.wait(HUNG_SECONDS), 0.01)
    with pytest.raises(TimeoutError, match=r"\] an earlier call has not returned$") as early:
        await call_in_worker(calls, "a", lambda: gate.wait(HUNG_SECONDS), 0.01)
    assert (late.value.errno, early.value.errno) == (errno.ETIMEDOUT, errno.ETIMEDOUT)
    assert worker_threads.running() == ["roce-call"]
    gate.set()
    while calls:  # noqa: ASYNC110 - a worker thread has no event to wait for
        await asyncio.sleep(0.001)
    assert await call_in_worker(calls, "a", lambda: "again", HUNG_SECONDS) == "again"


async def test_without_a_thread_nothing_is_left_in_flight(monkeypatch) -> None:
    calls: InFlight[str] = InFlight(Clock(0.0))
    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    with pytest.raises(RuntimeError):
        await call_in_worker(calls, "a", lambda: 42, HUNG_SECONDS)
    assert not calls


async def test_calls_in_one_thread_end_with_it(worker_threads) -> None:
    calls: InFlight[str] = InFlight(Clock(0.0))
    thread = CallThread()
    first, second = [
        await call_in_worker(calls, "a", threading.get_native_id, HUNG_SECONDS, thread) for _ in range(2)
    ]
    assert first == second != threading.get_native_id()
    assert worker_threads.running() == ["roce-call"]
    thread.retire()
    thread.retire()
    worker_threads.wait_until(0)


async def test_a_thread_that_is_retired_while_its_call_is_stuck_ends_with_the_call(worker_threads) -> None:
    calls: InFlight[str] = InFlight(Clock(0.0))
    thread, gate = CallThread(), threading.Event()
    with pytest.raises(TimeoutError):
        await call_in_worker(calls, "a", lambda: gate.wait(HUNG_SECONDS), 0.01, thread)
    thread.retire()
    with pytest.raises(TimeoutError, match="has not returned"):
        await call_in_worker(calls, "a", lambda: gate.wait(HUNG_SECONDS), 0.01, CallThread())
    assert worker_threads.running() == ["roce-call"]
    gate.set()
    worker_threads.wait_until(0)
    assert not calls


OUT_OF_MEMORY = "the thread roce-call has died, out of memory"


async def test_a_call_whose_thread_dies_at_its_start_fails_and_the_next_one_works(monkeypatch) -> None:
    """Without memory a thread can die before its first line; `threading.Thread.start` would wait for it forever."""
    calls: InFlight[str] = InFlight(Clock(0.0))
    monkeypatch.setattr(_thread, "start_new_thread", die(2))
    monkeypatch.setattr(workers_module, "LIFE_CHECK", 0.01)
    thread = CallThread()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=OUT_OF_MEMORY):
            await call_in_worker(calls, "a", lambda: "done", 600.0, thread)
        assert not calls
    assert await call_in_worker(calls, "a", lambda: "done", 600.0, thread) == "done"
    thread.retire()


async def test_a_dead_call_that_no_client_waits_for_is_ended_by_the_next_one(
    monkeypatch, worker_threads
) -> None:
    calls: InFlight[str] = InFlight(Clock(0.0))
    monkeypatch.setattr(_thread, "start_new_thread", die(2))
    with pytest.raises(TimeoutError):
        await call_in_worker(calls, "a", lambda: "done", 0.0)
    worker_threads.wait_until(0)
    closed: list[str] = []
    calls.when_idle("a", lambda: closed.append("a"))
    assert closed == ["a"], "no thread is left that could close it later"
    with pytest.raises(TimeoutError):
        await call_in_worker(calls, "a", lambda: "done", 0.0)
    worker_threads.wait_until(0)
    assert await call_in_worker(calls, "a", lambda: "done", 600.0) == "done"


async def test_a_call_that_has_no_memory_for_its_result_fails(monkeypatch, caplog) -> None:
    calls: InFlight[str] = InFlight(Clock(0.0))
    monkeypatch.setattr(workers_module, "LIFE_CHECK", 0.01)
    with monkeypatch.context() as patched:
        here = threading.get_ident()
        patched.setattr(
            workers_module,
            "partial",
            lambda *parts: partial(*parts) if threading.get_ident() == here else no_memory(),
        )
        with pytest.raises(RuntimeError, match=OUT_OF_MEMORY):
            await call_in_worker(calls, "a", lambda: "done", 600.0)
    assert caplog.messages == ["the thread roce-call failed"]
    assert await call_in_worker(calls, "a", lambda: "done", 600.0) == "done"


def no_memory(*_: object) -> object:
    raise MemoryError


def test_without_memory_for_a_thread_the_error_is_that_of_a_system_without_threads(monkeypatch) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", no_memory)
    with pytest.raises(RuntimeError, match="can't start new thread: out of memory"):
        Worker("test")


def test_a_worker_without_memory_for_its_log_line_goes_on(monkeypatch) -> None:
    worker = Worker("test")
    monkeypatch.setattr(workers_module.LOG, "exception", no_memory)
    worker.submit(lambda: int("no work"))
    wait_for(worker)
    assert isinstance(worker.error, ValueError)
    worker.retire()


def test_dead_workers_of_a_crew_are_replaced(monkeypatch, worker_threads, caplog) -> None:
    crew, done = Crew("test"), threading.Semaphore(0)
    monkeypatch.setattr(_thread, "start_new_thread", die(2))
    crew.start(done.release, 3)
    assert done.acquire(timeout=HUNG_SECONDS)
    worker_threads.wait_until(1)
    crew.replace_dead(done.release)
    crew.replace_dead(done.release)
    assert done.acquire(timeout=HUNG_SECONDS)
    assert done.acquire(timeout=HUNG_SECONDS)
    assert not done.acquire(blocking=False)
    assert caplog.messages == ["2 threads test have died, out of memory?; starting others"]
    assert worker_threads.running() == ["test"] * 3
    crew.retire()


def test_the_next_batch_of_a_crew_uses_no_dead_worker(monkeypatch, worker_threads) -> None:
    crew, done = Crew("test"), threading.Event()
    monkeypatch.setattr(_thread, "start_new_thread", die(1))
    crew.start(done.set, 1)
    worker_threads.wait_until(0)
    crew.settle(stuck=False)
    crew.start(done.set, 1)
    assert done.wait(HUNG_SECONDS)
    crew.retire()


def test_jobs_of_a_worker_that_fails_are_reported_as_not_done_and_can_be_done_again(
    workers, monkeypatch
) -> None:
    bench = Bench("a.1 a.2 a.3", "b.1")
    bench.open()
    attempt = bench.batch._attempt
    monkeypatch.setattr(
        bench.batch, "_attempt", lambda job: no_memory() if job.key == "a.2" else attempt(job)
    )
    workers[0].submit(bench.batch.run)
    wait_for(workers[0])
    assert isinstance(workers[0].error, MemoryError)
    assert not bench.batch.is_over, "b.1 is left"
    workers[1].submit(bench.batch.run)
    assert bench.done.wait(HUNG_SECONDS)
    assert not bench.in_flight
    results, unreached = bench.batch.close()
    assert (set(results), unreached) == ({"a.1", "b.1"}, ("a.2", "a.3"))


def test_a_result_that_cannot_be_entered_is_reported_as_not_done(workers) -> None:
    bench = Bench("a.1 a.2")
    bench.open()
    bench.batch._results = NoRoom()
    workers[0].submit(bench.batch.run)
    assert bench.done.wait(HUNG_SECONDS)
    wait_for(workers[0])
    assert not bench.in_flight
    assert bench.batch.close()[1] == ("a.1", "a.2")


class NoRoom(dict[str, str]):
    def __setitem__(self, key: str, value: str) -> None:
        raise MemoryError


def test_no_other_module_starts_a_thread() -> None:
    """An executor of asyncio starts its threads on the event loop and waits for each; so does a lookup of the loop."""
    starts = re.compile(
        r"\bThread\(|start_new_thread|to_thread|run_in_executor|Executor\(|loop\(?\)?\.getaddrinfo"
    )
    package = Path(workers_module.__file__).parents[1]
    assert {path.name for path in package.rglob("*.py") if starts.search(path.read_text())} == {"workers.py"}

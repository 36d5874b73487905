"""The threads that the package starts during a test: which of them run, and that they end."""

import _thread
import time
from collections.abc import Callable

import pytest
from waiting import HUNG_SECONDS

from roce_exporter.collect.workers import Worker


class WorkerThreads:
    """The workers of one test."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._made: list[Worker] = []
        self._patch = patch
        make = Worker.__init__

        def noted(worker: Worker, name: str) -> None:
            make(worker, name)
            self._made.append(worker)

        patch.setattr(Worker, "__init__", noted)

    def running(self) -> list[str]:
        """The names of those that run."""
        return sorted(worker.name for worker in self._made if not worker.has_ended)

    def wait_until(self, count: int) -> None:
        """Wait until no more than `count` of them run."""
        end = time.monotonic() + HUNG_SECONDS
        while len(self.running()) > count:
            assert time.monotonic() < end, f"still running: {self.running()}"
            time.sleep(0.001)


def refuse(_: object, __: object) -> int:
    """As `_thread.start_new_thread` where the system limits the number of threads."""
    raise RuntimeError("can't start new thread")


def die(deaths: int) -> Callable[[Callable[[], None], tuple[()]], int]:
    """`_thread.start_new_thread` whose first threads die before their first line, as without memory."""
    left = [deaths]
    start = _thread.start_new_thread

    def dying(run: Callable[[], None], arguments: tuple[()]) -> int:
        left[0] -= 1
        # The thread has what it would run, and runs nothing.
        return start(run, arguments) if left[0] < 0 else start(lambda _: None, (run,))

    return dying

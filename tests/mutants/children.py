"""Forked children that run tests and report them through pipes."""

import json
import os
import selectors
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

SILENCE = 40.0
"""Seconds without a report after which a child is killed; pytest-timeout ends a test that hangs long before."""


class Children:
    """Forked children, each of which runs some tests and reports through a pipe."""

    def __init__(self, jobs: int, run: Callable[[dict[str, Any], Callable[[str], Any]], None]) -> None:
        self._jobs, self._run = jobs, run
        self._places = Path(tempfile.mkdtemp(prefix="breaks-"))
        self._count = 0
        self._waiting = selectors.DefaultSelector()

    def done(self, pieces: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Do pieces of work; each comes back with `results` by test, and `unfit` if nothing could be broken."""
        self._waiting = waiting = selectors.DefaultSelector()
        coming = iter(pieces)
        while True:
            while len(waiting.get_map()) < self._jobs and (work := next(coming, None)) is not None:
                work |= {"results": {}, "running": None, "rest": b"", "heard": time.monotonic()}
                waiting.register(self._fork(work), selectors.EVENT_READ, work)
            if not waiting.get_map():
                break
            for key, _ in waiting.select(1):
                work, data = key.data, os.read(key.fd, 1 << 16)
                work["heard"] = time.monotonic()
                self._hear(work, data)
                if not data:
                    waiting.unregister(key.fd)
                    os.close(key.fd)
                    self._end(work)
                    yield work
            for key in waiting.get_map().values():
                if time.monotonic() - key.data["heard"] > SILENCE:
                    os.killpg(key.data["child"], signal.SIGKILL)

    def close(self) -> None:
        """Kill what still runs, and remove the files of the tests."""
        for key in list(self._waiting.get_map().values()):
            self._end(key.data)
        shutil.rmtree(self._places, ignore_errors=True)

    def _fork(self, work: dict[str, Any]) -> int:
        """A child in a process group of its own; it begins as this process was after the collection."""
        reading, writing = os.pipe()
        self._count += 1
        work["place"] = self._places / str(self._count)
        work["child"] = os.fork()
        if work["child"]:
            os.close(writing)
            with suppress(OSError):  # the child does the same: whichever is first
                os.setpgid(work["child"], 0)
            return reading
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            self._run(work, lambda line: os.write(writing, f"{line}\n".encode()))
        finally:
            os._exit(0)

    @staticmethod
    def _hear(work: dict[str, Any], data: bytes) -> None:
        *lines, work["rest"] = (work["rest"] + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode().partition(" ")
            if word == "begin":
                work["running"] = int(rest)
            elif word == "end":
                number, *result = json.loads(rest)
                work["results"][number], work["running"] = result, None
            else:
                work["unfit"] = True

    @staticmethod
    def _end(work: dict[str, Any]) -> None:
        """The child has gone: the test that it was running has failed, and what that has started is killed."""
        if work["running"] is not None:
            work["results"][work["running"]] = ["t", 0.0, 0.0, []]
        with suppress(ProcessLookupError):
            os.killpg(work["child"], signal.SIGKILL)
        os.waitpid(work["child"], 0)
        shutil.rmtree(work["place"], ignore_errors=True)

"""Counts the Python instructions of a piece of work: the same number on every machine, whatever its load."""

import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


def instructions(work: Callable[[], object]) -> int:
    """The number of bytecode instructions that the work takes, in this thread and in those that it starts."""
    counter = itertools.count()  # one step of C, so that no thread loses another thread's count
    with _monitored(counter) if sys.version_info >= (3, 12) else _traced(counter):
        work()
    return next(counter)


@contextmanager
def _monitored(counter: Iterator[int]) -> Iterator[None]:
    """From Python 3.12 on, whose tracing counts some code only from its second run on."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore] # Python 3.11 has none
    tool, event = monitoring.PROFILER_ID, monitoring.events.INSTRUCTION
    monitoring.use_tool_id(tool, __name__)
    counted = {threading.get_ident()}  # threads of other tests may be at work

    def begin(*_: object) -> None:
        sys.settrace(None)
        counted.add(threading.get_ident())

    def count(_code: object, _offset: int) -> None:
        if threading.get_ident() in counted:
            next(counter)

    monitoring.register_callback(tool, event, count)
    monitoring.set_events(tool, event)
    threading.settrace(begin)
    try:
        yield
    finally:
        threading.settrace(None)  # type: ignore[arg-type]  # as before
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)


@contextmanager
def _traced(counter: Iterator[int]) -> Iterator[None]:
    def trace(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode":
            next(counter)
        return trace

    before = sys.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        threading.settrace(before)  # type: ignore[arg-type]  # what was there before

"""Counts the Python instructions of a piece of work: the same number on every machine, whatever its load."""

import itertools
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


def instructions(work: Callable[[], object]) -> int:
    """The number of bytecode instructions that the work takes, in this thread and in those that it starts."""
    counter = itertools.count()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode":
            next(counter)  # one step of C, so that no thread loses another thread's count
        return trace

    before = sys.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        threading.settrace(before)  # type: ignore[arg-type]  # what was there before
    return next(counter)

"""When the kernel listed queue pairs, part by part, and queried the driver for each of them: from its own trace.

The lists are those of RDMA netlink (`nldev_res_get_qp_dumpit` in drivers/infiniband/core/nldev.c). Probes as in
Documentation/trace/kprobetrace.rst; the trace's clock is that of the guest.
"""

import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from nic import run

TRACING = Path("/sys/kernel/tracing")
FIRST, THIRD = ("x0", "x2") if platform.machine() == "aarch64" else ("di", "dx")
"""The registers of a function's arguments."""
PROBES = f"""p:lab/opened __netlink_dump_start type=+4(%{THIRD}):u16
p:lab/begun nldev_res_get_qp_dumpit
r:lab/ended nldev_res_get_qp_dumpit
p:lab/queried ib_query_qp device=+0(%{FIRST}):x64
"""
EVENT = re.compile(r"-(\d+) +\[\d+\] \S+ +([\d.]+): (\w+): .*?(?:device=(\w+))?$", re.MULTILINE)


LIST_OF_QUEUE_PAIRS = 5 << 10 | 10
"""RDMA_NLDEV_CMD_RES_QP_GET in the type of a netlink message."""


class Part(NamedTuple):
    """A part of a list. Times in seconds."""

    is_first: bool
    begun: float
    ended: float
    devices: tuple[str, ...]
    """The kernel's address of the device, once per query of its driver."""


@contextmanager
def traced() -> Iterator[None]:
    """Trace until the block ends. `lists_of` returns what happened."""
    if not (TRACING / "kprobe_events").exists():
        run("mount", "-t", "tracefs", "tracefs", str(TRACING))
    (TRACING / "trace").write_text("")
    (TRACING / "kprobe_events").write_text(PROBES)
    (TRACING / "events/lab/opened/filter").write_text(f"type == {LIST_OF_QUEUE_PAIRS}")
    enabled = TRACING / "events/lab/enable"
    enabled.write_text("1")
    try:
        yield
    finally:
        enabled.write_text("0")
        (TRACING / "kprobe_events").write_text("")


def lists_of(trace: str) -> list[tuple[Part, ...]]:
    """The complete or broken off lists in a trace, without those that were opened before it began."""
    under_way: dict[str, list[Part]] = {}
    lists: list[list[Part]] = []
    for part in parts_of(trace):
        (device,) = set(part.devices)
        if part.is_first:
            lists.append([])
            under_way[device] = lists[-1]
        if device in under_way:
            under_way[device].append(part)
    return [tuple(parts) for parts in lists]


def parts_of(trace: str) -> Iterator[Part]:
    """The parts of all lists in the order of their ends; without the empty one that ends a list."""
    opened: set[str] = set()
    under_way: dict[str, tuple[float, list[str]]] = {}
    for task, time, what, device in map(re.Match.groups, EVENT.finditer(trace)):
        if what == "opened":
            opened.add(task)
        elif what == "begun":
            under_way[task] = float(time), []
        elif what == "queried" and task in under_way:
            under_way[task][1].append(device)
        elif what == "ended" and task in under_way:
            begun, devices = under_way.pop(task)
            if devices:
                yield Part(task in opened, begun, float(time), tuple(devices))
            opened.discard(task)


def trace() -> str:
    """What was traced until now."""
    return (TRACING / "trace").read_text()

"""The series of the jobs dashboard: owners of RDMA objects by workload, and the pause of the ports that they use.

A workload is a Slurm job, the controller of a pod where kube-state-metrics exists, or the owner itself; a recording rule
joins them. Pause is counted per port: it is that of all owners of the port together.
"""

from __future__ import annotations

from boards.limits import WORKLOADS
from boards.measures import rate
from boards.model import Variable
from boards.rules import ELEVATED
from boards.scopes import FLEET, HOST, OF_HOSTS

OWNER = "(cluster, job, instance, owner)"
DEVICE = "(cluster, job, instance, device)"
CHOSEN = f'{WORKLOADS}{{{HOST},workload=~"$workload"}}'
APPLICATIONS = f'{HOST},owner!="kernel/ib_core"'
"""Without the kernel's own management queue pairs, which every device has."""

OF_JOBS = (
    *OF_HOSTS,
    Variable(
        "workload", "Workload", "A Slurm job, the controller of a pod, or another owner of RDMA objects.",
        f'label_values({WORKLOADS}{{{FLEET},instance=~"$instance"}}, workload)',
    ),
)  # fmt: skip


def of_workloads(expression: str, *by: str) -> str:
    """The sum by workload and the labels `by`. The expression has the labels `job`, `instance` and `owner`."""
    labels = ", ".join((*by, "workload"))
    return f"sum by ({labels}) ({expression} * on {OWNER} group_left (workload) {CHOSEN})"


def rate_of_workloads(name: str, *by: str) -> str:
    """The rate of a counter by workload and `by`."""
    return of_workloads(rate(name, HOST), *by)


_ON_DEVICE = ("cluster", "job", "instance", "device")
PAIRS = of_workloads(f"roce_owner_queue_pairs{{{APPLICATIONS}}}", *_ON_DEVICE)
"""Queue pairs by workload and device."""


def paused(direction: str, window: str = "") -> str:
    """Share of time that the worst priority of the device was paused, for each of its workloads; with a window its maximum.

    No series below the limit of RocePfcPauseElevated, which keeps the number of series small.
    """
    found = f'{ELEVATED}{{direction=~"{direction}",{HOST}}}'
    worst = f"max_over_time({found}[{window}])" if window else found
    return f"0 * {PAIRS} + on {DEVICE} group_left () max by {DEVICE} ({worst})"


def most(count: int, expression: str) -> str:
    """The series that were the largest within the range shown: ranked once, so that they are not more than `count`."""
    return f"({expression}) and topk({count}, max_over_time(({expression})[$__range:] @ end()) > 0)"


RANK = f"({paused('receive|transmit', '$__range')}) or 1e-9 * {PAIRS}"
"""Workloads by pause in either direction, then by queue pairs."""


def listed(expression: str, count: int = 50) -> str:
    """Restricts an expression by workload and device to the first of the ranking."""
    return f"({expression}) and topk({count}, {RANK})"

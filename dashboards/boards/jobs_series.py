"""The series of the jobs dashboard: owners of RDMA objects by workload, and the pause of the ports that they use.

A workload is a Slurm job, the controller of a pod where kube-state-metrics exists, or the owner itself; a recording rule
joins them. Pause is counted per port: it is that of all owners of the port together.
"""

from __future__ import annotations

from boards.limits import WORKLOADS
from boards.measures import rate
from boards.model import Variable
from boards.rules import WORKLOAD_HOSTS
from boards.scopes import FLEET, HOST, OF_ONE

OWNER = "(cluster, job, instance, owner)"
DEVICE = "(cluster, job, instance, device)"
CHOSEN = f'{WORKLOADS}{{{HOST},workload=~"$workload"}}'
APPLICATIONS = f'{HOST},owner!="kernel/ib_core"'
"""Without the kernel's own management queue pairs, which every device has."""

OF_WORKLOAD = f'{FLEET},workload=~"$workload"'
"""Matchers of recorded series by workload."""
OF_JOBS = (
    *OF_ONE[:2],
    Variable(
        "workload", "Workload", "A Slurm job, the controller of a pod, or another owner of RDMA objects.",
        f"label_values({WORKLOAD_HOSTS}{{{FLEET}}}, workload)",
    ),
    Variable(
        "instance", "Instance", "A host of these workloads, or a few, for the rows about one host.",
        f"label_values({WORKLOADS}{{{OF_WORKLOAD}}}, instance)", include_all=False,
    ),
)  # fmt: skip


def of_workloads(expression: str, *by: str) -> str:
    """The sum by workload and the labels `by`. The expression has the labels `job`, `instance` and `owner`."""
    labels = ", ".join((*by, "workload"))
    return f"sum by ({labels}) ({expression} * on {OWNER} group_left (workload) {CHOSEN})"


def rate_of_workloads(name: str, *by: str) -> str:
    """The rate of a counter by workload and `by`."""
    return of_workloads(rate(name, HOST), *by)


def most(count: int, expression: str) -> str:
    """The series that were the largest within the range shown: ranked once, so that they are not more than `count`."""
    return f"({expression}) and topk({count}, max_over_time(({expression})[$__range:] @ end()) > 0)"

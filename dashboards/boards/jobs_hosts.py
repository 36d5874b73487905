"""The rows of the jobs dashboard below the first screen: a workload across its hosts, its owners, limits, and surveys."""

from __future__ import annotations

from dataclasses import replace

from boards.colours import NOTHING, SEVERITY, WARNING
from boards.jobs_owners import FIELDS, NO_RULES
from boards.jobs_series import APPLICATIONS, CHOSEN, OF_WORKLOAD, OWNER, most, of_workloads
from boards.limits import RESOURCES, SURVEY_AGE, steps
from boards.measures import meanings, now
from boards.model import Panel, Query, cell, nothing
from boards.panels import by_name, lines, ranking
from boards.rules import HOST_PAIRS
from boards.scopes import FLEET, HOST, to_host, to_jobs, to_workload
from boards.tables import graded, table

PER_HOST = {
    "queue pairs": f"roce_owner_queue_pairs{{{APPLICATIONS}}}",
    "remote": now("roce_owner_remote_queue_pairs", HOST),
    "CQs": now("roce_owner_completion_queues", HOST),
    "MRs": now("roce_owner_memory_regions", HOST),
    "bytes": now("roce_owner_memory_region_bytes", HOST),
    "contexts": now("roce_owner_contexts", HOST),
    "processes": now("roce_owner_processes", HOST),
}
COUNTED = tuple(zip("ABCDEFG", PER_HOST, strict=True))
LINKS = (by_name("workload", ("links", [to_workload()])), by_name("instance", ("links", [to_host()])))


def _of_host(expression: str) -> Query:
    largest = of_workloads(f"roce_owner_queue_pairs{{{APPLICATIONS}}}", *FIELDS)
    return cell(f"{of_workloads(expression, *FIELDS)} and topk(100, {largest})")


ODD_HOST = "instance_workload:roce_odd_host:score"
BY_HOST = f"{HOST_PAIRS}{{{OF_WORKLOAD}}}"
BY_HOST_PANELS = (
    table(
        "Workloads by host",
        "Queue pairs of each workload on each host, the 100 with the most, and *to median*: the difference to the median host of the workload. A host that differs "
        "has fewer ranks, or ranks that could not connect. *odd*: how far the host is from the others of its workload in what it sends of pause, loses, or transfers, "
        "in units of the usual distance; a dash is not far. Click a host to see it below.",
        ("workload", *FIELDS, "Value #A", "Value #B", "Value #C"),
        cell(f"topk(100, {BY_HOST})"),
        cell(f"{BY_HOST} - on (cluster, job, workload) group_left () quantile by (cluster, job, workload) (0.5, {BY_HOST}) and topk(100, {BY_HOST})"),
        cell(f"{ODD_HOST}{{{OF_WORKLOAD}}}", "odd"),
        nothing("workload", NO_RULES, BY_HOST),
        names={"Value #A": "queue pairs", "Value #B": "to median", "Value #C": "odd"},
        concealed=("cluster", "job"),
        overrides=(by_name("workload", ("links", [to_workload()])), by_name("instance", ("links", [to_jobs(), to_host()])), graded("odd", "none", steps((0, SEVERITY[WARNING]), base=NOTHING))),
        joined=True,
        sort="Value #A",
        width=24,
        height=8,
        empty=NO_RULES,
    ),
)  # fmt: skip
ACROSS_PANELS = (
    table(
        "Workloads of this host",
        "One line per workload, summed over its devices; the 100 with the most queue pairs.\n\n"
        + meanings("roce_owner_remote_queue_pairs", "roce_owner_completion_queues", "roce_owner_memory_regions", "roce_owner_contexts", "roce_owner_processes"),
        ("workload", *FIELDS, *(f"Value #{letter}" for letter, _ in COUNTED)),
        *map(_of_host, PER_HOST.values()),
        nothing("workload", "no owners, or no recording rules", CHOSEN),
        names={f"Value #{letter}": name for letter, name in COUNTED},
        concealed=("cluster", "job"),
        overrides=(*LINKS, by_name("bytes", ("unit", "bytes"))),
        joined=True,
        sort="Value #A",
        width=24,
        height=9,
        empty=NO_RULES,
    ),
    table(
        "Connections by peer",
        "The 50 peers with the most connections. Only connections of the RDMA connection manager have an address: NVMe-oF, NFS, iSER, UCX. NCCL and most MPI "
        f"libraries connect without it; *remote* above counts their peers.\n\n{meanings('roce_owner_connections')}",
        ("workload", *FIELDS, "peer", "Value"),
        cell(f"topk(50, {of_workloads(now('roce_owner_connections', HOST), *FIELDS, 'peer')})"),
        names={"Value": "connections"},
        concealed=("cluster", "job"),
        overrides=LINKS,
        width=14,
        empty="No connection of the RDMA connection manager",
    ),
    lines(
        "Registered memory",
        f"The ten workloads with the most. Growth without end is a leak.\n\n{meanings('roce_owner_memory_region_bytes')}",
        "bytes",
        Query(most(10, of_workloads(now("roce_owner_memory_region_bytes", HOST) )), "{{workload}}"),
        width=10,
        empty=NO_RULES,
    ),
)  # fmt: skip

_INFO = f"max by (cluster, job, instance, owner, kind, command, user, pod_uid) (roce_owner_info{{{HOST}}})"
_OWNERS = f"({_INFO} * on {OWNER} group_left (workload) {CHOSEN})"
_PODS = 'topk by (uid) (1, max by (uid, namespace, pod) (kube_pod_info{uid!=""}))'
_WITH_PODS = (
    f'label_replace({_OWNERS}, "uid", "$1", "pod_uid", "(.+)") * on (uid) group_left (namespace, pod) {_PODS}'
)
WHO_PANELS = (
    table(
        "Owners",
        "At most 100. All processes of one cgroup are one owner; `command` and `user` are those of one of its processes, and empty with `--owners.anonymous`. "
        f"Namespace and pod need kube-state-metrics in this data source.\n\n{meanings('roce_owner_info')}",
        ("owner", *FIELDS, "workload", "kind", "user", "command", "namespace", "pod"),
        cell(f"topk(100, {_WITH_PODS} or on {OWNER} {_OWNERS})"),
        concealed=("cluster", "job", "workload"),
        overrides=(by_name("owner", ("links", [to_workload()])), by_name("instance", ("links", [to_host()]))),
        width=24,
        height=9,
        empty=NO_RULES,
    ),
)  # fmt: skip


def _exhaustion(kind: str, title: str, said: str) -> Panel:
    used, most_possible = f"roce_resource_{kind}", f"roce_resource_{kind}_limit"
    panel = ranking(
        title,
        f"Share of the {said} that the device offers; the eight fullest devices. At 100 % the device refuses new ones. "
        f"Limits are read with `owners.limits`.\n\n{meanings(used, most_possible)}",
        "percentunit",
        Query(f"topk(8, {used}{{{FLEET}}} / {most_possible}{{{FLEET}}})", "{{instance}} {{device}}", instant=True),
        steps(RESOURCES),
        width=8,
        empty="Limits unknown: see owners.limits",
    )  # fmt: skip
    # a bar is full at the limit, not at the largest value
    return replace(panel, defaults=panel.defaults | {"max": 1})


LIMIT_PANELS = (
    _exhaustion("qp", "Queue pairs in use", "queue pairs"),
    _exhaustion("cq", "Completion queues in use", "completion queues"),
    _exhaustion("mr", "Memory regions in use", "memory regions"),
)

AGE, TOOK = "roce_owner_survey_timestamp_seconds", "roce_owner_survey_duration_seconds"
NOT_SEEN = ("roce_owner_unseen_objects", "roce_owner_hidden_processes", "roce_owner_folded")
SURVEYS = (
    ("age", f"time() - {now(AGE, FLEET)}"),
    ("took", now(TOOK, FLEET)),
    ("no process", f"sum by (cluster, job, instance, device) ({now(NOT_SEEN[0], FLEET)})"),
    ("hidden", now(NOT_SEEN[1], FLEET)),
    ("folded", now(NOT_SEEN[2], FLEET)),
)
SURVEYED = tuple(zip("ABCDE", (name for name, _ in SURVEYS), strict=True))


def _of_device(expression: str) -> Query:
    oldest = f"topk(50, max by (cluster, job, instance, device) (time() - {now(AGE, FLEET)}))"
    return cell(f"max by (cluster, job, instance, device) ({expression}) and {oldest}")


SURVEY_PANELS = (
    table(
        "Surveys of RDMA objects",
        "The 50 oldest. Objects with **no process** belong to other PID or network namespaces or to threads that ended; processes that are **hidden** have the owner `unknown`; owners that are "
        f"**folded** are counted as `other`.\n\n{meanings(AGE, TOOK, *NOT_SEEN)}",
        ("instance", "cluster", "job", "device", *(f"Value #{letter}" for letter, _ in SURVEYED)),
        *(_of_device(expression) for _, expression in SURVEYS),
        nothing("instance", "no survey", now(AGE, FLEET)),
        names={f"Value #{letter}": name for letter, name in SURVEYED},
        concealed=("cluster", "job"),
        overrides=(
            by_name("instance", ("links", [to_host()])),
            graded("age", "s", steps(SURVEY_AGE)),
            by_name("took", ("unit", "s")),
        ),
        joined=True,
        sort="Value #A",
        width=24,
        height=7,
        empty="No survey: disabled, or the exporter is older than this dashboard",
    ),
)  # fmt: skip

"""The first screen of the jobs dashboard: which workloads suffer, and which have broken queue pairs."""

from __future__ import annotations

from boards.jobs_series import APPLICATIONS, CHOSEN, OWNER, PAIRS, listed, most, of_workloads, paused
from boards.limits import MEDIUM, limit, percent, step, steps
from boards.measures import meanings, now
from boards.model import Panel, Query
from boards.panels import by_name, lines, number
from boards.scopes import HOST, to_host, to_workload
from boards.tables import graded, table

IN_ERROR = "roce_owner_queue_pairs_in_error"
UNSEEN, HIDDEN = "roce_owner_unseen_objects", "roce_owner_hidden_processes"
BROKEN = steps(step("RoceOwnerQueuePairsInError", "queue_pairs"))
NOT_OWN = "Pause is that of the port: all workloads of a port have the same value, also one that sends nothing. It shows who suffers, not who causes it."
NO_RULES = "No owners, or no recording rules"
UNKNOWN_HERE = "No owners"
FIELDS = ("cluster", "job", "instance")
LEGEND = "{{workload}} on {{instance}}"


def _chosen(expression: str) -> str:
    """The sum over the chosen workloads."""
    return f"sum({expression} and on {OWNER} {CHOSEN})"


NUMBERS = (
    number(
        "Workloads",
        "Slurm jobs, controllers of pods (where kube-state-metrics is scraped), and other owners of RDMA objects.",
        "none",
        Query(f"count(count by (cluster, workload) ({CHOSEN}))"),
        empty=UNKNOWN_HERE,
    ),
    number(
        "Queue pairs",
        "Without the kernel's management queue pairs.\n\n" + meanings("roce_owner_queue_pairs"),
        "none",
        Query(_chosen(f"roce_owner_queue_pairs{{{APPLICATIONS}}}")),
        empty=UNKNOWN_HERE,
    ),
    number(
        "In state ERR",
        "They transfer nothing any more: the peer failed, or the application does not close them.\n\n" + meanings(IN_ERROR),
        "none",
        Query(_chosen(now(IN_ERROR, HOST))),
        limits=BROKEN,
        empty=UNKNOWN_HERE,
    ),
    number(
        "Registered",
        meanings("roce_owner_memory_region_bytes"),
        "bytes",
        Query(_chosen(now("roce_owner_memory_region_bytes", HOST))),
        empty=UNKNOWN_HERE,
    ),
    number(
        "Not listed",
        "Without a reason to worry on hosts whose pods have PID namespaces that the exporter does not see. *Hosts and surveys* shows where.\n\n" + meanings(UNSEEN),
        "none",
        Query(f"sum({now(UNSEEN, HOST)})"),
        empty="No survey",
    ),
    number(
        "Hidden",
        "Processes that have the owner `unknown`: `hidepid` or `ProtectProc=` hides them.\n\n" + meanings(HIDDEN),
        "none",
        Query(f"sum({now(HIDDEN, HOST)})"),
        empty="No survey",
    ),
)  # fmt: skip


def _column(expression: str) -> Query:
    return Query(listed(expression), form="table", instant=True, proof="pfc-storm")


PARTS = {
    "paused": _column(paused("receive", "$__range")),
    "pauses": _column(paused("transmit", "$__range")),
    "queue pairs": _column(PAIRS),
    "in ERR": _column(of_workloads(now(IN_ERROR, HOST), *FIELDS, "device")),
    "regions": _column(of_workloads(now("roce_owner_memory_region_bytes", HOST), *FIELDS, "device")),
    "processes": _column(of_workloads(now("roce_owner_processes", HOST), *FIELDS, "device")),
}
LETTERED = tuple(zip("ABCDEF", PARTS, strict=True))
SUFFERERS = table(
    "Workloads, by pause of their ports",
    f"One line per workload, host and device; at most 50. **paused**: share of time for which the switch paused the worst priority of the device; "
    f"**pauses**: for which the device paused its switch; both the worst {MEDIUM} of the range shown, `-` below {percent(limit('RocePfcPauseElevated'))} or if the "
    f"NIC does not measure it. {NOT_OWN} Click a workload to see it on all its hosts.",
    ("workload", *FIELDS, "device", *(f"Value #{letter}" for letter, _ in LETTERED)),
    *PARTS.values(),
    # a merge of empty frames is an empty frame, which would show nothing at all
    Query(
        f'label_replace(vector(-1), "workload", "no owners, or no recording rules", "", "") unless on () {CHOSEN}',
        form="table", instant=True, instead=True,
    ),
    names={f"Value #{letter}": name for letter, name in LETTERED},
    concealed=("cluster", "job"),
    overrides=(
        by_name("workload", ("links", [to_workload()])),
        by_name("instance", ("links", [to_host()])),
        graded("paused", "percentunit", steps(step("RocePfcPauseHigh"), step("RocePfcReceivePauseSaturated"))),
        graded("pauses", "percentunit", steps(step("RocePfcPauseHigh"), step("RocePfcTransmitPauseSaturated"))),
        graded("in ERR", "none", BROKEN),
        by_name("regions", ("unit", "bytes")),
    ),
    joined=True,
    sort="Value #A",
    width=24,
    height=9,
    empty=NO_RULES,
)  # fmt: skip


def _worst_ports(direction: str, title: str, reading: str, alert: str) -> Panel:
    worst = f"max by (workload, instance) ({paused(direction)})"
    return lines(
        title,
        f"{reading} The ten worst of the range shown. {NOT_OWN} Dashed: alert limits. Gaps: less than {percent(limit('RocePfcPauseElevated'))}.",
        "percentunit",
        Query(most(10, worst), LEGEND, proof="pfc-storm"),
        limits=steps(step("RocePfcPauseHigh"), step(alert)),
        empty=f"No workload's port was paused for more than {percent(limit('RocePfcPauseElevated'))} of the time",
    )


GRAPHS = (
    _worst_ports("receive", "Pause of the workloads' ports", "The switch pauses these ports.", "RocePfcReceivePauseSaturated"),
    _worst_ports("transmit", "Workloads on ports that pause their switch", "One of the workloads of such a port may receive too slowly.", "RocePfcTransmitPauseSaturated"),
    lines(
        "Queue pairs in ERR over time",
        f"The ten workloads with the most. A step that stays: a peer failed, and the application has not noticed.\n\n{meanings(IN_ERROR)}",
        "none",
        Query(most(10, of_workloads(now(IN_ERROR, HOST), "instance")), LEGEND, proof="pfc-storm"),
        empty="No queue pair was in state ERR",
    ),
    lines(
        "Queue pairs over time",
        f"The ten workloads with the most. They end and begin with the processes of a job.\n\n{meanings('roce_owner_queue_pairs')}",
        "none",
        Query(most(10, f"sum by (workload, instance) ({PAIRS})"), LEGEND),
        empty=NO_RULES,
    ),
)  # fmt: skip
FIRST_PANELS = (*NUMBERS, SUFFERERS, *GRAPHS)

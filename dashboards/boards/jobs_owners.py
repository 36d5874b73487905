"""The first screen of the jobs dashboard: which workloads are on faulty ports now, what they lose, and all workloads. Recorded series only."""

from __future__ import annotations

from dataclasses import replace

from boards.colours import HEALTH
from boards.jobs_series import DEVICE, OF_WORKLOAD
from boards.limits import (
    BROKEN_PAIRS,
    MEDIUM,
    PAUSE_ELEVATED,
    PAUSE_HIGH,
    RECEIVED_SATURATED,
    SENT_SATURATED,
    percent,
    steps,
)
from boards.measures import meanings
from boards.model import Panel, Query, cell, nothing
from boards.panels import by_name, lines, named, number
from boards.rules import (
    ELEVATED,
    PAIRS,
    WORKLOAD_BROKEN,
    WORKLOAD_HOSTS,
    WORKLOAD_LOST,
    WORKLOAD_PAIRS,
    WORKLOAD_PAUSE,
    WORKLOAD_UNFIT,
)
from boards.scopes import FLEET, to_jobs, to_port, to_workload
from boards.tables import as_text, graded, table

IN_ERROR = "roce_owner_queue_pairs_in_error"
BROKEN = steps(BROKEN_PAIRS)
SENT, RECEIVED = steps(PAUSE_HIGH, SENT_SATURATED), steps(PAUSE_HIGH, RECEIVED_SATURATED)
NOT_OWN = "Pause is that of the port: all workloads of a port have the same value, also one that sends nothing. It shows who suffers, not who causes it."
NO_RULES = "No owners, or no recording rules"
FIELDS = ("cluster", "job", "instance")


def _of(name: str, more: str = "") -> str:
    return f"{name}{{{more}{OF_WORKLOAD}}}"


NUMBERS = (
    number(
        "On faulty ports",
        "Workloads of the table below.",
        "none",
        Query(f"count(count by (cluster, workload) ({_of(WORKLOAD_UNFIT)})) or 0 * count({_of(WORKLOAD_HOSTS)})"),
        limits=BROKEN,
        width=6,
        empty=NO_RULES,
    ),
    number(
        "In state ERR",
        "Queue pairs that transfer nothing any more: the peer failed, or the application does not close them.\n\n" + meanings(IN_ERROR),
        "none",
        Query(f"sum({_of(WORKLOAD_BROKEN)}) or 0 * count({_of(WORKLOAD_HOSTS)})"),
        limits=BROKEN,
        width=6,
        empty=NO_RULES,
    ),
    number(
        "Workloads",
        "Slurm jobs, controllers of pods (where kube-state-metrics is scraped), and other owners of RDMA objects.",
        "none",
        Query(f"count(count by (cluster, workload) ({_of(WORKLOAD_HOSTS)}))"),
        width=6,
        empty=NO_RULES,
    ),
    number(
        "Queue pairs",
        "Without the kernel's management queue pairs.\n\n" + meanings("roce_owner_queue_pairs"),
        "none",
        Query(f"sum({_of(WORKLOAD_PAIRS)})"),
        width=6,
        empty=NO_RULES,
    ),
)  # fmt: skip
FAULTY_ROWS = f"topk(50, {_of(WORKLOAD_UNFIT)})"


def _paused(direction: str, window: str = "") -> str:
    """Share of time that the worst priority of the device was paused: the last five minutes, with a window its worst five."""
    found = f'{ELEVATED}{{direction="{direction}",{FLEET}}}'
    worst = f"max_over_time({found}[{window}])" if window else found
    return f"0 * {FAULTY_ROWS} + on {DEVICE} group_left () max by {DEVICE} ({worst})"


FAULTY_COLUMNS = {
    "verdict": FAULTY_ROWS,
    "queue pairs": f"0 * {FAULTY_ROWS} + on (cluster, job, instance, device, workload) group_left () {_of(PAIRS)}",
    "lost/s": f"0 * {FAULTY_ROWS} + on (cluster, job, workload) group_left () sum by (cluster, job, workload) ({_of(WORKLOAD_LOST)})",
    "pauses": _paused("transmit"),
    "pauses, worst": _paused("transmit", "$__range"),
    "paused": _paused("receive"),
    "paused, worst": _paused("receive", "$__range"),
}
FAULTY_LETTERS = tuple(zip("ABCDEFG", FAULTY_COLUMNS, strict=True))
FAULTY = table(
    "Workloads on faulty ports",
    f"Ports that are degraded or failed now, with the workloads that use their device and the first reasons; at most 50. *lost/s*: packets and timeouts of the "
    f"workload on all hosts, where the NIC counts by process. *pauses*: share of the last {MEDIUM} for which the device paused its switch; *paused*: for which the "
    f"switch paused it; *worst*: the worst {MEDIUM} of the range shown; `-` below {percent(PAUSE_ELEVATED[0])}. {NOT_OWN}",
    ("workload", *FIELDS, "device", "port", "reasons", *(f"Value #{letter}" for letter, _ in FAULTY_LETTERS)),
    *(cell(expression, proof="pfc-storm") for expression in FAULTY_COLUMNS.values()),
    cell(f'label_replace(0 * count({_of(WORKLOAD_HOSTS)}), "workload", "none", "", "") unless on () {_of(WORKLOAD_UNFIT)} '
        f'or label_replace(vector(0) unless on () {_of(WORKLOAD_HOSTS)}, "workload", "{NO_RULES}", "", "")', instead=True),
    names={f"Value #{letter}": name for letter, name in FAULTY_LETTERS},
    concealed=("cluster", "job"),
    wide="reasons",
    overrides=(
        by_name("workload", ("links", [to_workload()])),
        by_name("instance", ("links", [to_jobs()])),
        by_name("device", ("links", [to_port()])),
        as_text("verdict", named(HEALTH)),
        graded("lost/s", "none", BROKEN),
        graded("pauses", "percentunit", SENT),
        graded("pauses, worst", "percentunit", SENT),
        graded("paused", "percentunit", RECEIVED),
        graded("paused, worst", "percentunit", RECEIVED),
    ),
    joined=True,
    sort="Value #A",
    width=24,
    height=8,
    empty=NO_RULES,
)  # fmt: skip
COLUMNS = {
    "hosts": _of(WORKLOAD_HOSTS),
    "queue pairs": _of(WORKLOAD_PAIRS),
    "in ERR": _of(WORKLOAD_BROKEN),
    "lost/s": f"sum by (cluster, job, workload) ({_of(WORKLOAD_LOST)})",
    "pauses": _of(WORKLOAD_PAUSE, 'direction="transmit",'),
    "paused": _of(WORKLOAD_PAUSE, 'direction="receive",'),
}
LETTERED = tuple(zip("ABCDEF", COLUMNS, strict=True))
RANK = f"sum by (cluster, job, workload) ({_of(WORKLOAD_PAUSE)}) or 1e-9 * {_of(WORKLOAD_PAIRS)} or 0 * {_of(WORKLOAD_HOSTS)}"
EVERY = table(
    "All workloads",
    f"At most 50: those whose ports are paused, then those with the most queue pairs. Pause is that of their worst port in the last {MEDIUM}. "
    "Click a workload to show only it.",
    ("workload", "cluster", "job", *(f"Value #{letter}" for letter, _ in LETTERED)),
    *(
        cell(f"max by (cluster, job, workload) ({expression}) and topk(50, {RANK})", proof="slow-receiver" if WORKLOAD_BROKEN in expression else "pfc-storm")
        for expression in COLUMNS.values()
    ),
    nothing("workload", NO_RULES, _of(WORKLOAD_HOSTS)),
    names={f"Value #{letter}": name for letter, name in LETTERED},
    overrides=(
        by_name("workload", ("links", [to_workload()])),
        graded("in ERR", "none", BROKEN),
        graded("lost/s", "none", BROKEN),
        graded("pauses", "percentunit", SENT),
        graded("paused", "percentunit", RECEIVED),
    ),
    joined=True,
    sort="Value #A",
    width=24,
    height=8,
    empty=NO_RULES,
)  # fmt: skip


def _most(title: str, reading: str, unit: str, query: Query, empty: str, *limits: tuple[float, str]) -> Panel:
    """The ten workloads that were the highest within the range shown."""
    return lines(
        title,
        reading,
        unit,
        replace(
            query,
            expr=f"{query.expr} and topk(10, max_over_time({query.expr}[$__range] @ end()))",
            proof="slow-receiver" if WORKLOAD_BROKEN in query.expr else "pfc-storm",
        ),
        limits=steps(*limits) if limits else None,
        empty=empty,
    )


OVER_TIME_PANELS = (
    _most(
        "Pause of the workloads' ports", f"The ten worst of the range shown. {NOT_OWN}", "percentunit",
        Query(_of(WORKLOAD_PAUSE, 'direction="receive",'), "{{workload}}"), "No workload's port was paused", PAUSE_HIGH, RECEIVED_SATURATED),
    _most(
        "Workloads on ports that pause their switch", "One of the workloads of such a port may receive too slowly. The ten worst.", "percentunit",
        Query(_of(WORKLOAD_PAUSE, 'direction="transmit",'), "{{workload}}"), "No workload's port paused its switch", PAUSE_HIGH, SENT_SATURATED),
    _most(
        "Loss and timeouts of workloads", "Packets per second, where counter sets count by process. The ten worst.", "cps",
        Query(_of(WORKLOAD_LOST), "{{workload}} {{what}}"), "No workload loses packets, or no counter sets",
    ),
    _most(
        "Queue pairs in ERR over time", f"A step that stays: a peer failed, and the application has not noticed.\n\n{meanings(IN_ERROR)}", "none",
        Query(_of(WORKLOAD_BROKEN), "{{workload}}"), "No queue pair was in state ERR",
    ),
)  # fmt: skip
FIRST_PANELS = (*NUMBERS, FAULTY, EVERY)

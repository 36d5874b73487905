"""The first screen of the host dashboard: which port, which direction, cause or victim."""

from __future__ import annotations

from boards.colours import ALERT, CRITICAL, DETECTOR, GOOD, HEALTH, LINK, NOTE, REASON, ROLE, UNKNOWN, WARNING
from boards.host_series import AT_PRIORITY, explained
from boards.limits import MEDIUM, PAUSE_HIGH, RECEIVED_SATURATED, SENT_SATURATED, percent, plain, steps
from boards.measures import growth, lossless, meanings, now, rate, relevant
from boards.model import Panel, Query, cell, nothing
from boards.panels import all_series, by_name, by_port, lines, named, number, states
from boards.rules import PAIRS, UNFIT
from boards.scopes import CLUSTER, HOST, PORT, PRIORITY, to_jobs, to_port, to_switch_port, to_workload
from boards.tables import as_text, graded, table

PAUSE_RECEIVED, PAUSE_SENT = "roce_pfc_receive_pause_seconds_total", "roce_pfc_transmit_pause_seconds_total"
NO_TIME = "The driver does not measure time paused"
OF_HOST_PORT = f'{CLUSTER},instance=~"$instance",device=~"$device",port=~"$port"'
"""Rules that join both ends of a link do not keep the job."""
LINK_PORT = "link:roce_switch_port:info"
AT = "by (cluster, job, instance, device, port)"
ANY = f"max {AT} ({now('roce_port_up', PORT)})"


def _port(expression: str, how: str = "sum") -> str:
    return f"{how} {AT} ({expression})"


def _paused(name: str) -> str:
    """Share of the last five minutes for which the worst lossless priority of each port was paused."""
    return _port(lossless(rate(name, PRIORITY, MEDIUM), PRIORITY), "max")


def _worst(name: str) -> str:
    """The same of the worst five minutes of the range shown: a mean over the range would hide a short fault."""
    return f"max_over_time(({_paused(name)})[$__range:1m])"


def _guilty(direction: str, name: str) -> str:
    """1 if a port had a storm or was paused beyond the alert limit; otherwise 0, also if it is not measured."""
    matchers = f'direction="{direction}",{PRIORITY}'
    stormed = f"({_port(growth('roce_pfc_storms_total', matchers, '$__range'))} > bool 0 or 0 * {ANY})"
    paused = f"({_worst(name)} > bool {plain(PAUSE_HIGH[0])} or 0 * {ANY})"
    return f"({stormed} + {paused} > bool 0)"


PARTS = {
    "link": ANY,
    "verdict": f"max {AT} ({now('roce_port_health', PORT)})",
    "role": f"{_guilty('receive', PAUSE_RECEIVED)} + 2 * {_guilty('transmit', PAUSE_SENT)}",
    "sent": _paused(PAUSE_SENT),
    "sent, worst": _worst(PAUSE_SENT),
    "received": _paused(PAUSE_RECEIVED),
    "received, worst": _worst(PAUSE_RECEIVED),
}
LETTERED = tuple(zip("ABCDEFG", PARTS, strict=True))
REASONS = f"topk {AT} (1, {UNFIT}{{{PORT}}})"
SWITCH_PORTS = (
    f"max by (cluster, instance, device, port, switch, switch_port) ({LINK_PORT}{{{OF_HOST_PORT}}})"
)
PAUSES_SENT, PAUSES_RECEIVED = steps(PAUSE_HIGH, SENT_SATURATED), steps(PAUSE_HIGH, RECEIVED_SATURATED)
PORTS = table(
    "Ports",
    "One line per port. *verdict* and *reasons*: the exporter's, now; the first two reasons. *sent*, *received*: share of the last five minutes for which the worst lossless "
    f"priority was paused; *worst*: the worst five minutes of the range shown. *role*: **cause** if it sent storms, or paused its switch for more than {percent(PAUSE_HIGH[0])} of "
    "some five minutes: the host receives too slowly, check PCIe below. **Victim** if its switch paused it. Click a device to open its port or the jobs of the host, "
    "a switch port to open the link.",
    ("cluster", "job", "instance", "device", "port", "Value #A", "Value #B", "reasons", *(f"Value #{letter}" for letter, _ in LETTERED[2:]), "switch", "switch_port"),
    *(cell(expression) for expression in PARTS.values()),
    cell(REASONS, proof="lossy"),
    cell(SWITCH_PORTS),
    nothing("device", "no port", now("roce_port_up", PORT)),
    names={f"Value #{letter}": name for letter, name in LETTERED},
    concealed=("cluster", "job", "instance"),
    wide="reasons",
    overrides=(
        by_name("device", ("links", [to_port(), to_jobs()])),
        as_text("link", named(LINK)),
        as_text("verdict", named(HEALTH)),
        as_text("role", named(ROLE)),
        by_name("role", ("custom.width", 130)),
        graded("sent", "percentunit", PAUSES_SENT),
        graded("sent, worst", "percentunit", PAUSES_SENT),
        graded("received", "percentunit", PAUSES_RECEIVED),
        graded("received, worst", "percentunit", PAUSES_RECEIVED),
        by_name("switch_port", ("links", [to_switch_port("switch", "switch_port")])),
    ),
    joined=True,
    sort="Value #B",
    width=24,
    height=7,
    empty="No ports found",
)  # fmt: skip
THIS_PAIRS = f"{PAIRS}{{{HOST}}}"
JOBS_HERE = f"count(count by (workload) ({THIS_PAIRS}))"
DRAIN_PANELS = (
    number(
        "May I drain it?",
        "Workloads with queue pairs on this host, which a drain ends. Unknown: nobody surveys its owners; look into the scheduler.",
        "none",
        Query(f"{JOBS_HERE} or 0 * count({now('roce_owner_survey_timestamp_seconds', HOST)})"),
        overrides=(
            all_series(("mappings", [named({0: ("yes: no workload", GOOD)})]), ("unit", "suffix: jobs end")),
        ),
        width=5,
        height=5,
        empty="unknown",
    ),
    table(
        "Jobs on it",
        "Workloads by queue pairs on each device, at most 50. Click one to see it on all its hosts.\n\n"
        + meanings("roce_owner_queue_pairs"),
        ("workload", "cluster", "job", "device", "Value"),
        cell(f"topk(50, sum by (cluster, job, workload, device) ({THIS_PAIRS}))"),
        names={"Value": "queue pairs"},
        concealed=("cluster", "job"),
        sort="Value",
        overrides=(by_name("workload", ("links", [to_workload()])),),
        width=8,
        height=5,
        empty="No workload, or its owners are not surveyed",
    ),
)


def alerts_over_time(scope: str, place: str, **where: int) -> Panel:
    """Firing alerts over time, one bar each."""
    found = " or ".join(
        f'{rank} * max by (alertname) (ALERTS{{alertname=~"Roce.*",alertstate="firing",severity="{severity}",{scope}}})'
        for severity, rank in ((CRITICAL, 3), (WARNING, 2), (NOTE, 1))
    )
    return states(
        f"Alerts on this {place}",
        "Firing alerts over time. Each has a runbook with the same name.",
        ALERT,
        Query(found, "{{alertname}}", proof="pfc-storm"),
        ever=f'max_over_time(ALERTS{{alertname=~"Roce.*",alertstate="firing",{scope}}}[$__range] @ end())',
        nothing=("no alert", "none fired", GOOD),
        **where,
    )


def _state(direction: str) -> str:
    return now("roce_pfc_storm_detector_state", f'direction="{direction}",{PRIORITY}')


def _worst_state(direction: str) -> str:
    """The worst state of each priority in the range shown."""
    return f"max_over_time({_state(direction)}[$__range] @ end())"


def _judged(direction: str) -> str:
    """The detector's states of lossless priorities, and of others that were suspect in the range shown."""
    state = _state(direction)
    return f"({lossless(state, PRIORITY)}) or ({state} and {_worst_state(direction)} > 0 < 4)"


def _ever_judged(direction: str) -> str:
    worst = _worst_state(direction)
    return f"({lossless(worst, PRIORITY)}) or ({worst} > 0 < 4)"


def detector(legend: str, **where: int) -> Panel:
    """The storm detector's states over time."""
    return states(
        "Storm detector, by priority",
        explained(
            "State of the exporter's detector for each lossless priority. Received: its switch pauses it. Sent: it pauses its switch.",
            "roce_pfc_storm_detector_state",
        ),
        DETECTOR,
        Query(_judged("receive"), f"{legend} received"),
        Query(_judged("transmit"), f"{legend} sent"),
        ever=" or ".join(_ever_judged(direction) for direction in ("receive", "transmit")),
        nothing=("no lossless priority", "no suitable counters", UNKNOWN),
        **where,
    )


def health(legend: str, **where: int) -> tuple[Panel, Panel]:
    """The exporter's verdict about each port, and its reasons, over time."""
    nothing = ("no verdict", "the exporter gives none", UNKNOWN)
    verdict = now("roce_port_health", PORT)
    reasons = now("roce_port_health_reason", PORT)
    return (
        states(
            "Fit for a job?",
            explained("The exporter's own verdict about each port.", "roce_port_health"),
            HEALTH,
            Query(f"max by (device, port) ({verdict})", legend),
            ever=f"max_over_time({verdict}[$__range] @ end())",
            nothing=nothing,
            **where,
        ),
        states(
            "Why not",
            explained(
                "Reasons, and what each makes of the port. The side at fault, the evidence and the next step: `/health.json` of the exporter.",
                "roce_port_health_reason",
            ),
            REASON,
            Query(f"max by (device, port, reason) ({reasons})", f"{legend} {{{{reason}}}}", proof="lossy"),
            ever=f"max_over_time({reasons}[$__range] @ end())",
            nothing=("no reason", "all that is seen is well", GOOD),
            **where,
        ),
    )


def _time_paused(name: str, title: str, reading: str, saturated: tuple[float, str]) -> Panel:
    return lines(
        title,
        explained(f"{reading} Dashed: alert limits.", name),
        "percentunit",
        Query(relevant(name, PRIORITY), AT_PRIORITY),
        limits=steps(PAUSE_HIGH, saturated),
        overrides=by_port(),
        height=9,
        empty=NO_TIME,
    )


FIRST_PANELS = (
    PORTS,
    *DRAIN_PANELS,
    alerts_over_time(HOST, "host", width=11, height=5),
    *health("{{device}}/{{port}}", width=12, height=6),
    detector(AT_PRIORITY, width=24, height=5),
    _time_paused(
        PAUSE_RECEIVED,
        "Time paused: received",
        "Share of time in which the switch prevented this host from sending: the fabric is congested, or the host is a victim.",
        RECEIVED_SATURATED,
    ),
    _time_paused(
        PAUSE_SENT,
        "Time paused: sent",
        "Share of time in which this host prevented its switch from sending: the host is too slow, and the cause.",
        SENT_SATURATED,
    ),
)

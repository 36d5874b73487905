"""The first screen of the host dashboard: which port, which direction, cause or victim."""

from __future__ import annotations

from boards.codes import ALERT, DETECTOR, HEALTH, LINK, REASON, VERDICT
from boards.colours import BAD, GOOD, SEVERITY, UNKNOWN
from boards.host_series import AT_PRIORITY, explained
from boards.limits import limit, percent, plain, step, steps
from boards.measures import growth, lossless, now, rate, relevant
from boards.model import Panel, Query
from boards.panels import by_name, by_port, lines, named, states
from boards.scopes import HOST, PORT, PRIORITY, to_jobs, to_port
from boards.tables import as_text, graded, table

PAUSE_RECEIVED, PAUSE_SENT = "roce_pfc_receive_pause_seconds_total", "roce_pfc_transmit_pause_seconds_total"
NO_TIME = "The driver does not measure time paused"
AT = "by (cluster, job, instance, device, port)"
ANY = f"max {AT} ({now('roce_port_up', PORT)})"


STORMED = "roce_pfc_storms_total"


def _port(expression: str, how: str = "sum") -> str:
    return f"{how} {AT} ({expression})"


def _risen(name: str, scope: str) -> str:
    return growth(name, scope, "$__range")


def _paused(name: str) -> str:
    """Share of the range shown during which the worst lossless priority of each port was paused."""
    return _port(lossless(rate(name, PRIORITY, "$__range"), PRIORITY), "max")


def _storms(direction: str) -> str:
    matchers = f'direction="{direction}",{PRIORITY}'
    return f"round({_port(_risen(STORMED, matchers))})"


def _guilty(direction: str, name: str) -> str:
    """1 if a port had a storm or its share of time paused reached the alert limit; otherwise 0, also if it is not measured."""
    stormed = f"({_storms(direction)} > bool 0 or 0 * {ANY})"
    paused = f"({_paused(name)} > bool {plain(limit('RocePfcPauseHigh'))} or 0 * {ANY})"
    return f"({stormed} + {paused} > bool 0)"


PARTS = {
    "link": ANY,
    "verdict": f"{_guilty('receive', PAUSE_RECEIVED)} + 2 * {_guilty('transmit', PAUSE_SENT)}",
    "storms sent": _storms("transmit"),
    "storms received": _storms("receive"),
    "pause sent": _paused(PAUSE_SENT),
    "pause received": _paused(PAUSE_RECEIVED),
    "lost packets": f"round({_port(_risen('roce_transport_out_of_sequence_total', PORT))})",
}
LETTERED = tuple(zip("ABCDEFG", PARTS, strict=True))
PORTS = table(
    "Ports",
    f"One line per port, over the range shown. **Cause**: it sent storms, or paused its switch for more than {percent(limit('RocePfcPauseHigh'))} of the time: the host "
    "receives too slowly; check PCIe below. **Victim**: its switch paused it; with CNPs handled it is part of the congestion, without them a victim of "
    "others. The pause columns show the worst lossless priority. Click a device to open its port or the jobs of the host.",
    ("cluster", "job", "instance", "device", "port", *(f"Value #{letter}" for letter, _ in LETTERED)),
    *(Query(expression, form="table", instant=True) for expression in PARTS.values()),
    # a merge of empty frames is an empty frame, which would show nothing at all
    Query(
        f'label_replace(vector(-1), "device", "no port", "", "") unless on () {now("roce_port_up", PORT)}',
        form="table", instant=True, instead=True,
    ),
    names={f"Value #{letter}": name for letter, name in LETTERED},
    concealed=("cluster", "job", "instance"),
    wide="verdict",
    overrides=(
        by_name("device", ("links", [to_port(), to_jobs()])),
        as_text("link", named(LINK)),
        as_text("verdict", named(VERDICT)),
        by_name("verdict", ("custom.align", "left")),
        graded("storms sent", "none", steps((1, BAD))),
        graded("storms received", "none", steps((1, SEVERITY["ticket"]))),
        graded("pause sent", "percentunit", steps(step("RocePfcPauseHigh"), step("RocePfcTransmitPauseSaturated"))),
        graded("pause received", "percentunit", steps(step("RocePfcPauseHigh"), step("RocePfcReceivePauseSaturated"))),
        graded("lost packets", "none", steps((1, BAD))),
        by_name("lost packets", ("custom.width", 104)),
    ),
    joined=True,
    sort="Value #B",
    width=24,
    height=7,
    empty="No ports found",
)  # fmt: skip


def alerts_over_time(scope: str, place: str, **where: int) -> Panel:
    """Firing alerts over time, one bar each."""
    found = " or ".join(
        f'{rank} * max by (alertname) (ALERTS{{alertname=~"Roce.*",alertstate="firing",severity="{severity}",{scope}}})'
        for severity, rank in (("page", 3), ("ticket", 2), ("info", 1))
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


def _time_paused(name: str, title: str, reading: str, saturated: str) -> Panel:
    return lines(
        title,
        explained(f"{reading} Dashed: alert limits.", name),
        "percentunit",
        Query(relevant(name, PRIORITY), AT_PRIORITY),
        limits=steps(step("RocePfcPauseHigh"), step(saturated)),
        overrides=by_port(),
        height=9,
        empty=NO_TIME,
    )


FIRST_PANELS = (
    PORTS,
    *health("{{device}}/{{port}}", width=12, height=6),
    alerts_over_time(HOST, "host", width=10, height=7),
    detector(AT_PRIORITY, width=14, height=7),
    _time_paused(
        PAUSE_RECEIVED,
        "Time paused: received",
        "Share of time in which the switch prevented this host from sending: the fabric is congested, or the host is a victim.",
        "RocePfcReceivePauseSaturated",
    ),
    _time_paused(
        PAUSE_SENT,
        "Time paused: sent",
        "Share of time in which this host prevented its switch from sending: the host is too slow, and the cause.",
        "RocePfcTransmitPauseSaturated",
    ),
)

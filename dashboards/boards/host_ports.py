"""The first screen of the host dashboard: which port, which direction, is it cause or victim."""

from __future__ import annotations

from boards.codes import ALERT, DETECTOR, LINK, VERDICT
from boards.colours import GOOD, UNKNOWN
from boards.host_series import AT_PRIORITY, explained
from boards.limits import limit, step, steps
from boards.measures import lossless, now, rate, relevant
from boards.model import Panel, Query
from boards.panels import by_name, by_port, lines, named, states
from boards.scopes import HOST, PORT, PRIORITY, to_port
from boards.tables import as_text, graded, table

PAUSE_RECEIVED, PAUSE_SENT = "roce_pfc_receive_pause_seconds_total", "roce_pfc_transmit_pause_seconds_total"
NO_TIME = "The driver does not measure the time paused"
AT = "by (cluster, job, instance, device, port)"
ANY = f"max {AT} ({now('roce_port_up', PORT)})"


def _port(expression: str, how: str = "sum") -> str:
    return f"{how} {AT} ({expression})"


def _paused(name: str) -> str:
    return _port(lossless(rate(name, PRIORITY), PRIORITY), "max")


def _above(name: str) -> str:
    """1 where a port is paused for so much of its time that the alerts say so, else 0; also where nothing is measured."""
    return f"(({_paused(name)} > bool {limit('RocePfcPauseHigh'):g}) or 0 * {ANY})"


PARTS = {
    "link": (ANY, "quiet"),
    "verdict": (f"{_above(PAUSE_RECEIVED)} + 2 * {_above(PAUSE_SENT)}", "quiet"),
    "pause received": (_paused(PAUSE_RECEIVED), "quiet"),
    "pause sent": (_paused(PAUSE_SENT), "quiet"),
    "received": (_port(f"8 * {rate('roce_port_receive_bytes_total', PORT)}"), "quiet"),
    "sent": (_port(f"8 * {rate('roce_port_transmit_bytes_total', PORT)}"), "quiet"),
    "marked": (_port(rate("roce_ecn_marked_packets_total", PORT)), "quiet"),
    "lost": (_port(rate("roce_transport_out_of_sequence_total", PORT)), "quiet"),
}
LETTERED = tuple(zip("ABCDEFGH", PARTS, strict=True))
PORTS = table(
    "Ports",
    f"One line per port, as it is now. **Cause**: it pauses its switch for more than {limit('RocePfcPauseHigh'):.0%} of the time, the host takes in too "
    "little; look at PCIe below. **Victim**: its switch pauses it; with CNPs handled it is part of the congestion, without them a victim of others. "
    "The pause columns are the worst lossless priority. A device opens its port.",
    ("cluster", "job", "instance", "device", "port", *(f"Value #{letter}" for letter, _ in LETTERED)),
    *(Query(expression, form="table", instant=True, proof=proof) for expression, proof in PARTS.values()),
    # a merge of empty frames is an empty frame, which would show nothing at all
    Query(
        f'label_replace(vector(-1), "device", "no port", "", "") unless on () {now("roce_port_up", PORT)}',
        form="table", instant=True, instead=True,
    ),
    names={f"Value #{letter}": name for letter, name in LETTERED},
    concealed=("cluster", "job", "instance"),
    wide="verdict",
    overrides=(
        by_name("device", ("links", [to_port()])),
        as_text("link", named(LINK)),
        as_text("verdict", named(VERDICT)),
        graded("pause received", "percentunit", steps(step("RocePfcPauseHigh"), step("RocePfcReceivePauseSaturated"))),
        graded("pause sent", "percentunit", steps(step("RocePfcPauseHigh"), step("RocePfcTransmitPauseSaturated"))),
        by_name("received", ("unit", "bps")),
        by_name("sent", ("unit", "bps")),
        by_name("marked", ("unit", "pps")),
        graded("lost", "pps", steps((0.001, "red"))),
    ),
    joined=True,
    sort="Value #B",
    width=24,
    height=7,
    empty="No port is seen",
)  # fmt: skip


def alerts_over_time(scope: str, place: str, **where: int) -> Panel:
    """Which alerts fired when, one bar each."""
    found = " or ".join(
        f'{rank} * max by (alertname) (ALERTS{{alertname=~"Roce.*",alertstate="firing",severity="{severity}",{scope}}})'
        for severity, rank in (("page", 3), ("ticket", 2), ("info", 1))
    )
    return states(
        f"Alerts on this {place}",
        "Alerts that fire, over time. Each has a runbook of its name.",
        ALERT,
        Query(found, "{{alertname}}", proof="pfc-storm"),
        nothing=("no alert", "none fires", GOOD),
        **where,
    )


def judged(direction: str) -> str:
    """The detector's states of lossless priorities, and of others that were ever suspect; not those where PFC is off."""
    state = now("roce_pfc_storm_detector_state", f'direction="{direction}",{PRIORITY}')
    others = f"{state} and max_over_time({state}[$__range] @ end()) > 0 < 4"
    return f"({lossless(state, PRIORITY)}) or ({others})"


def detector(legend: str, **where: int) -> Panel:
    """The storm detector's states over time."""
    return states(
        "Storm detector, by priority",
        explained(
            "What the exporter's detector made of each lossless priority. Received: its switch pauses it. Sent: it pauses its switch.",
            "roce_pfc_storm_detector_state",
        ),
        DETECTOR,
        Query(judged("receive"), f"{legend} received"),
        Query(judged("transmit"), f"{legend} sent"),
        nothing=("no lossless priority", "nothing to judge by", UNKNOWN),
        **where,
    )


def _time_paused(name: str, title: str, reading: str, saturated: str) -> Panel:
    return lines(
        title,
        explained(f"{reading} Dashed: the alerts' limits.", name),
        "percentunit",
        Query(relevant(name, PRIORITY), AT_PRIORITY),
        limits=steps(step("RocePfcPauseHigh"), step(saturated)),
        overrides=by_port(),
        height=9,
        empty=NO_TIME,
    )


FIRST_PANELS = (
    PORTS,
    alerts_over_time(HOST, "host", width=10, height=7),
    detector(AT_PRIORITY, width=14, height=7),
    _time_paused(
        PAUSE_RECEIVED,
        "Time paused: received",
        "Share of the time in which the switch kept this host from sending: a congested fabric, or a victim.",
        "RocePfcReceivePauseSaturated",
    ),
    _time_paused(
        PAUSE_SENT,
        "Time paused: sent",
        "Share of the time in which this host kept its switch from sending: the host is too slow, it is the cause.",
        "RocePfcTransmitPauseSaturated",
    ),
)

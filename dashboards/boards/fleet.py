"""Fleet: is anything wrong, where, since when, what next.

With 5,000 hosts a panel must not load every series or every host: it reads recording rules, `topk`, or series that
only exist where there is a fault.
"""

from __future__ import annotations

from boards.colours import CNP_HANDLED, CNP_IGNORED, CNP_SENT, CRITICAL, MARKED, NOTHING, SEVERITY, WARNING
from boards.fleet_where import FIRST_PANELS, LOAD_RULES, STORMS_PANELS
from boards.limits import CLUSTER_PAUSE, CNP_DEFICIT, DRIFT, LOSS_FAST, LOSS_SLOW, PAUSE_BUDGET, plain, steps
from boards.model import Board, Query, Row, cell
from boards.panels import all_series, coloured, lines, ranking
from boards.probes import FLEET_PROBES
from boards.rules import (
    CHECKS_FAILED,
    CNPS_HANDLED,
    CNPS_IGNORED,
    CNPS_SENT,
    DISCARDS,
    LOSSY,
    MARKS,
    MISSING_HOSTS,
)
from boards.scopes import CLUSTER, FLEET, OF_FLEET, WITH_RUNBOOKS, alerts_of_clusters, series_to_port
from boards.tables import table


def _summed(rule: str) -> str:
    return f"sum({rule}{{{FLEET}}})"


CONGESTION_PANELS = (
    lines(
        "ECN marks and CNPs",
        "Marks arrive, the receiver replies with CNPs (sent), the sender slows down (handled). There are fewer CNPs than marks, "
        "and about as many handled as sent. Marks without CNPs: the notification point is off. Ignored: the reaction point is off. "
        "The number of CNPs per mark differs between generations of NICs: compare with yesterday, not with another fabric.",
        "pps",
        Query(_summed(MARKS), "marked packets"),
        Query(_summed(CNPS_SENT), "CNPs sent"),
        Query(_summed(CNPS_HANDLED), "CNPs handled"),
        Query(_summed(CNPS_IGNORED), "CNPs ignored"),
        overrides=(
            coloured("marked packets", MARKED),
            coloured("CNPs sent", CNP_SENT),
            coloured("CNPs handled", CNP_HANDLED),
            coloured("CNPs ignored", CNP_IGNORED),
        ),
        empty=LOAD_RULES,
    ),
    lines(
        "CNPs handled per CNP sent",
        f"1: senders handle all CNPs that receivers send. Below {plain(CNP_DEFICIT)} for a long time: CNPs are lost or ignored, "
        "for example because switches do not carry them in a separate priority.",
        "percentunit",
        Query(
            f"sum by (cluster) ({CNPS_HANDLED}{{{FLEET}}}) / (sum by (cluster) ({CNPS_SENT}{{{FLEET}}}) > 0)",
            "{{cluster}}",
        ),
        empty="No CNPs are sent",
    ),
    lines(
        "Time paused, by cluster",
        "Average share of time paused, received by hosts. Pause while *Marked packets* is zero: ECN is not configured on the switches, "
        "and PFC does the work of congestion control. Dashed: the budget burns fast enough to alert.",
        "percentunit",
        Query(f'{CLUSTER_PAUSE}{{direction="receive",{CLUSTER}}}', "{{cluster}}"),
        limits=steps(*PAUSE_BUDGET),
        empty=LOAD_RULES,
    ),
    lines(
        "Marked packets, by cluster",
        "Packets per second that arrive with the ECN mark, which indicates queues in switches.",
        "pps",
        Query(f"sum by (cluster) ({MARKS}{{{FLEET}}})", "{{cluster}}"),
        empty=LOAD_RULES,
    ),
)


LOST_PACKETS = f"{LOSSY}{{{FLEET}}}"
LOSS_PANELS = (
    lines(
        "Drops in lossless priorities, by cluster",
        "Packets per second. Any drop indicates wrong headroom, cable length or PFC.",
        "pps",
        Query(f"sum by (cluster) ({DISCARDS}{{{FLEET}}})", "{{cluster}}"),
        custom={"drawStyle": "bars", "fillOpacity": 60},
        empty="No drops in lossless priorities",
        proof="slow-receiver",
    ),
    lines(
        "Worst ports by loss",
        "Packets lost per packet, as detected by connections (out of sequence, or sequence-error NAKs); the ten worst ports of the range. "
        "Dashed: alert limits.",
        "percentunit",
        Query(
            f"{LOST_PACKETS} and topk(10, max_over_time({LOST_PACKETS}[$__range] @ end()))",
            "{{instance}} {{device}}/{{port}} {{direction}}",
        ),
        limits=steps(LOSS_SLOW, LOSS_FAST),
        overrides=(all_series(("links", [series_to_port()])),),
        empty="No connection detected a loss",
        proof="lossy",
    ),
)


CONFIGURATION_PANELS = (
    ranking(
        "Failed configuration checks",
        "Number of ports that fail each check. `roce-exporter check settings` on the host prints the actual setting, the expected one and the reason; "
        "the dashboard *RoCE / Configuration* shows the values.",
        "none",
        Query(f"topk(8, sum by (check) ({CHECKS_FAILED}{{{FLEET}}}))", "{{check}}", instant=True),
        steps((1, SEVERITY[WARNING])),
        empty="No check fails, or no check has run",
        proof="audited",
    ),
    table(
        "Settings that differ inside a cluster",
        "Devices of one name should have the same settings. 1 or more: at least two hosts of the cluster differ. "
        "*RoCE / Configuration* shows which.",
        ("cluster", "device", "setting", "Value"),
        cell(f"topk(30, {DRIFT}{{{CLUSTER}}} > 0)"),
        names={"Value": "distance"},
        width=12,
        empty="Devices of one name have the same settings",
        proof="misconfigured",
    ),
)


BLIND_PANELS = (
    ranking(
        "What is not measured",
        "Hosts on which something is not measured. *RoCE / Exporter* lists the hosts.",
        "none",
        Query(f"topk(8, sum by (what) ({MISSING_HOSTS}{{{FLEET}}}))", "{{what}}", instant=True),
        steps(base=NOTHING),
        width=24,
        height=6,
        empty="Everything is measured on every host",
        proof="broken",
    ),
)

BOARD = Board(
    "roce-fleet",
    "RoCE / Fleet",
    "Is anything wrong, where, since when, and what next. Needs the recording rules of alerts/ and dashboards/.",
    (*OF_FLEET, WITH_RUNBOOKS),
    (
        Row("Now", "is anything wrong, where, since when, and what next", FIRST_PANELS),
        Row("Storms", "which hosts cause them, and which are victims", STORMS_PANELS),
        Row(
            "Congestion control",
            "marks and CNPs follow the load, pause stays near zero. Pause without marks: ECN does not work",
            CONGESTION_PANELS,
        ),
        Row(
            "Loss",
            "a lossless fabric has none. Loss without drops here occurs in a switch or on a cable",
            LOSS_PANELS,
        ),
        Row("Probes", "what is lost, delayed or changed while counters are clean", FLEET_PROBES),
        Row("Configuration", "a failed check breaks the fabric later, not now", CONFIGURATION_PANELS),
        Row("Missing data", "other alerts cannot fire for the items listed here", BLIND_PANELS),
    ),
    (alerts_of_clusters(CRITICAL, enabled=True),),
)

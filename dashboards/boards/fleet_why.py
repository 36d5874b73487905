"""The rows of the fleet dashboard that say why: congestion control, loss, configuration, and what is not seen."""

from __future__ import annotations

from boards.colours import CNP_HANDLED, CNP_IGNORED, CNP_SENT, MARKED, NOTHING, SEVERITY
from boards.fleet_where import LOAD_RULES, linked
from boards.limits import (
    ALERTS,
    CLUSTER_PAUSE,
    DRIFT,
    burn,
    limit,
    step,
    steps,
)
from boards.model import Query
from boards.panels import all_series, coloured, lines, ranking
from boards.rules import (
    CHECKS_FAILED,
    CNPS_HANDLED,
    CNPS_IGNORED,
    CNPS_SENT,
    DISCARDS,
    LOSSY,
    MARKS,
    SOURCES_DOWN,
    UNJUDGED,
)
from boards.scopes import CLUSTER, FLEET, series_to_port, to_host
from boards.tables import table


def _summed(rule: str) -> str:
    return f"sum({rule}{{{FLEET}}})"


CONGESTION_PANELS = (
    lines(
        "ECN marks and CNPs",
        "Marks arrive, their receiver answers with CNPs (sent), the sender slows down (handled). CNPs are fewer than marks, "
        "and about as many are handled as are sent. Marks and no CNP: notification is off. Ignored: the reaction is off. "
        "How many CNPs a mark makes differs by generation of the NIC: compare with yesterday, not with another fabric.",
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
        f"1: what receivers send, senders act on. Below {limit('RoceCnpDeliveryDeficit'):g} for long: CNPs are lost or ignored, "
        "for example because switches do not carry them in a priority of their own.",
        "percentunit",
        Query(
            f"sum by (cluster) ({CNPS_HANDLED}{{{FLEET}}}) / (sum by (cluster) ({CNPS_SENT}{{{FLEET}}}) > 0)",
            "{{cluster}}",
        ),
        empty="No CNP is sent",
    ),
    lines(
        "Time paused, by cluster",
        "Average share of the time paused, received by hosts. Pause while *Marked packets* is zero: ECN is not set on the switches, "
        "PFC does the work of congestion control. Dashed: where the budget burns fast enough to alert.",
        "percentunit",
        Query(f'{CLUSTER_PAUSE}{{direction="receive",{CLUSTER}}}', "{{cluster}}"),
        limits=steps(burn("RocePfcPauseBudgetBurnSlow"), burn("RocePfcPauseBudgetBurnFast")),
        empty=LOAD_RULES,
    ),
    lines(
        "Marked packets, by cluster",
        "Packets per second that arrive with the ECN mark: where queues build up in switches.",
        "pps",
        Query(f"sum by (cluster) ({MARKS}{{{FLEET}}})", "{{cluster}}"),
        empty=LOAD_RULES,
    ),
)


LOST_PACKETS = f"{LOSSY}{{{FLEET}}}"
LOSS_PANELS = (
    lines(
        "Drops in lossless priorities, by cluster",
        "Packets per second; any is a fault of headroom, cable length or PFC.",
        "pps",
        Query(f"sum by (cluster) ({DISCARDS}{{{FLEET}}})", "{{cluster}}"),
        custom={"drawStyle": "bars", "fillOpacity": 60},
        empty="No drop in a lossless priority",
        proof="slow-receiver",
    ),
    lines(
        "Worst ports by loss",
        "Packets lost per packet, as connections notice it (out of sequence, or sequence-error NAKs); the ten worst of the range. "
        "Dashed: the alerts' limits.",
        "percentunit",
        Query(
            f"{LOST_PACKETS} and topk(10, max_over_time({LOST_PACKETS}[$__range] @ end()))",
            "{{instance}} {{device}}/{{port}} {{direction}}",
        ),
        limits=steps(step("RocePacketLossHigh"), step("RocePacketLossCritical")),
        overrides=(all_series(("links", [series_to_port()])),),
        empty="No connection noticed a loss",
        proof="lossy",
    ),
)


CONFIGURATION_PANELS = (
    ranking(
        "Failed configuration checks",
        "Ports that fail each check. `roce-exporter audit` on the host says what is set, what is expected and why; "
        "the dashboard *RoCE / Configuration* shows the values.",
        "none",
        Query(f"topk(8, sum by (check) ({CHECKS_FAILED}{{{FLEET}}}))", "{{check}}", instant=True),
        steps((1, SEVERITY[ALERTS["RoceConfigCheckFailed"]["severity"]])),
        empty="No check fails, or none has run",
        proof="audited",
    ),
    table(
        "Settings that differ inside a cluster",
        "Devices of one name should be set alike. 1 or more: at least two hosts of the cluster differ. "
        "*RoCE / Configuration* shows which.",
        ("cluster", "device", "setting", "Value"),
        Query(f"topk(30, {DRIFT}{{{CLUSTER}}} > 0)", form="table", instant=True),
        names={"Value": "distance"},
        width=12,
        empty="Devices of one name are set alike",
        proof="misconfigured",
    ),
)


BLIND_PANELS = (
    table(
        "Hosts that do not report",
        "50 at most. Is the host up? Then `systemctl status roce-exporter` there.",
        ("cluster", "job", "instance"),
        Query(f"topk(50, up{{{FLEET}}} == 0)", form="table", instant=True),
        overrides=linked(to=to_host()),
        wide="instance",
        width=12,
        empty="All hosts report",
        proof="silent",
    ),
    ranking(
        "Blind spots",
        "Sources of devices that cannot be read, and lossless priorities that the storm detector cannot judge, by reason.",
        "none",
        Query(
            f'topk(8, label_replace(sum by (source) ({SOURCES_DOWN}{{{FLEET}}}), "what", "source $1", "source", "(.*)") or '
            f'label_replace(sum by (reason) ({UNJUDGED}{{{FLEET}}}), "what", "storms: $1", "reason", "(.*)"))',
            "{{what}}",
            instant=True,
        ),
        steps(base=NOTHING),
        width=12,
        empty="Everything is read and judged",
        proof="broken",
    ),
)

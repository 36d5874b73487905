"""Facts that only Windows reports. windows_exporter exports them under the configuration in `deploy/windows/`."""

from __future__ import annotations

from functools import partial

from roce_exporter.catalog.row import COUNTER, GAUGE, PORT_LABELS, Row, Spelling
from roce_exporter.catalog.windows_names import win_congestion, win_rdma


def _fact(kind: str, name: str, unit: str, meaning: str, spelling: Spelling) -> Row:
    return Row(name, kind, unit, meaning, (spelling,), PORT_LABELS, "experimental")


_counter = partial(_fact, COUNTER)
_gauge = partial(_fact, GAUGE)

ROWS = (
    _gauge(
        "roce_rate_limited_flows",
        "flows",
        "Flows whose sending rate the reaction point limits now, because CNPs arrived for them. The firmware of mlx5 has the "
        "number, and the Linux driver has no file for it.",
        win_congestion("Reaction Point - Current Number of Flows"),
    ),
    _gauge(
        "roce_connections",
        "connections",
        "RDMA connections (Network Direct) that are established now.",
        win_rdma("RDMA Active Connections"),
    ),
    _counter(
        "roce_connections_accepted_total",
        "connections",
        "RDMA connections that another host began and this host accepted.",
        win_rdma("RDMA Accepted Connections"),
    ),
    _counter(
        "roce_connections_initiated_total",
        "connections",
        "RDMA connections that this host began.",
        win_rdma("RDMA Initiated Connections"),
    ),
    _counter(
        "roce_connection_attempts_failed_total",
        "events",
        "Attempts to establish an RDMA connection that failed.",
        win_rdma("RDMA Failed Connection Attempts"),
    ),
    _counter(
        "roce_connection_errors_total",
        "events",
        "Established RDMA connections that ended with an error.",
        win_rdma("RDMA Connection Errors"),
    ),
    _counter(
        "roce_completion_queue_errors_total",
        "events",
        "Errors of completion queues, as Windows counts them for all vendors.",
        win_rdma("RDMA Completion Queue Errors"),
    ),
)

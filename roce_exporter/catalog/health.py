"""The verdict about each port: is it fit for a job, and if not, why. Filled by `health`, not by a driver.

One series per port, and one per port and reason at present. Reasons are the names of causes in docs/diagnosis.md; the side at fault
and the evidence of each are in `/health.json`.
"""

from __future__ import annotations

from roce_exporter.catalog.row import GAUGE, LEAN, PORT_LABELS, Row

PORT_HEALTH = Row(
    "roce_port_health",
    GAUGE,
    "state",
    "Whether the port is fit for a job: 0 unknown (the facts are missing), 1 healthy, 2 degraded, 3 failed. Judged every 15 s between "
    "scrapes; a reason remains until it has had no sign for five minutes.",
    (),
    PORT_LABELS,
    "experimental",
    metric_set=LEAN,
)
PORT_HEALTH_REASON = Row(
    "roce_port_health_reason",
    GAUGE,
    "state",
    "A reason for the port's health; present as long as it holds. The value is what the reason makes of the port, numbered as "
    "roce_port_health: 0 it cannot be judged, 1 the port is fit and the reason concerns programs or the load, 2 degraded, 3 failed.",
    (),
    (*PORT_LABELS, "reason"),
    "experimental",
    metric_set=LEAN,
)

ROWS = (PORT_HEALTH, PORT_HEALTH_REASON)

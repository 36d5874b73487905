"""Fleet: is anything wrong, where, since when, what next.

With 5,000 hosts a panel must not load every series or every host: it reads recording rules, `topk`, or series that
only exist where there is a fault.
"""

from __future__ import annotations

from boards.colours import CRITICAL
from boards.fleet_where import FIRST_PANELS, STORMS_PANELS
from boards.fleet_why import BLIND_PANELS, CONFIGURATION_PANELS, CONGESTION_PANELS, LOSS_PANELS
from boards.model import Board, Row
from boards.scopes import OF_FLEET, WITH_RUNBOOKS, alerts_of_clusters

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
        Row("Configuration", "a failed check breaks the fabric later, not now", CONFIGURATION_PANELS),
        Row("Missing data", "other alerts cannot fire for the items listed here", BLIND_PANELS),
    ),
    (alerts_of_clusters(CRITICAL, enabled=True),),
)

"""Fleet: is anything wrong, where, since when, what next.

With 5,000 hosts a panel may load neither every series nor every host: it reads recording rules, `topk`, or series that
only exist where something is wrong.
"""

from __future__ import annotations

from boards.fleet_where import FIRST_PANELS, STORMS_PANELS
from boards.fleet_why import BLIND_PANELS, CONFIGURATION_PANELS, CONGESTION_PANELS, LOSS_PANELS
from boards.model import Board, Row
from boards.scopes import CLUSTER, OF_FLEET, alerts_of_many

BOARD = Board(
    "roce-fleet",
    "RoCE / Fleet",
    "Is anything wrong, where, since when, and what next. Needs the recording rules of alerts/ and dashboards/.",
    OF_FLEET,
    (
        Row("Now", "is anything wrong, where, since when, and what next", FIRST_PANELS),
        Row("Storms", "which hosts cause them, and which are victims", STORMS_PANELS),
        Row(
            "Congestion control",
            "marks and CNPs follow the load, pause stays near zero. Pause without marks: ECN is not working",
            CONGESTION_PANELS,
        ),
        Row(
            "Loss",
            "a lossless fabric loses nothing. Loss without drops here happens in a switch or on a cable",
            LOSS_PANELS,
        ),
        Row("Configuration", "a failed check breaks the fabric later, not now", CONFIGURATION_PANELS),
        Row("What we do not see", "what is listed here cannot raise any other alert", BLIND_PANELS),
    ),
    (alerts_of_many(CLUSTER, "page", enabled=True),),
)

"""Fleet: is any fabric sick, where, since when.

With 5,000 hosts a panel may load neither every series nor every host: it asks recording rules, `topk`, or series that
only exist where something is wrong.
"""

from __future__ import annotations

from boards.fleet_where import CLUSTERS, NUMBERS_PANELS, WHERE_PANELS
from boards.fleet_why import BLIND_PANELS, CONFIGURATION_PANELS, CONGESTION_PANELS, LOSS_PANELS
from boards.model import Board, Row
from boards.scopes import CLUSTER, OF_FLEET, alerts

BOARD = Board(
    "roce-fleet",
    "RoCE / Fleet",
    "Is any fabric sick, where, and since when. Needs the recording rules of alerts/ and dashboards/.",
    OF_FLEET,
    (
        Row("Now", "", NUMBERS_PANELS),
        Row("Where", "", (CLUSTERS, *WHERE_PANELS)),
        Row(
            "Congestion control",
            "**In a healthy fabric ECN does the work and PFC is the last resort**: marks and CNPs rise and fall with the load while pause stays near zero. "
            "Pause with marks: an incast faster than the round trip. Pause without marks: ECN is not working.",
            CONGESTION_PANELS,
        ),
        Row(
            "Loss",
            "**A lossless fabric loses nothing.** Drops in a lossless priority are a fault of its settings; loss without drops here "
            "happens in a switch or on a cable.",
            LOSS_PANELS,
        ),
        Row(
            "Configuration",
            "**Most incidents are configuration.** A failed check breaks the fabric later, not now.",
            CONFIGURATION_PANELS,
        ),
        Row(
            "What we do not see",
            "**Silence is not health.** What is listed here cannot raise any other alert.",
            BLIND_PANELS,
        ),
    ),
    (alerts(CLUSTER, "page"),),
)

"""Link: both ends of a link side by side, and the whole switch at one of them.

Every query selects one switch or one host by its labels, so that it reads the series of 64 ports at most. The ends of a
link are joined by the recording rules `link:*` of the alerts.
"""

from __future__ import annotations

from boards.link_ends import ENDS_PANELS, PAUSE_PANELS, WATCHDOG_PANELS
from boards.link_queue import BUFFERS_PANELS, QUEUE_PANELS
from boards.link_series import LINK, OF_LINK, SWITCH_PORT
from boards.link_switch import PROBE_PANELS, SWITCH_PANELS
from boards.model import Board, Row
from boards.scopes import PORT, alerts

BOARD = Board(
    "roce-link",
    "RoCE / Link",
    "Both ends of a link, and the whole switch: who pauses whom, and who discards. Needs the recording rules of alerts/ and dashboards/.",
    OF_LINK,
    (
        Row("Link", "who is at both ends, and do their settings agree", ENDS_PANELS),
        Row("Pause in both directions", "to the switch: a slow host. To the host: a congested switch", PAUSE_PANELS),
        Row("Queues of the switch port", "marks and CNPs must begin before pause", (*QUEUE_PANELS, *WATCHDOG_PANELS)),
        Row("Buffers of the switch port", "full headroom loses packets that PFC should protect", BUFFERS_PANELS),
        Row("Whole switch", "which port pauses, which watchdog tripped, which setting differs", SWITCH_PANELS),
        Row("Probe", "what is missing here is missing above", PROBE_PANELS),
    ),
    (alerts(PORT, SWITCH_PORT, LINK),),
)  # fmt: skip

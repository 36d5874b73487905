"""Texts for coded values, as listed in the HELP of their metrics."""

from __future__ import annotations

from boards.colours import GOOD, SEVERITY, UNKNOWN

ON_OFF = {0: "off", 1: "on"}
TRUST = {0: "VLAN tag", 1: "DSCP"}
SCHEDULING = {0: "strict priority", 1: "credit-based shaper", 2: "ETS (weighted)", 255: "vendor-specific"}
ROCE_VERSION = {1: "RoCE v1 (not routable)", 2: "RoCE v2 (UDP)"}
_DCBX_BITS = {1: "host", 2: "firmware", 4: "CEE", 8: "IEEE", 16: "static"}
DCBX = {
    mode: " + ".join(text for bit, text in _DCBX_BITS.items() if mode & bit) or "off" for mode in range(32)
}
DETECTOR: dict[float, tuple[str, str]] = {
    0: ("clear", GOOD),
    1: ("suspect", SEVERITY["info"]),
    2: ("storm", SEVERITY["page"]),
    3: ("recovering", SEVERITY["ticket"]),
    4: ("cannot judge", UNKNOWN),
}
ALERT: dict[float, tuple[str, str]] = {
    0: ("healthy", GOOD),
    1: ("info", SEVERITY["info"]),
    2: ("ticket", SEVERITY["ticket"]),
    3: ("page", SEVERITY["page"]),
}
HEALTH: dict[float, tuple[str, str]] = {
    0: ("unknown", UNKNOWN),
    1: ("healthy", GOOD),
    2: ("degraded", SEVERITY["ticket"]),
    3: ("failed", SEVERITY["page"]),
}
"""The exporter's verdict about a port."""
REASON = {**HEALTH, 1: ("programs or load", SEVERITY["info"])}
"""What a reason makes of a port."""
LINK = {0: ("down", SEVERITY["page"]), 1: ("up", GOOD)}
TRIPPED: dict[float, tuple[str, str]] = {
    0: ("monitors", GOOD),
    1: ("tripped: pause is not obeyed", SEVERITY["page"]),
    2: ("does not monitor this queue", SEVERITY["ticket"]),
}
"""States of a switch's PFC watchdog."""
STOPPED: dict[float, tuple[str, str]] = {0: ("may send", GOOD), 1: ("stopped by pause", SEVERITY["ticket"])}
ANSWERS: dict[float, tuple[str, str]] = {0: ("failed", SEVERITY["ticket"]), 1: ("up", GOOD)}
BOTH_ENDS = {-1: ("no data", UNKNOWN), 0: ("agree", GOOD), 1: ("differ", SEVERITY["ticket"])}
"""Whether the ends of a link have the same setting."""
VERDICT = {
    0: ("clear", GOOD),
    1: ("victim: its switch pauses it", SEVERITY["ticket"]),
    2: ("cause: it pauses its switch", SEVERITY["page"]),
    3: ("both: cause and victim", SEVERITY["page"]),
}
"""Verdict from the time paused of a port; its bits are received and sent."""

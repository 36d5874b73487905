"""The meaning of colours, the same on every dashboard. All are names of Grafana's palette, for light and dark themes.

Every state also has a text, and received and sent are also above and below the axis: no fact is shown by colour alone.
"""

from __future__ import annotations

GOOD = "light-green"
BAD = "semi-dark-red"
"""Lighter and darker than Grafana's plain green and red, which red-green colour-blind people cannot distinguish."""
NOTHING = "text"
"""For numbers that are neither good nor bad, and for panels without data."""

CRITICAL, WARNING, NOTE = "critical", "warning", "info"
"""The values of the label `severity`."""
SEVERITY = {NOTE: "purple", WARNING: "orange", CRITICAL: BAD}
"""Colour of an alert limit by severity."""
UNKNOWN = "text"
"""For values that cannot be judged or read, which are neither good nor bad."""

RECEIVED = "blue"
SENT = "dark-yellow"
"""Blue and yellow can be distinguished with every kind of colour blindness."""
MARKED = RECEIVED
CNP_SENT = SENT
CNP_HANDLED = GOOD
CNP_IGNORED = BAD
LOST = BAD
RECOVERED = "light-orange"
LIMIT = BAD

IDENTITY = (
    "semi-dark-blue",
    "semi-dark-yellow",
    "semi-dark-purple",
    "semi-dark-orange",
    "light-blue",
    "dark-yellow",
    "light-purple",
    "dark-orange",
)
"""Colours of a host's devices and of priorities, by number. Without red and green, which mean bad and good."""


# ---- values that are codes

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
    1: ("suspect", SEVERITY[NOTE]),
    2: ("storm", SEVERITY[CRITICAL]),
    3: ("recovering", SEVERITY[WARNING]),
    4: ("cannot judge", UNKNOWN),
}
ALERT: dict[float, tuple[str, str]] = {
    0: ("healthy", GOOD),
    1: (NOTE, SEVERITY[NOTE]),
    2: (WARNING, SEVERITY[WARNING]),
    3: (CRITICAL, SEVERITY[CRITICAL]),
}
HEALTH: dict[float, tuple[str, str]] = {
    0: ("unknown", UNKNOWN),
    1: ("healthy", GOOD),
    2: ("degraded", SEVERITY[WARNING]),
    3: ("failed", SEVERITY[CRITICAL]),
}
"""The exporter's verdict about a port."""
REASON = {**HEALTH, 1: ("programs or load", SEVERITY[NOTE])}
"""What a reason makes of a port."""
LINK = {0: ("down", SEVERITY[CRITICAL]), 1: ("up", GOOD)}
CABLE = {0: ("good", GOOD), 1: ("bad", SEVERITY[CRITICAL])}
TRIPPED: dict[float, tuple[str, str]] = {
    0: ("monitors", GOOD),
    1: ("tripped: pause is not obeyed", SEVERITY[CRITICAL]),
    2: ("does not monitor this queue", SEVERITY[WARNING]),
}
"""States of a switch's PFC watchdog."""
STOPPED: dict[float, tuple[str, str]] = {0: ("may send", GOOD), 1: ("stopped by pause", SEVERITY[WARNING])}
ANSWERS: dict[float, tuple[str, str]] = {0: ("failed", SEVERITY[WARNING]), 1: ("up", GOOD)}
BOTH_ENDS = {-1: ("no data", UNKNOWN), 0: ("agree", GOOD), 1: ("differ", SEVERITY[WARNING])}
"""Whether the ends of a link have the same setting."""
ROLE = {
    0: ("neither", GOOD),
    1: ("victim", SEVERITY[WARNING]),
    2: ("cause", SEVERITY[CRITICAL]),
    3: ("cause, victim", SEVERITY[CRITICAL]),
}
"""Whether a port pauses its switch or is paused; the bits are received and sent."""

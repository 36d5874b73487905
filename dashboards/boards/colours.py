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

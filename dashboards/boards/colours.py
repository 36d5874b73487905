"""What colours mean, the same on every dashboard. All are names of Grafana's palette, which suit light and dark."""

from __future__ import annotations

GOOD = "green"
NOTHING = "text"
"""A number that is neither good nor bad."""

SEVERITY = {"info": "blue", "ticket": "orange", "page": "red"}
"""How urgent a limit of the alerts is."""
UNKNOWN = "semi-dark-purple"
"""What cannot be judged or read is neither good nor bad."""

RECEIVED = "blue"
SENT = "orange"
MARKED = "purple"
CNP_SENT = "yellow"
CNP_HANDLED = "green"
CNP_IGNORED = "red"
LOST = "red"
RECOVERED = "light-orange"
LIMIT = "semi-dark-red"

PORTS = (
    "semi-dark-blue",
    "semi-dark-yellow",
    "semi-dark-purple",
    "semi-dark-orange",
    "light-blue",
    "dark-yellow",
    "light-purple",
    "dark-orange",
)
"""A host's devices by the number at the end of their names. No red and no green, for a port is neither bad nor good."""

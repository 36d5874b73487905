"""What colours mean, the same on every dashboard. All are names of Grafana's palette, which suit light and dark.

Every state has its text next to the colour, and received and sent are also above and below the axis: no fact is in a colour alone.
"""

from __future__ import annotations

GOOD = "light-green"
BAD = "semi-dark-red"
"""Lighter and darker than Grafana's plain green and red, which are one colour to people without green receptors."""
NOTHING = "text"
"""A number that is neither good nor bad, and a panel without data."""

SEVERITY = {"info": "purple", "ticket": "orange", "page": BAD}
"""How urgent a limit of the alerts is."""
UNKNOWN = "text"
"""What cannot be judged or read is neither good nor bad."""

RECEIVED = "blue"
SENT = "dark-yellow"
"""Blue and yellow are the pair that people with each kind of colour blindness tell apart."""
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
"""A host's devices, and priorities, by their number: no red and no green, for neither is bad or good."""

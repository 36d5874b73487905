"""The verdict: what is wrong with a port, which side of the link is at fault, and how far to trust that.

`diagnosis` is pure: it takes the exporter's own samples at several times (from this host, a recording, a simulation or
Prometheus), never raw names, so that one rule serves every vendor. The daemon's port health and `check health` use the same
rules: there is one list of causes.
"""

HEALTH = "health"
"""The name of the daemon's verdict among the sources."""

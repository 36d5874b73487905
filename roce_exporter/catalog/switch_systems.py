"""The operating systems of switches, whose raw names the rows of switches list as they list those of drivers."""

from __future__ import annotations

SONIC = "sonic"
NXOS = "nxos"
EOS = "eos"
CUMULUS = "cumulus"

SWITCH_SYSTEMS = (SONIC, NXOS, EOS, CUMULUS)
"""The dialects of switches. No RDMA device has one, so a row of switches is never searched on a host."""

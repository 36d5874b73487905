"""The operating systems of switches, whose raw names the rows of switches list as they list those of drivers, and their modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SONIC = "sonic"
NXOS = "nxos"
EOS = "eos"
CUMULUS = "cumulus"
OPENCONFIG = "openconfig"


class System(NamedTuple):
    """Where a module is, and what it needs."""

    file: str
    """The module of `switches/systems/`; its folder is the name of the system."""
    schemes: Mapping[str, int]
    """The schemes of its addresses, each with its default port; the first one is the default."""
    extra: str = ""
    """The extra of the package that brings the library of its protocol."""


SYSTEMS = {
    "sonic": System("sonic.redis_requests", {"redis": 6379, "rediss": 6379, "unix": 0}),
    "sonic_gnmi": System("sonic.gnmi_requests", {"grpc": 50051, "grpc+insecure": 50051}, "gnmi"),
    "nxos": System("nxos.requests", {"https": 443, "http": 80}),
    "eos": System("eos.requests", {"grpc": 6030, "grpc+insecure": 6030, "https": 443}, "gnmi"),
    "cumulus": System("cumulus.requests", {"https": 8765}),
    "openconfig": System("openconfig.requests", {"grpc": 9339, "grpc+insecure": 9339}, "gnmi"),
}

SWITCH_SYSTEMS = tuple(dict.fromkeys(one.file.partition(".")[0] for one in SYSTEMS.values()))
"""The dialects of switches. No RDMA device has one, so a row of switches is never searched on a host."""

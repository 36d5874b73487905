"""The settings that should be equal on similar ports, and one number that represents all of them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.checks.settings.port_settings import PortSettings

COMPARED = (
    "pfc",
    "delay",
    "trust",
    "dscp_priority",
    "traffic_class",
    "algorithm",
    "bandwidth",
    "buffer_of",
    "buffer_bytes",
    "dcbx",
    "global_pause",
    "prevention",
    "refresh",
    "cm_tos",
    "cm_version",
    "tclass_forced",
    "tclass",
    "notification",
    "reaction",
    "dcqcn",
    "mtu",
)
"""Fields of `PortSettings`, without those that the switch, the addresses or the negotiated link determine.

Their names are part of the fingerprint: renaming one changes `roce_config_fingerprint` on every host.
"""

BYTES = 6
"""48 bits: every such number is exact as a float, the type of all values in Prometheus."""


def comparable(settings: PortSettings) -> dict[str, object]:
    """The settings of one port that were read, by name, in a form that is equal for equal settings."""
    found = {name: _plain(getattr(settings, name)) for name in COMPARED}
    return {name: value for name, value in found.items() if value is not None}


def fingerprint(values: Mapping[str, object]) -> int:
    """A number that is equal for equal settings, on every host and with every version of Python."""
    text = repr(sorted(values.items()))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=BYTES).digest(), "big")


def _plain(value: object) -> object:
    # Sets are unordered, and mappings have the order in which the driver reports them.
    if isinstance(value, frozenset):
        return tuple(sorted(value))
    if isinstance(value, dict):
        return tuple(sorted(value.items()))
    return value

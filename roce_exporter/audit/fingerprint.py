"""What of a port's settings should be equal on equal ports, by name, and one number for all of it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.audit.facts import Facts

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
"""The facts that are settings. Not what the switch says, nor addresses, nor what the link came up with."""

BYTES = 6
"""48 bits: every such number is exact as the float that Prometheus keeps."""


def settings_of(facts: Facts) -> dict[str, object]:
    """The settings of one port that were read, in a form that is equal for equal settings."""
    found = {name: _plain(getattr(facts, name)) for name in COMPARED}
    return {name: value for name, value in found.items() if value is not None}


def fingerprint(settings: Mapping[str, object]) -> int:
    """A number that is equal for equal settings, on every host and with every Python."""
    text = repr(sorted(settings.items()))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=BYTES).digest(), "big")


def _plain(value: object) -> object:
    # Sets have no order of their own, and mappings that of the driver.
    if isinstance(value, frozenset):
        return tuple(sorted(value))
    if isinstance(value, dict):
        return tuple(sorted(value.items()))
    return value

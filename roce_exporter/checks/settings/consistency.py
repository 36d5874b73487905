"""Whether the ports of one host that are of the same kind have the same settings."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from roce_exporter.checks.settings.check import CheckResult, judged
from roce_exporter.checks.settings.port_settings import PortSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


COMPARED = {
    "pfc": "priorities with PFC",
    "delay": "delay of PFC",
    "trust": "trust",
    "dscp_priority": "priority of a DSCP",
    "traffic_class": "traffic class of a priority",
    "algorithm": "scheduling",
    "bandwidth": "bandwidth of a traffic class",
    "buffer_of": "receive buffer of a priority",
    "buffer_bytes": "size of the receive buffers",
    "dcbx": "DCBX",
    "global_pause": "global pause",
    "prevention": "pause watchdog",
    "refresh": "refresh of statistics",
    "cm_tos": "ToS of RDMA-CM connections",
    "cm_version": "RoCE version of RDMA-CM",
    "tclass_forced": "whether a traffic class is forced",
    "tclass": "traffic class of all connections",
    "notification": "CNPs for marked packets",
    "reaction": "reaction to CNPs",
    "dcqcn": "DCQCN parameters",
    "mtu": "MTU",
}
"""Fields of `PortSettings` and what each is in a report, without those that the switch, the addresses or the negotiated link determine.

The names of the fields are part of the fingerprint: renaming one changes `roce_config_fingerprint` on every host.
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


Compared = tuple[PortSettings, CheckResult]


def compare(ports: Sequence[PortSettings]) -> Iterator[Compared]:
    """A result per port that shares its driver, model and function with another port of the host.

    The most frequent settings are the expected ones; if none is the most frequent, those of the first port. A setting that
    only one of two ports reports is not compared.
    """
    kinds: dict[tuple[str, str], list[PortSettings]] = {}
    for settings in ports:
        if settings.netdev:
            kinds.setdefault((settings.dialect, settings.kind), []).append(settings)
    for alike in kinds.values():
        if len(alike) > 1:
            yield from _compare([(settings, comparable(settings)) for settings in alike])


def _compare(ports: Sequence[tuple[PortSettings, Mapping[str, object]]]) -> Iterator[Compared]:
    (usual, _), *_ = Counter(fingerprint(values) for _, values in ports).most_common(1)
    model, expected_values = next(pair for pair in ports if fingerprint(pair[1]) == usual)
    for settings, values in ports:
        names = sorted(expected_values.keys() & values.keys())
        other = [COMPARED[name] for name in names if expected_values[name] != values[name]]
        expected = f"as {model.netdev} of {model.device}"
        found = f"differs in {', '.join(other)}" if other else expected
        yield settings, judged(not other, expected, found)

"""What `ip -j -s -d link show dev DEV` of iproute2 prints about the virtual functions of a network device."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.netlink import Malformed
from roce_exporter.host.kernel.rtnetlink import MOST_VFS, VirtualFunction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LINK_STATES = {"auto": 0, "enable": 1, "disable": 2}

COUNTS = {
    f"{direction}_{name}": (direction, name)
    for direction, names in (
        ("rx", ("bytes", "packets", "multicast", "broadcast", "dropped")),
        ("tx", ("bytes", "packets", "dropped")),
    )
    for name in names
}
"""Name of a count here, and its place in the JSON."""


def parse_virtual_functions(text: str, netdev: str) -> tuple[VirtualFunction, ...]:
    """The VFs of a network device.

    Raises:
        Absent: it has none.
        Malformed: the text is not the JSON of `ip`.
    """
    try:
        (link,) = json.loads(text)
        found = tuple(map(_virtual_function, link.get("vfinfo_list", ())))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Malformed(
            f"ip/{netdev}.link.json: record it with `ip -j -s -d link show dev {netdev}`"
        ) from None
    if not found:
        raise Absent(errno.EOPNOTSUPP, "no virtual functions", netdev)
    return found[:MOST_VFS]


def print_virtual_functions(found: Sequence[VirtualFunction], netdev: str) -> str:
    """The VFs of a network device as `ip` prints them, without what no series shows."""
    names = {number: name for name, number in LINK_STATES.items()}
    listed: list[dict[str, Any]] = []
    for one in found:
        known = one.settings
        shown: dict[str, Any] = {"vf": one.number, "link_type": "ether", "address": one.mac}
        shown["vlan_list"] = [{"vlan": known["vlan"]}] if known.get("vlan") else [{}]
        if "max_rate" in known:
            shown["rate"] = {"max_tx": known["max_rate"], "min_tx": 0}
        if "link_state" in known:
            shown["link_state"] = names[known["link_state"]]
        keys = (("spoof_check", "spoofchk"), ("trusted", "trust"))
        shown |= {key: bool(known[name]) for name, key in keys if name in known}
        stats: dict[str, dict[str, int]] = {"rx": {}, "tx": {}}
        for name, value in one.counts.items():
            direction, key = COUNTS[name]
            stats[direction][key] = value
        listed.append(shown | {"stats": stats})
    return json.dumps([{"ifname": netdev, "vfinfo_list": listed}]) + "\n"


def _virtual_function(one: Mapping[str, Any]) -> VirtualFunction:
    # Before version 5.3 iproute2 called the address `mac`.
    mac = str(one["address"] if "address" in one else one["mac"])
    return VirtualFunction(int(one["vf"]), mac, dict(_settings(one)), dict(_counts(one)))


def _settings(one: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    if (state := one.get("link_state")) in LINK_STATES:
        yield "link_state", LINK_STATES[state]
    for name, key in (("spoof_check", "spoofchk"), ("trusted", "trust")):
        if key in one:
            yield name, int(_is_on(one[key]))
    vlans = one.get("vlan_list", [one])
    yield "vlan", int(vlans[0].get("vlan", 0)) if vlans else 0
    if "rate" in one:
        yield "max_rate", int(one["rate"]["max_tx"])


def _is_on(value: object) -> bool:
    return value in (True, "on")


def _counts(one: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    stats = one.get("stats", {})
    for name, (direction, key) in COUNTS.items():
        counted = stats.get(direction, {})
        # iproute2 names them `tx_bytes` and `tx_packets`, and the received ones without a prefix.
        value = counted.get(key, counted.get(f"{direction}_{key}"))
        if value is not None:
            yield name, int(value)

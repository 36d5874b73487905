"""What iproute2 prints about addresses, neighbours, routes, rules and virtual functions, as JSON: parse it, and print it.

    ip/address.json   `ip -j address show`
    ip/neigh.json     `ip -j -s neigh show`; without `-s` no entry has an age
    ip/route.json     `ip -j -4 route show table all`; ip/route6.json with -6
    ip/rule.json      `ip -j rule show`; ip/rule6.json with -6
    ip/get.json       `ip -j route get DESTINATION from SOURCE`, the arrays of any number of such calls in one; a packet that
                      does not leave is {"dst": ..., "from": ..., "error": "unreachable"}
    ip/DEV.link.json  `ip -j -s -d link show dev DEV`, of which the virtual functions are read

Newer versions of iproute2 print `table` as a number or as its name, older ones leave out `flags` without any.
"""

from __future__ import annotations

import errno
import ipaddress
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.netlink import Malformed
from roce_exporter.host.kernel.rtnetlink import MOST_VFS, VirtualFunction
from roce_exporter.model import ip
from roce_exporter.words import word_list

TABLES = {"local": ip.LOCAL, "main": ip.MAIN, "default": ip.DEFAULT, "unspec": 0}
_NAMES = {number: name for name, number in TABLES.items() if number}
_RESOLVED = {"REACHABLE", "STALE", "DELAY", "PROBE", "PERMANENT"}
_STATES = {ip.FAILED: "FAILED", ip.INCOMPLETE: "INCOMPLETE", ip.RESOLVED: "STALE"}
_BITS = {4: 32, 6: 128}

_SIMPLE = word_list(
    """
    priority not src srclen dst dstlen iif iif_detached oif oif_detached fwmark fwmask table protocol action
    goto nop suppress_prefixlen to_tbl
    """
)
_ACTIONS = ("goto", "nop", "unreachable", "blackhole", "prohibit")


def parse_addresses(rows: Sequence[Any]) -> dict[str, tuple[ip.IpAddress, ...]]:
    """The addresses of each network device, by its name.

    ValueError, TypeError, KeyError, AttributeError: the JSON is not that of `ip`; so for all functions here.
    """
    return {
        _name(row["ifname"]): tuple(_parse_address(one) for one in row.get("addr_info", ()))
        for row in rows
        if row
    }


def _parse_address(one: Mapping[str, Any]) -> ip.IpAddress:
    failed = bool(one.get("dadfailed"))
    length = int(one["prefixlen"])
    ip.network_of(f"{one['local']}/{length}")
    return ip.IpAddress(
        _address(one["local"]),
        length,
        _name(one.get("scope", "global")),
        failed,
        bool(one.get("tentative")) and not failed,
    )


def print_addresses(found: Mapping[str, Sequence[ip.IpAddress]]) -> list[dict[str, Any]]:
    """As `ip -j address show` prints them, without links and lifetimes."""
    listed = []
    for netdev, addresses in found.items():
        shown = [
            {"family": "inet6" if ":" in one.address else "inet", "local": one.address}
            | {"prefixlen": one.length, "scope": one.scope}
            | ({"tentative": True} if one.tentative else {})
            | ({"dadfailed": True} if one.failed else {})
            for one in addresses
        ]
        listed.append({"ifname": netdev, "addr_info": shown})
    return listed


def parse_neighbours(rows: Sequence[Any]) -> dict[str, tuple[ip.IpNeighbour, ...]]:
    """The neighbours of each network device; without those that need no resolution."""
    found: dict[str, list[ip.IpNeighbour]] = {}
    for row in rows:
        states = set(row.get("state", ()))
        word = next((one for one in (ip.FAILED, ip.INCOMPLETE) if one.upper() in states), "")
        word = word or (ip.RESOLVED if states & _RESOLVED else "")
        if word and "NOARP" not in states and "extern_learn" not in row:
            age = float(int(row["updated"])) if "updated" in row else None
            found.setdefault(_name(row["dev"]), []).append(ip.IpNeighbour(_address(row["dst"]), word, age))
    return {netdev: tuple(entries) for netdev, entries in found.items()}


def print_neighbours(netdev: str, found: Iterable[ip.IpNeighbour]) -> list[dict[str, Any]]:
    """As `ip -j -s neigh show` prints them, without MAC addresses."""
    return [
        {"dst": one.address, "dev": netdev}
        | ({} if one.seconds is None else {"updated": int(one.seconds)})
        | {"state": [_STATES[one.state]]}
        for one in found
    ]


def parse_routes(rows: Sequence[Any], version: int) -> tuple[ip.IpRoute, ...]:
    """The routes of all tables; rows without destination are those of other families, which `ip` prints empty."""
    return tuple(_parse_route(row, version) for row in rows if "dst" in row)


def _parse_route(row: Mapping[str, Any], version: int) -> ip.IpRoute:
    flags, source = row.get("flags", ()), str(row.get("from", ""))
    return ip.IpRoute(
        _table(row.get("table", ip.MAIN)),
        _prefix(str(row["dst"]), version),
        str(row.get("type", "unicast")),
        tuple(
            ip.NextHop(
                _name(one.get("dev", "")), _gateway(one), "dead" not in {*one.get("flags", ()), *flags}
            )
            for one in row.get("nexthops") or (row,)
        ),
        int(row.get("metric", 0)),
        _limit(row, "mtu"),
        _limit(row, "advmss"),
        int(str(row.get("tos", 0)), 0),
        _prefix(source, version) if source else "",
    )


def _gateway(row: Mapping[str, Any]) -> str:
    gateway = row.get("gateway") or row.get("via", {}).get("host", "")
    return _address(gateway) if gateway else ""


def _limit(row: Mapping[str, Any], name: str) -> int:
    return int({key: value for one in row.get("metrics", ()) for key, value in one.items()}.get(name, 0))


def print_route(one: ip.IpRoute) -> dict[str, Any]:
    """As `ip -j route show table all` prints it."""
    hops = [
        _without_empty(gateway=hop.gateway) | {"dev": hop.netdev, "flags": [] if hop.usable else ["dead"]}
        for hop in one.hops
    ]
    limits = _without_empty(mtu=one.mtu, advmss=one.advmss)
    return (
        _without_empty(type="" if one.kind == "unicast" else one.kind)
        | {"dst": _short(one.destination)}
        | ({"from": _short(one.source)} if one.source else {})
        | _without_empty(tos=one.tos and f"{one.tos:#x}")
        | (hops[0] if len(hops) == 1 else {"nexthops": hops})
        | ({} if one.table == ip.MAIN else {"table": _NAMES.get(one.table, str(one.table))})
        | _without_empty(metric=one.metric, metrics=[limits] if limits else ())
    )


def _without_empty(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def parse_rules(rows: Sequence[Any], version: int) -> tuple[ip.IpRule, ...]:
    """The rules, in the order in which the kernel tries them."""
    return tuple(_parse_rule(row, version) for row in rows)


def _parse_rule(row: Mapping[str, Any], version: int) -> ip.IpRule:
    action = next((one for one in _ACTIONS if one in row), str(row.get("action", "lookup")))
    prefixes = []
    for name in ("src", "dst"):
        text, length = str(row.get(name, "all")), row.get(f"{name}len")
        whole = text if length is None else f"{text}/{length}"
        prefixes.append("" if text == "all" else _prefix(whole, version))
    (source, destination), target = prefixes, str(row.get("goto", 0))
    return ip.IpRule(
        int(row["priority"]),
        version,
        _table(row.get("table", 0)),
        "lookup" if action == "to_tbl" else action,
        source,
        destination,
        "not" in row,
        str(row.get("iif", "")),
        str(row.get("oif", "")),
        int(str(row.get("fwmark", 0)), 0),
        int(str(row.get("fwmask", ip.NO_LIMIT if "fwmark" in row else 0)), 0),
        int(target) if target.isdecimal() else 0,
        int(row.get("suppress_prefixlen", ip.NO_LIMIT)),
        tuple(sorted(row.keys() - {*_SIMPLE})),
    )


def print_rule(one: ip.IpRule) -> dict[str, Any]:
    """As `ip -j rule show` prints it; a selector that has no field here has no value."""
    shown: dict[str, Any] = {"priority": one.priority} | ({"not": None} if one.inverted else {})
    for name, text in (("src", one.source), ("dst", one.destination)):
        address, _, length = text.partition("/")
        if text:
            shown[name] = address
        if text and int(length) != _BITS[one.version]:
            shown[f"{name}len"] = int(length)
    shown.setdefault("src", "all")
    shown |= _without_empty(iif=one.input, oif=one.output)
    if one.mark or one.mask:
        shown |= {"fwmark": hex(one.mark)} | ({} if one.mask == ip.NO_LIMIT else {"fwmask": hex(one.mask)})
    shown |= dict.fromkeys(one.others)
    actions: dict[str, dict[str, Any]] = {
        "lookup": {"table": _NAMES.get(one.table, str(one.table))},
        "goto": {"goto": one.target},
        "nop": {"nop": None},
    }
    shown |= actions.get(one.action, {"action": one.action})
    return shown | ({} if one.suppress == ip.NO_LIMIT else {"suppress_prefixlen": one.suppress})


def parse_paths(rows: Sequence[Any]) -> dict[tuple[str, str], ip.IpPath]:
    """The recorded replies of `ip -j route get`, by source and destination."""
    return {
        (_address(row["from"]), _address(row["dst"])): ip.IpPath(failure=str(row["error"]))
        if "error" in row
        else ip.IpPath(_name(row["dev"]), _gateway(row), _limit(row, "mtu"), row.get("type") == "local")
        for row in rows
    }


def print_path(source: str, destination: str, path: ip.IpPath) -> dict[str, Any]:
    """As `ip -j route get` prints it."""
    shown = {"dst": destination, "from": source}
    if path.failure:
        return shown | {"error": path.failure}
    shown |= _without_empty(type="local" if path.local else "", gateway=path.gateway)
    return shown | {"dev": path.netdev} | ({"metrics": [{"mtu": path.mtu}]} if path.mtu else {})


def print_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """One row per line, so that two recordings can be compared."""
    return "[" + ",\n".join(json.dumps(row) for row in rows) + "]\n"


def _address(text: object) -> str:
    return str(ipaddress.ip_address(str(text)))


def _name(value: object) -> str:
    """The name of a network device or a scope. The kernel allows no white space in it, and our readings do not either."""
    text = str(value)
    if any(map(str.isspace, text)):
        raise ValueError(f"white space in the name {text!r}")
    return text


def _table(value: object) -> int:
    text = str(value)
    return TABLES[text] if text in TABLES else int(text)


def _prefix(text: str, version: int) -> str:
    if text in ("default", "all", "any"):
        return ip.EVERYWHERE[version]
    return str(ip.network_of(text if "/" in text else f"{text}/{_BITS[version]}"))


def _short(prefix: str) -> str:
    address, _, length = prefix.partition("/")
    if prefix in ip.EVERYWHERE.values():
        return "default"
    return address if int(length) == _BITS[6 if ":" in address else 4] else prefix


LINK_STATES = {"auto": 0, "enable": 1, "disable": 2}
SWITCHES = {"spoof_check": "spoofchk", "trusted": "trust"}
"""Name of a setting here and in the JSON."""
COUNTS = word_list("rx_bytes rx_packets rx_multicast rx_broadcast rx_dropped tx_bytes tx_packets tx_dropped")
"""In the JSON without their direction, below `rx` and `tx`."""


def parse_virtual_functions(text: str, netdev: str) -> tuple[VirtualFunction, ...]:
    """The VFs of a network device. Absent: it has none. Malformed: the text is not the JSON of `ip`."""
    try:
        (link,) = json.loads(text)
        found = tuple(map(_virtual_function, link.get("vfinfo_list", ())))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
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
        shown |= {key: bool(known[name]) for name, key in SWITCHES.items() if name in known}
        stats = {
            way: {name[3:]: value for name, value in one.counts.items() if name.startswith(way)}
            for way in ("rx", "tx")
        }
        listed.append(shown | {"stats": stats})
    return json.dumps([{"ifname": netdev, "vfinfo_list": listed}]) + "\n"


def _virtual_function(one: Mapping[str, Any]) -> VirtualFunction:
    settings: dict[str, int] = {}
    if (state := one.get("link_state")) in LINK_STATES:
        settings["link_state"] = LINK_STATES[state]
    settings |= {name: int(one[key] in (True, "on")) for name, key in SWITCHES.items() if key in one}
    vlans = one.get("vlan_list", [one])
    settings["vlan"] = int(vlans[0].get("vlan", 0)) if vlans else 0
    if "rate" in one:
        settings["max_rate"] = int(one["rate"]["max_tx"])
    counts: dict[str, int] = {}
    for name in COUNTS:
        counted = one.get("stats", {}).get(name[:2], {})
        # iproute2 names them `tx_bytes` and `tx_packets`, and the received ones without a prefix.
        if (value := counted.get(name[3:], counted.get(name))) is not None:
            counts[name] = int(value)
    # Before version 5.3 iproute2 called the address `mac`.
    mac = str(one["address"] if "address" in one else one["mac"])
    return VirtualFunction(int(one["vf"]), mac, settings, counts)

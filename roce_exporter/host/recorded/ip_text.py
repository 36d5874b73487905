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
from typing import TYPE_CHECKING, Any

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.netlink import Malformed
from roce_exporter.host.kernel.rtnetlink import MOST_VFS, VirtualFunction
from roce_exporter.model import ip
from roce_exporter.words import word_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


TABLES = {"local": ip.LOCAL, "main": ip.MAIN, "default": ip.DEFAULT, "unspec": 0}
_NAMES = {number: name for name, number in TABLES.items() if number}

_RESOLVED = {"REACHABLE", "STALE", "DELAY", "PROBE", "PERMANENT"}
_STATES = {ip.FAILED: "FAILED", ip.INCOMPLETE: "INCOMPLETE", ip.RESOLVED: "STALE"}

_BITS = {4: 32, 6: 128}

_SIMPLE = frozenset(
    word_list(
        """
    priority not src srclen dst dstlen iif iif_detached oif oif_detached fwmark fwmask table protocol action
    goto nop suppress_prefixlen to_tbl
    """
    )
)
_ACTIONS = ("goto", "nop", "unreachable", "blackhole", "prohibit")


def parse_addresses(rows: Sequence[Any]) -> dict[str, tuple[ip.IpAddress, ...]]:
    """The addresses of each network device, by its name.

    Raises:
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
    return [
        {"ifname": netdev, "addr_info": [_print_address(one) for one in addresses]}
        for netdev, addresses in found.items()
    ]


def _print_address(one: ip.IpAddress) -> dict[str, Any]:
    family = "inet6" if ":" in one.address else "inet"
    flags = {name: True for name in ("tentative", "failed") if getattr(one, name)}
    if flags.pop("failed", False):
        flags["dadfailed"] = True
    return {"family": family, "local": one.address, "prefixlen": one.length, "scope": one.scope, **flags}


def parse_neighbours(rows: Sequence[Any]) -> dict[str, tuple[ip.IpNeighbour, ...]]:
    """The neighbours of each network device; without those that need no resolution."""
    found: dict[str, list[ip.IpNeighbour]] = {}
    for row in rows:
        states = set(row.get("state", ()))
        word = next((one for one in (ip.FAILED, ip.INCOMPLETE) if one.upper() in states), "")
        word = word or (ip.RESOLVED if states & _RESOLVED else "")
        if word and "NOARP" not in states:
            age = float(row["updated"]) if "updated" in row else None
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
    limits = {name: value for one in row.get("metrics", ()) for name, value in one.items()}
    source = str(row.get("from", ""))
    return ip.IpRoute(
        _table(row.get("table", ip.MAIN)),
        _prefix(str(row["dst"]), version),
        str(row.get("type", "unicast")),
        tuple(_hops(row)),
        int(row.get("metric", 0)),
        int(limits.get("mtu", 0)),
        int(limits.get("advmss", 0)),
        int(str(row.get("tos", 0)), 0),
        _prefix(source, version) if source else "",
    )


def _hops(row: Mapping[str, Any]) -> Iterator[ip.NextHop]:
    for one in row.get("nexthops") or (row,):
        flags = {*one.get("flags", ()), *row.get("flags", ())}
        gateway = one.get("gateway") or one.get("via", {}).get("host", "")
        yield ip.NextHop(_name(one.get("dev", "")), _address(gateway) if gateway else "", "dead" not in flags)


def print_route(one: ip.IpRoute) -> dict[str, Any]:
    """As `ip -j route show table all` prints it."""
    kind = {} if one.kind == "unicast" else {"type": one.kind}
    shown: dict[str, Any] = {**kind, "dst": _short(one.destination)}
    if one.source:
        shown["from"] = _short(one.source)
    if one.tos:
        shown["tos"] = f"{one.tos:#x}"
    hops = [
        ({"gateway": hop.gateway} if hop.gateway else {})
        | {"dev": hop.netdev, "flags": [] if hop.usable else ["dead"]}
        for hop in one.hops
    ]
    shown |= hops[0] if len(hops) == 1 else {"nexthops": hops}
    if one.table != ip.MAIN:
        shown["table"] = _NAMES.get(one.table, str(one.table))
    if one.metric:
        shown["metric"] = one.metric
    if limits := {name: value for name in ("mtu", "advmss") if (value := getattr(one, name))}:
        shown["metrics"] = [limits]
    return shown


def parse_rules(rows: Sequence[Any], version: int) -> tuple[ip.IpRule, ...]:
    """The rules, in the order in which the kernel tries them."""
    return tuple(_parse_rule(row, version) for row in rows)


def _parse_rule(row: Mapping[str, Any], version: int) -> ip.IpRule:
    action = next((one for one in _ACTIONS if one in row), str(row.get("action", "lookup")))
    source, destination = (_prefix_of(row, name, version) for name in ("src", "dst"))
    mark = int(str(row.get("fwmark", 0)), 0)
    mask = int(str(row.get("fwmask", ip.NO_LIMIT if "fwmark" in row else 0)), 0)
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
        mark,
        mask,
        int(str(row.get("goto", 0))) if str(row.get("goto", 0)).isdecimal() else 0,
        int(row.get("suppress_prefixlen", ip.NO_LIMIT)),
        tuple(sorted(row.keys() - _SIMPLE)),
    )


def _prefix_of(row: Mapping[str, Any], name: str, version: int) -> str:
    text = str(row.get(name, "all"))
    length = row.get(f"{name}len")
    return "" if text == "all" else _prefix(text if length is None else f"{text}/{length}", version)


def print_rule(one: ip.IpRule) -> dict[str, Any]:
    """As `ip -j rule show` prints it; a selector that has no field here has no value."""
    shown: dict[str, Any] = {"priority": one.priority}
    if one.inverted:
        shown["not"] = None
    for name, text in (("src", one.source), ("dst", one.destination)):
        if text:
            address, _, length = text.partition("/")
            shown |= (
                {name: address}
                if int(length) == _BITS[one.version]
                else {name: address, f"{name}len": int(length)}
            )
    shown.setdefault("src", "all")
    shown |= {name: text for name, text in (("iif", one.input), ("oif", one.output)) if text}
    if one.mark or one.mask:
        shown |= {"fwmark": hex(one.mark)} | ({} if one.mask == ip.NO_LIMIT else {"fwmask": hex(one.mask)})
    shown |= dict.fromkeys(one.others)
    if one.action == "lookup":
        shown["table"] = _NAMES.get(one.table, str(one.table))
    elif one.action == "goto":
        shown["goto"] = one.target
    elif one.action == "nop":
        shown["nop"] = None
    else:
        shown["action"] = one.action
    return shown | ({} if one.suppress == ip.NO_LIMIT else {"suppress_prefixlen": one.suppress})


def parse_paths(rows: Sequence[Any]) -> dict[tuple[str, str], ip.IpPath]:
    """The recorded replies of `ip -j route get`, by source and destination."""
    return {(_address(row["from"]), _address(row["dst"])): _parse_path(row) for row in rows}


def _parse_path(row: Mapping[str, Any]) -> ip.IpPath:
    if "error" in row:
        return ip.IpPath(failure=str(row["error"]))
    limits = {name: value for one in row.get("metrics", ()) for name, value in one.items()}
    gateway = row.get("gateway") or row.get("via", {}).get("host", "")
    return ip.IpPath(
        _name(row["dev"]),
        _address(gateway) if gateway else "",
        int(limits.get("mtu", 0)),
        row.get("type") == "local",
    )


def print_path(source: str, destination: str, path: ip.IpPath) -> dict[str, Any]:
    """As `ip -j route get` prints it."""
    shown: dict[str, Any] = {"dst": destination, "from": source}
    if path.failure:
        return shown | {"error": path.failure}
    shown |= {"type": "local"} if path.local else {}
    shown |= {"gateway": path.gateway} if path.gateway else {}
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
    """The VFs of a network device. Absent: it has none. Malformed: the text is not the JSON of `ip`."""
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
    settings: dict[str, int] = {}
    if (state := one.get("link_state")) in LINK_STATES:
        settings["link_state"] = LINK_STATES[state]
    for name, key in (("spoof_check", "spoofchk"), ("trusted", "trust")):
        if key in one:
            settings[name] = int(one[key] in (True, "on"))
    vlans = one.get("vlan_list", [one])
    settings["vlan"] = int(vlans[0].get("vlan", 0)) if vlans else 0
    if "rate" in one:
        settings["max_rate"] = int(one["rate"]["max_tx"])
    counts: dict[str, int] = {}
    for name, (direction, key) in COUNTS.items():
        counted = one.get("stats", {}).get(direction, {})
        # iproute2 names them `tx_bytes` and `tx_packets`, and the received ones without a prefix.
        value = counted.get(key, counted.get(f"{direction}_{key}"))
        if value is not None:
            counts[name] = int(value)
    # Before version 5.3 iproute2 called the address `mac`.
    mac = str(one["address"] if "address" in one else one["mac"])
    return VirtualFunction(int(one["vf"]), mac, settings, counts)

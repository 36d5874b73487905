"""Where the list of ports is: a file, `http_sd`, a name of DNS, or a Prometheus that scrapes the hosts and their switches.

/etc/roce-exporter/ports.json                a document of `file_sd`
http://inventory:8080/ports?fabric=a         the same document by HTTP (`http_sd`)
dns:probe.monitoring.svc.cluster.local       all addresses of a name, as of a headless service; no racks, one rail
prometheus+http://prometheus:9090            `roce_gid_info`, with racks from `roce_switch_lldp_neighbor_info`

A document is a list of `{"targets": ["ADDRESS[:PORT]"], "labels": {"rack": …, "rail": …, "host": …}}`. Every host must read the same
list, because each computes the plan of all from it.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from roce_exporter import yaml_document
from roce_exporter.errors import UserError
from roce_exporter.net import NetError
from roce_exporter.net.http import OK, Access, HttpServer, fetch, parse_server
from roce_exporter.net.json_reply import count_values, decode_aside
from roce_exporter.net.prometheus_api import get, labels_of
from roce_exporter.probe.plan import ProbeTarget
from roce_exporter.probe.stamp import DEFAULT_PORT

DNS, PROMETHEUS = "dns:", "prometheus+"
REMOTE = ("http://", "https://", PROMETHEUS)
SECONDS = 30.0

GIDS = 'max by (instance, device, port, address) (roce_gid_info{type="RoCE v2"})'
NETDEVS = "max by (instance, device, port, netdev, mac, hostname) (roce_netdev_info)"
NEIGHBORS = "max by (device, neighbor, neighbor_port, neighbor_mac) (roce_switch_lldp_neighbor_info)"


def is_remote(source: str) -> bool:
    """Whether `read_remote` reads it, and not `read_here`."""
    return source.startswith(REMOTE)


def read_here(source: str) -> tuple[ProbeTarget, ...]:
    """The targets of a file or a name of DNS. It blocks.

    Raises:
        TargetsError: it cannot be read, or is no such list.
    """
    if not source.startswith(DNS):
        return read_file(source)
    name, _, port = source.removeprefix(DNS).partition(":")
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except (OSError, ValueError) as error:
        raise TargetsError(f"{source}: {getattr(error, 'strerror', '') or error}") from None
    addresses = sorted({str(one[4][0]).partition("%")[0] for one in found})
    targets = [f"[{one}]:{port or DEFAULT_PORT}" for one in addresses]
    return read_document(source, json.dumps([{"targets": targets}]).encode())


async def read_remote(source: str, access: Access) -> tuple[ProbeTarget, ...]:
    """The targets of a document of HTTP, or of the hosts of a Prometheus.

    Raises:
        TargetsError: no answer, or one that is no such list. A query is not repeated in it, because it may have a token.
    """
    parts = urlsplit(source.removeprefix(PROMETHEUS))
    is_prometheus = source.startswith(PROMETHEUS)
    name = "--probe.targets"
    try:
        server = parse_server(
            parts._replace(path=parts.path if is_prometheus else "", query="", fragment="").geturl(),
        )
        name = server.text if is_prometheus else server.text + parts.path
        if is_prometheus:
            return await _of_prometheus(server, access)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        reply = await fetch(server, path, access, SECONDS, MOST_BYTES)
    except (NetError, ValueError) as error:
        raise TargetsError(f"{name}: {error}") from None
    if reply.status != OK:
        raise TargetsError(f"{name}: HTTP {reply.status}")
    return await decode_aside(len(reply.body), partial(read_document, name, reply.body))


async def _of_prometheus(server: HttpServer, access: Access) -> tuple[ProbeTarget, ...]:
    """The ports that hosts export; the rail is the device's name, the rack the switch that has the port as a neighbour."""
    gids, netdevs, neighbors = [
        list(_labels(await get(server, access, "query", {"query": one}, SECONDS, MOST_BYTES, MOST_VALUES)))
        for one in (GIDS, NETDEVS, NEIGHBORS)
    ]
    racks = _racks(neighbors)
    places = {}
    for one in netdevs:
        system = one.get("hostname", "").partition(".")[0]
        rack = racks.get((one.get("mac", ""), "")) or racks.get((system, one.get("netdev", "")), "")
        places[_port(one)] = one.get("hostname", ""), rack
    found = set()
    for one in gids:
        try:
            address = ipaddress.ip_address(one.get("address", ""))
        except ValueError:
            continue
        if not (address.is_link_local or address.is_multicast or address.is_unspecified):
            host, rack = places.get(_port(one), ("", ""))
            host = host or one.get("instance", "").rpartition(":")[0]
            found.add(ProbeTarget(rack, host, one.get("device", ""), address, DEFAULT_PORT))
    if not found:
        raise NetError("has no roce_gid_info of a RoCEv2 address; is a roce-exporter scraped?")
    return tuple(sorted(found, key=str))


def _port(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in ("instance", "device", "port"))


def _racks(neighbors: Iterable[Mapping[str, str]]) -> dict[tuple[str, str], str]:
    """The switch by MAC, and by system name and port name; what two switches claim names none."""
    found: dict[tuple[str, str], set[str]] = {}
    for one in neighbors:
        system = one.get("neighbor", "").partition(".")[0]
        for key in ((one.get("neighbor_mac", ""), ""), (system, one.get("neighbor_port", ""))):
            if key[0]:
                found.setdefault(key, set()).add(one.get("device", ""))
    return {key: min(switches) for key, switches in found.items() if len(switches) == 1}


def _labels(data: object) -> Iterable[dict[str, str]]:
    try:
        if not isinstance(data, dict) or data["resultType"] != "vector":
            raise NetError("the answer is not a vector")
        return [labels_of(one["metric"]) for one in data["result"]]
    except (KeyError, TypeError, ValueError):
        raise NetError("the answer is not a valid vector") from None


MOST_BYTES = 16 << 20  # a list of 100,000 ports has 10 MB
MOST_VALUES = 1_000_000  # ten of each port
MOST_TARGETS = 200_000
LONGEST_LABEL = 253
ROCE_PORT = 4791
LARGEST_PORT = 65535

ADDRESS = re.compile(
    r"\[(?P<six>[^\]]{1,64})\](?::(?P<six_port>[0-9]{1,5}))?|(?P<four>[0-9.]{7,15})(?::(?P<port>[0-9]{1,5}))?"
)


class TargetsError(UserError):
    """A list of targets cannot be used; one line that names the list and the place."""


def read_file(path: str) -> tuple[ProbeTarget, ...]:
    """The targets of a file, which is JSON, or YAML if its name ends in .yml or .yaml.

    Raises:
        TargetsError: the file cannot be read, or is no such list.
    """
    place = Path(path)
    content = yaml_document.read_file(place, MOST_BYTES)
    if isinstance(content, OSError | ValueError):
        problem = getattr(content, "strerror", None) or content
        raise TargetsError(f"{path}: {problem}; check --probe.targets")
    return read_document(path, content, is_yaml=place.suffix in (".yml", ".yaml"))


def read_document(name: str, content: bytes, *, is_yaml: bool = False) -> tuple[ProbeTarget, ...]:
    """The targets of a document, in the order of the ring; `name` is for messages.

    Raises:
        TargetsError: it is too long, no JSON or YAML, or no such list.
    """
    if len(content) > MOST_BYTES:
        raise TargetsError(
            f"{name}: has more than {MOST_BYTES >> 20} MiB; split the fabric into several lists"
        )
    if not is_yaml and count_values(content) > MOST_VALUES:
        raise TargetsError(
            f"{name}: has more than {MOST_VALUES:,} values; split the fabric into several lists"
        )
    try:
        document: Any = yaml.safe_load(content) if is_yaml else json.loads(content)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise TargetsError(
            f"{name}: is no {'YAML' if is_yaml else 'JSON'}: {' '.join(str(error).split())[:200]}"
        ) from None
    if not isinstance(document, list):
        raise TargetsError(
            f"{name}: must be a list of groups with `targets` and `labels`, as for Prometheus' file_sd"
        )
    found = dict.fromkeys(
        one for number, group in enumerate(document) for one in _group(f"{name}: group {number}", group)
    )
    if len(found) > MOST_TARGETS:
        raise TargetsError(f"{name}: has more than {MOST_TARGETS} targets")
    return tuple(found)


def _group(place: str, group: object) -> Iterator[ProbeTarget]:
    if not isinstance(group, dict):
        raise TargetsError(f"{place}: must have `targets` and may have `labels`")
    targets, labels = group.get("targets", []), group.get("labels") or {}
    if not isinstance(targets, list) or not isinstance(labels, dict):
        raise TargetsError(f"{place}: `targets` must be a list and `labels` a mapping")
    rack, host, rail = (_label(place, labels, name) for name in ("rack", "host", "rail"))
    for text in targets:
        address, port = _address(place, text)
        yield ProbeTarget(rack, host, rail, address, port)


def _label(place: str, labels: dict[object, object], name: str) -> str:
    value = labels.get(name, "")
    if isinstance(value, int | float) and abs(value) < 1 << 64:
        value = str(value)
    if not isinstance(value, str) or len(value) > LONGEST_LABEL or not value.isprintable():
        raise TargetsError(
            f"{place}: label {name} must be a printable text of at most {LONGEST_LABEL} characters"
        )
    return value


def _address(place: str, text: object) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    match = ADDRESS.fullmatch(text) if isinstance(text, str) else None
    host = (match["six"] or match["four"]) if match else text if isinstance(text, str) else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise TargetsError(
            f"{place}: {str(text)[:80]!r} is no address of the form 10.0.0.1, 10.0.0.1:PORT or [2001:db8::1]:PORT"
        ) from None
    port = int((match["six_port"] or match["port"] or DEFAULT_PORT) if match else DEFAULT_PORT)
    if not 0 < port <= LARGEST_PORT or port == ROCE_PORT:
        raise TargetsError(f"{place}: {text}: port {port} cannot be used; {ROCE_PORT} is RoCE's own")
    if address.is_multicast or address.is_unspecified:
        raise TargetsError(f"{place}: {text}: is not the address of a port")
    return address, port


def without_own(targets: Iterable[ProbeTarget], own: Iterable[ProbeTarget]) -> tuple[ProbeTarget, ...]:
    """The targets of other hosts."""
    addresses = {one.address for one in own}
    return tuple(one for one in targets if one.address not in addresses)

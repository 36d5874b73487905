"""Where the list of ports is: a file, `http_sd`, a name of DNS, or a Prometheus that scrapes the hosts and their switches.

/etc/roce-exporter/ports.json                a document of `file_sd`
http://inventory:8080/ports?fabric=a         the same document by HTTP (`http_sd`)
dns:probe.monitoring.svc.cluster.local       all addresses of a name, as of a headless service; no racks, one rail
prometheus+http://prometheus:9090            `roce_gid_info`, with racks from `roce_switch_lldp_neighbor_info`
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from roce_exporter.net import NetError
from roce_exporter.net.http import OK, HttpClient, HttpLimits, parse_server
from roce_exporter.net.login import authorization
from roce_exporter.net.prometheus_api import LOGIN_REMEDY, get
from roce_exporter.probe.plan import ProbeTarget
from roce_exporter.probe.stamp import DEFAULT_PORT
from roce_exporter.probe.target_list import MOST_BYTES, TargetsError, read_document, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roce_exporter.net.http import HttpServer
    from roce_exporter.net.prometheus_api import Access

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
            LOGIN_REMEDY,
        )
        name = server.text if is_prometheus else server.text + parts.path
        if is_prometheus:
            return await _of_prometheus(server, access)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        limits = HttpLimits(connect=SECONDS, body_bytes=MOST_BYTES)
        async with asyncio.timeout(SECONDS), HttpClient(server, access.tls, limits) as client:
            reply = await client.request("GET", path, authorization(access.login))
    except (NetError, ValueError) as error:
        raise TargetsError(f"{name}: {error}") from None
    except TimeoutError:
        raise TargetsError(f"{name}: no answer in {SECONDS:g} s") from None
    if reply.status != OK:
        raise TargetsError(f"{name}: HTTP {reply.status}")
    return read_document(name, reply.body)


async def _of_prometheus(server: HttpServer, access: Access) -> tuple[ProbeTarget, ...]:
    """The ports that hosts export; the rail is the device's name, the rack the switch that has the port as a neighbour."""
    gids, netdevs, neighbors = [
        list(_labels(await get(server, access, "query", {"query": one}, SECONDS)))
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
        return [dict(one["metric"]) for one in data["result"]]
    except (KeyError, TypeError, ValueError):
        raise NetError("the answer is not a valid vector") from None

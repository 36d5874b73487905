"""Which address of a switch is connected to: resolved and checked here, so that nothing else resolves a name.

A name of the configuration file may not lead to this host or to link-local addresses unless the file says so, and a
target of service discovery must be in one of the listed networks. A name whose address changes between the check and the
connection (DNS rebinding) has no effect: clients connect to the address that was checked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Sequence
from functools import partial
from itertools import product

from roce_exporter.collect.workers import InFlight, call_in_worker
from roce_exporter.net import NetError
from roce_exporter.net.http import place_text
from roce_exporter.net.tls import connection_fault
from roce_exporter.switches.targets import Discovery, Network, Route, SwitchTarget

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
UNIX = "unix"
LOOKUP_SECONDS = 60.0
"""After this time the lookup of a name is given up; a probe waits less."""
MOST_ADDRESSES = 4
NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*\.?", re.IGNORECASE)
"""What `inet_aton` takes for an address."""
LOCAL_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost")


async def find_routes(
    target: SwitchTarget, allowed: Sequence[Network] | None, lookups: InFlight[str]
) -> tuple[Route, ...]:
    """The addresses to connect to, in the resolver's order. `allowed` are the networks for a target of service discovery; None: any network.

    `lookups` are those of this target: while one is stuck no other begins.

    Raises:
        NetError: the name does not resolve, or none of its addresses may be connected to.
        TimeoutError: the lookup is stuck.
    """
    if target.scheme == UNIX:
        return (Route(target.host),)
    addresses = await _resolve(target.host, lookups)
    name = target.tls.server_name or target.host
    usable = [address for address in addresses if is_allowed(address, target.host, allowed)]
    if usable:
        return tuple(Route(str(address), name) for address in usable[:MOST_ADDRESSES])
    raise NetError(
        f"{target.host}: {addresses[0]} is not an allowed address; "
        + ("write the address itself into the target" if allowed is None else "see discovery.allow")
    )


def is_allowed(address: Address, host: str, allowed: Sequence[Network] | None) -> bool:
    """Whether `address`, found for `host`, may be connected to.

    Loopback, link-local, multicast and unspecified addresses must be named: written as the host itself, or by a listed
    network that consists of such addresses only.
    """
    if allowed is not None:
        networks = [network for network in allowed if address in network]
        return any(not _is_special(address) or _is_special(network) for network in networks)
    return not _is_special(address) or host in LOCAL_NAMES or _literal(host) is not None


def discovery_of(host: str, entries: Sequence[Discovery]) -> Discovery | None:
    """The settings of a target of service discovery: the first ones that allow its address, else the first of all, whose networks refuse it.

    None for a name if there are several: credentials are not chosen by what a name resolves to.
    """
    address = _literal(host)
    if address is None:
        return entries[0] if len(entries) == 1 else None
    return next((one for one in entries if is_allowed(address, host, one.networks)), entries[0])


def _is_special(place: Address | Network) -> bool:
    """Whether an address, or all addresses of a network, are of this host or this link only."""
    place = getattr(place, "ipv4_mapped", None) or place
    return place.is_loopback or place.is_link_local or place.is_multicast or place.is_unspecified


async def _resolve(host: str, lookups: InFlight[str]) -> list[Address]:
    if (literal := _literal(host)) is not None:
        return [literal]
    lookup = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
    try:
        found = await call_in_worker(lookups, host, lookup, LOOKUP_SECONDS)
    except TimeoutError:
        raise
    except RuntimeError as error:
        raise NetError(f"{host}: cannot be resolved: {error}") from None
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a valid host name"
        raise NetError(f"{host}: cannot be resolved: {reason}") from None
    return list(dict.fromkeys(ipaddress.ip_address(str(where[0]).partition("%")[0]) for *_, where in found))


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_odd_address(name: str) -> bool:
    """Whether a name is an address in another form than the usual one: `127.1`, `0x7f.1`, `2130706433`."""
    literal = _literal(name)
    return str(literal) != name if literal else NUMBERS.fullmatch(name) is not None


async def dial(target: SwitchTarget, routes: Sequence[Route]) -> Route:
    """The first address that accepts a connection, of a switch that did not answer last time and has no place yet.

    Raises:
        NetError: none accepts a connection, in the `connect_timeout` of the target for all.
    """
    if target.scheme == UNIX:
        return routes[0]
    ports = [target.ports[target.scheme]]
    if target.scheme.startswith("grpc") and "https" in target.ports:
        ports.append(target.ports["https"])  # EOS: one of its two protocols is enough
    faults = []
    seconds = target.connect_timeout / (len(routes) * len(ports))
    for route, port in product(routes, ports):
        place = place_text(route.address, port)
        try:
            async with asyncio.timeout(seconds):
                _, writer = await asyncio.open_connection(route.address, port)
        except TimeoutError:
            faults.append(f"{place}: no connection within {seconds:g} s")
        except OSError as error:
            faults.append(connection_fault(error, place))
        else:
            writer.transport.abort()
            return route
    raise NetError("; ".join(faults))

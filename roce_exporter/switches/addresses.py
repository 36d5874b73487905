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
from functools import partial
from typing import TYPE_CHECKING

from roce_exporter.collect.workers import InFlight, call_in_worker
from roce_exporter.net import NetError
from roce_exporter.net.http import place_text
from roce_exporter.net.tls import connection_fault
from roce_exporter.switches.targets import Route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_exporter.switches.targets import Network, SwitchTarget

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
UNIX = "unix"
LOOKUP_SECONDS = 60.0
"""After this time the lookup of a name is given up; a probe waits less."""
DIAL_SECONDS = 2.5
NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+))*\.?", re.IGNORECASE)
"""What `inet_aton` takes for an address."""
LOCAL_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost")


async def find_route(
    target: SwitchTarget, allowed: Sequence[Network] | None, lookups: InFlight[str]
) -> Route:
    """The address to connect to. `allowed` are the networks for a target of service discovery; None: any network.

    `lookups` are those of this target: while one is stuck no other begins.

    Raises:
        NetError: the name does not resolve, or none of its addresses may be connected to.
        TimeoutError: the lookup is stuck.
    """
    if target.scheme == UNIX:
        return Route(target.host)
    addresses = await _resolve(target.host, lookups)
    for address in addresses:
        if is_allowed(address, target.host, allowed):
            return Route(str(address), target.tls.server_name or target.host)
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


def _is_special(place: Address | Network) -> bool:
    """Whether an address, or all addresses of a network, are of this host or this link only."""
    mapped = getattr(place, "ipv4_mapped", None)
    place = mapped or place
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
    addresses = [ipaddress.ip_address(str(where[0]).partition("%")[0]) for *_, where in found]
    if not addresses:
        raise NetError(f"{host}: cannot be resolved: it has no address")
    return list(dict.fromkeys(addresses))


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_odd_address(name: str) -> bool:
    """Whether a name is an address in another form than the usual one: `127.1`, `0x7f.1`, `2130706433`."""
    literal = _literal(name)
    return str(literal) != name if literal else NUMBERS.fullmatch(name) is not None


async def dial(target: SwitchTarget, route: Route) -> None:
    """Connect once to a switch that did not answer last time, without a place among those that are queried.

    Raises:
        NetError: nothing accepts the connection within DIAL_SECONDS.
    """
    if target.scheme == UNIX:
        return
    port = target.ports[target.scheme]
    try:
        async with asyncio.timeout(DIAL_SECONDS):
            _, writer = await asyncio.open_connection(route.address, port)
        writer.transport.abort()
    except TimeoutError:
        raise NetError(
            f"{place_text(route.address, port)}: no connection within {DIAL_SECONDS:g} s"
        ) from None
    except OSError as error:
        raise NetError(connection_fault(error, place_text(route.address, port))) from None

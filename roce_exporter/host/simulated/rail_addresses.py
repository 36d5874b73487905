"""Addresses and routes of the simulated host: each rail has a subnet, a gateway, and a table of its own, as it should be.

The files are those of `recorded.ip_text`. Subnets are from 192.0.2.0/24 (RFC 5737).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.recorded.ip_text import (
    print_addresses,
    print_json,
    print_neighbours,
    print_route,
    print_rule,
)
from roce_exporter.host.recorded.recorded_ip import ADDRESSES, NEIGHBOURS, ROUTES, RULES
from roce_exporter.model.ip import (
    DEFAULT,
    EVERYWHERE,
    LOCAL,
    MAIN,
    RESOLVED,
    IpAddress,
    IpNeighbour,
    IpRoute,
    IpRule,
    NextHop,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roce_exporter.host.simulated.world import Card

V4 = 4
LENGTH = 30
FIRST_TABLE = 101

SYSCTLS = {"rp_filter": 2, "arp_ignore": 1, "arp_announce": 2, "arp_filter": 0}


def address_of(number: int) -> str:
    """The IPv4 address of the rail of card `number`, the second of its four."""
    return f"192.0.2.{4 * number + 1}"


def ip_files(cards: Sequence[Card]) -> dict[str, str]:
    """The files of a recording, by path."""
    netdevs = {card.netdev: number for number, card in enumerate(cards)}
    addresses = {
        netdev: (IpAddress(address_of(number), LENGTH, "global"),) for netdev, number in netdevs.items()
    }
    neighbours = [
        row
        for netdev, number in netdevs.items()
        for row in print_neighbours(netdev, [IpNeighbour(_gateway(number), RESOLVED, 5)])
    ]
    routes = [route for netdev, number in netdevs.items() for route in _routes(netdev, number)]
    return {
        ADDRESSES: print_json(print_addresses(addresses)),
        NEIGHBOURS: print_json(neighbours),
        ROUTES[V4]: print_json([print_route(route) for route in routes]),
        RULES[V4]: print_json([print_rule(rule) for rule in _rules(len(cards))]),
        **{
            f"proc/sys/net/ipv4/conf/{folder}/{name}": f"{value if folder != 'all' else 0}\n"
            for folder in ("all", *netdevs)
            for name, value in SYSCTLS.items()
        },
    }


def _gateway(number: int) -> str:
    return f"192.0.2.{4 * number + 2}"


def _routes(netdev: str, number: int) -> tuple[IpRoute, ...]:
    table, subnet = FIRST_TABLE + number, f"192.0.2.{4 * number}/{LENGTH}"
    return (
        IpRoute(MAIN, subnet, hops=(NextHop(netdev),)),
        IpRoute(table, subnet, hops=(NextHop(netdev),)),
        IpRoute(table, EVERYWHERE[V4], hops=(NextHop(netdev, _gateway(number)),)),
        IpRoute(LOCAL, f"{address_of(number)}/32", "local", (NextHop(netdev),)),
    )


def _rules(rails: int) -> tuple[IpRule, ...]:
    own = (
        IpRule(FIRST_TABLE + number, V4, FIRST_TABLE + number, source=f"{address_of(number)}/32")
        for number in range(rails)
    )
    return (
        IpRule(0, V4, LOCAL),
        *own,
        IpRule(32766, V4, MAIN),
        IpRule(32767, V4, DEFAULT),
    )

"""The constant part of the simulated host, as a recording: sysfs, the lists of RDMA netlink, addresses, settings, names.

Host number N, by default the seed, is named gpu-N with at least three digits. The MAC address of its network device ethM is
02:H:H:H:M:M, with the low 24 bits of N and the number M in hexadecimal, so that hosts of a simulated fabric differ.

Each rail has a subnet of 192.0.2.0/24 (RFC 5737), a gateway, and a table of its own, as it should be. The files are in `drivers.txt`.

Files with changing values are included, but empty, so that they are listed: `simulated.kernel` supplies their content.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import dcb_netlink
from roce_exporter.host.recorded.archive import FIRST, LAST, read_text
from roce_exporter.host.recorded.recorded import Moment
from roce_exporter.host.recorded.recorded_ip import RecordedIp
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.host.simulated.conditions import PRIORITIES, RECEIVE, TRANSMIT, Setup
from roce_exporter.host.simulated.drivers import FILES
from roce_exporter.host.simulated.jobs import (
    FUNCTIONS,
    MLX5_CORE,
    ethernet_instance,
    object_counts,
    physical_function,
)
from roce_exporter.model import ip

if TYPE_CHECKING:
    from roce_exporter.host.recorded.rdma_text import Rows
    from roce_exporter.host.simulated.world import Card, SimulatedNetdev

V4 = 4
LENGTH = 30
FIRST_TABLE = 101


def address_of(number: int) -> str:
    """The IPv4 address of the rail of card `number`, the second of its four."""
    return f"192.0.2.{4 * number + 1}"


def ip_side(cards: Sequence[Card]) -> RecordedIp:
    """The addresses, neighbours, routes and rules of all rails."""
    netdevs = {card.netdev: number for number, card in enumerate(cards)}
    own = (
        ip.IpRule(FIRST_TABLE + number, V4, FIRST_TABLE + number, source=f"{address_of(number)}/32")
        for number in range(len(cards))
    )
    rules = (
        ip.IpRule(0, V4, ip.LOCAL),
        *own,
        ip.IpRule(32766, V4, ip.MAIN),
        ip.IpRule(32767, V4, ip.DEFAULT),
    )
    return RecordedIp(
        {name: (ip.IpAddress(address_of(number), LENGTH, "global"),) for name, number in netdevs.items()},
        {name: (ip.IpNeighbour(_gateway(number), ip.RESOLVED, 5.0),) for name, number in netdevs.items()},
        {V4: tuple(route for netdev, number in netdevs.items() for route in _routes(netdev, number))},
        {V4: rules},
    )


def _gateway(number: int) -> str:
    return f"192.0.2.{4 * number + 2}"


def _routes(netdev: str, number: int) -> tuple[ip.IpRoute, ...]:
    table, subnet = FIRST_TABLE + number, f"192.0.2.{4 * number}/{LENGTH}"
    return (
        ip.IpRoute(ip.MAIN, subnet, hops=(ip.NextHop(netdev),)),
        ip.IpRoute(table, subnet, hops=(ip.NextHop(netdev),)),
        ip.IpRoute(table, ip.EVERYWHERE[V4], hops=(ip.NextHop(netdev, _gateway(number)),)),
        ip.IpRoute(ip.LOCAL, f"{address_of(number)}/32", "local", (ip.NextHop(netdev),)),
    )


VERSIONS = {1: "IB/RoCE v1", 2: "RoCE v2"}
CABLE_METRES = 7
BUFFERS = (20_480, 163_840, 0, 0, 0, 0, 0, 0)
OPTIONAL = ["cc_rx_ce_pkts", "cc_rx_cnp_pkts", "cc_tx_cnp_pkts"]
"""Optional counters of mlx5, all switched off."""


def record(cards: Sequence[Card], moving: Sequence[str], host: int = 1) -> Moment:
    """Host number `host` as a recording; `moving` are the files below /sys with changing values."""
    parts = [FILES["host"].format(hostname=hostname_of(host))]
    for number, card in enumerate(cards):
        parts += _card(card, number, host)
    place = physical_function(cards)
    for function in range(0 if place is None else len(FUNCTIONS)):
        link = f"sys/class/net/{cards[place or 0].netdev}/device/virtfn{function}"
        parts.append(f"{link} -> ../../../../devices/pci0000:10/{slot_of(place or 0)[:-1]}{function + 1}")
    parts += [f"sys/{path} =" for path in moving]
    lines = [line for part in parts for line in part.splitlines() if line]
    text = "\n".join((FIRST, *lines, LAST, ""))
    return Moment(read_text(BytesIO(text.encode()), lambda _: Tree()), _rdma(cards), ip=ip_side(cards))


def _card(card: Card, number: int, host: int) -> Iterator[str]:
    """The files of a card and of its members."""
    module, octets = card.driver.module, ipaddress.IPv4Address(address_of(number)).packed.hex()
    values: dict[str, object] = {
        "card": card.name,
        "netdev": card.netdev,
        "slot": slot_of(number),
        "guid": _guid(number),
        "module": module,
        "firmware": card.driver.firmware,
        "model": card.driver.model,
        "board": card.driver.board,
        "ethernet": ethernet_instance(number),
        "octets": f"{octets[:4]}:{octets[4:]}",
        "slaves": " ".join(one.netdev for one in card.members),
        **_settings(card.members[0].setup),
    }
    own = (FILES["card"], card.driver.card_files, FILES["lag_card"] if card.bond else "")
    yield from (files.format_map(values) for files in own)
    for member in card.members:
        values |= {"member": member.netdev, "mac": mac_of(host, member.netdev), **_settings(member.setup)}
        own = (FILES["member"], card.driver.member_files, FILES["lag_member"] if card.bond else "")
        yield from (files.format_map(values) for files in own)
        for priority in PRIORITIES if module == MLX5_CORE else ():
            for folder, on in (("roce_np", member.setup.notifies), ("roce_rp", member.setup.reacts)):
                path = f"sys/class/net/{member.netdev}/ecn/{folder}/enable/{priority}"
                yield f"{path}: {int(on and priority == member.setup.priority)}"


def _settings(setup: Setup) -> dict[str, object]:
    """The values of the template that are the port's setup."""
    return {
        "tos": setup.tos,
        "dscp": setup.tos >> 2,
        "ecn": setup.tos & 3,
        "roce_version": VERSIONS[setup.roce_version],
        "enable_cc": int(setup.notifies and setup.reacts),
        "cnp_dscp": setup.cnp_dscp,
        "cnp_priority": setup.cnp_priority,
        "watchdog": setup.watchdog,
    }


def hostname_of(host: int) -> str:
    """The name of simulated host number `host`."""
    return f"gpu-{host:03}"


def mac_of(host: int, netdev: str) -> str:
    """The MAC address of a network device of simulated host number `host`: locally administered, unicast."""
    octets = bytes((2,)) + (host % 2**24).to_bytes(3) + int(netdev.removeprefix("eth")).to_bytes(2)
    return octets.hex(":")


def function_macs(host: int, netdev: str) -> tuple[str, ...]:
    """The MAC addresses of the VFs of a network device."""
    number = int(netdev.removeprefix("eth"))
    return tuple(mac_of(host, f"eth{256 * (one + 1) + number}") for one in range(len(FUNCTIONS)))


def dcb(member: SimulatedNetdev, enabled: tuple[int, ...], facts: Mapping[str, float]) -> dcb_netlink.Dcb:
    """The DCB settings of a network device while these priorities have PFC."""
    setup, driver = member.setup, member.driver
    frames = {
        name: tuple(
            int(facts.get(f"{direction}_{driver.dcb_frames}_{priority}", 0)) for priority in PRIORITIES
        )
        for name, direction in (("requests", TRANSMIT), ("indications", RECEIVE))
    }
    enabled_flags = tuple(priority in enabled for priority in PRIORITIES)
    delay = 0 if driver.reports_trust else CABLE_METRES
    found = {
        "pfc": {"pfc_cap": 8, "macsec_bypass": False, "delay": delay, "prio_pfc": enabled_flags, **frames},
        "ets": _ETS,
        "app": {"dscp_prio": setup.dscp},
        "dcbx": {"host": True, "ieee": True},
    }
    if driver.reports_trust:
        trusted = dcb_netlink.SELECTOR_DSCP if setup.trust_dscp else dcb_netlink.SELECTOR_PCP
        return found | {"trust": (trusted,)}
    of_priority = tuple(int(priority in setup.lossless) for priority in PRIORITIES)
    return found | {
        "buffer": {"prio_buffer": of_priority, "buffer_size": BUFFERS, "total_size": sum(BUFFERS)}
    }


_ETS = {
    "willing": False,
    "ets_cap": len(PRIORITIES),
    "cbs": False,
    "tc_bw": (50, 0, 0, 50, 0, 0, 0, 0),
    "pg_bw": (0,) * 8,
    "tc_tsa": ("ets", "strict", "strict", "ets", *["strict"] * 4),
    "prio_tc": tuple(PRIORITIES),
}


def slot_of(number: int) -> str:
    """The PCI address of the card at this position."""
    return f"0000:{0x11 + number:02x}:00.0"


def _guid(number: int) -> str:
    return f"0200:00ff:fe00:{number:04x}"


def _rdma(cards: Sequence[Card]) -> dict[str, Rows]:
    return {
        "dev": tuple(
            {"ifindex": number, "ifname": card.name, "protocol": "roce", "fw": card.driver.firmware}
            | {"node_guid": _guid(number)}
            for number, card in enumerate(cards)
        ),
        "link": tuple({"ifname": card.name, "port": 1, "netdev": card.netdev} for card in cards),
        "mode_supported": tuple(
            {"ifname": card.name, "port": 1, "supported optional-counters": OPTIONAL}
            for card in cards
            if card.driver.module == MLX5_CORE
        ),
        "resource": tuple(
            {"ifname": card.name, **object_counts(position, len(cards))}
            for position, card in enumerate(cards)
        ),
    }

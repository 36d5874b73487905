"""The constant part of the simulated host, as a recording: sysfs, the lists of RDMA netlink, addresses, settings, names.

Host number N, by default the seed, is named gpu-N with at least three digits. The MAC address of its network device ethM is
02:H:H:H:M:M, with the low 24 bits of N and the number M in hexadecimal, so that hosts of a simulated fabric differ.

Each rail has a subnet of 192.0.2.0/24 (RFC 5737), a gateway, and a table of its own, as it should be. Settings are in the files of
`sources.configuration`: mlx5 as in MLNX_OFED, bnxt as in debugfs for root, ionic as in AMD's own driver; ice has none. Values
that are not in `Setup` are the drivers' defaults.

Files with changing values are included, but empty, so that they are listed: `simulated.kernel` supplies their content.
"""

from __future__ import annotations

import ipaddress
from io import BytesIO
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import dcb_netlink
from roce_exporter.host.recorded.archive import FIRST, LAST, read_text
from roce_exporter.host.recorded.recorded import Moment
from roce_exporter.host.recorded.recorded_ip import RecordedIp
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.host.simulated.conditions import PRIORITIES, RECEIVE, TRANSMIT
from roce_exporter.host.simulated.jobs import (
    FUNCTIONS,
    MLX5_CORE,
    ethernet_instance,
    object_counts,
    physical_function,
)
from roce_exporter.model import ip
from roce_exporter.words import word_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.host.recorded.rdma_text import Rows
    from roce_exporter.host.simulated.world import Card, SimulatedNetdev

V4 = 4
LENGTH = 30
FIRST_TABLE = 101
SYSCTLS = {"rp_filter": 2, "arp_ignore": 1, "arp_announce": 2, "arp_filter": 0}


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


MICROSECONDS = 1_000_000
VERSIONS = {1: "IB/RoCE v1", 2: "RoCE v2"}

REACTION = word_map(
    """
    clamp_tgt_rate=0 clamp_tgt_rate_after_time_inc=1 dce_tcp_g=1019 dce_tcp_rtt=1 initial_alpha_value=1023
    rate_reduce_monitor_period=4 rate_to_set_on_first_cnp=0 rpg_ai_rate=5 rpg_byte_reset=32767 rpg_gd=11
    rpg_hai_rate=50 rpg_max_rate=0 rpg_min_dec_fac=50 rpg_min_rate=1 rpg_threshold=1 rpg_time_reset=300
    """
)
"""The reaction point of ConnectX, in the units of MLNX_OFED."""

BNXT = word_map(
    """
    cc_mode=1 inactivity_cp=10000 init_cr=200 init_tr=200 num_phase_per_state=5 rtt=40 run_avg_weight_g=8
    tcp_cp=0
    """
)
"""cc_config of Thor2."""

IONIC_REACTION = word_map(
    """
    ai_rate=1 byte_reset=431068 dce_tcp_g=4 gd=1 hai_rate=200 initial_alpha_value=64 min_dec_fac=50
    min_rate=1 rate_reduce_monitor_period=1 rate_to_set_on_first_cnp=85 threshold=5 time_reset=5
    token_bucket_size=800000
    """
)
"""The default profile of Pollara's driver."""


def _settings(card: Card, slot: str) -> Iterator[str]:
    """The files with the settings of a card; `slot` is its PCI address."""
    setup, rdma = card.members[0].setup, f"sys/class/infiniband/{card.name}"
    yield f"sys/kernel/config/rdma_cm/{card.name}/ports/1/default_roce_tos: {setup.tos}"
    yield f"sys/kernel/config/rdma_cm/{card.name}/ports/1/default_roce_mode: {VERSIONS[setup.roce_version]}"
    if card.driver.module == MLX5_CORE:
        yield f"{rdma}/tc/1/traffic_class: Global tclass={setup.tos}"
        for member in card.members:
            yield from _mlx5(member)
    if card.driver.module == "bnxt_en":
        on = int(setup.notifies and setup.reacts)
        own = (
            f"enable_cc={on} tos_dscp={setup.tos >> 2} tos_ecn={setup.tos & 3} alt_tos_dscp={setup.cnp_dscp}"
        )
        own += f" alt_vlan_pcp={setup.cnp_priority}"
        yield from _lines(f"sys/kernel/debug/bnxt_re/{slot}/cc_config", BNXT | word_map(own))
    if card.driver.module == "ionic":
        profile = f"{rdma}/dcqcn/profiles/1"
        yield f"{rdma}/dcqcn/match_default: 1"
        yield f"{profile}/roce_np/cnp_dscp: {setup.cnp_dscp}"
        yield f"{profile}/roce_np/icnp_802p_prio: {setup.cnp_priority}"
        yield from _lines(f"{profile}/roce_rp", IONIC_REACTION)


def _lines(folder: str, files: Mapping[str, object]) -> Iterator[str]:
    return (f"{folder}/{name}: {value}" for name, value in files.items())


def _mlx5(member: SimulatedNetdev) -> Iterator[str]:
    setup, folder = member.setup, f"sys/class/net/{member.netdev}/ecn"
    yield f"{folder}/roce_np/cnp_802p_prio: {setup.cnp_priority}"
    yield f"{folder}/roce_np/cnp_dscp: {setup.cnp_dscp}"
    yield f"{folder}/roce_np/min_time_between_cnps: 4"
    yield from _lines(f"{folder}/roce_rp", REACTION)
    for priority in PRIORITIES:
        is_roce = priority == setup.priority
        yield f"{folder}/roce_np/enable/{priority}: {int(setup.notifies and is_roce)}"
        yield f"{folder}/roce_rp/enable/{priority}: {int(setup.reacts and is_roce)}"


MTU = 4200
AER = {"correctable": "COR", "nonfatal": "NONFATAL", "fatal": "FATAL"}
CABLE_METRES = 7
BUFFERS = (20_480, 163_840, 0, 0, 0, 0, 0, 0)
OPTIONAL = ["cc_rx_ce_pkts", "cc_rx_cnp_pkts", "cc_tx_cnp_pkts"]
"""Optional counters of mlx5, all switched off."""


def record(cards: Sequence[Card], moving: Sequence[str], host: int = 1) -> Moment:
    """Host number `host` as a recording; `moving` are the files below /sys with changing values."""
    lines = [f"proc/sys/kernel/hostname: {hostname_of(host)}", "proc/sys/net/ipv4/tcp_ecn: 2"]
    for number, card in enumerate(cards):
        lines += [*_device(card, number), *_settings(card, slot_of(number)), *_netdevs(card, host)]
        lines += _lines(f"proc/sys/net/ipv4/conf/{card.netdev}", SYSCTLS)
    lines += _lines("proc/sys/net/ipv4/conf/all", dict.fromkeys(SYSCTLS, 0))
    place = physical_function(cards)
    for function in range(0 if place is None else len(FUNCTIONS)):
        link = f"sys/class/net/{cards[place or 0].netdev}/device/virtfn{function}"
        lines.append(f"{link} -> ../../../../devices/pci0000:10/{slot_of(place or 0)[:-1]}{function + 1}")
    lines += [f"sys/{path} =" for path in moving]
    text = "\n".join((FIRST, *lines, LAST, ""))
    return Moment(read_text(BytesIO(text.encode()), lambda _: Tree()), _rdma(cards), ip=ip_side(cards))


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


def _device(card: Card, number: int) -> Iterator[str]:
    """The RDMA device and its PCI function. Its GIDs are link-local and IPv4, each as RoCE v1 and v2; odd slots are version 2."""
    rdma, slot, driver = (
        f"sys/class/infiniband/{card.name}",
        f"devices/pci0000:10/{slot_of(number)}",
        card.driver,
    )
    yield from _lines(rdma, {"fw_ver": driver.firmware, "hca_type": driver.model, "node_guid": _guid(number)})
    if driver.board:
        yield f"{rdma}/board_id: {driver.board}"
    yield f"{rdma}/node_type: 1: CA"
    yield f"{rdma}/ports/1/link_layer: Ethernet"
    yield f"{rdma}/ports/1/hw_counters/lifespan: 10"
    yield f"{rdma}/device -> ../../../{slot}"
    octets = ipaddress.IPv4Address(address_of(number)).packed.hex()
    mapped = f"0000:0000:0000:0000:0000:ffff:{octets[:4]}:{octets[4:]}"
    for index, address in enumerate((f"fe80:0000:0000:0000:{_guid(number)}", mapped)):
        for version, kind in enumerate(VERSIONS.values()):
            port, gid = f"{rdma}/ports/1", 2 * index + version
            yield f"{port}/gids/{gid}: {address}"
            yield f"{port}/gid_attrs/types/{gid}: {kind}"
            yield f"{port}/gid_attrs/ndevs/{gid}: {card.netdev}"
    for when in ("current", "max"):
        yield f"sys/{slot}/{when}_link_speed: 32.0 GT/s PCIe"
        yield f"sys/{slot}/{when}_link_width: 16"
    yield f"sys/{slot}/sriov_totalvfs: 16"
    for kind, total in AER.items():
        yield f"sys/{slot}/aer_dev_{kind}: TOTAL_ERR_{total} 0"
    yield f"sys/{slot}/driver -> ../../../bus/pci/drivers/{driver.module}"
    if driver.module == MLX5_CORE:
        yield f"sys/{slot}/{ethernet_instance(number)}/subsystem -> ../../../../bus/auxiliary"


def _netdevs(card: Card, host: int) -> Iterator[str]:
    for member in card.members:
        netdev, ethtool = f"sys/class/net/{member.netdev}", f"ethtool/{member.netdev}"
        yield f"{netdev}/mtu: {MTU}"
        yield f"{ethtool}.driver: driver: {card.driver.module}"
        yield f"{ethtool}.permaddr: Permanent address: {mac_of(host, member.netdev)}"
        yield from (f"{ethtool}.pause =", "|Autonegotiate: off", "|RX: off", "|TX: off")
        # Milliseconds of transmitted pause after which mlx5 stops it; microseconds from one refresh of bnxt's counters to the next.
        if card.driver.module == MLX5_CORE:
            yield f"{ethtool}.settings: pfc-prevention-tout: {member.setup.watchdog}"
        elif card.driver.refresh:
            yield f"{ethtool}.settings: stats-block-usecs: {int(card.driver.refresh * MICROSECONDS)}"
        if card.bond:
            yield f"{netdev}/master -> ../{card.bond}"
            yield f"sys/class/net/{card.bond}/lower_{member.netdev} -> ../{member.netdev}"
    if card.bond:
        slaves = " ".join(member.netdev for member in card.members)
        bond = {"mtu": MTU, "bonding/slaves": slaves, "bonding/mode": "802.3ad 4"}
        yield from _lines(f"sys/class/net/{card.bond}", bond)


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

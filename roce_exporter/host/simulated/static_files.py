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
from typing import TYPE_CHECKING

from roce_exporter.host.kernel import dcb_netlink
from roce_exporter.host.recorded import ip_text
from roce_exporter.host.recorded.recorded import Moment
from roce_exporter.host.recorded.recorded_ip import ADDRESSES, NEIGHBOURS, ROUTES, RULES, read_recorded_ip
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.host.simulated.conditions import PRIORITIES
from roce_exporter.host.simulated.functions import FUNCTIONS, MLX5, ethernet_instance, physical_function
from roce_exporter.host.simulated.jobs import object_counts
from roce_exporter.model import ip
from roce_exporter.words import word_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.host.recorded.rdma_text import Rows
    from roce_exporter.host.simulated.conditions import Setup
    from roce_exporter.host.simulated.world import Card, SimulatedNetdev


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
        netdev: (ip.IpAddress(address_of(number), LENGTH, "global"),) for netdev, number in netdevs.items()
    }
    neighbours = [
        row
        for netdev, number in netdevs.items()
        for row in ip_text.print_neighbours(netdev, [ip.IpNeighbour(_gateway(number), ip.RESOLVED, 5)])
    ]
    routes = [route for netdev, number in netdevs.items() for route in _routes(netdev, number)]
    return {
        ADDRESSES: ip_text.print_json(ip_text.print_addresses(addresses)),
        NEIGHBOURS: ip_text.print_json(neighbours),
        ROUTES[V4]: ip_text.print_json([ip_text.print_route(route) for route in routes]),
        RULES[V4]: ip_text.print_json([ip_text.print_rule(rule) for rule in _rules(len(cards))]),
        **{
            f"proc/sys/net/ipv4/conf/{folder}/{name}": f"{value if folder != 'all' else 0}\n"
            for folder in ("all", *netdevs)
            for name, value in SYSCTLS.items()
        },
    }


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


def _rules(rails: int) -> tuple[ip.IpRule, ...]:
    own = (
        ip.IpRule(FIRST_TABLE + number, V4, FIRST_TABLE + number, source=f"{address_of(number)}/32")
        for number in range(rails)
    )
    return (ip.IpRule(0, V4, ip.LOCAL), *own, ip.IpRule(32766, V4, ip.MAIN), ip.IpRule(32767, V4, ip.DEFAULT))


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


def setting_files(card: Card, slot: str) -> dict[str, str]:
    """The files with the settings of a card, by their path in a recording; `slot` is its PCI address."""
    setup = card.members[0].setup
    found = _tree(
        f"sys/kernel/config/rdma_cm/{card.name}/ports/1",
        {"default_roce_tos": setup.tos, "default_roce_mode": VERSIONS[setup.roce_version]},
    )
    if card.driver.module == "mlx5_core":
        found |= _tree(
            f"sys/class/infiniband/{card.name}/tc/1", {"traffic_class": f"Global tclass={setup.tos}"}
        )
        for member in card.members:
            found |= _mlx5(member)
    if card.driver.module == "bnxt_en":
        found |= _tree(f"sys/kernel/debug/bnxt_re/{slot}/cc_config", _bnxt(setup))
    if card.driver.module == "ionic":
        found |= _ionic(f"sys/class/infiniband/{card.name}/dcqcn", setup)
    return found


def ethtool_settings(member: SimulatedNetdev) -> str:
    """The output of `ethtool --get-tunable` and `ethtool -c`; empty if the driver supports neither.

    mlx5: milliseconds of transmitted pause after which the NIC stops it. bnxt: microseconds from one refresh of its
    counters to the next.
    """
    if member.driver.module == "mlx5_core":
        return f"pfc-prevention-tout: {member.setup.watchdog}"
    return f"stats-block-usecs: {int(member.driver.refresh * MICROSECONDS)}" if member.driver.refresh else ""


def _tree(folder: str, files: Mapping[str, object]) -> dict[str, str]:
    return {f"{folder}/{name}": str(value) for name, value in files.items()}


def _mlx5(member: SimulatedNetdev) -> dict[str, str]:
    setup, folder = member.setup, f"sys/class/net/{member.netdev}/ecn"
    notification = {
        "cnp_802p_prio": setup.cnp_priority,
        "cnp_dscp": setup.cnp_dscp,
        "min_time_between_cnps": 4,
    }
    return {
        **_tree(f"{folder}/roce_np", notification),
        **_tree(f"{folder}/roce_rp", REACTION),
        **_tree(f"{folder}/roce_np/enable", _enabled(setup, on=setup.notifies)),
        **_tree(f"{folder}/roce_rp/enable", _enabled(setup, on=setup.reacts)),
    }


def _enabled(setup: Setup, *, on: bool) -> dict[str, int]:
    return {str(priority): int(on and priority == setup.priority) for priority in PRIORITIES}


def _bnxt(setup: Setup) -> dict[str, object]:
    return {
        **BNXT,
        "enable_cc": int(setup.notifies and setup.reacts),
        "tos_dscp": setup.tos >> 2,
        "tos_ecn": setup.tos & 3,
        "alt_tos_dscp": setup.cnp_dscp,
        "alt_vlan_pcp": setup.cnp_priority,
    }


def _ionic(folder: str, setup: Setup) -> dict[str, str]:
    notification = {"cnp_dscp": setup.cnp_dscp, "icnp_802p_prio": setup.cnp_priority}
    return {
        f"{folder}/match_default": "1",
        **_tree(f"{folder}/profiles/1/roce_np", notification),
        **_tree(f"{folder}/profiles/1/roce_rp", IONIC_REACTION),
    }


MTU = 4200
GIDS = 4
CABLE_METRES = 7
BUFFERS = (20_480, 163_840, 0, 0, 0, 0, 0, 0)

OPTIONAL = ["cc_rx_ce_pkts", "cc_rx_cnp_pkts", "cc_tx_cnp_pkts"]
"""Optional counters of mlx5, all switched off."""


def record(cards: Sequence[Card], moving: Sequence[str], host: int = 1) -> Moment:
    """Host number `host` as a recording; `moving` are the files below /sys with changing values."""
    tree = Tree()
    for number, card in enumerate(cards):
        _add_files(tree, card, number)
        _add_links(tree, card, number)
    tree.files.update((f"sys/{path}", b"") for path in moving)
    tree.files.update((path, text.encode()) for path, text in ip_files(cards).items())
    _add_functions(tree, cards)
    tree.files["proc/sys/net/ipv4/tcp_ecn"] = b"2\n"
    tree.files["proc/sys/kernel/hostname"] = f"{hostname_of(host)}\n".encode()
    for member in (member for card in cards for member in card.members):
        address = f"Permanent address: {mac_of(host, member.netdev)}\n"
        tree.files[f"ethtool/{member.netdev}.permaddr"] = address.encode()
    for path in (*tree.files, *tree.links):
        tree.add(path)
    return Moment(tree, _rdma(cards), ip=read_recorded_ip(tree, "of the simulated host"))


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
    trusted = dcb_netlink.SELECTOR_DSCP if setup.trust_dscp else dcb_netlink.SELECTOR_PCP
    frames = driver.dcb_frames
    return dcb_netlink.Dcb(
        pfc=dcb_netlink.Pfc(
            capacity=len(PRIORITIES),
            enabled=tuple(priority in enabled for priority in PRIORITIES),
            mbc=False,
            delay=0 if driver.reports_trust else CABLE_METRES,
            requests=tuple(int(facts.get(f"transmit_{frames}_{priority}", 0)) for priority in PRIORITIES),
            indications=tuple(int(facts.get(f"receive_{frames}_{priority}", 0)) for priority in PRIORITIES),
        ),
        ets=_ETS,
        app=tuple(
            dcb_netlink.App(dcb_netlink.SELECTOR_DSCP, code, priority) for code, priority in setup.dscp
        ),
        trust=(trusted,) if driver.reports_trust else None,
        buffer=None
        if driver.reports_trust
        else dcb_netlink.Buffer(
            tuple(int(priority in setup.lossless) for priority in PRIORITIES), BUFFERS, sum(BUFFERS)
        ),
        dcbx=dcb_netlink.DCBX_HOST | dcb_netlink.DCBX_VER_IEEE,
    )


_ETS = dcb_netlink.Ets(
    willing=False,
    capacity=len(PRIORITIES),
    cbs=False,
    transmit_bandwidth=(50, 0, 0, 50, 0, 0, 0, 0),
    receive_bandwidth=(0,) * 8,
    algorithm=(2, 0, 0, 2, 0, 0, 0, 0),
    traffic_class=tuple(PRIORITIES),
)


def slot_of(number: int) -> str:
    """The PCI address of the card at this position."""
    return f"0000:{0x11 + number:02x}:00.0"


def _guid(number: int) -> str:
    return f"0200:00ff:fe00:{number:04x}"


def _add_files(tree: Tree, card: Card, number: int) -> None:
    below = f"sys/class/infiniband/{card.name}"
    driver = card.driver
    texts = {
        f"{below}/fw_ver": driver.firmware,
        f"{below}/hca_type": driver.model,
        f"{below}/board_id": driver.board,
        f"{below}/node_guid": _guid(number),
        f"{below}/node_type": "1: CA",
        f"{below}/ports/1/link_layer": "Ethernet",
        f"{below}/ports/1/hw_counters/lifespan": "10",
        **_gids(card, number),
        **_pcie(number),
        **_netdevs(card),
        **setting_files(card, slot_of(number)),
    }
    tree.files.update((path, f"{text}\n".encode()) for path, text in texts.items() if text)


def _gids(card: Card, number: int) -> dict[str, str]:
    """Link-local and IPv4, each as RoCE v1 and v2; odd slots are version 2."""
    below = f"sys/class/infiniband/{card.name}/ports/1"
    found = {}
    for slot in range(GIDS):
        address = f"fe80:0000:0000:0000:{_guid(number)}"
        if slot >= GIDS // 2:
            octets = ipaddress.IPv4Address(address_of(number)).packed.hex()
            address = f"0000:0000:0000:0000:0000:ffff:{octets[:4]}:{octets[4:]}"
        found[f"{below}/gids/{slot}"] = address
        found[f"{below}/gid_attrs/types/{slot}"] = "RoCE v2" if slot % 2 else "IB/RoCE v1"
        found[f"{below}/gid_attrs/ndevs/{slot}"] = card.netdev
    return found


def _pcie(number: int) -> dict[str, str]:
    below = f"sys/devices/pci0000:10/{slot_of(number)}"
    link = {"link_speed": "32.0 GT/s PCIe", "link_width": "16"}
    return {
        **{f"{below}/{when}_{name}": text for name, text in link.items() for when in ("current", "max")},
        f"{below}/sriov_totalvfs": "16",
        f"{below}/aer_dev_correctable": "TOTAL_ERR_COR 0",
        f"{below}/aer_dev_nonfatal": "TOTAL_ERR_NONFATAL 0",
        f"{below}/aer_dev_fatal": "TOTAL_ERR_FATAL 0",
    }


def _netdevs(card: Card) -> dict[str, str]:
    found = {f"sys/class/net/{member.netdev}/mtu": str(MTU) for member in card.members}
    for member in card.members:
        found[f"ethtool/{member.netdev}.driver"] = f"driver: {card.driver.module}"
        found[f"ethtool/{member.netdev}.pause"] = "Autonegotiate: off\nRX: off\nTX: off"
        found[f"ethtool/{member.netdev}.settings"] = ethtool_settings(member)
    if card.bond:
        found[f"sys/class/net/{card.bond}/mtu"] = str(MTU)
        found[f"sys/class/net/{card.bond}/bonding/slaves"] = " ".join(
            member.netdev for member in card.members
        )
        found[f"sys/class/net/{card.bond}/bonding/mode"] = "802.3ad 4"
    return found


def _add_links(tree: Tree, card: Card, number: int) -> None:
    slot = f"devices/pci0000:10/{slot_of(number)}"
    tree.links[f"sys/class/infiniband/{card.name}/device"] = f"../../../{slot}"
    tree.links[f"sys/{slot}/driver"] = f"../../../bus/pci/drivers/{card.driver.module}"
    if card.driver.module == MLX5:
        tree.links[f"sys/{slot}/{ethernet_instance(number)}/subsystem"] = "../../../../bus/auxiliary"
    for member in card.members if card.bond else ():
        tree.links[f"sys/class/net/{member.netdev}/master"] = f"../{card.bond}"
        tree.links[f"sys/class/net/{card.bond}/lower_{member.netdev}"] = f"../{member.netdev}"


def _add_functions(tree: Tree, cards: Sequence[Card]) -> None:
    """The links of the VFs to their PCI functions."""
    place = physical_function(cards)
    if place is None:
        return
    for number in range(len(FUNCTIONS)):
        function = f"sys/class/net/{cards[place].netdev}/device/virtfn{number}"
        tree.links[function] = f"../../../../devices/pci0000:10/{slot_of(place)[:-1]}{number + 1}"


def _rdma(cards: Sequence[Card]) -> dict[str, Rows]:
    return {
        "dev": tuple(_device_rows(cards)),
        "link": tuple({"ifname": card.name, "port": 1, "netdev": card.netdev} for card in cards),
        "mode_supported": tuple(
            {"ifname": card.name, "port": 1, "supported optional-counters": OPTIONAL}
            for card in cards
            if card.driver.module == MLX5
        ),
        "resource": tuple(
            {"ifname": card.name, **object_counts(position, len(cards))}
            for position, card in enumerate(cards)
        ),
    }


def _device_rows(cards: Sequence[Card]) -> Iterator[dict[str, object]]:
    for number, card in enumerate(cards):
        yield {
            "ifindex": number,
            "ifname": card.name,
            "protocol": "roce",
            "fw": card.driver.firmware,
            "node_guid": _guid(number),
        }

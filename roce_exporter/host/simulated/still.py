"""The constant part of the simulated host, as a recording: sysfs, the lists of RDMA netlink, ethtool's settings, names.

Host number N, by default the seed, is named gpu-N with at least three digits. The MAC address of its network device ethM is
02:H:H:H:M:M, with the low 24 bits of N and the number M in hexadecimal, so that hosts of a simulated fabric differ.

Files with changing values are included, but empty, so that they are listed: `simulation.kernel` supplies their content.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from roce_exporter.host.kernel.dcb_netlink import (
    DCBX_HOST,
    DCBX_VER_IEEE,
    SELECTOR_DSCP,
    SELECTOR_PCP,
    App,
    Buffer,
    Dcb,
    Ets,
    Pfc,
)
from roce_exporter.host.recorded.moment import Moment
from roce_exporter.host.recorded.recorded_ip import read_recorded_ip
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.host.simulated.conditions import PRIORITIES
from roce_exporter.host.simulated.functions import FUNCTIONS, physical_function
from roce_exporter.host.simulated.job_objects import object_counts
from roce_exporter.host.simulated.rail_addresses import address_of, ip_files
from roce_exporter.host.simulated.reporters import MLX5, ethernet_instance
from roce_exporter.host.simulated.settings import ethtool_settings, setting_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.host.recorded.rdma_text import Rows
    from roce_exporter.host.simulated.world import Card, SimulatedNetdev

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


def dcb(member: SimulatedNetdev, enabled: tuple[int, ...], facts: Mapping[str, float]) -> Dcb:
    """The DCB settings of a network device while these priorities have PFC."""
    setup, driver = member.setup, member.driver
    trusted = SELECTOR_DSCP if setup.trust_dscp else SELECTOR_PCP
    frames = driver.dcb_frames
    return Dcb(
        pfc=Pfc(
            capacity=len(PRIORITIES),
            enabled=tuple(priority in enabled for priority in PRIORITIES),
            mbc=False,
            delay=0 if driver.reports_trust else CABLE_METRES,
            requests=tuple(int(facts.get(f"transmit_{frames}_{priority}", 0)) for priority in PRIORITIES),
            indications=tuple(int(facts.get(f"receive_{frames}_{priority}", 0)) for priority in PRIORITIES),
        ),
        ets=_ETS,
        app=tuple(App(SELECTOR_DSCP, code, priority) for code, priority in setup.dscp),
        trust=(trusted,) if driver.reports_trust else None,
        buffer=None if driver.reports_trust else _buffer(setup.lossless),
        dcbx=DCBX_HOST | DCBX_VER_IEEE,
    )


_ETS = Ets(
    willing=False,
    capacity=len(PRIORITIES),
    cbs=False,
    transmit_bandwidth=(50, 0, 0, 50, 0, 0, 0, 0),
    receive_bandwidth=(0,) * 8,
    algorithm=(2, 0, 0, 2, 0, 0, 0, 0),
    traffic_class=tuple(PRIORITIES),
)


def _buffer(lossless: tuple[int, ...]) -> Buffer:
    return Buffer(tuple(int(priority in lossless) for priority in PRIORITIES), BUFFERS, sum(BUFFERS))


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
        "mode_supported": tuple(_optional_rows(cards)),
        "resource": tuple(
            {"ifname": card.name, **object_counts(position, len(cards))}
            for position, card in enumerate(cards)
        ),
    }


def _optional_rows(cards: Sequence[Card]) -> Iterator[dict[str, object]]:
    for card in cards:
        if card.driver.module == MLX5:
            yield {"ifname": card.name, "port": 1, "supported optional-counters": OPTIONAL}


def _device_rows(cards: Sequence[Card]) -> Iterator[dict[str, object]]:
    for number, card in enumerate(cards):
        yield {
            "ifindex": number,
            "ifname": card.name,
            "protocol": "roce",
            "fw": card.driver.firmware,
            "node_guid": _guid(number),
        }

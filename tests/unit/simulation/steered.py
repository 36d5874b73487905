"""Shared by the tests of the simulated host: reads of everything in a host."""

from collections.abc import Iterator

from roce_exporter.host.simulated.conditions import ETHTOOL, NETLINK
from roce_exporter.host.simulated.kernel import SimulatedKernel
from roce_exporter.host.simulated.world import Card, SimulatedNetdev

START = 1000.0
"""When a host starts: the first moment of `clock.Clock`."""

GAUGES = ("outbound_pci_stalled_wr", "outbound_pci_stalled_rd")


def ethtool(kernel: SimulatedKernel, netdev: str = "eth0") -> dict[str, int]:
    """Each counter of `ethtool -S`."""
    names, values = kernel.ethtool_statistics(netdev)
    assert len(set(names)) == len(names) == len(values)
    return dict(zip(names, values, strict=True))


def rdma(kernel: SimulatedKernel, position: int = 0) -> dict[str, int]:
    """Each hardware counter of an RDMA device."""
    return dict(kernel.rdma_statistics(kernel.rdma_devices()[position], 1))


def counters(kernel: SimulatedKernel) -> dict[tuple[str, str], int]:
    """Every counter of the host, by network or RDMA device and name; counters that fail are missing."""
    found = {}
    for position, card in enumerate(kernel.world.cards):
        found |= {(card.name, name): value for name, value in _of_card(kernel, card, position)}
        for member in card.members:
            found |= {(member.netdev, name): value for name, value in _of_member(kernel, member)}
    return found


def _of_card(kernel: SimulatedKernel, card: Card, position: int) -> Iterator[tuple[str, int]]:
    if NETLINK not in card.members[0].setup.faults:
        yield from rdma(kernel, position).items()
    below = f"class/infiniband/{card.name}/ports/1/counters"
    for told in card.driver.counters if not card.members[0].setup.faults else ():
        yield f"counters/{told.raw}", int(kernel.text(f"{below}/{told.raw}"))


def _of_member(kernel: SimulatedKernel, member: SimulatedNetdev) -> Iterator[tuple[str, int]]:
    if ETHTOOL not in member.setup.faults:
        yield from ((name, n) for name, n in ethtool(kernel, member.netdev).items() if name not in GAUGES)
        yield from kernel.ethtool_fec(member.netdev).items()
    for file in (
        ("carrier_changes", "carrier_up_count", "carrier_down_count") if not member.setup.faults else ()
    ):
        yield file, int(kernel.text(f"class/net/{member.netdev}/{file}"))

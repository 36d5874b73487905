"""Shared by the tests of the simulated host: a clock that a test sets, and reads of everything in a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.simulation.faults import ETHTOOL, NETLINK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.simulation.kernel import SimulatedKernel
    from roce_exporter.simulation.world import Card, Leg

START = 5000.0

GAUGES = ("outbound_pci_stalled_wr", "outbound_pci_stalled_rd")


class Clock:
    """Monotonic seconds that a test sets."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


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
        for leg in card.legs:
            found |= {(leg.netdev, name): value for name, value in _of_leg(kernel, leg)}
    return found


def _of_card(kernel: SimulatedKernel, card: Card, position: int) -> Iterator[tuple[str, int]]:
    if NETLINK not in card.legs[0].setup.faults:
        yield from rdma(kernel, position).items()
    below = f"class/infiniband/{card.name}/ports/1/counters"
    for told in card.driver.counters if not card.legs[0].setup.faults else ():
        yield f"counters/{told.raw}", int(kernel.text(f"{below}/{told.raw}"))


def _of_leg(kernel: SimulatedKernel, leg: Leg) -> Iterator[tuple[str, int]]:
    if ETHTOOL not in leg.setup.faults:
        yield from ((name, n) for name, n in ethtool(kernel, leg.netdev).items() if name not in GAUGES)
        yield from kernel.ethtool_fec(leg.netdev).items()
    for file in ("carrier_changes", "carrier_up_count", "carrier_down_count") if not leg.setup.faults else ():
        yield file, int(kernel.text(f"class/net/{leg.netdev}/{file}"))

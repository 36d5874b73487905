"""The virtual functions (VFs) of a simulated host: its first mlx5 port has two, each with a part of the port's RoCE traffic.

Both are in network namespaces of pods, so that their RDMA devices are not visible on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.kernel.rtnetlink import VirtualFunction
from roce_exporter.host.simulated.reporters import MLX5

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.host.simulated.world import Card


class SimulatedFunction(NamedTuple):
    """One VF."""

    share: float
    """Its part of the port's RoCE traffic."""
    settings: Mapping[str, int]
    """As in `VirtualFunction`."""


FUNCTIONS = (
    SimulatedFunction(0.25, {"link_state": 0, "spoof_check": 1, "trusted": 0, "vlan": 0, "max_rate": 0}),
    SimulatedFunction(
        0.1, {"link_state": 0, "spoof_check": 1, "trusted": 1, "vlan": 120, "max_rate": 50_000}
    ),
)


def physical_function(cards: Sequence[Card]) -> int | None:
    """The position of the card with VFs; member ports of a bond have none."""
    return next(
        (place for place, card in enumerate(cards) if card.driver.module == MLX5 and not card.bond), None
    )


def virtual_functions(macs: Sequence[str], facts: Mapping[str, float]) -> Iterator[VirtualFunction]:
    """The VFs, given the quantities of their port."""
    for number, (one, mac) in enumerate(zip(FUNCTIONS, macs, strict=True)):
        yield VirtualFunction(number, mac, one.settings, dict(_counts(one.share, facts)))


def _counts(share: float, facts: Mapping[str, float]) -> Iterator[tuple[str, int]]:
    for short, direction in (("rx", "receive"), ("tx", "transmit")):
        for unit in ("bytes", "packets"):
            yield f"{short}_{unit}", int(share * facts.get(f"{direction}_rdma_{unit}", 0.0))
        yield f"{short}_dropped", 0
    yield "rx_multicast", 0
    yield "rx_broadcast", 0

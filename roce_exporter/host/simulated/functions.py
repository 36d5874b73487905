"""The PCI functions of simulated mlx5 cards: what devlink reports on Linux 6.12, and virtual functions (VFs).

Cards of other drivers have no health reporters. The first mlx5 port of a host has two VFs, each with a part of the port's RoCE
traffic. Both are in network namespaces of pods, so that their RDMA devices are not visible on the host.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.host.kernel import FIXED, RUNNING, STORED, VNIC, Absent, ComponentVersion, HealthReporter
from roce_exporter.host.kernel.rtnetlink import VirtualFunction
from roce_exporter.words import word_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.host.simulated.world import Card


MLX5 = "mlx5_core"

FUNCTION_REPORTERS = ("fw", "fw_fatal", VNIC)
"""On the PCI function."""
PORT_REPORTERS = ("tx", "rx")
"""On a port of the auxiliary device for Ethernet."""

VNIC_NAMES = word_list(
    """
    total_error_queues send_queue_priority_update_flow comp_eq_overrun async_eq_overrun cq_overrun
    invalid_command quota_exceeded_command nic_receive_steering_discard generated_pkt_steering_fail
    handled_pkt_steering_fail
    """
)


def ethernet_instance(number: int) -> str:
    """The auxiliary device for Ethernet of the card at this position."""
    return f"mlx5_core.eth.{number}"


class SimulatedDevlink:
    """devlink of one host: cards by the name of their PCI function's instance and of the auxiliary one."""

    def __init__(self, functions: Mapping[str, Card]) -> None:
        """`functions` are the cards by PCI address."""
        self._cards: dict[str, tuple[Card, tuple[str, ...]]] = {}
        for number, (slot, card) in enumerate(functions.items()):
            if card.driver.module == MLX5:
                self._cards[f"pci/{slot}"] = card, FUNCTION_REPORTERS
                self._cards[f"auxiliary/{ethernet_instance(number)}"] = card, PORT_REPORTERS

    def reporters(self, instance: str, now: float) -> tuple[HealthReporter, ...]:
        """The health reporters of an instance at `now`."""
        card, names = self._of(instance)
        facts, failing = card.facts(now), card.failing(now)
        return tuple(
            HealthReporter(
                name,
                name not in failing,
                int(facts.get(f"reporter_errors_{name}", 0)),
                int(facts.get(f"reporter_recoveries_{name}", 0)),
            )
            for name in names
        )

    def versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        """The versions of a card."""
        card, names = self._of(instance)
        if names is not FUNCTION_REPORTERS:
            raise Absent(errno.EOPNOTSUPP, "no versions", instance)
        firmware = card.driver.firmware
        return (
            ComponentVersion(FIXED, "fw.psid", card.driver.board),
            ComponentVersion(RUNNING, "fw.version", firmware),
            ComponentVersion(STORED, "fw.version", firmware),
        )

    def vnic(self, instance: str, now: float) -> Mapping[str, int]:
        """The diagnosis of the reporter `vnic`: queue pairs in error are the only trouble that the simulation has for it."""
        card, names = self._of(instance)
        if VNIC not in names:
            raise Absent(errno.EOPNOTSUPP, "no reporter vnic", instance)
        return dict.fromkeys(VNIC_NAMES, 0) | {"total_error_queues": card.broken(now)}

    def _of(self, instance: str) -> tuple[Card, tuple[str, ...]]:
        try:
            return self._cards[instance]
        except KeyError:
            raise Absent(errno.ENODEV, "no such simulated instance", instance) from None


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

"""What the drivers of the simulated host write to the kernel log: changes of links, and of transceivers on mlx5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.host.kernel.kmsg import LogPart
from roce_exporter.host.simulated.conditions import HOT, UNPLUGGED
from roce_exporter.host.simulated.still import slot_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.host.simulated.world import ConditionChange, World

_LINK = {
    "mlx5_core": ("Link down", "Link up"),
    "bnxt_en": ("NIC Link is Down", "NIC Link is Up, 400000 Mbps full duplex, Flow control: none"),
    "ionic": ("Link down", "Link up - 400 Gbps"),
    "ice": ("NIC Link is Down", "NIC Link is up 100 Gbps Full Duplex"),
}
"""By driver: without and with a link."""

_PLUGGED = "Port module event: module 0, Cable plugged"
_MODULE = {
    "mlx5_core": {
        HOT: "Port module event[error]: module 0, Cable error, High Temperature",
        UNPLUGGED: "Port module event: module 0, Cable unplugged",
    },
}

_INFORMATION = 6
"""LOG_INFO of syslog(3), facility 0."""


class SimulatedLog:
    """A position in the kernel log of a simulated host."""

    def __init__(self, world: World, *, oldest: bool) -> None:
        self._world = world
        self._heads = {
            member.netdev: (card.driver.module, slot_of(number))
            for number, card in enumerate(world.cards)
            for member in card.members
        }
        self._passed = 0 if oldest else len(self._texts())

    def read(self, most: int) -> LogPart:
        texts = self._texts()[self._passed : self._passed + most]
        first, self._passed = self._passed, self._passed + len(texts)
        records = (
            f"{_INFORMATION},{number},{number},-;{text}\n".encode()
            for number, text in enumerate(texts, first)
        )
        return LogPart(tuple(records), 0)

    def close(self) -> None:
        pass  # nothing is open

    def _texts(self) -> list[str]:
        return [text for change in self._world.changes for text in self._lines(change)]

    def _lines(self, change: ConditionChange) -> Iterator[str]:
        driver, address = self._heads[change.netdev]
        if change.old.module != change.new.module and driver in _MODULE:
            yield f"{driver} {address}: {_MODULE[driver].get(change.new.module, _PLUGGED)}"
        if change.old.up != change.new.up and driver in _LINK:
            yield f"{driver} {address} {change.netdev}: {_LINK[driver][change.new.up]}"

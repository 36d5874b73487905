"""One namespace of a switch with everything that its interpretation needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roce_exporter.switches.systems.sonic.lossless import PRIORITIES, Lossless

if TYPE_CHECKING:
    from collections.abc import Iterable

    from roce_exporter.switches.systems.sonic.polling import Polling
    from roce_exporter.switches.systems.sonic.rows import SonicRows
    from roce_exporter.switches.systems.sonic.tables import SonicGroup, SonicTables


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """The tables of one namespace, and what is shown of them."""

    tables: SonicTables
    rows: SonicRows
    lossless: Lossless
    polling: Polling
    ports: frozenset[str]
    """The ports of this namespace that lead out of the switch."""
    used: frozenset[int]
    """The priorities with PFC on any port of the switch."""
    everything: bool
    """Show all priorities, queues and groups."""

    @property
    def priorities(self) -> Iterable[int]:
        """The priorities whose counters and settings are shown."""
        return PRIORITIES if self.everything else sorted(self.used)

    def shows_queue(self, port: str, label: str) -> bool:
        """Whether counters and watermarks of the queue are shown."""
        plan = self.lossless.ports.get(port)
        chosen = self.everything or (plan is not None and label in map(str, plan.queues.values()))
        return chosen and port in self.ports

    def watches_queue(self, port: str, label: str) -> bool:
        """Whether the watchdog's part of the queue is shown: its queue has the number of the priority."""
        plan = self.lossless.ports.get(port)
        return port in self.ports and plan is not None and label in map(str, plan.queues)

    def shows_group(self, group: SonicGroup) -> bool:
        """Whether the priority group is shown."""
        if group.port not in self.ports:
            return False
        plan = self.lossless.ports.get(group.port)
        return self.everything or (plan is not None and group.number in plan.groups.values())

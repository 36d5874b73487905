"""Links from the configuration file, for ports of which the switch reports no neighbour."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from roce_exporter.catalog.named import SWITCH_NEIGHBOR_INFO
from roce_exporter.switches.readings import SwitchFact

if TYPE_CHECKING:
    from roce_exporter.switches.readings import SwitchReadings
    from roce_exporter.switches.targets import SwitchTarget

FILE = "file"


def with_links(readings: SwitchReadings, target: SwitchTarget) -> SwitchReadings:
    """The readings with a neighbour for each configured link. What LLDP reports for a port takes precedence."""
    reported = {fact.labels.get("port") for fact in readings.facts if fact.row is SWITCH_NEIGHBOR_INFO}
    facts = tuple(
        SwitchFact(
            SWITCH_NEIGHBOR_INFO,
            {
                "port": link.port,
                "neighbor": link.host,
                "neighbor_port": link.netdev,
                "port_id_kind": "name",
                "source": FILE,
            },
        )
        for link in target.links
        if link.port not in reported
    )
    return replace(readings, facts=(*readings.facts, *facts)) if facts else readings

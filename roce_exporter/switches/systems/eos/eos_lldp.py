"""The neighbours of an EOS switch (IEEE 802.1AB), from eAPI or from openconfig-lldp."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.catalog.named import SWITCH_NEIGHBOR_INFO
from roce_exporter.switches.readings import SwitchFact, label_text
from roce_exporter.switches.systems.eos.eos_eapi import member
from roce_exporter.switches.systems.eos.eos_models import NEIGHBOR, is_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.switches.systems.eos.eos_models import Tables

KINDS = {"macAddress": "mac", "MAC_ADDRESS": "mac", "interfaceName": "name", "INTERFACE_NAME": "name"}
"""Subtypes of the port identifier, as eAPI and openconfig-lldp name them."""
MAC = re.compile(r"[0-9a-f]{12}", re.ASCII)


def mac_address(text: str) -> str:
    """A MAC address in lower case with colons, from any of its spellings (`001c.73a0.fc18`); empty if it is none."""
    plain = re.sub(r"[.:-]", "", text.strip().lower())
    return ":".join(plain[place : place + 2] for place in range(0, 12, 2)) if MAC.fullmatch(plain) else ""


class _Neighbor(NamedTuple):
    """What LLDP says of a neighbour, as a reply has it; None: it did not announce this."""

    system: object
    chassis: object
    port_id: object
    kind: object
    description: object


def _fact(port: str, found: _Neighbor) -> SwitchFact:
    identifier = label_text(found.port_id or "")
    mac = mac_address(identifier) if KINDS.get(str(found.kind)) == "mac" else ""
    return SwitchFact(
        SWITCH_NEIGHBOR_INFO,
        {
            "port": label_text(port),
            "neighbor": label_text(found.system or ""),
            "neighbor_chassis": mac_address(str(found.chassis or "")) or label_text(found.chassis or ""),
            "neighbor_port": mac or identifier,
            "neighbor_description": label_text(found.description or ""),
            "neighbor_mac": mac,
            "port_id_kind": "mac" if mac else "name" if KINDS.get(str(found.kind)) == "name" else "other",
            "source": "lldp",
        },
    )


def eapi_neighbors(result: Any) -> Iterator[SwitchFact]:
    """`show lldp neighbors detail`. `interfaceId` is in quotation marks for some subtypes, `interfaceId_v2` is not.

    Raises:
        NetError: it is no such result.
    """
    for port, entry in member(result, "lldpNeighbors").items():
        found = entry.get("lldpNeighborInfo") if isinstance(entry, dict) else None
        for one in found if is_port(port) and isinstance(found, list) else ():
            if isinstance(one, dict):
                yield _eapi_neighbor(port, one)


def _eapi_neighbor(port: str, one: dict[str, Any]) -> SwitchFact:
    interface = one.get("neighborInterfaceInfo")
    known = interface if isinstance(interface, dict) else {}
    identifier = known.get("interfaceId_v2") or str(known.get("interfaceId") or "").strip('"')
    kind, description = known.get("interfaceIdType"), known.get("interfaceDescription")
    return _fact(port, _Neighbor(one.get("systemName"), one.get("chassisId"), identifier, kind, description))


LEAVES = ("system-name", "chassis-id", "port-id", "port-id-type", "port-description")


def gnmi_neighbors(tables: Tables) -> Iterator[SwitchFact]:
    """The table of openconfig-lldp."""
    for (port, _), row in tables[NEIGHBOR].items():
        if is_port(port):
            yield _fact(port, _Neighbor(*map(row.get, LEAVES)))

"""What SONiC says about itself, its ports and its neighbours, as info series."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roce_exporter.catalog.named import SWITCH_INFO, SWITCH_NEIGHBOR_INFO, SWITCH_PORT_INFO
from roce_exporter.catalog.switch_systems import SONIC
from roce_exporter.switches.readings import SwitchFact, label_text
from roce_exporter.switches.systems.sonic.tables import is_front_panel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.catalog.row import Row
    from roce_exporter.switches.systems.sonic.tables import Fields
    from roce_exporter.switches.systems.sonic.view import NamespaceView

ENTRY = "LLDP_ENTRY_TABLE:"
VERSION = re.compile(r"SONiC Software Version: (?:SONiC\.)?(\S{1,100})")
"""In the description that SONiC announces by LLDP (dockers/docker-lldp, lldpd.conf.j2)."""

PORT_ID_KINDS = {"1": "name", "3": "mac", "5": "name"}
"""IEEE 802.1AB subtypes of port identifiers: interface alias, MAC address, interface name; all others are `other`."""

HEXADECIMAL = re.compile(r"[0-9a-f]{12}", re.ASCII)


def name_of(views: Sequence[NamespaceView]) -> str:
    """The switch's host name: DEVICE_METADATA, else the name that it announces by LLDP; empty if neither is known."""
    names = [_metadata(view).get("hostname", "") for view in views]
    names += [_chassis(view).get("lldp_loc_sys_name", "") for view in views]
    return next((name for name in map(label_text, names) if name), "")


def identity_facts(views: Sequence[NamespaceView]) -> Iterator[SwitchFact]:
    """What the switch is; nothing if no row of it was read."""
    metadata = next(filter(None, map(_metadata, views)), {})
    described = next(filter(None, (_chassis(view).get("lldp_loc_sys_desc") for view in views)), "")
    version = VERSION.search(described)
    if metadata or described:
        yield _fact(
            SWITCH_INFO,
            {
                "os": SONIC,
                "version": version[1] if version else None,
                "model": metadata.get("hwsku") or metadata.get("platform"),
                "asic": metadata.get("asic_type"),
            },
        )


def port_facts(view: NamespaceView) -> Iterator[SwitchFact]:
    """Names of the ports, and the neighbour behind each."""
    for port, row in view.rows.ports.items():
        if port in view.ports:
            labels = {"port": port, "alias": row.get("alias"), "description": row.get("description")}
            yield _fact(SWITCH_PORT_INFO, labels)
    for key, entry in (view.tables.lldp or {}).items():
        port = key.removeprefix(ENTRY)
        if key.startswith(ENTRY) and (port in view.ports or (not view.ports and is_front_panel(port))):
            yield _neighbor(port, entry)


def _neighbor(port: str, entry: Fields) -> SwitchFact:
    identifier = entry.get("lldp_rem_port_id", "")
    kind = PORT_ID_KINDS.get(entry.get("lldp_rem_port_id_subtype", ""), "other")
    return _fact(
        SWITCH_NEIGHBOR_INFO,
        {
            "port": port,
            "neighbor": entry.get("lldp_rem_sys_name"),
            "neighbor_chassis": entry.get("lldp_rem_chassis_id"),
            "neighbor_port": identifier,
            "neighbor_description": entry.get("lldp_rem_port_desc"),
            "neighbor_mac": mac_of(identifier) if kind == "mac" else None,
            "port_id_kind": kind,
            "source": "lldp",
        },
    )


def mac_of(text: str) -> str:
    """A MAC address in lower case with colons, whatever separates its digits; empty if the text is no MAC address."""
    digits = re.sub(r"[:.\-\s]", "", text.lower()).removeprefix("0x")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if HEXADECIMAL.fullmatch(digits) else ""


def _fact(row: Row, labels: Mapping[str, str | None]) -> SwitchFact:
    """The info series without the labels that are not known. Texts from the network become printable and short."""
    known = {label: label_text(text) for label, text in labels.items() if text}
    return SwitchFact(row, {label: text for label, text in known.items() if text})


def _metadata(view: NamespaceView) -> Fields:
    return view.rows.get("DEVICE_METADATA|localhost")


def _chassis(view: NamespaceView) -> Fields:
    return (view.tables.lldp or {}).get("LLDP_LOC_CHASSIS", {})

"""The labels of an LLDP neighbour (IEEE 802.1AB), from the words of any switch."""

from __future__ import annotations

import re
from typing import Any

from roce_exporter.switches.readings import label_text

MAC = re.compile(
    r"(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}|(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}", re.IGNORECASE | re.ASCII
)
"""`001e.49ff.24f7`, `00:1e:49:ff:24:f7` or `00-1e-49-ff-24-f7`."""
NOT_SAID = frozenset({"", "null", "-", "n/a", "none", "not advertised", "not-advertised"})


def said(value: Any) -> str:
    """A text of the switch as a label; empty where the switch says that it has none."""
    plain = label_text(value) if isinstance(value, str | int) else ""
    return "" if plain.lower() in NOT_SAID else plain


def mac_address(text: str) -> str:
    """The MAC address in lower case with colons; empty if the text is not one."""
    if not MAC.fullmatch(text):
        return ""
    digits = re.sub(r"[^0-9a-f]", "", text.lower())
    return ":".join(digits[start : start + 2] for start in range(0, 12, 2))


def neighbor_labels(
    *, name: Any, chassis: Any, port_id: Any, description: Any, is_name: bool
) -> dict[str, str]:
    """The labels of a neighbour without its port. `is_name`: the switch says that the port identifier is an interface name.

    Only the port identifier becomes `neighbor_mac`: the chassis identifier can be the MAC address of another port.
    """
    port, box = said(port_id), said(chassis)
    mac = "" if is_name else mac_address(port)
    return {
        "neighbor": said(name),
        "neighbor_chassis": mac_address(box) or box,
        "neighbor_port": mac or port,
        "neighbor_description": said(description),
        "neighbor_mac": mac,
        "port_id_kind": "mac" if mac else "name" if port else "other",
        "source": "lldp",
    }

"""Convert the output of `ethtool -m` to the names and units of `kernel.transceiver`, and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

UNITS = {"degrees C": 1e6, "V": 1e6, "mW": 1e6, "mA": 1e3}
"""Each printed unit in ours: micro-degrees, microvolts, nanowatts, microamperes."""

QUANTITIES = {
    "Module temperature": "temperature",
    "Module voltage": "voltage",
    "Laser tx bias current": "bias",
    "Laser bias current": "bias",
    "Transmit avg optical power": "transmit_power",
    "Laser output power": "transmit_power",
    "Laser tx power": "transmit_power",
    "Rcvr signal avg optical power": "receive_power",
    "Receiver signal average optical power": "receive_power",
    "Receiver signal OMA": "receive_power",
    "Rcvr signal OMA": "receive_power",
    "Laser rx power": "receive_power",
}

OF_MODULE = ("temperature", "voltage")

# Nearly every repetition is possessive: otherwise matching a line of blanks takes time cubic in its length.
_LINE = re.compile(
    r"\s*+(?P<what>[A-Z][A-Za-z]*+(?: [A-Za-z]++)*?)(?:\s*+\((?:Channel|Chan) (?P<lane>[0-9]{1,3})\))?"
    r"(?: (?P<level>high|low) alarm threshold)?\s*+:\s*+"
    r"(?P<value>-?[0-9]{1,20}(?:\.[0-9]{1,20})?) (?P<unit>degrees C|V|mW|mA)\b"
)


def parse_transceiver(text: str) -> dict[str, int]:
    """The values of a module, with the names and units of `kernel.transceiver`; other lines are ignored."""
    return dict(_parts(text))


def _parts(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None or (quantity := QUANTITIES.get(match["what"])) is None:
            continue
        value = round(float(match["value"]) * UNITS[match["unit"]])
        if match["level"]:
            yield f"{quantity}_{match['level']}_alarm", value
        else:
            yield quantity if quantity in OF_MODULE else f"{quantity}_{match['lane'] or 1}", value


LINES = {
    "temperature": ("Module temperature", "Module temperature", "degrees C"),
    "voltage": ("Module voltage", "Module voltage", "V"),
    "bias": ("Laser tx bias current", "Laser bias current", "mA"),
    "transmit_power": ("Transmit avg optical power", "Laser output power", "mW"),
    "receive_power": ("Rcvr signal avg optical power", "Laser rx power", "mW"),
}
"""The names of ethtool 6 for each quantity of a QSFP and for its thresholds, and the unit."""

_NAME = re.compile(rf"(?P<quantity>{'|'.join(LINES)})(?:_(?P<lane>\d{{1,9}})|_(?P<level>high|low)_alarm)?")


def print_transceiver(found: Mapping[str, int]) -> str:
    """As `ethtool -m` prints them, with all digits."""
    return "".join(f"\t{line}\n" for name, value in found.items() if (line := _printed(name, value)))


def _printed(name: str, value: int) -> str:
    match = _NAME.fullmatch(name)
    if match is None:
        return ""
    measured, limit, unit = LINES[match["quantity"]]
    words = f"{limit} {match['level']} alarm threshold" if match["level"] else measured
    lane = f" (Channel {match['lane']})" if match["lane"] else ""
    return f"{words + lane:<42}: {value / UNITS[unit]:.6f} {unit}"

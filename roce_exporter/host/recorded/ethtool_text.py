"""Read and write the output of the ethtool command, as in a recorded host.

`ethtool -S` (.stats), `ethtool -i` (.driver), `ethtool -I -a` (.pause), `ethtool DEV` (.link), `ethtool -I --show-fec`
(.fec), `ethtool --show-priv-flags` and `--get-tunable` (.settings), `ethtool -P` (.permaddr), and `ethtool -m` (.module), with the
names and units of `kernel.transceiver`. Unknown lines are ignored: every version of ethtool prints some more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from roce_exporter.host.kernel.ethtool_netlink import link_reason, link_state

Form = tuple[str, Callable[[str], int], Callable[[int], str]]

# The number of digits of 64 bits. Python raises ValueError for a number of thousands of digits.
_DIGITS = "[0-9]{1,20}"

# More digits than 64 bits have are accepted here, so that the value is later counted as unreadable.
_STATISTIC = re.compile(r"\s*(?P<name>\S.*?): (?P<value>[0-9]{1,64})\s*")

_FEC_BIN = re.compile(
    rf"^ *(?P<name>fec_symbols_err_[0-9a-z_]+): (?P<value>{_DIGITS})"
    rf"(?: \[ per_lane: (?P<lanes>{_DIGITS}(?:, {_DIGITS})*) \])?$",
    re.MULTILINE,
)

_SWITCH: Form = ("(on|off)", lambda word: int(word == "on"), lambda on: ("off", "on")[on])
_COUNT: Form = (f"({_DIGITS})", int, str)
_AMOUNT: Form = (f"({_DIGITS})(?![0-9]).*", int, str)
_SPEED: Form = (
    f"({_DIGITS})Mb/s",
    lambda mbit: int(mbit) * 1_000_000 // 8,
    lambda speed: f"{speed * 8 // 1_000_000}Mb/s",
)
_DUPLEX: Form = ("(Full|Half)", lambda word: int(word == "Full"), lambda full: ("Half", "Full")[full])
_DETECTED: Form = (r"(yes|no(?!\S)).*", lambda word: int(word == "yes"), lambda up: ("no", "yes")[up])
_REASON = re.compile(r"no \((.{1,100})\)")
"""How ethtool prints a value, what that means, and how a capture prints it."""

_LINES: dict[str, tuple[tuple[str, str, Form], ...]] = {
    "pause": (
        ("autonegotiate", "Autonegotiate", _SWITCH),
        ("receive", "RX", _SWITCH),
        ("transmit", "TX", _SWITCH),
        ("transmit_frames", "tx_pause_frames", _COUNT),
        ("receive_frames", "rx_pause_frames", _COUNT),
        ("transmit_storm_events", "tx_pause_storm_events", _COUNT),
    ),
    "link": (
        ("speed", "Speed", _SPEED),
        ("lanes", "Lanes", _COUNT),
        ("full_duplex", "Duplex", _DUPLEX),
        ("up", "Link detected", _DETECTED),
        ("down_events", "Link Down Events", _COUNT),
    ),
    "fec": tuple(
        (name, name, _COUNT) for name in ("corrected_blocks", "uncorrectable_blocks", "corrected_bits")
    ),
    "settings": (
        ("pfc_prevention_timeout", "pfc-prevention-tout", _AMOUNT),
        ("stats_block_microseconds", "stats-block-usecs", _AMOUNT),
    ),
}
"""Per suffix of a file, the values that are read from it: the name of each, and what ethtool calls it."""


def parse_statistics(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names and values of `ethtool -S`, in order; repeated names are kept. Some drivers pad names with spaces."""
    rows = [match for line in text.splitlines() if (match := _STATISTIC.fullmatch(line))]
    return tuple(row["name"].rstrip() for row in rows), tuple(int(row["value"]) for row in rows)


def parse_fields(text: str) -> dict[str, str]:
    """Every `NAME: VALUE`, the name in lower case."""
    fields = (line.partition(":") for line in text.splitlines())
    return {name.strip().lower(): value.strip() for name, colon, value in fields if colon}


def parse(kind: str, text: str) -> dict[str, int]:
    """The values of a file with the suffix `kind`, as `Kernel` names them: switches are 1 or 0, the speed is in bytes per second.

    Every private flag of `settings` is there as `flag_NAME`, and every bin of `fec` by the name of `kernel.ethtool_netlink`.
    """
    fields, found = parse_fields(text), dict[str, int]()
    for name, title, (form, read, _) in _LINES[kind]:
        if match := re.fullmatch(form, fields.get(title.lower(), "")):
            found[name] = read(match[1])
    if kind == "link" and (why := _REASON.fullmatch(fields.get("link detected", ""))):
        found |= link_state(why[1])
    if kind == "settings":
        found |= {f"flag_{name}": int(word == "on") for name, word in fields.items() if word in ("on", "off")}
    for row in _FEC_BIN.finditer(text) if kind == "fec" else ():
        lanes = re.findall(r"\d+", row["lanes"] or "")
        found[row["name"]] = int(row["value"])
        found |= {f"{row['name']}_lane_{lane}": int(value) for lane, value in enumerate(lanes)}
    return found


def print_statistics(names: Sequence[str], values: Sequence[int]) -> str:
    """As `ethtool -S` prints them."""
    return "NIC statistics:\n" + "".join(
        f"     {name}: {value}\n" for name, value in zip(names, values, strict=True)
    )


def print_values(kind: str, found: Mapping[str, int]) -> str:
    """The lines that `parse` reads."""
    lines = [f"{title}: {write(found[name])}" for name, title, (*_, write) in _LINES[kind] if name in found]
    if (state := found.get("extended_state")) is not None:
        reason = link_reason(state, found.get("extended_substate"))
        lines = [f"{one} ({reason})" if one == "Link detected: no" else one for one in lines]
    for name, value in found.items():
        if name.startswith("flag_"):
            lines.append(f"{name.removeprefix('flag_')}: {'on' if value else 'off'}")
        elif name.startswith("fec_symbols_err_") and "_lane_" not in name:
            lanes: list[str] = []
            while (lane := f"{name}_lane_{len(lanes)}") in found:
                lanes.append(str(found[lane]))
            lines.append(f"{name}: {value}" + (f" [ per_lane: {', '.join(lanes)} ]" if lanes else ""))
    return "".join(f"  {line}\n" for line in lines)


UNITS = {"degrees C": 1e6, "V": 1e6, "mW": 1e6, "mA": 1e3}
"""Each printed unit in ours: micro-degrees, microvolts, nanowatts, microamperes."""

_MODULE = {
    "temperature": ("degrees C", "Module temperature"),
    "voltage": ("V", "Module voltage"),
    "bias": ("mA", "Laser tx bias current", "Laser bias current"),
    "transmit_power": ("mW", "Transmit avg optical power", "Laser output power", "Laser tx power"),
    "receive_power": (
        *("mW", "Rcvr signal avg optical power", "Laser rx power"),
        *("Receiver signal average optical power", "Receiver signal OMA", "Rcvr signal OMA"),
    ),
}
"""The unit of each quantity and what ethtool calls it: version 6 for a QSFP, for its thresholds, and other names."""
_TITLES = {title: quantity for quantity, (_, *titles) in _MODULE.items() for title in titles}
_OF_MODULE = ("temperature", "voltage")
_NAME = re.compile(rf"(?P<quantity>{'|'.join(_MODULE)})(?:_(?P<lane>\d{{1,9}})|_(?P<level>high|low)_alarm)?")

# Nearly every repetition is possessive: otherwise matching a line of blanks takes time cubic in its length.
_LINE = re.compile(
    r"\s*+(?P<what>[A-Z][A-Za-z]*+(?: [A-Za-z]++)*?)(?:\s*+\((?:Channel|Chan) (?P<lane>[0-9]{1,3})\))?"
    r"(?: (?P<level>high|low) alarm threshold)?\s*+:\s*+"
    r"(?P<value>-?[0-9]{1,20}(?:\.[0-9]{1,20})?) (?P<unit>degrees C|V|mW|mA)\b"
)


def parse_transceiver(text: str) -> dict[str, int]:
    """The values of a module, with the names and units of `kernel.transceiver`; other lines are ignored."""
    found = {}
    for match in filter(None, map(_LINE.match, text.splitlines())):
        if quantity := _TITLES.get(match["what"], ""):
            of_lane = quantity if quantity in _OF_MODULE else f"{quantity}_{match['lane'] or 1}"
            name = f"{quantity}_{match['level']}_alarm" if match["level"] else of_lane
            found[name] = round(float(match["value"]) * UNITS[match["unit"]])
    return found


def print_transceiver(found: Mapping[str, int]) -> str:
    """As `ethtool -m` prints them, with all digits."""
    lines = []
    for name, value in found.items():
        if match := _NAME.fullmatch(name):
            unit, *titles = _MODULE[match["quantity"]]
            lane = f" (Channel {match['lane']})" if match["lane"] else ""
            what = f"{titles[:2][-1]} {match['level']} alarm threshold" if match["level"] else titles[0]
            lines.append(f"\t{what + lane:<42}: {value / UNITS[unit]:.6f} {unit}\n")
    return "".join(lines)

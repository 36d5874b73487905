"""Read and write the output of the ethtool command, as in a recorded host.

`ethtool -S` (.stats), `ethtool -i` (.driver), `ethtool -I -a` (.pause), `ethtool DEV` (.link), `ethtool -I --show-fec`
(.fec), `ethtool --show-priv-flags` and `--get-tunable` (.settings), `ethtool -P` (.permaddr), and `ethtool -m` (.module), with the
names and units of `kernel.transceiver`. Unknown lines are ignored: every version of ethtool prints some more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roce_exporter.host.kernel.ethtool_netlink import bin_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from roce_exporter.host.kernel.ethtool_netlink import Bin

# The number of digits of 64 bits. Python raises ValueError for a number of thousands of digits.
_DIGITS = "[0-9]{1,20}"
_COUNT = re.compile(rf"{_DIGITS}(?![0-9])")

# More digits than 64 bits have are accepted here, so that the value is later counted as unreadable.
_STATISTIC = re.compile(r"\s*(?P<name>\S.*?): (?P<value>[0-9]{1,64})\s*")
_PAUSE_SWITCHES = {"autonegotiate": "autonegotiate", "rx": "receive", "tx": "transmit"}
_PAUSE_COUNTS = {
    "tx_pause_frames": "transmit_frames",
    "rx_pause_frames": "receive_frames",
    "tx_pause_storm_events": "transmit_storm_events",
}
_PAUSE = _PAUSE_SWITCHES | _PAUSE_COUNTS
_SETTINGS = {"pfc-prevention-tout": "pfc_prevention_timeout", "stats-block-usecs": "stats_block_microseconds"}
_FEC = ("corrected_blocks", "uncorrectable_blocks", "corrected_bits")

_FEC_BIN = re.compile(
    rf"^ *(?P<name>fec_symbols_err_[0-9a-z_]+): (?P<value>{_DIGITS})"
    rf"(?: \[ per_lane: (?P<lanes>{_DIGITS}(?:, {_DIGITS})*) \])?$",
    re.MULTILINE,
)


def parse_statistics(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names and values of `ethtool -S`, in order; repeated names are kept."""
    rows = [match for line in text.splitlines() if (match := _STATISTIC.fullmatch(line))]
    return tuple(row["name"] for row in rows), tuple(int(row["value"]) for row in rows)


def parse_field(text: str, name: str) -> str:
    """The value of `NAME: VALUE`, as in `ethtool -i` and `ethtool -P`; the name in lower case. Empty if missing."""
    return dict(_fields(text)).get(name, "")


def parse_pause(text: str) -> dict[str, int]:
    """`ethtool -I -a`: autonegotiate, receive and transmit as 1 or 0, and the frames if they are counted."""
    return {_PAUSE[name]: number for name, number in _numbers(text) if name in _PAUSE}


_LINK: dict[str, tuple[str, str, Callable[[str], int], Callable[[int], str]]] = {
    "speed": (
        "Speed",
        rf"({_DIGITS})Mb/s",
        lambda mbit: int(mbit) * 1_000_000 // 8,
        lambda speed: f"{speed * 8 // 1_000_000}Mb/s",
    ),
    "lanes": ("Lanes", f"({_DIGITS})", int, str),
    "full_duplex": (
        "Duplex",
        "(Full|Half)",
        lambda word: int(word == "Full"),
        lambda full: ("Half", "Full")[full],
    ),
    "up": (
        "Link detected",
        r"(yes|no(?!\S)).*",
        lambda word: int(word == "yes"),
        lambda up: ("no", "yes")[up],
    ),
    "down_events": ("Link Down Events", f"({_DIGITS})", int, str),
}
"""Names of the values of a link, what ethtool calls each, how it prints it, what that means, and how a capture prints it."""


def parse_link(text: str) -> dict[str, int]:
    """`ethtool DEV`: up (1 or 0), speed in bytes per second, lanes, duplex (1 full), link down events."""
    fields = dict(_fields(text))
    return {
        name: read(match[1])
        for name, (title, form, read, _) in _LINK.items()
        if (match := re.fullmatch(form, fields.get(title.lower(), "")))
    }


def parse_settings(text: str) -> dict[str, int]:
    """`ethtool --show-priv-flags`, `ethtool --get-tunable DEV pfc-prevention-tout` and `ethtool -c`, concatenated.

    Returns `flag_NAME` as 1 or 0, `pfc_prevention_timeout` in milliseconds and `stats_block_microseconds`.
    """
    found = {}
    for name, value in _fields(text):
        if value in ("on", "off"):
            found[f"flag_{name}"] = int(value == "on")
        elif name in _SETTINGS and (match := _COUNT.match(value)):
            found[_SETTINGS[name]] = int(match[0])
    return found


def parse_fec(text: str) -> dict[str, int]:
    """`ethtool -I --show-fec`: corrected and uncorrectable blocks, corrected bits, bins, if they are counted."""
    found = {name: number for name, number in _numbers(text) if name in _FEC}
    for row in _FEC_BIN.finditer(text):
        lanes = re.findall(r"\d+", row["lanes"] or "")
        found[row["name"]] = int(row["value"])
        found |= {f"{row['name']}_lane_{lane}": int(value) for lane, value in enumerate(lanes)}
    return found


def print_statistics(names: Sequence[str], values: Sequence[int]) -> str:
    """As `ethtool -S` prints them."""
    return "NIC statistics:\n" + "".join(
        f"     {name}: {value}\n" for name, value in zip(names, values, strict=True)
    )


def print_pause(found: Mapping[str, int]) -> str:
    """As `ethtool -I -a` prints them."""
    switches = [
        f"{name.upper()}:\t{'on' if found[known] else 'off'}\n"
        for name, known in _PAUSE_SWITCHES.items()
        if known in found
    ]
    counts = [f"  {name}: {found[known]}\n" for name, known in _PAUSE_COUNTS.items() if known in found]
    return "".join(("Pause parameters:\n", *switches, "Statistics:\n", *counts))


def print_link(found: Mapping[str, int]) -> str:
    """As `ethtool DEV` prints them."""
    lines = [f"\t{_LINK[name][0]}: {_LINK[name][3](found[name])}\n" for name in _LINK if name in found]
    return "".join(("Settings:\n", *lines))


def print_settings(found: Mapping[str, int]) -> str:
    """As `ethtool --show-priv-flags` and `--get-tunable` print them."""
    flags = {name.removeprefix("flag_"): on for name, on in found.items() if name.startswith("flag_")}
    lines = [f"{name}: {'on' if on else 'off'}\n" for name, on in flags.items()]
    return "".join(
        (*lines, *(f"{title}: {found[name]}\n" for title, name in _SETTINGS.items() if name in found))
    )


def print_fec(found: Mapping[str, int]) -> str:
    """As `ethtool -I --show-fec` prints them."""
    of_lanes: dict[Bin, list[int]] = {}
    for name, value in found.items():
        if (one := bin_of(name)) and one.lane is not None:
            of_lanes.setdefault(one._replace(lane=None), []).append(value)
    lines = []
    for name, value in found.items():
        one = bin_of(name)
        if one is None or one.lane is None:
            lanes = f" [ per_lane: {', '.join(map(str, of_lanes[one]))} ]" if one in of_lanes else ""
            lines.append(f"  {name}: {value}{lanes}\n")
    return "Statistics:\n" + "".join(lines)


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip().lower(), value.strip()


def _numbers(text: str) -> Iterator[tuple[str, int]]:
    for name, value in _fields(text):
        if value in ("on", "off"):
            yield name, int(value == "on")
        elif _COUNT.fullmatch(value):
            yield name, int(value)


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

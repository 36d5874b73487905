"""Values in the words of switches: numbers, powers, speeds and times, mostly as text, and the labels of an LLDP neighbour."""

from __future__ import annotations

import math
import re
from calendar import timegm
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate
from functools import cache
from typing import Any

from roce_exporter.catalog import CATALOG, named
from roce_exporter.catalog.row import Row
from roce_exporter.model.values import GARBAGE, check_counter
from roce_exporter.switches.readings import RawNumber, SwitchFact, SwitchReading, Unreadable, label_text

DIGITS = re.compile(r"[0-9]{1,20}", re.ASCII)
GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3})+", re.ASCII)
OF_BYTES = re.compile(r"([0-9,]+) ?(?:B|Bytes)", re.ASCII)
ABSENT = frozenset({"", "-", "--", "N/A", "n/a", "NA", "None", "none", "null"})
"""How switches say that they do not have a value."""
UNKNOWN_WORD = "unknown_word"
DIGITS_TO_7 = "01234567"
"""The numbers of priorities, queues and priority groups."""
USUAL = ("3", "4")
"""The usual lossless priorities, and their queues: of a switch without PFC their counters are shown."""
NOT_KNOWN = ("0", "SPEED_UNKNOWN")
STATES = {
    **dict.fromkeys(("enabled", "enable", "on", "yes", "true"), 1),
    **dict.fromkeys(("disabled", "disable", "off", "no", "false", "not enabled"), 0),
    **dict.fromkeys(("up", "link-up", "connected", "stormed", "deadlock"), 1),
    **dict.fromkeys(("down", "testing", "dormant", "not_present", "lower_layer_down"), 0),
    **dict.fromkeys(("notconnect", "errdisabled", "operational", "ok"), 0),
}
"""The states of settings, ports and watchdogs in the words of all systems."""

MAC = re.compile(
    r"(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}|(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}", re.IGNORECASE | re.ASCII
)
"""`001e.49ff.24f7`, `00:1e:49:ff:24:f7` or `00-1e-49-ff-24-f7`."""
HEXADECIMAL = re.compile(r"[0-9a-f]{12}", re.ASCII)
NOT_SAID = frozenset({"", "null", "-", "n/a", "none", "not advertised", "not-advertised"})
FRACTION = re.compile(r"[-+]?[0-9]{1,20}(\.[0-9]{1,20})?([eE][-+]?[0-9]{1,3})?", re.ASCII)
NO_LIGHT = frozenset({"-inf", "-infinity"})
MOST = 1e15
"""No ratio, time or temperature is as large."""
LANES = range(1, 9)
MOST_DBM = 60.0
"""A kilowatt: more is not a power that a module receives."""
SPEED = re.compile(r"(?:[\w-]+:)?(?:SPEED_)?([0-9]{1,5})([MGT])(?:B|bps)?", re.ASCII)
UNITS = {"M": 10**6, "G": 10**9, "T": 10**12}
TIME = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d [1-9]\d{3}", re.ASCII)
ISO_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([-+][0-9]{2}:[0-9]{2}|Z)?",
    re.ASCII,
)


def is_absent(value: object) -> bool:
    """Whether a value of a reply says that the switch does not have it."""
    return value is None or (isinstance(value, str) and value.strip() in ABSENT)


def number(value: object) -> RawNumber:
    """The unsigned 64-bit number in a value of a reply.

    Text may have commas between thousands, as NX-OS prints them, and the unit of NVUE: `12 Bytes`. NaN, negative numbers, fractions
    and 2^64 are not valid.
    """
    if isinstance(value, int):
        checked: int | str = check_counter(int(value))  # a truth, too
        return checked if isinstance(checked, int) else Unreadable(checked)
    text = value.strip() if isinstance(value, str) else ""
    if found := OF_BYTES.fullmatch(text):
        text = found[1]
    if GROUPED.fullmatch(text):
        text = text.replace(",", "")
    return number(int(text)) if DIGITS.fullmatch(text) else Unreadable(GARBAGE)


def numbers(
    row: Mapping[str, Any], names: Iterable[str], read: Callable[[Any], RawNumber] = number
) -> dict[str, RawNumber]:
    """The values of these names in a row of a reply, without those that the switch does not have."""
    return {name: read(row[name]) for name in names if not is_absent(row.get(name))}


def total(parts: Iterable[RawNumber], read: Callable[[Any], RawNumber] = number) -> RawNumber:
    """The sum of parts; the first one that is not readable, if there is one."""
    found = 0
    for part in parts:
        if isinstance(part, Unreadable):
            return part
        found += int(part)
    return read(found)


@cache
def readers(dialect: str, source: str) -> dict[str, Callable[[Any], RawNumber]]:
    """What the catalogue reads from a source of a system: the raw names in its order, each lane by its number, and how a value is read."""
    spellings = ((row.unit, one) for row in CATALOG for one in row.spellings)
    found = [
        (raw, unit)
        for unit, one in spellings
        if (one.dialect, one.source) == (dialect, source)
        for raw in one.raw
    ]
    return {
        raw.replace("{lane}", lane): READERS.get(unit, number)
        for raw, unit in found
        for lane in (map(str, LANES) if "{lane}" in raw else ("",))
    }


def values_of(
    dialect: str, source: str, row: Mapping[str, Any], count: Callable[[Any], RawNumber] = number
) -> dict[str, RawNumber]:
    """The values of a source in a row of a reply, without those that the switch does not have. A speed or an MTU of 0 is not known."""
    return {
        name: count(row[name]) if read is number else read(row[name])
        for name, read in readers(dialect, source).items()
        if not is_absent(row.get(name))
        and not ((read is speed or name == "mtu") and str(row[name]).rpartition(":")[2] in NOT_KNOWN)
    }


def of_port(source: str, port: str, values: Mapping[str, RawNumber], **label: object) -> SwitchReading:
    """The reading of a port, or of what one more label names on it."""
    more = [(name, label_text(value)) for name, value in label.items()]
    return SwitchReading(source, (("port", label_text(port)), *more), values)


def pfc_readings(source: str, port: str, name: str, on: frozenset[str] | None) -> Iterator[SwitchReading]:
    """Whether PFC is on, of all priorities: where it is on for the wrong one, it is off for the right one. None: the switch says what is unknown."""
    for priority in DIGITS_TO_7:
        value = Unreadable(UNKNOWN_WORD) if on is None else int(priority in on)
        yield of_port(source, port, {name: value}, priority=priority)


@dataclass(frozen=True, slots=True)
class PortScope:
    """Which priorities and queues the readings of a port cover."""

    everything: bool
    priorities: frozenset[str]
    """Those with PFC."""
    queues: frozenset[str]
    off: bool = False
    """PFC is known to be off on the port, which may get pause nevertheless, or mark packets: then those that RoCE usually has are covered."""

    def has_priority(self, priority: str) -> bool:
        """Whether this priority is covered."""
        return self.everything or priority in (USUAL if self.off else self.priorities)

    def has_queue(self, queue: str) -> bool:
        """Whether this queue is covered."""
        return self.everything or queue in (USUAL if self.off else self.queues)


def fact(row: Row, **labels: object) -> SwitchFact:
    """An info series; a label is empty where the switch says that it has none."""
    return SwitchFact(row, {label: said(value) for label, value in labels.items()})


def module_facts(port: str, kind: object, vendor: object, model: object) -> Iterator[SwitchFact]:
    """The info series of the module in a port; nothing if the switch says nothing of it."""
    known = {"type": said(kind), "vendor": said(vendor), "model": said(model)}
    if any(known.values()):
        yield fact(named.SWITCH_TRANSCEIVER_INFO, port=port, **known)


def word(text: object, meanings: Mapping[str, int]) -> RawNumber:
    """What a word of the switch means."""
    found = meanings.get(text.strip(" []\r\n\t").lower()) if isinstance(text, str) else None
    return Unreadable(UNKNOWN_WORD) if found is None else found


def switched(value: object) -> RawNumber:
    """1 for on, 0 for off, in the words of any switch. NVUE also writes a state as an object with one key: `{"enabled": {}}`."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value))
    return int(value) if isinstance(value, bool) else word(value, STATES)


def fraction(value: object) -> float | Unreadable:
    """A number that may be negative or have decimals: `61.75`, `5.3e-10`."""
    if isinstance(value, bool) or not FRACTION.fullmatch(str(value).strip()):
        return Unreadable(GARBAGE)
    found = float(str(value))
    return found if abs(found) < MOST else Unreadable(GARBAGE)


def at_least_zero(value: object) -> float | Unreadable:
    """A number with decimals that cannot be negative: a ratio, or a Unix time."""
    found = fraction(value)
    return found if not isinstance(found, Unreadable) and found >= 0 else Unreadable(GARBAGE)


def watts(value: object) -> float | Unreadable:
    """An optical power in dBm as watts; no light is 0."""
    if str(value).strip().lower() in NO_LIGHT:
        return 0.0
    power = fraction(value)
    if isinstance(power, Unreadable) or power > MOST_DBM:
        return Unreadable(GARBAGE)
    return float(f"{0.001 * math.pow(10, power / 10):.12g}")


def speed(value: object) -> RawNumber:
    """A speed: a number, or in words, such as `400G` and `SPEED_400GB`, in bits per second."""
    found = SPEED.fullmatch(str(value).strip())
    return int(found[1]) * UNITS[found[2]] if found else number(value)


def seconds(value: object) -> RawNumber:
    """A time, or the length of one: a number, with decimals or not, or a date."""
    found: RawNumber = number(value)
    for read in (at_least_zero, unix_time):
        found = read(value) if isinstance(found, Unreadable) else found
    return found


def unix_time(text: object) -> int | Unreadable:
    """Seconds of a time, in UTC unless it says otherwise: `Sat Jan 18 00:08:42 2025` or `2025-01-18T00:08:42.123-04:00`."""
    plain = str(text).strip()
    if ISO_TIME.fullmatch(plain):
        try:
            time = datetime.fromisoformat(plain)
        except ValueError:
            return Unreadable(GARBAGE)
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
    found = parsedate(plain) if TIME.fullmatch(plain) else None
    return timegm(found) if found else Unreadable(GARBAGE)


def below(node: Any, *keys: str) -> Any:
    """The value below these keys; None where a level is missing or is no object."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def members(node: Any) -> dict[str, dict[str, Any]]:
    """The objects of an object; what is no object has none."""
    found = node.items() if isinstance(node, dict) else ()
    return {key: value for key, value in found if isinstance(value, dict)}


def said(value: Any) -> str:
    """A text of the switch as a label; empty where the switch says that it has none."""
    plain = label_text(value) if isinstance(value, str | int) else ""
    return "" if plain.lower() in NOT_SAID else plain


def mac_address(text: str) -> str:
    """The MAC address in lower case with colons; empty if the text is not one."""
    return plain_mac(text) if MAC.fullmatch(text) else ""


def plain_mac(text: str) -> str:
    """The same, whatever separates the digits, for a text that the switch says is a MAC address."""
    digits = re.sub(r"[:.\-\s]", "", text.lower()).removeprefix("0x")
    return ":".join(digits[at : at + 2] for at in range(0, 12, 2)) if HEXADECIMAL.fullmatch(digits) else ""


def neighbor(
    port: str,
    *,
    name: Any,
    chassis: Any,
    port_id: Any,
    description: Any,
    kind: str = "",
    as_said: bool = False,
) -> SwitchFact:
    """The neighbour of a port. `kind` is what the switch says that the port identifier is.

    That is `mac`, `name` or `other`; empty: the switch does not say. Only the port identifier becomes `neighbor_mac`: the chassis
    identifier can be the MAC address of another port. `as_said` keeps the form of MAC addresses.
    """
    identifier, box = said(port_id), said(chassis)
    mac = plain_mac(identifier) if kind == "mac" else "" if kind else mac_address(identifier)
    labels = {
        "port": label_text(port),
        "neighbor": said(name),
        "neighbor_chassis": box if as_said else mac_address(box) or box,
        "neighbor_port": identifier if as_said else mac or identifier,
        "neighbor_description": said(description),
        "neighbor_mac": mac,
        "port_id_kind": "mac" if mac else "name" if kind == "name" or (not kind and identifier) else "other",
        "source": "lldp",
    }
    return SwitchFact(named.SWITCH_NEIGHBOR_INFO, labels)


READERS: Mapping[str, Callable[[Any], RawNumber]] = {
    "bool": switched,
    "bytes_per_second": speed,
    "celsius": fraction,
    "ratio": at_least_zero,
    "seconds": seconds,
    "watts": watts,
}
"""How a value is read, by the unit of its metric; all others are counts."""

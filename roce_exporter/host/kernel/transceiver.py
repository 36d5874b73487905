"""The measurements of a pluggable transceiver: temperature, supply voltage, light and laser current per lane.

SFF-8472 (SFP), SFF-8636 (QSFP, QSFP28) and CMIS 5 (QSFP-DD, OSFP, QSFP112) define different layouts of the module's memory.
All of them also contain the vendor's alarm thresholds.

Names and units: `temperature` in millionths of a degree Celsius, `voltage` in microvolts,
`receive_power_LANE` and `transmit_power_LANE` in nanowatts, `bias_LANE` in microamperes, lanes counted from 1; and
for each quantity `QUANTITY_high_alarm` and `QUANTITY_low_alarm` in the same unit. Quantities that the module does not
measure are left out.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from struct import Struct
from typing import NamedTuple

from roce_exporter.host.kernel import Absent


class PageAddress(NamedTuple):
    """A part of a module's memory. Offsets from 128 are in the given page; lower ones are the same in every page."""

    page: int = 0
    offset: int = 0
    length: int = 128
    i2c: int = 0x50
    bank: int = 0


SFP = frozenset({0x03, 0x0B})
QSFP = frozenset({0x0C, 0x0D, 0x11})
CMIS = frozenset({0x18, 0x19, 0x1A, 0x1B, 0x1E, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25})
"""Identifiers of SFF-8024, table 4-1, by the document that defines the memory layout."""
COPPER = 0xA
"""SFF-8636, table 6-17: from this transmitter technology (byte 147) on, the module is a copper cable without light."""
UPPER = 128
_UNSIGNED = Struct(">H")
_SIGNED = Struct(">h")
_COEFFICIENTS = Struct(">5f")
MICRO = 1_000_000
TEMPERATURE = MICRO / 256
VOLTAGE = 100
POWER = 100
BIAS = 2  # one step of each quantity in our units; the same in all three documents


def read_transceiver(read: Callable[[PageAddress], bytes]) -> dict[str, int]:
    """The measurements and thresholds of a module, with the names and units listed above.

    `read` returns `length` bytes of a page, and is called for two to five pages.

    Raises:
        Absent: the module measures nothing (copper cables), or is of an unknown kind.
        OSError: as raised by `read`.
    """
    lower = read(PageAddress())
    identifier = lower[0]
    if identifier in SFP:
        found = _sff8472(read, lower)
    elif identifier in QSFP:
        found = _sff8636(read, lower)
    elif identifier in CMIS:
        found = _cmis(read, lower)
    else:
        raise Absent(errno.EOPNOTSUPP, f"a transceiver of an unknown kind ({identifier:#04x})")
    # No module runs on 0 V: a supply of 0 means that nothing is measured.
    if not found.get("voltage"):
        raise Absent(errno.EOPNOTSUPP, "the transceiver measures nothing")
    return found


def _sff8636(read: Callable[[PageAddress], bytes], lower: bytes) -> dict[str, int]:
    upper = read(PageAddress(offset=UPPER))
    monitors, copper = upper[220 - UPPER], upper[147 - UPPER] >> 4 >= COPPER
    found = {"temperature": _degrees(lower, 22), "voltage": _number(lower, 26) * VOLTAGE}
    if not copper:
        found |= _lanes("receive_power", lower, 34, POWER)
        found |= _lanes("bias", lower, 42, BIAS)
        if monitors & 0x04:
            found |= _lanes("transmit_power", lower, 50, POWER)
    if not lower[2] & 0x04:  # flat memory has no further pages
        limits = read(PageAddress(page=3, offset=UPPER))
        found |= _temperature_alarms(limits) | _alarms("voltage", limits, 16, VOLTAGE)
        if not copper:
            found |= _alarms("receive_power", limits, 48, POWER) | _alarms("bias", limits, 56, BIAS)
            if monitors & 0x04:
                found |= _alarms("transmit_power", limits, 64, POWER)
    return found


BIAS_FACTORS = (1, 2, 4, 1)
"""CMIS 5, table 8-50: the factor for the laser current, by bits 4 and 3 of byte 160 of page 1."""


def _cmis(read: Callable[[PageAddress], bytes], lower: bytes) -> dict[str, int]:
    found = {"temperature": _degrees(lower, 14), "voltage": _number(lower, 16) * VOLTAGE}
    if lower[2] & 0x80:  # flat memory: a copper cable
        return found
    upper, advertised = read(PageAddress(offset=UPPER)), read(PageAddress(page=1, offset=UPPER))
    module, lane_monitors = advertised[159 - UPPER], advertised[160 - UPPER]
    limits, lanes = read(PageAddress(page=2, offset=UPPER)), read(PageAddress(page=0x11, offset=UPPER))
    present = [lane for lane in range(8) if not upper[210 - UPPER] >> lane & 1]
    factor = BIAS * BIAS_FACTORS[lane_monitors >> 3 & 3]
    if module & 0x01:
        found |= _temperature_alarms(limits)
    else:
        del found["temperature"]
    if module & 0x02:
        found |= _alarms("voltage", limits, 8, VOLTAGE)
    for name, bit, at, limits_at, step in (
        ("transmit_power", 0x02, 154, 176, POWER),
        ("bias", 0x01, 170, 184, factor),
        ("receive_power", 0x04, 186, 192, POWER),
    ):
        if lane_monitors & bit:
            found |= _lanes(name, lanes, at - UPPER, step, present)
            found |= _alarms(name, limits, limits_at - UPPER, step)
    return found


def _sff8472(read: Callable[[PageAddress], bytes], lower: bytes) -> dict[str, int]:
    kind = lower[92]
    if not kind & 0x40 or kind & 0x04:  # nothing measured, or only after a write that changes the address
        raise Absent(errno.EOPNOTSUPP, "the transceiver measures nothing")
    limits = read(PageAddress(i2c=0x51))
    scale = _external(limits) if kind & 0x10 else lambda _, raw: raw
    found = {
        "temperature": round(scale("temperature", _signed(limits, 96)) * TEMPERATURE),
        "voltage": round(scale("voltage", _number(limits, 98)) * VOLTAGE),
        "bias_1": round(scale("bias", _number(limits, 100)) * BIAS),
        "transmit_power_1": round(scale("transmit_power", _number(limits, 102)) * POWER),
        "receive_power_1": round(scale("receive_power", _number(limits, 104)) * POWER),
    }
    found |= _temperature_alarms(limits) | _alarms("voltage", limits, 8, VOLTAGE)
    found |= _alarms("bias", limits, 16, BIAS) | _alarms("transmit_power", limits, 24, POWER)
    return found | _alarms("receive_power", limits, 32, POWER)


def _external(page: bytes) -> Callable[[str, int], float]:
    """The calibration that the module leaves to its host: SFF-8472, section 9.3."""
    coefficients = _COEFFICIENTS.unpack_from(page, 56)
    lines = {"bias": 76, "transmit_power": 80, "temperature": 84, "voltage": 88}

    def calibrate(quantity: str, raw: int) -> float:
        if quantity == "receive_power":
            powers = zip((4, 3, 2, 1, 0), coefficients, strict=True)
            # Some modules have no valid numbers there: an impossible power counts as 0.
            power = sum(factor * raw**exponent for exponent, factor in powers)
            return power if 0 <= power < 1 << 16 else 0.0
        at = lines[quantity]
        return _number(page, at) / 256 * raw + _signed(page, at + 2)

    return calibrate


def _lanes(name: str, page: bytes, at: int, step: int, lanes: Iterable[int] = range(4)) -> dict[str, int]:
    return {f"{name}_{lane + 1}": _number(page, at + 2 * lane) * step for lane in lanes}


def _alarms(name: str, page: bytes, at: int, step: int) -> dict[str, int]:
    return _limits(name, _number(page, at) * step, _number(page, at + 2) * step)


def _temperature_alarms(page: bytes) -> dict[str, int]:
    return _limits("temperature", _degrees(page, 0), _degrees(page, 2))


def _limits(name: str, high: int, low: int) -> dict[str, int]:
    # Equal limits, mostly 0 and 0, were not filled in by the vendor.
    return {f"{name}_high_alarm": high, f"{name}_low_alarm": low} if high > low else {}


def _degrees(page: bytes, at: int) -> int:
    return round(_signed(page, at) * TEMPERATURE)


def _number(page: bytes, at: int) -> int:
    return int(_UNSIGNED.unpack_from(page, at)[0])


def _signed(page: bytes, at: int) -> int:
    return int(_SIGNED.unpack_from(page, at)[0])

"""The health of EOS' ports by eAPI: the replies of its show commands to readings (models of CliPlugin; test data of Arista's anta)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roce_exporter.switches.readings import SwitchReading, label_text
from roce_exporter.switches.reply_values import (
    at_least_zero,
    below,
    fraction,
    is_absent,
    members,
    number,
    numbers,
    watts,
    word,
)
from roce_exporter.switches.systems.eos.models import is_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from roce_exporter.switches.readings import RawNumber

STATES = {"connected": 1, "notconnect": 0, "errdisabled": 0, "disabled": 0}
COUNTERS = (
    "inOctets",
    "outOctets",
    "inUcastPkts",
    "outUcastPkts",
    "inDiscards",
    "outDiscards",
    "totalInErrors",
    "totalOutErrors",
    "linkStatusChanges",
)
DETAILS = ("fcsErrors", "symbolErrors")
ERRORS = ("inErrors", "outErrors", "fcsErrors", "symbolErrors")
DISCARDS = ("inDiscards", "outDiscards")


def port_readings(found: Mapping[str, Any]) -> Iterator[SwitchReading]:
    """The readings of all commands about ports that answered."""
    for source, (table, values_of) in COMMANDS.items():
        for port, row in members(below(found.get(source), table)).items():
            if is_port(port) and (values := dict(values_of(row))):
                yield SwitchReading(source, (("port", label_text(port)),), values)


def _link(row: dict[str, Any]) -> Iterator[tuple[str, RawNumber]]:
    """`show interfaces`."""
    state = row.get("interfaceStatus")
    if not is_absent(state):
        yield "interfaceStatus", word(state, STATES)
        yield "admin-up", int(state != "disabled")
    for name in ("bandwidth", "mtu"):
        if row.get(name):  # 0: no speed, or none that is known
            yield name, number(row[name])
    if not is_absent(changed := row.get("lastStatusChangeTimestamp")):
        yield "lastStatusChangeTimestamp", at_least_zero(changed)
    counters = below(row, "interfaceCounters")
    for one, names in ((counters, COUNTERS), (below(counters, "inputErrorsDetail"), DETAILS)):
        yield from numbers(one if isinstance(one, dict) else {}, names).items()


def _fec(row: dict[str, Any]) -> Iterator[tuple[str, RawNumber]]:
    """`show interfaces phy detail`: a list of PHYs; the first one on the line's side with FEC is that of the cable."""
    parts = row.get("phyStatuses")
    for part in parts if isinstance(parts, list) else ():
        fec = below(part, "fec")
        if isinstance(fec, dict) and below(part, "description", "location") == "line":
            for name in ("correctedCodewords", "uncorrectedCodewords"):
                if not is_absent(value := below(fec, name, "value")):
                    yield name, number(value)
            if not is_absent(ratio := below(part, "preFecBer", "value")):
                yield "preFecBer", at_least_zero(ratio)
            return


def _module(row: dict[str, Any]) -> Iterator[tuple[str, RawNumber]]:
    """`show interfaces transceiver dom thresholds`: powers in dBm per channel."""
    power, temperature = below(row, "parameters", "rxPower"), below(row, "parameters", "temperature")
    channels = below(power, "channels")
    for lane, value in channels.items() if isinstance(channels, dict) else ():
        if lane.isdecimal() and lane.isascii() and len(lane) == 1 and not is_absent(value):
            yield f"rxPower-{lane}", watts(value)
    if not is_absent(limit := below(power, "threshold", "lowAlarm")):
        yield "rxPower-lowAlarm", watts(limit)
    celsius = below(temperature, "channels", "-")
    if not is_absent(celsius):
        yield "temperature", fraction(celsius)


COMMANDS = {
    "links": ("interfaces", _link),
    "error_counters": ("interfaceErrorCounters", lambda row: numbers(row, ERRORS).items()),
    "discard_counters": ("interfaces", lambda row: numbers(row, DISCARDS).items()),
    "fec": ("interfacePhyStatuses", _fec),
    "transceivers": ("interfaces", _module),
}
"""By source where the ports are in its reply, and what is read of each."""
